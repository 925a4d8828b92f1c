#include "device/cuda/client.h"
#include "device/cuda/place.h"
#include "device/cuda/link.h"
#include "device/cuda/memory.h"
#include "device/cuda/module.h"
#include "device/cuda/queue.h"
#include "fake.h"
#include "fake_library.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/admit.h"
#include "device/cuda/array.h"
#include "device/cuda/capacity.h"
#include "device/cuda/fallback.h"
#include "device/cuda/settle.h"
#include "device/cuda/inflight.h"
#include "device/cuda/intake.h"
#include "device/cuda/kernel.h"
#include "device/cuda/op.h"
#include "device/cuda/output.h"

struct green {
    struct fake_sms sms;
    bool gone;
};

/* What a resource is. */
struct piece {
    struct fake_sms sms;
    uint64_t split; /* that it came out of; 0: it may be split */
};

struct action {
    enum { WRITE, PRINT, COPY, CALL, RECORD, WAIT, CHOICE } what;
    uint64_t address, value; /* WAIT: how many actions of `stream` must have happened */
    struct CUstream_st *stream;
    CUhostFn call;
    void *arg;
    const struct cuda_library *library; /* of a kernel */
    bool same_call;                     /* as the one before */
};

struct CUstream_st {
    struct green *green;
    const struct cuda_gpu *gpu; /* that was entered when it was made; NULL: none */
    int priority;
    bool held;
    bool gone;     /* destroyed: what it has still happens */
    bool captures; /* nothing happens */
    CUgraph into;  /* captures to this graph */
    struct action actions[4096];
    unsigned count;
    _Atomic unsigned done;
    unsigned calls; /* of what has not happened */
};

struct CUevent_st {
    const struct cuda_gpu *gpu;
    struct CUstream_st *stream;
    unsigned count;
};

/* Executable, too: what a stream captured, or kernels, one behind the other; a node is the number
 * of one. Or what streams captured to it, with conditions: CHOICE, whose `arg` is a choice. */
struct CUgraph_st {
    struct action inner[16];
    unsigned inner_count;
    unsigned initial[4]; /* of its handles */
    unsigned handles;
    struct CUstream_st *stream;
    struct green *green;
    uint32_t kernels[64];
    const struct cuda_library *libraries[64];
    uint32_t count;
    struct CUstream_st *launched; /* in which it was launched last */
    unsigned until;               /* it runs until so many actions have happened there */
    bool gone;                    /* destroyed, while it runs */
    size_t local;                 /* local memory of a thread when it was made */
};

/* A condition; no kernel sets its value. */
struct choice {
    CUgraphConditionalHandle handle;
    CUgraphConditionalNodeType kind;
    CUgraph bodies[4];
    unsigned count;
};

static struct choice choices[1024];
static struct CUgraph_st bodies[1024];
static unsigned choices_count, bodies_count;
static struct CUgraph_st *executable[1024];
static unsigned graphs, graph_launches;
static bool graphs_refused, fallbacks_refused, lost;
static void (*asked)(CUstream);
static void (*launched)(void);
static unsigned channel_size;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream streams[2048];
static unsigned streams_count;
static _Atomic unsigned greens;
static __thread const struct cuda_gpu *entered;
static struct fake_copy copies[16];
static unsigned copies_count, copies_allowed = UINT_MAX, faults;
static bool faults_expected;
static CUDA_MEMCPY3D last_box;
static char printed[1 << 16]; /* not flushed */
static _Atomic(const void *) last_mark;
static uint32_t happened[1 << 16];
static unsigned happened_count;

static bool happen(CUstream s)
{
    struct action *a = &s->actions[s->done];
    if (s->held || s->captures || s->done == s->count ||
        (a->what == WAIT && a->stream->done < a->value))
        return false;
    if (a->what == WRITE)
        atomic_store((_Atomic uint64_t *)(uintptr_t)a->address, a->value);
    if (a->what == PRINT)
        (void)snprintf(printed + strlen(printed), sizeof(printed) - strlen(printed), "%u\n",
                       (unsigned)a->value);
    if (a->what == CALL)
        a->call(a->arg);
    if ((a->what == PRINT || a->what == COPY) && happened_count < GM_ARRAY_LEN(happened))
        happened[happened_count++] = (uint32_t)a->value;
    s->calls -= !a->same_call;
    s->done++;
    return true;
}

static void run(void)
{
    for (bool any = true; any;) {
        any = false;
        for (unsigned i = 0; i < streams_count; i++)
            any |= streams[i] && happen(streams[i]);
    }
}

/* Calls that have not happened yet. */
static unsigned in_channel(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < streams_count; i++)
        n += streams[i]->captures ? 0 : streams[i]->calls;
    return n;
}

