/*
 * Launches. A launch is checked once, when it is submitted; afterwards its task runs blocks until
 * none is left. Each chunk of blocks runs inside one guard, which costs a nanosecond to arm. The
 * loop over the blocks of a chunk keeps its state in memory, so that after a fault it is known
 * which block faulted.
 */
#include "device/soft/exec/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/attributes.h"
#include "device/soft/check/check.h"
#include "device/soft/exec/worker.h"
#include "device/soft/ir/clones.h"
#include "device/soft/ir/spaces.h"
#include "device/soft/kernel.h"

#define LOCAL_MOST (256ull << 20) /* most local memory of a block */
#define SAVE_MOST  (256ull << 20) /* most memory for registers of a block */
/* CU_LAUNCH_ATTRIBUTE_COOPERATIVE; the next is the offset of a CUlaunchAttribute's value */
#define ATTRIBUTE_COOPERATIVE 2u
#define ATTRIBUTE_VALUE       8u
/* blocks that take longer run one by one, so that they can be stopped */
#define ROW_BLOCK_NS 20000u
#define PARAM_SLACK  64u /* vector loads may read behind the last parameter */
/* A short launch waits for the ring to run dry while so many others come at most. Then the client's
 * thread runs short launches, one after the other, for so long. */
#define BEHIND_MOST 4u
#define CHAIN_NS    60000u

/* The op comes first, since the queue knows the launch as an op. */
struct launch {
    struct dev_op op;
    struct soft_task task;
    struct soft_kernel *kernel;
    struct soft_variant *variant;
    uint32_t grid[3], block[3];
    uint32_t threads;     /* how many of a block run */
    uint32_t stack_bytes; /* per thread, in addition to the kernel's local memory */
    uint32_t shared_bytes, dynamic_bytes;
    uint64_t began; /* gm_cycles() */
    /* this launch's bit in module->workspaces_used; 0: it has none */
    uint64_t workspace;
    struct soft_check_log *checked; /* NULL: the client is not checked */
    uint8_t params[] GM_ALIGNED(16);
};

struct block_loop {
    const struct soft_code *code;
    struct soft_block *block;
    const _Atomic bool *stopping;
    uint64_t next, end;
    uint64_t row; /* blocks to run in one call */
    enum soft_outcome outcome;
};

static void block_place(struct soft_block *b, uint64_t index)
{
    b->block_linear = (uint32_t)index;
    b->ctaid[0] = (uint32_t)(index % b->nctaid[0]);
    b->ctaid[1] = (uint32_t)(index / b->nctaid[0] % b->nctaid[1]);
    b->ctaid[2] = (uint32_t)(index / b->nctaid[0] / b->nctaid[1]);
}

/* How many blocks, from this one on, differ only in x. */
static uint64_t in_row(const struct soft_block *b)
{
    return b->nctaid[0] - b->ctaid[0];
}

static void blocks_run(void *arg)
{
    struct block_loop *l = arg;
    for (; l->next < l->end; l->next += l->block->row) {
        if (atomic_load_explicit(l->stopping, memory_order_relaxed))
            return;
        block_place(l->block, l->next);
        uint64_t left = GM_MIN(l->end - l->next, in_row(l->block));
        l->block->row = (uint32_t)GM_MIN(l->row, left);
        l->outcome = l->code->run_block(l->code, l->block);
        if (GM_UNLIKELY(l->outcome != SOFT_DONE))
            return;
    }
}

/* False: no memory. */
static bool check_prepare(struct soft_worker *w, const struct launch *l, uint64_t local_stride)
{
    struct soft_block *b = &w->block;
    b->check = NULL;
    if (GM_LIKELY(!l->checked))
        return true;
    size_t state = soft_check_block_bytes(l->shared_bytes);
    size_t local = soft_check_local_bits(local_stride) / 8 * l->threads;
    if (!soft_scratch_reserve(w, &w->check, state) ||
        !soft_scratch_reserve(w, &w->check_local, local))
        return false;
    w->check.dirty = GM_MAX(w->check.dirty, state);
    w->check_local.dirty = GM_MAX(w->check_local.dirty, local);
    b->check = (struct soft_check_block *)(void *)w->check.data;
    b->check->check = l->kernel->module->client->check;
    b->check->log = l->checked;
    b->check->local = local ? (uint64_t *)(void *)w->check_local.data : NULL;
    return true;
}