static CUresult act(CUstream s, struct action a)
{
    cr_assert(!s->gpu || s->gpu == entered, "a stream of another context than the current one");
    cr_assert_not(s->gone);
    pthread_mutex_lock(&lock);
    cr_assert_lt(s->count, GM_ARRAY_LEN(s->actions));
    s->actions[s->count++] = a;
    s->calls += !a.same_call;
    run();
    cr_assert(!channel_size || in_channel() <= channel_size,
              "the channel is full: everybody stands still");
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Calls that wait until nothing runs, with a lock that everybody needs: admit.h. So nothing may run
 * there then, unless nobody waits in this test. */
void fake_wait_for_all(void)
{
    if (!entered || entered->dev->rest_ns == CUDA_NEVER)
        return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < streams_count; i++)
        cr_assert(!streams[i]->held || streams[i]->captures || streams[i]->gpu != entered ||
                      streams[i]->done == streams[i]->count,
                  "everybody stands still");
    pthread_mutex_unlock(&lock);
}

/* A context has room for so many streams; to make more of it waits. */
static unsigned room = 1024;
static struct {
    atomic_uint used, more;
} rooms[2 * DEV_DEVICES];

static size_t stacks[2 * DEV_DEVICES];
static size_t locals[2 * DEV_DEVICES]; /* the driver's local memory, of a thread */

static unsigned room_of(const struct cuda_gpu *g)
{
    return g ? g->index + g->is_fallback * DEV_DEVICES : 0;
}

static void take_room(const struct cuda_gpu *g)
{
    unsigned r = room_of(g);
    if (++rooms[r].used <= room + rooms[r].more)
        return;
    rooms[r].more++;
    fake_wait_for_all();
}

static void give_room(const struct cuda_gpu *g)
{
    rooms[room_of(g)].used--;
}

static CUresult set_limit(CUlimit limit, size_t value)
{
    fake_wait_for_all();
    if (limit == CU_LIMIT_STACK_SIZE)
        locals[room_of(entered)] = stacks[room_of(entered)] = value;
    return CUDA_SUCCESS;
}

static CUresult get_limit(size_t *value, CUlimit limit)
{
    *value = limit == CU_LIMIT_STACK_SIZE                         ? stacks[room_of(entered)]
             : limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT ? 2048
                                                                  : 0;
    return CUDA_SUCCESS;
}

void fake_make_local(size_t bytes)
{
    locals[0] = GM_MAX(locals[0], bytes);
}

size_t fake_stack(void)
{
    return stacks[room_of(entered)];
}

static CUresult make(CUstream *out, struct green *g, int priority)
{
    if (!g)
        take_room(entered);
    *out = calloc(1, sizeof(**out));
    (*out)->green = g;
    (*out)->priority = priority;
    (*out)->gpu = entered;
    pthread_mutex_lock(&lock);
    cr_assert_lt(streams_count, GM_ARRAY_LEN(streams));
    streams[streams_count++] = *out;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *out, unsigned flags, int priority)
{
    return make(out, NULL, priority);
}

static CUresult green_stream(CUstream *out, CUgreenCtx green, unsigned flags, int priority)
{
    cr_assert_eq(flags, CU_STREAM_NON_BLOCKING);
    cr_assert_not(((struct green *)(void *)green)->gone,
                  "a stream in a green context that has been destroyed");
    return make(out, (struct green *)(void *)green, priority);
}

static CUresult stream_destroy(CUstream s)
{
    cr_assert_not(s->gone);
    s->gone = true;
    if (!s->green)
        give_room(s->gpu);
    return CUDA_SUCCESS;
}

static bool is_idle(CUstream s)
{
    pthread_mutex_lock(&lock);
    bool idle = s->captures || s->done == s->count;
    pthread_mutex_unlock(&lock);
    return idle;
}

static CUresult query(CUstream s)
{
    cr_assert_not(s->gone);
    if (asked)
        asked(s);
    if (lost)
        return CUDA_ERROR_LAUNCH_FAILED;
    return is_idle(s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult synchronize(CUstream s)
{
    cr_assert_eq(query(s), CUDA_SUCCESS, "nobody may wait here");
    pthread_mutex_lock(&lock);
    fputs(printed, stdout);
    printed[0] = '\0';
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *e, unsigned flags)
{
    *e = calloc(1, sizeof(**e));
    (*e)->gpu = entered;
    return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent e)
{
    free(e);
    return CUDA_SUCCESS;
}

static CUresult record(CUevent e, CUstream s)
{
    cr_assert_eq(e->gpu, s->gpu, "an event of another context than the stream");
    cr_assert(!s->gpu || s->gpu == entered);
    act(s, (struct action) { .what = RECORD });
    *e = (struct CUevent_st) { e->gpu, s, s->count };
    return CUDA_SUCCESS;
}

static CUresult batch(CUstream s, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags)
{
    for (unsigned i = 0; i < count; i++) {
        cr_assert_eq(ops[i].operation, CU_STREAM_MEM_OP_WRITE_VALUE_64);
        last_mark = (const void *)(uintptr_t)ops[i].writeValue.address;
        act(s, (struct action) { .what = WRITE,
                                 .address = ops[i].writeValue.address,
                                 .value = ops[i].writeValue.value64,
                                 .same_call = i != 0 });
    }
    return CUDA_SUCCESS;
}

static CUresult wait_event(CUstream s, CUevent e, unsigned flags)
{
    return act(s, (struct action) { .what = WAIT, .stream = e->stream, .value = e->count });
}

static CUresult write64(CUstream s, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    last_mark = (const void *)(uintptr_t)address;
    return act(s, (struct action) { .what = WRITE, .address = address, .value = value });
}

static CUresult host_function(CUstream s, CUhostFn f, void *arg)
{
    return act(s, (struct action) { .what = CALL, .call = f, .arg = arg });
}

static CUresult begin_capture(CUstream s, CUstreamCaptureMode mode)
{
    cr_assert_eq(mode, CU_STREAM_CAPTURE_MODE_RELAXED, "other threads do not notice");
    s->captures = true;
    return CUDA_SUCCESS;
}

static CUresult begin_capture_to(CUstream s, CUgraph g, const CUgraphNode *nodes,
                                 const CUgraphEdgeData *edges, size_t count,
                                 CUstreamCaptureMode mode)
{
    cr_assert_eq(g->inner_count, 0);
    cr_assert_eq(s->count, 0);
    s->into = g;
    return begin_capture(s, mode);
}

static CUresult capture_info(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id,
                             CUgraph *graph, const CUgraphNode **nodes,
                             const CUgraphEdgeData **edges, size_t *count)
{
    static CUgraphNode last;
    cr_assert(s->captures && s->into);
    last = (CUgraphNode)(uintptr_t)s->count;
    *nodes = &last;
    *edges = NULL;
    *count = s->count != 0;
    return CUDA_SUCCESS;
}

static CUresult handle_create(CUgraphConditionalHandle *out, CUgraph g, CUcontext c,
                              unsigned initial, unsigned flags)
{
    cr_assert_lt(g->handles, GM_ARRAY_LEN(g->initial));
    g->initial[g->handles] = initial;
    *out = ++g->handles;
    return CUDA_SUCCESS;
}

static CUresult add_any(CUgraphNode *out, CUgraph g, const CUgraphNode *behind,
                        const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *p)
{
    CUstream s = NULL;
    for (unsigned i = 0; i < streams_count && !s; i++)
        s = streams[i]->into == g ? streams[i] : NULL;
    cr_assert(s);
    cr_assert(count ? (uintptr_t)*behind == s->count : s->count == 0, "not behind the last one");
    struct choice *c = &choices[choices_count++];
    *c = (struct choice) { .handle = p->conditional.handle,
                           .kind = p->conditional.type,
                           .count = p->conditional.size };
    for (unsigned i = 0; i < c->count; i++)
        c->bodies[i] = &bodies[bodies_count++];
    p->conditional.phGraph_out = c->bodies;
    s->actions[s->count++] = (struct action) { .what = CHOICE, .arg = c };
    *out = (CUgraphNode)c;
    return CUDA_SUCCESS;
}

static CUresult go_on_behind(CUstream s, CUgraphNode *nodes, const CUgraphEdgeData *edges,
                             size_t count, unsigned flags)
{
    cr_assert_eq(count, 1);
    cr_assert_eq((void *)*nodes, s->actions[s->count - 1].arg);
    return CUDA_SUCCESS;
}

static CUresult end_capture(CUstream s, CUgraph *out)
{
    cr_assert(s->captures);
    if (s->into) {
        cr_assert_leq(s->count, GM_ARRAY_LEN(s->into->inner));
        memcpy(s->into->inner, s->actions, s->count * sizeof(*s->actions));
        s->into->inner_count = s->count;
        s->into->green = s->green;
        *out = s->into;
        s->into = NULL;
        s->count = s->calls = 0;
        s->captures = false;
        return CUDA_SUCCESS;
    }
    *out = calloc(1, sizeof(**out));
    (*out)->stream = s;
    return CUDA_SUCCESS;
}

static const struct green *graph_green(const struct CUgraph_st *g)
{
    return g->stream ? g->stream->green : g->green;
}

static CUresult instantiate(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    *out = (CUgraphExec)(void *)calloc(1, sizeof(*g));
    *(struct CUgraph_st *)(void *)*out = *g;
    ((struct CUgraph_st *)(void *)*out)->local = locals[room_of(entered)];
    cr_assert_lt(graphs, GM_ARRAY_LEN(executable));
    executable[graphs++] = (void *)*out;
    fake_wait_for_all(); /* where there is no memory for it */
    return CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraph g)
{
    free(g);
    return CUDA_SUCCESS;
}

/* What runs is there until it is done. */
static void free_graphs(void)
{
    for (unsigned i = 0; i < graphs;) {
        struct CUgraph_st *e = executable[i];
        if (e->gone && (!e->launched || e->launched->done >= e->until)) {
            executable[i] = executable[--graphs];
            free(e);
        } else {
            i++;
        }
    }
}

static CUresult exec_destroy(CUgraphExec e)
{
    unsigned i = 0;
    while (executable[i] != (void *)e)
        cr_assert_lt(++i, graphs);
    cr_assert_not(executable[i]->gone);
    if (executable[i]->handles)
        fake_wait_for_all();
    executable[i]->gone = true;
    free_graphs();
    return CUDA_SUCCESS;
}

static void is_there(const struct cuda_library *l)
{
    cr_assert(!l || l->users > 0, "a kernel of a library that has gone");
}

/* `outermost` has the values. */
static void play(const struct CUgraph_st *g, const struct CUgraph_st *outermost, CUstream s)
{
    for (unsigned i = 0; i < g->inner_count; i++) {
        const struct choice *c = g->inner[i].arg;
        if (g->inner[i].what != CHOICE) {
            is_there(g->inner[i].library);
            act(s, g->inner[i]);
            continue;
        }
        unsigned value = outermost->initial[c->handle - 1];
        if (c->kind == CU_GRAPH_COND_TYPE_IF)
            value = !value;
        if (value < c->count)
            play(c->bodies[value], outermost, s);
    }
}

static CUresult graph_launch(CUgraphExec e, CUstream s)
{
    struct CUgraph_st *g = (struct CUgraph_st *)(void *)e;
    graph_launches++;
    cr_assert_leq(g->local, locals[room_of(entered)], "the GPU ends the context");
    cr_assert_eq(graph_green(g), s->green);
    play(g, g, s);
    for (unsigned i = 0; g->stream && i < g->stream->count; i++) {
        is_there(g->stream->actions[i].library);
        act(s, g->stream->actions[i]);
    }
    for (unsigned i = 0; i < g->count; i++) {
        is_there(g->libraries[i]);
        act(s, (struct action) { .what = PRINT, .value = g->kernels[i] });
    }
    g->launched = s;
    g->until = s->count;
    return CUDA_SUCCESS;
}

/* A function is a handle of its library, and of the context in which it was loaded. */
CUfunction fake_function_of(const struct cuda_library *l, const struct cuda_gpu *g)
{
    return (CUfunction)((uintptr_t)l | g->is_fallback);
}

static const struct cuda_library *library_of(CUfunction f)
{
    cr_assert(!entered || entered->is_fallback == ((uintptr_t)f & 1),
              "a function of another context");
    return (const struct cuda_library *)((uintptr_t)f & ~(uintptr_t)1);
}

static CUresult graph_create(CUgraph *out, unsigned flags)
{
    *out = calloc(1, sizeof(**out));
    return CUDA_SUCCESS;
}

/* Kernels are handles of their library. */
static void set_node(struct CUgraph_st *g, unsigned i, const CUDA_KERNEL_NODE_PARAMS *params)
{
    g->libraries[i] = params->func ? library_of(params->func) : (void *)params->kern;
    is_there(g->libraries[i]);
    cr_assert_neq(params->func != NULL, params->kern != NULL);
    cr_assert_eq(params->func != NULL, params->ctx == NULL);
    g->green = (void *)params->ctx;
    memcpy(&g->kernels[i], params->extra[1], sizeof(uint32_t));
}

static CUresult add_kernel(CUgraphNode *out, CUgraph g, const CUgraphNode *behind, size_t count,
                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    cr_assert_eq(count, g->count != 0);
    cr_assert(!count || (uintptr_t)*behind == g->count, "not behind the last one");
    cr_assert_lt(g->count, GM_ARRAY_LEN(g->kernels));
    set_node(g, g->count, params);
    *out = (CUgraphNode)(uintptr_t)++g->count;
    return CUDA_SUCCESS;
}

static CUresult set_kernel(CUgraphExec e, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct CUgraph_st *g = (struct CUgraph_st *)(void *)e;
    cr_assert(node && (uintptr_t)node <= g->count);
    if (graphs_refused)
        return CUDA_ERROR_INVALID_VALUE;
    is_there(g->libraries[(uintptr_t)node - 1]); /* the driver looks at what it replaces */
    cr_assert_eq(g->green, (void *)params->ctx, "a node does not change its context");
    set_node(g, (unsigned)(uintptr_t)node - 1, params);
    return CUDA_SUCCESS;
}

static CUresult copied(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream s, bool peers)
{
    if (copies_allowed == 0)
        return CUDA_ERROR_INVALID_VALUE;
    copies_allowed -= copies_allowed != UINT_MAX;
    if (copies_count < GM_ARRAY_LEN(copies))
        copies[copies_count++] =
            (struct fake_copy) { dst, src, size, s, entered->index, entered->is_fallback, peers };
    return act(s, (struct action) { .what = COPY, .value = (dst - FAKE_WINDOW) % FAKE_GPU_BYTES });
}

static CUresult copy(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream s)
{
    return copied(dst, src, size, s, false);
}

static CUresult copy_peers(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
                           size_t size, CUstream s)
{
    cr_assert_neq(to, from);
    return copied(dst, src, size, s, true);
}

static CUresult copy_box(const CUDA_MEMCPY3D *b, CUstream s)
{
    cr_assert_eq(b->srcMemoryType, CU_MEMORYTYPE_UNIFIED);
    cr_assert_eq(b->dstMemoryType, CU_MEMORYTYPE_UNIFIED);
    last_box = *b;
    return copied(b->dstDevice, b->srcDevice, b->WidthInBytes * b->Height * b->Depth, s, false);
}

static CUresult write_to(CUdeviceptr dst, const void *src, size_t size, CUstream s)
{
    return copied(dst, 0, size, s, false);
}

static CUresult set(CUdeviceptr dst, unsigned value, size_t count, CUstream s)
{
    return copied(dst, 0, count, s, false);
}

/* Parameters come packed. */
static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, CUstream s, void **params,
                       void **extra)
{
    uint32_t number;
    if (!extra) /* a time stamp: nobody looks at it */
        return act(s, (struct action) { .what = WAIT, .stream = s });
    const struct cuda_library *l = library_of(f);
    is_there(l);
    if (launched)
        launched();
    memcpy(&number, extra[1], sizeof(number));
    return act(s, (struct action) { .what = PRINT, .value = number, .library = l });
}

static _Atomic int launch_priority = FAKE_STREAMS_PRIORITY;

int fake_launch_priority(void)
{
    return atomic_exchange(&launch_priority, FAKE_STREAMS_PRIORITY);
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            atomic_store(&launch_priority, config->attrs[i].value.priority);
    return launch(f, 1, 1, 1, 1, 1, 1, 0, config->hStream, params, extra);
}

static CUresult array_create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    *out = calloc(1, 1);
    return CUDA_SUCCESS;
}