/* Fills the worker's block with what all blocks of the launch share. False: no memory. */
static bool block_prepare(struct soft_worker *w, const struct launch *l,
                          const struct soft_code *code)
{
    struct soft_block *b = &w->block;
    const struct soft_kernel *k = l->kernel;
    const struct dev_client *c = k->module->client;
    uint64_t shared = soft_shared_reserve(l->shared_bytes);
    uint64_t local_stride =
        (GM_MAX(k->local_bytes, code->local_bytes) + l->stack_bytes + SOFT_LOCAL_PIECE - 1) &
        ~(uint64_t)(SOFT_LOCAL_PIECE - 1);
    uint64_t save_stride =
        ((uint64_t)code->save_bytes + SOFT_SAVE_ALIGN - 1) & ~(uint64_t)(SOFT_SAVE_ALIGN - 1);
    uint32_t warps = (l->threads + SOFT_WARP - 1) / SOFT_WARP;
    /* Warps work on whole vectors, so lanes that do not exist need room as well; and compiled code
     * loads whole pieces, of which the element that it wants is not the first. */
    uint64_t local = local_stride * warps * SOFT_WARP + SOFT_LOCAL_PIECE;

    if (!soft_scratch_reserve(w, &w->shared, shared + SOFT_SHARED_GUARD) ||
        !soft_scratch_reserve(w, &w->local, local) ||
        !soft_scratch_reserve(w, &w->save, save_stride * warps) ||
        !check_prepare(w, l, local_stride))
        return false;
    w->shared.dirty = GM_MAX(w->shared.dirty, (size_t)shared + SOFT_SHARED_GUARD);
    w->local.dirty = GM_MAX(w->local.dirty, (size_t)local);
    w->save.dirty = GM_MAX(w->save.dirty, (size_t)(save_stride * warps));

    memcpy(b->nctaid, l->grid, sizeof(b->nctaid));
    memcpy(b->ntid, l->block, sizeof(b->ntid));
    b->threads = l->threads;
    b->warps = warps;
    b->shared_size = l->shared_bytes;
    b->dynamic_shared = l->dynamic_bytes;
    b->params = l->params;
    b->shared = w->shared.data + SOFT_SHARED_GUARD;
    b->shared_mask = shared - 1;
    b->local = w->local.data;
    b->local_stride = local_stride;
    b->save = w->save.data;
    b->save_stride = save_stride;
    b->window_base = c->window.base;
    b->window_mask = c->window.size - 1;
    b->globals = k->module->globals;
    b->helpers = &c->helpers;
    b->fault_address = 0;
    b->fault_thread = 0;
    b->clock_base = l->began;
    return true;
}