static CUresult array_destroy(CUarray a)
{
    fake_wait_for_all();
    free(a);
    return CUDA_SUCCESS;
}

static CUresult import(CUmemGenericAllocationHandle *out, void *fd, CUmemAllocationHandleType type)
{
    *out = 1;
    return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle h,
                    unsigned long long flags)
{
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle h)
{
    return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr at, size_t size)
{
    return CUDA_SUCCESS;
}

static CUresult set_access(CUdeviceptr at, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    return CUDA_SUCCESS;
}

static CUresult host_register(void *p, size_t size, unsigned flags)
{
    return CUDA_SUCCESS;
}

static CUresult host_unregister(void *p)
{
    fake_wait_for_all();
    return CUDA_SUCCESS;
}

static CUresult device_pointer(CUdeviceptr *out, void *p, unsigned flags)
{
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext c)
{
    entered = (const struct cuda_gpu *)(void *)c;
    return CUDA_SUCCESS;
}

static CUresult range(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

/* --- multiprocessors -------------------------------------------------------------------------- */

/* Clusters are within one of these. */
static const unsigned neighbours[] = { 18, 18, 18, 16, 16, 16, 16, 14 };

static bool has(const struct fake_sms *s, unsigned sm)
{
    return s->words[sm / 64] >> sm % 64 & 1;
}

static void move(struct fake_sms *from, struct fake_sms *to, unsigned sm)
{
    from->words[sm / 64] &= ~(1ull << sm % 64);
    to->words[sm / 64] |= 1ull << sm % 64;
}

static unsigned count_sms(const struct fake_sms *s)
{
    unsigned n = 0;
    for (size_t i = 0; i < GM_ARRAY_LEN(s->words); i++)
        n += (unsigned)__builtin_popcountll(s->words[i]);
    return n;
}

static CUresult give(CUdevResource *r, const struct fake_sms *sms, uint64_t split)
{
    const struct piece p = { *sms, split };
    memset(r, 0, sizeof(*r));
    memcpy(r->_internal_padding, &p, sizeof(p));
    r->sm.smCount = count_sms(sms);
    r->type = r->sm.smCount ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID;
    return CUDA_SUCCESS;
}

static struct piece take(const CUdevResource *r)
{
    struct piece p;
    cr_assert_eq(r->type, CU_DEV_RESOURCE_TYPE_SM);
    memcpy(&p, r->_internal_padding, sizeof(p));
    return p;
}

static CUresult device_resource(CUdevice device, CUdevResource *r, CUdevResourceType type)
{
    struct fake_sms all = { { 0 } }, none = all;
    for (unsigned i = 0; i < FAKE_SMS; i++)
        move(&none, &all, i);
    return give(r, &all, 0);
}

/* The next `size` between `first` and `end` that are in `from`, into `to`; false if there are not
 * as many. */
static bool cut(struct fake_sms *from, struct fake_sms *to, unsigned first, unsigned end,
                unsigned size)
{
    unsigned there = 0;
    memset(to, 0, sizeof(*to));
    for (unsigned i = first; i < end; i++)
        there += has(from, i);
    for (unsigned i = first; there >= size && i < end && size; i++)
        if (has(from, i)) {
            move(from, to, i);
            size--;
        }
    return size == 0;
}

static unsigned split_sms(struct fake_sms *from, unsigned size, unsigned most, struct fake_sms *out)
{
    unsigned count = 0, first = 0;
    for (size_t i = 0; size <= 8 && i < GM_ARRAY_LEN(neighbours); first += neighbours[i++])
        while (count < most && cut(from, &out[count], first, first + neighbours[i], 8))
            count++;
    while (size > 8 && count < most && cut(from, &out[count], 0, FAKE_SMS, (size + 7) / 8 * 8))
        count++;
    return count;
}

/* As an H200 has it: groups of 8 are neighbours, larger ones are of what there is. */
static CUresult split(CUdevResource *out, unsigned *count, const CUdevResource *all,
                      CUdevResource *rest, unsigned flags, unsigned size)
{
    static _Atomic uint64_t splits;
    struct fake_sms groups[FAKE_GROUPS + 1];
    struct piece p = take(all);
    cr_assert_eq(p.split, 0, "what came out of a split is not split again");
    cr_assert_leq(size, all->sm.smCount);
    *count = split_sms(&p.sms, size, out ? *count : GM_ARRAY_LEN(groups), groups);
    splits++;
    for (unsigned i = 0; out && i < *count; i++)
        give(&out[i], &groups[i], splits);
    if (rest)
        give(rest, &p.sms, splits);
    return CUDA_SUCCESS;
}

static CUresult describe(CUdevResourceDesc *out, CUdevResource *chosen, unsigned count)
{
    struct green *g = calloc(1, sizeof(*g));
    for (unsigned i = 0; i < count; i++) {
        struct piece p = take(&chosen[i]);
        cr_assert_eq(p.split, take(&chosen[0]).split);
        for (unsigned n = 0; n < FAKE_SMS; n++) {
            cr_assert_not(has(&p.sms, n) && has(&g->sms, n));
            if (has(&p.sms, n))
                move(&p.sms, &g->sms, n);
        }
    }
    *out = (CUdevResourceDesc)(void *)g;
    return CUDA_SUCCESS;
}

static CUresult green_create(CUgreenCtx *out, CUdevResourceDesc d, CUdevice device, unsigned flags)
{
    fake_wait_for_all();
    *out = (CUgreenCtx)(void *)d;
    greens++;
    return CUDA_SUCCESS;
}

static CUresult green_context(CUcontext *out, CUgreenCtx g)
{
    *out = (CUcontext)(void *)g;
    return CUDA_SUCCESS;
}

static CUresult green_destroy(CUgreenCtx g)
{
    for (unsigned i = 0; i < streams_count; i++)
        cr_assert(streams[i]->green != (struct green *)(void *)g || is_idle(streams[i]),
                  "work still runs there");
    free_graphs();
    for (unsigned i = 0; i < graphs; i++)
        cr_assert_neq(graph_green(executable[i]), (void *)g,
                      "a graph's context goes before the graph");
    ((struct green *)(void *)g)->gone = true;
    greens--;
    return CUDA_SUCCESS;
}

static CUresult green_resource(CUgreenCtx g, CUdevResource *r, CUdevResourceType type)
{
    return give(r, &((struct green *)(void *)g)->sms, 0);
}

/* --- the device ------------------------------------------------------------------------------- */

static _Atomic unsigned gone;

static void is_gone(void *arg, struct tp_session *session)
{
    tp_session_detach(session);
    free(session);
    gone++;
}

static void fault(void *arg, struct dev_client *c, int result, uint64_t address, const char *text)
{
    cr_assert(faults_expected, "a client failed: %d, %s", result, text);
    faults++;
}

struct dev *fake_devices(uint32_t count)
{
    static struct dev d;
    d = (struct dev) { .api = { .cuStreamCreateWithPriority = stream_create,
                                .cuGreenCtxStreamCreate = green_stream,
                                .cuStreamDestroy_v2 = stream_destroy,
                                .cuCtxSetCurrent = set_current,
                                .cuCtxSetLimit = set_limit,
                                .cuCtxGetLimit = get_limit,
                                .cuStreamQuery = query,
                                .cuStreamSynchronize = synchronize,
                                .cuEventCreate = event_create,
                                .cuEventDestroy_v2 = event_destroy,
                                .cuEventRecord = record,
                                .cuStreamWaitEvent = wait_event,
                                .cuStreamWriteValue64_v2 = write64,
                                .cuStreamBatchMemOp_v2 = batch,
                                .cuStreamBeginCapture_v2 = begin_capture,
                                .cuStreamEndCapture = end_capture,
                                .cuStreamBeginCaptureToGraph = begin_capture_to,
                                .cuStreamGetCaptureInfo_v3 = capture_info,
                                .cuStreamUpdateCaptureDependencies_v2 = go_on_behind,
                                .cuGraphConditionalHandleCreate = handle_create,
                                .cuGraphAddNode_v2 = add_any,
                                .cuGraphInstantiateWithFlags = instantiate,
                                .cuGraphDestroy = graph_destroy,
                                .cuGraphExecDestroy = exec_destroy,
                                .cuGraphCreate = graph_create,
                                .cuGraphAddKernelNode_v2 = add_kernel,
                                .cuGraphExecKernelNodeSetParams_v2 = set_kernel,
                                .cuGraphLaunch = graph_launch,
                                .cuMemcpyAsync = copy,
                                .cuMemcpyPeerAsync = copy_peers,
                                .cuMemcpy3DAsync_v2 = copy_box,
                                .cuMemcpyHtoDAsync_v2 = write_to,
                                .cuMemsetD32Async = set,
                                .cuLaunchKernel = launch,
                                .cuLaunchKernelEx = launch_ex,
                                .cuLaunchHostFunc = host_function,
                                .cuArray3DCreate_v2 = array_create,
                                .cuArrayDestroy = array_destroy,
                                .cuMemImportFromShareableHandle = import,
                                .cuMemMap = map,
                                .cuMemRelease = release,
                                .cuMemUnmap = unmap,
                                .cuMemSetAccess = set_access,
                                .cuMemHostRegister_v2 = host_register,
                                .cuMemHostUnregister = host_unregister,
                                .cuMemHostGetDevicePointer_v2 = device_pointer,
                                .cuCtxGetStreamPriorityRange = range,
                                .cuDeviceGetDevResource = device_resource,
                                .cuDevSmResourceSplitByCount = split,
                                .cuDevResourceGenerateDesc = describe,
                                .cuCtxFromGreenCtx = green_context,
                                .cuGreenCtxCreate = green_create,
                                .cuGreenCtxDestroy = green_destroy,
                                .cuGreenCtxGetDevResource = green_resource },
                       .count = count };
    cuda_dev_init(&d, &(struct dev_events) { .client_fault = fault, .client_gone = is_gone });
    d.rest_ns = d.ahead_ns = CUDA_NEVER; /* until a test says otherwise */
    d.unknown_ns = d.held_ns = d.stays_ns = d.away_ns = 0;
    d.returns_ns = d.rest_most_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct cuda_gpu *g = &d.gpus[i];
        *g = (struct cuda_gpu) {
            .dev = &d,
            .index = i,
            .context = (CUcontext)(void *)g,
            .info = { .multiprocessors = FAKE_SMS,
                      .memory_total = 80ull << 30,
                      .attributes = { [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 2048,
                                      [CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = 32 } }
        };
        d.fallbacks[i] = (struct cuda_gpu) {
            .dev = &d,
            .index = i,
            .is_fallback = true,
            .context = (CUcontext)(void *)&d.fallbacks[i],
            .info = { .multiprocessors = FAKE_SMS,
                      .memory_total = 80ull << 30,
                      .attributes = { [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] =
                                          2048 } }
        };
        g->capacity.made = d.fallbacks[i].capacity.made = room;
        cuda_places_open(g);
        cuda_priorities_open(g);
        cuda_enter(g);
        cr_assert_eq(d.api.cuStreamCreateWithPriority(&g->print_stream, CU_STREAM_NON_BLOCKING, 0),
                     CUDA_SUCCESS);
    }
    cr_assert_eq(cuda_watch_start(&d), 0);
    cr_assert_eq(cuda_leave_start(&d), 0);
    return &d;
}

struct dev *fake_device(void)
{
    return fake_devices(1);
}

void fake_hold(CUstream s, bool hold)
{
    pthread_mutex_lock(&lock);
    s->held = hold;
    run();
    pthread_mutex_unlock(&lock);
}

uint64_t fake_stream_groups(CUstream s)
{
    struct fake_sms all, groups[FAKE_GROUPS];
    CUdevResource r;
    uint64_t found = 0;
    device_resource(0, &r, CU_DEV_RESOURCE_TYPE_SM);
    all = take(&r).sms;
    unsigned count = s->green ? split_sms(&all, 8, FAKE_GROUPS, groups) : 0;
    for (unsigned i = 0; i < count; i++) {
        bool whole = true;
        for (size_t w = 0; w < GM_ARRAY_LEN(groups[i].words); w++)
            whole &= (groups[i].words[w] & ~s->green->sms.words[w]) == 0;
        found |= (uint64_t)whole << i;
    }
    return found;
}

struct fake_sms fake_stream_sms(CUstream s)
{
    return s->green ? s->green->sms : (struct fake_sms) { { 0 } };
}

int fake_stream_priority(CUstream s)
{
    return s->priority;
}

unsigned fake_greens(void)
{
    return greens;
}

unsigned fake_graphs(void)
{
    free_graphs();
    return graphs;
}

unsigned fake_graph_launches(void)
{
    return graph_launches;
}

void fake_refuse_graphs(bool refuse)
{
    graphs_refused = refuse;
}

unsigned fake_happened(const uint32_t **out)
{
    static uint32_t taken[GM_ARRAY_LEN(happened)];
    pthread_mutex_lock(&lock);
    unsigned count = happened_count;
    memcpy(taken, happened, count * sizeof(*taken));
    happened_count = 0;
    pthread_mutex_unlock(&lock);
    *out = taken;
    return count;
}

void fake_expect(uint32_t number, unsigned times)
{
    const uint32_t *numbers;
    unsigned count = fake_happened(&numbers), found = 0;
    for (unsigned i = 0; i < count; i++)
        found += numbers[i] == number;
    cr_assert_eq(found, times);
}

void fake_when_asked(void (*f)(CUstream s))
{
    asked = f;
}

void fake_step(CUstream s)
{
    bool begun = false;
    pthread_mutex_lock(&lock);
    s->held = false;
    while (s->done < s->count) {
        bool works = s->actions[s->done].what == PRINT || s->actions[s->done].what == COPY;
        if ((works && begun) || !happen(s))
            break;
        begun |= works;
    }
    s->held = true;
    run();
    pthread_mutex_unlock(&lock);
}

void fake_when_launched(void (*f)(void))
{
    launched = f;
}

void fake_let_go(void)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < streams_count; i++)
        if (streams[i])
            streams[i]->held = false;
    run();
    pthread_mutex_unlock(&lock);
}