/* The error that the client gets, and the words for the log. */
static int fault_of(const struct soft_worker *w, int signal, enum soft_outcome outcome,
                    const char **what)
{
    static const struct {
        int result;
        const char *what;
    } outcomes[] = {
        [SOFT_FAULT_ADDRESS] = { GM_CUDA_ILLEGAL_ADDRESS, "illegal address" },
        [SOFT_FAULT_MISALIGNED] = { GM_CUDA_MISALIGNED_ADDRESS, "misaligned address" },
        [SOFT_FAULT_TRAP] = { GM_CUDA_LAUNCH_FAILED, "trap" },
        [SOFT_FAULT_UNSUPPORTED] = { GM_CUDA_NOT_SUPPORTED,
                                     "operation that this device does not have" },
        [SOFT_FAULT_ASSERT] = { GM_CUDA_ASSERT, "failed assertion" },
        [SOFT_FAULT_BARRIER] = { GM_CUDA_LAUNCH_FAILED, "barrier that can never complete" },
        [SOFT_FAULT_PC] = { GM_CUDA_INVALID_PC, "call of what is no function" },
    };
    if (signal == SIGSEGV && soft_worker_overran(w, w->guard.address)) {
        *what = "more stack than there is";
        return GM_CUDA_LAUNCH_FAILED;
    }
    if (signal == SIGSEGV || signal == SIGBUS) {
        *what = "illegal address";
        return GM_CUDA_ILLEGAL_ADDRESS;
    }
    if (signal == DEV_GUARD_INTERRUPT &&
        atomic_load_explicit(&w->timed_out, memory_order_relaxed)) {
        *what = "time limit exceeded";
        return GM_CUDA_LAUNCH_TIMEOUT;
    }
    if (signal != 0) {
        *what = signal == SIGFPE ? "arithmetic exception" : "illegal instruction";
        return GM_CUDA_LAUNCH_FAILED;
    }
    if (outcome > SOFT_DONE && (size_t)outcome < GM_ARRAY_LEN(outcomes)) {
        *what = outcomes[outcome].what;
        return outcomes[outcome].result;
    }
    *what = "unknown outcome";
    return GM_CUDA_LAUNCH_FAILED;
}

static void launch_fault(const struct launch *l, struct soft_worker *w, int signal,
                         enum soft_outcome outcome)
{
    const struct soft_block *b = &w->block;
    const char *what;
    char thread[64] = "", where[32] = "", text[256];
    int result = fault_of(w, signal, outcome, &what);
    bool has_address = result == GM_CUDA_ILLEGAL_ADDRESS || result == GM_CUDA_MISALIGNED_ADDRESS;
    /* The address of a signal may lie in our own memory, and clients must not learn where that
     * is. */
    if (signal && !dev_window_holds(&l->kernel->module->client->window, w->guard.address, 1))
        has_address = false;
    uint64_t address = !has_address ? 0 : signal ? w->guard.address : b->fault_address;

    if (signal == 0)
        snprintf(thread, sizeof(thread), ", thread (%u,%u,%u)", b->fault_thread % b->ntid[0],
                 b->fault_thread / b->ntid[0] % b->ntid[1],
                 b->fault_thread / b->ntid[0] / b->ntid[1]);
    if (has_address)
        snprintf(where, sizeof(where), " 0x%llx", (unsigned long long)address);
    snprintf(text, sizeof(text), "kernel %.100s, block (%u,%u,%u)%s: %s%s", l->kernel->name,
             b->ctaid[0], b->ctaid[1], b->ctaid[2], thread, what, where);
    dev_work_fail(l->op.queue->work, result, address, text);
}

static void print_take(void *arg, int fd, const char *text, uint32_t size)
{
    struct dev_client *c = arg;
    (void)tp_output_write(&c->output, fd, text, size);
}

/* Delivers what the client's kernels have printed and what the checker has found, before anybody
 * can see that they ended or failed. */
static void print_drain(const struct launch *l)
{
    struct dev_client *c = l->kernel->module->client;
    if (!c->helpers.print)
        return;
    pthread_mutex_lock(&c->print_lock);
    tp_output_lose(&c->output, soft_print_drain(c->helpers.print, print_take, c));
    pthread_mutex_unlock(&c->print_lock);
}

static void check_report(const struct launch *l)
{
    const struct dev_module *m = l->kernel->module;
    if (GM_LIKELY(l->checked == NULL))
        return;
    struct soft_check_launch about = { .kernel = l->kernel->name,
                                       .text = m->text,
                                       .text_size = m->text_size };
    memcpy(about.grid, l->grid, sizeof(about.grid));
    memcpy(about.block, l->block, sizeof(about.block));
    soft_check_report(m->client->check, l->checked, &about, &m->client->output);
}