void fake_forget(void)
{
    unsigned kept = 0;
    free_graphs();
    pthread_mutex_lock(&lock);
    cr_assert_eq(graphs, 0);
    for (unsigned i = 0; i < streams_count; i++) {
        cr_assert(streams[i]->captures || streams[i]->done == streams[i]->count,
                  "something has not happened");
        if (streams[i]->gone)
            free(streams[i]);
        else
            streams[kept++] = streams[i];
    }
    cr_assert_eq(kept, entered->dev->count, "a stream stays");
    streams_count = kept;
    copies_count = happened_count = 0;
    printed[0] = '\0';
    pthread_mutex_unlock(&lock);
}

const char *fake_printed(void)
{
    static char taken[sizeof(printed)];
    pthread_mutex_lock(&lock);
    memcpy(taken, printed, sizeof(taken));
    printed[0] = '\0';
    pthread_mutex_unlock(&lock);
    return taken;
}

/* --- what the tests leave out of the device --------------------------------------------------- */

unsigned fake_entered(bool *away)
{
    *away = entered->is_fallback;
    return entered->index;
}

const void *fake_last_mark(void)
{
    return last_mark;
}

unsigned fake_gone(void)
{
    return gone;
}

unsigned fake_waiting_in(CUstream s)
{
    unsigned n = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = s->done; i < s->count; i++)
        n += s->actions[i].what == PRINT || s->actions[i].what == COPY;
    pthread_mutex_unlock(&lock);
    return n;
}

unsigned fake_copies(const struct fake_copy **out)
{
    *out = copies;
    return copies_count;
}

void fake_refuse_copies(unsigned after)
{
    copies_allowed = after;
    faults_expected = true;
}

const CUDA_MEMCPY3D *fake_box(void)
{
    return &last_box;
}

void fake_channel(unsigned size)
{
    channel_size = size;
}

unsigned fake_in_channel(void)
{
    pthread_mutex_lock(&lock);
    unsigned n = in_channel();
    pthread_mutex_unlock(&lock);
    return n;
}

void fake_expect_faults(void)
{
    faults_expected = true;
}

unsigned fake_faults(void)
{
    return faults;
}

void fake_lose(void)
{
    lost = true;
}

void cuda_function_dynamic(struct cuda_gpu *g, struct cuda_function *f, uint32_t bytes)
{
}

void cuda_link_finish(struct dev_client *c)
{
}

CUresult cuda_gpu_open(struct cuda_gpu *g)
{
    return CUDA_SUCCESS;
}

struct cuda_gpu *cuda_fallback_open(struct cuda_gpu *first)
{
    return fallbacks_refused ? NULL : &first->dev->fallbacks[first->index];
}

void fake_capacity(struct dev *d, unsigned size)
{
    room = size + 1; /* the one that prints */
    for (uint32_t i = 0; i < d->count; i++)
        d->gpus[i].capacity = d->fallbacks[i].capacity =
            (struct cuda_capacity) { .made = size, .nodes = UINT16_MAX };
}

void fake_refuse_fallbacks(bool refuse)
{
    fallbacks_refused = refuse;
}