static bool launch_run(struct soft_task *t, struct soft_worker *w, uint64_t first, uint64_t count)
{
    struct launch *l = GM_CONTAINER_OF(t, struct launch, task);
    struct block_loop loop = { .code = soft_kernel_code(l->kernel, l->variant),
                               .block = &w->block,
                               .stopping = &t->account->stopping,
                               .next = first,
                               .end = first + count };
    loop.row = soft_task_block_ns(t) < ROW_BLOCK_NS ? GM_MAX(loop.code->row, 1u) : 1;

    soft_worker_serve(w, t->account);
    if (!block_prepare(w, l, loop.code)) {
        dev_work_fail(l->op.queue->work, GM_CUDA_LAUNCH_OUT_OF_RESOURCES, 0,
                      "no memory for a kernel's blocks");
        return false;
    }
    int signal = soft_worker_guarded(w, blocks_run, &loop);
    if (GM_LIKELY(signal == 0 && loop.outcome == SOFT_DONE))
        return true;
    print_drain(l);
    check_report(l);
    if (signal != DEV_GUARD_INTERRUPT ||
        !atomic_load_explicit(&t->account->stopping, memory_order_relaxed))
        launch_fault(l, w, signal, loop.outcome);
    return false;
}

/* --- cooperative launches: all blocks are live at once --------------------------------------- */

static void word_clear(void *arg)
{
    memset(arg, 0, SOFT_WORKSPACE_BYTES);
}

/* Gives the launch a workspace. If none is left, or the client has taken its memory away, the
 * kernel gets none, and traps when it uses it. */
static void workspace_take(struct launch *l)
{
    struct dev_module *m = l->kernel->module;
    struct dev_guard g = { 0 };
    uint64_t used = atomic_load_explicit(&m->workspaces_used, memory_order_relaxed);
    do {
        if (used == UINT64_MAX)
            return;
        l->workspace = ~used & (used + 1);
    } while (!atomic_compare_exchange_weak(&m->workspaces_used, &used, used | l->workspace));
    uint64_t address =
        m->workspaces + (uint64_t)__builtin_ctzll(l->workspace) * SOFT_WORKSPACE_BYTES;
    if (dev_guard_call(&g, word_clear, (void *)(uintptr_t)address) == 0)
        memcpy(l->params + l->kernel->workspace_at, &address, sizeof(address));
}

static void workspace_return(struct launch *l)
{
    atomic_fetch_and_explicit(&l->kernel->module->workspaces_used, ~l->workspace,
                              memory_order_relaxed);
    l->workspace = 0;
}

static void launch_done(struct soft_task *t)
{
    struct launch *l = GM_CONTAINER_OF(t, struct launch, task);
    workspace_return(l);
    print_drain(l);
    check_report(l);
    atomic_store_explicit(&l->kernel->block_ns, soft_task_block_ns(t), memory_order_relaxed);
    dev_work_finish(l->op.queue->work, &l->op);
}

static const struct soft_task_ops launch_task_ops = { .run = launch_run,
                                                      .done = launch_done,
                                                      .limited = true };

/* --- short launches: the client's thread runs them when its ring has run dry ------------------ */

static bool is_short(const struct soft_task *t)
{
    uint64_t block_ns = soft_task_block_ns(t);
    return block_ns > 0 && block_ns * t->count <= SOFT_GUEST_NS && t->live == 0;
}

/* With the client's lock held. */
static bool hold(struct dev_client *c, struct launch *l)
{
    if (c->held || !c->guest || !pthread_equal(c->guest->thread, pthread_self()) ||
        !is_short(&l->task))
        return false;
    c->held = &l->op;
    c->held_behind = 1;
    return true;
}

static struct launch *held_take(struct dev_client *c)
{
    pthread_mutex_lock(&c->work.lock);
    struct dev_op *op = c->held;
    c->held = NULL;
    c->held_behind = 0;
    pthread_mutex_unlock(&c->work.lock);
    return op ? GM_CONTAINER_OF(op, struct launch, op) : NULL;
}

/* When a launch ends, the next one of its queue may be held in its place. */
static void held_begin(struct dev_client *c, uint64_t until_ns)
{
    struct launch *l;
    while (c->held_behind && (l = held_take(c)) != NULL)
        if (!(gm_now_ns() < until_ns && soft_guest_run(c->guest, &l->task)) &&
            !soft_task_submit(c->dev->sched, &l->task))
            dev_work_finish(&c->work, &l->op);
}

void soft_flush(struct dev_client *c)
{
    if (c->held_behind)
        held_begin(c, gm_now_ns() + CHAIN_NS);
}

/* --- launches as tasks ------------------------------------------------------------------------ */

bool soft_launch_start(struct dev_op *op)
{
    struct launch *l = GM_CONTAINER_OF(op, struct launch, op);
    struct dev_client *c = op->queue->work->client;
    l->began = gm_cycles();
    if (l->task.together && l->kernel->uses_workspace)
        workspace_take(l);
    return hold(c, l) || soft_task_submit(c->dev->sched, &l->task);
}

struct dev_op *soft_launch_op(struct soft_task *t)
{
    return t->ops == &launch_task_ops ? &GM_CONTAINER_OF(t, struct launch, task)->op : NULL;
}

void soft_launch_release(struct dev_op *op)
{
    struct launch *l = GM_CONTAINER_OF(op, struct launch, op);
    soft_module_unref(l->kernel->module);
    free(l->checked);
    free(l);
}

/* --- submission ------------------------------------------------------------------------------- */

/* Stack per thread for recursive functions. A frame here holds the registers that the text names, a
 * frame on a GPU only those that the compiler keeps. The limit is scaled so that one found by trial
 * on a GPU is enough here, too. */
static uint32_t stack_bytes(const struct soft_kernel *k)
{
    const struct dev_client *c = k->module->client;
    return k->uses_stack ? 2 * atomic_load_explicit(&c->stack_limit, memory_order_relaxed) : 0;
}

/* Why the kernel cannot be launched so, with the client's error in *result; NULL: it can. */
static const char *refusal(const struct soft_kernel *k, const struct dev_launch *l,
                           uint64_t threads, int *result)
{
    *result = GM_CUDA_NOT_SUPPORTED;
    if (!k->interpreter)
        return k->lacks;
    *result = GM_CUDA_INVALID_VALUE;
    if (threads == 0 || l->grid[0] == 0 || l->grid[1] == 0 || l->grid[2] == 0)
        return "empty grid or block";
    if (l->grid[0] > DEV_GRID_X || l->grid[1] > DEV_GRID_YZ || l->grid[2] > DEV_GRID_YZ)
        return "grid too large";
    if (l->block[0] > DEV_BLOCK_XY || l->block[1] > DEV_BLOCK_XY || l->block[2] > DEV_BLOCK_Z)
        return "block too large";
    if (l->params_size - l->attributes * DEV_LAUNCH_ATTRIBUTE < k->param_bytes)
        return "too few parameter bytes";
    if (k->reqntid[0] && memcmp(k->reqntid, l->block, sizeof(k->reqntid)) != 0)
        return "block size is not the one the kernel requires";
    *result = GM_CUDA_LAUNCH_OUT_OF_RESOURCES;
    if (threads > k->max_threads)
        return "more threads per block than the kernel allows";
    if ((uint64_t)k->shared_dynamic + l->shared_bytes > DEV_SHARED_OPTIN_BYTES)
        return "more shared memory than there is";
    uint64_t local = (uint64_t)GM_MAX(k->local_bytes, k->interpreter->local_bytes) + stack_bytes(k);
    if (local * threads > LOCAL_MOST)
        return "more local memory than there is";
    if (k->interpreter->save_bytes * ((threads + SOFT_WARP - 1) / SOFT_WARP) > SAVE_MOST)
        return "more registers than there is room for";
    return NULL;
}

static int launch_wrong(struct dev_queue *q, uint64_t seq, int result, const char *kernel,
                        const char *why)
{
    char text[400];
    snprintf(text, sizeof(text), "launch of %.100s refused: %s", kernel, why);
    dev_work_fail(q->work, result, 0, text);
    return dev_queue_mark(q, seq);
}

/* Only this launch attribute has a meaning here. */
static bool is_cooperative(const struct dev_launch *l)
{
    for (uint32_t i = 0; i < l->attributes; i++) {
        uint32_t id, value;
        const uint8_t *a = (const uint8_t *)l->params + (size_t)i * DEV_LAUNCH_ATTRIBUTE;
        memcpy(&id, a, sizeof(id));
        memcpy(&value, a + ATTRIBUTE_VALUE, sizeof(value));
        if (id == ATTRIBUTE_COOPERATIVE && value)
            return true;
    }
    return false;
}

int soft_launch(struct dev_queue *q, uint64_t seq, const struct dev_launch *l)
{
    struct dev_module *m = l->module;
    if (l->function >= m->kernel_count)
        return launch_wrong(q, seq, GM_CUDA_INVALID_HANDLE, "a function",
                            "there is no such function");

    struct soft_kernel *k = &m->kernels[l->function];
    uint64_t threads = (uint64_t)l->block[0] * l->block[1];
    threads = threads > DEV_BLOCK_THREADS ? UINT32_MAX : threads * l->block[2];
    int result;
    const char *why = refusal(k, l, threads, &result);
    uint64_t count = dev_product(l->grid);
    bool together = is_cooperative(l);
    uint64_t live =
        (uint64_t)soft_sched_workers(q->work->client->dev->sched) * DEV_BLOCKS_PER_MULTIPROCESSOR;
    if (!why && together && count > live) {
        why = "more blocks than can be live at once";
        result = GM_CUDA_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    if (why)
        return launch_wrong(q, seq, result, k->name, why);

    size_t before = (size_t)l->attributes * DEV_LAUNCH_ATTRIBUTE, size = l->params_size - before;
    struct launch *n = calloc(1, sizeof(*n) + size + sizeof(uint64_t) * 2 + PARAM_SLACK);
    if (!n)
        return GM_CUDA_OUT_OF_MEMORY;
    n->kernel = k;
    if (GM_UNLIKELY(m->client->check != NULL) && !(n->checked = soft_check_log_create())) {
        free(n);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    n->variant = n->checked ? NULL : soft_kernel_variant(k, l->block);
    memcpy(n->grid, l->grid, sizeof(n->grid));
    memcpy(n->block, l->block, sizeof(n->block));
    /* The checker has to see all threads, also those that would do the same once more. */
    n->threads = (uint32_t)(n->checked ? threads : ir_threads(k->thread_dims, l->block));
    n->stack_bytes = stack_bytes(k);
    n->dynamic_bytes = l->shared_bytes;
    n->shared_bytes = l->shared_bytes ? k->shared_dynamic + l->shared_bytes
                                      : GM_MAX(k->shared_static, k->shared_dynamic);
    if (k->param_bytes)
        memcpy(n->params, (const uint8_t *)l->params + before, k->param_bytes);
    n->task.ops = &launch_task_ops;
    n->task.account = &q->work->client->account;
    n->task.count = count;
    n->task.live = together || k->may_wait ? live : 0;
    n->task.together = together;
    n->task.priority = q->priority;
    n->task.block_ns = atomic_load_explicit(&k->block_ns, memory_order_relaxed);
    soft_module_ref(m);
    struct dev_client *c = m->client;
    if (!c->guest)
        c->guest = soft_guest_create(c->dev->sched);
    result = dev_queue_launch(q, seq, &n->op, size);
    if (!l->more)
        soft_flush(c);
    else if (c->held_behind && c->held_behind++ > BEHIND_MOST)
        held_begin(c, 0);
    return result;
}
