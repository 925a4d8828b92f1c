/*
 * stream/: where work is put. It owns contexts, the current one of each thread, streams and the
 * records that enter the ring, events, calls of the device, host functions, devices and peers, and
 * who captures. It calls session and entry.
 *
 * Contexts and streams. A context is this process's object only: it owns streams, events, modules
 * and allocations, all within the one session; the server hears of it for `ps` and the logs. Which
 * one is current is the thread's affair.
 *
 * The stream half of the file is where work enters the ring (queue.c). Legacy stream semantics are
 * made here, out of `wait` records: work in the legacy stream waits for what the context's blocking
 * streams hold, and theirs for it.
 *
 * From the top down; each file calls only those below it:
 *
 *   context_api, peer_api, device, green, attr   what programs ask of contexts and devices
 *   limit, check                                 limits of devices, and the checker
 *   context_event, stream_api, primary           and of streams and primary contexts
 *   context_end, local, context                  contexts: their end, what libraries keep there,
 *                                                their making
 *   event, signal, hostfunc, memop               what stands between the records of work
 *   call, stream, thread                         questions, handles, what a thread has
 *   queue                                        where records enter the ring
 *   reach, peer, capture, part, current          state
 */
#ifndef GMUX_CLIENT_STREAM_CONTEXT_H
#define GMUX_CLIENT_STREAM_CONTEXT_H

#include "base/list.h"
#include "client/entry/dispatch.h"
#include "client/session/handle.h"
#include "client/session/session.h"

#define RT_SPIN_NS 1000000 /* before sleeping, for who wants to spin */
/* Smaller is more urgent, and the greatest is the device's. As NVIDIA's data centre devices have
 * it, so that programs find what they know. */
#define RT_PRIORITY_LEAST 0

struct rt_stream;
struct rt_local;
struct rt_stream_capture;

struct rt_context {
    struct rt_object object;
    uint64_t id;     /* never used twice in a process */
    uint32_t number; /* what the server calls it; 1 is the first */
    bool primary;
    CUcontext alias; /* primary, beside a genuine library: the name by which NVIDIA's runtime knows
                        it; NULL */
    _Atomic bool active; /* a primary context's handle outlives its resources */
    CUdevice device;
    struct rt_context *root; /* a green one: the primary context of its device; NULL: none */
    uint32_t part; /* of the client's multiprocessors (struct tp_part); 0: all. Constant, as is the
                      next */
    uint32_t multiprocessors; /* in that part; a green context's, also if it has all */
    _Atomic unsigned greens;  /* that have this one as their root */
    _Atomic unsigned flags;
    unsigned wanted; /* rt_context_lock; primary: the flags that it gets, or has got, with its
                        resources */
    uint32_t peers;  /* rt_context_lock: devices whose memory cuCtxEnablePeerAccess let it touch */
    unsigned references; /* rt_context_lock; of a created one: beyond the first */
    unsigned api_version;
    struct tp_wait_policy wait;         /* as CU_CTX_SCHED_* wants */
    _Atomic(struct rt_stream *) legacy; /* made at first use */
    _Atomic(struct rt_local *) locals;  /* export_table.c: what libraries keep with it */
    CUfunc_cache cache_config;
    uint64_t limits[RT_LIMITS];
    uint64_t heap, heap_place;  /* of kernels; 0: none yet (module/heap.c, its lock) */
    CUstream graph_branches[8]; /* graph lock: streams of our own for branches of graphs, made at
                                   first use */
    CUstream barrier; /* context_event.c's lock: a stream of our own for what concerns all, made at
                         first use */
    uint32_t barrier_number;      /* the number of its queue */
    _Atomic uint64_t barrier_seq; /* how far streams made from now on wait for it; 0: not at all */

    /* ring lock: blocking streams with work that the legacy stream has not waited for, by number */
    bool dirty_any;
    uint64_t dirty[TP_STREAMS / 64];
};

enum rt_role {
    RT_ROLE_BLOCKING, /* ordered against the legacy stream */
    RT_ROLE_NON_BLOCKING,
    RT_ROLE_LEGACY,
    RT_ROLE_MOVER, /* of managed memory's pages (memory/moving.c); as non-blocking */
};

struct rt_stream {
    struct rt_object object;
    struct rt_context *context;
    uint32_t context_generation;
    uint32_t number; /* ring lock; TP_STREAMS once it is retired */
    enum rt_role role;
    unsigned flags;
    int priority;
    uint64_t id;
    _Atomic(struct rt_stream_capture *) capture; /* NULL: it does not capture; capture.h */
    uint64_t legacy_seen; /* ring lock: how far into the legacy stream this one has waited */
    _Atomic unsigned sync_policy; /* enum CUsynchronizationPolicy; 0: never set */
    struct rt_stream_hints {      /* stream/attr.c's lock */
        CUaccessPolicyWindow window;
        CUlaunchMemSyncDomainMap domains;
        bool domains_set;
        CUlaunchMemSyncDomain domain;
    } hints;
};

extern struct rt_table rt_contexts;
extern struct rt_table rt_streams;

/* --- current context -------------------------------------------------------------------------- */

/* Top of this thread's stack. Initial-exec: one instruction to reach on the launch path. */
struct rt_current {
    struct rt_context *context;
    uint32_t generation;
    bool in_callback; /* a host function runs here: no CUDA calls allowed */
};
extern __thread struct rt_current rt_current __attribute__((tls_model("initial-exec")));

/* The device of the current context; the first one without a context. */
static inline int rt_current_device(void)
{
    return rt_current.context ? rt_current.context->device : 0;
}

GM_COLD int rt_current_missing(void);

/* The current context in *out, or what every call reports first: not initialised, no context,
 * destroyed context, the session's sticky error. */
static inline int rt_enter(struct rt_context **out)
{
    struct rt_context *c = rt_current.context;
    *out = c;
    if (GM_UNLIKELY(!c || rt_object_generation(&c->object) != rt_current.generation ||
                    !atomic_load_explicit(&c->active, memory_order_relaxed)))
        return rt_current_missing();
    int error = rt_session_error(rt_session);
    return GM_LIKELY(!error) ? CUDA_SUCCESS : rt_session_failed(rt_session, error);
}

/* For calls that name what they mean by a handle: they need no current context. The same checks
 * otherwise. */
int rt_enter_any(void);

/* In the child of a fork: its only thread has no context. Async-signal-safe. */
void rt_context_forget(void);

/* The context behind a handle; NULL if there is none, or it is inactive and `active` is wanted. */
struct rt_context *rt_context_find(CUcontext handle, bool active);
static inline CUcontext rt_context_handle(const struct rt_context *c)
{
    return !c ? NULL : c->alias ? c->alias : (CUcontext)rt_object_handle(&rt_contexts, &c->object);
}

/* Whose what is made in a context is: a green one has streams of its own, and nothing else. */
static inline struct rt_context *rt_context_owner(struct rt_context *c)
{
    return c && GM_UNLIKELY(c->root != NULL) ? c->root : c;
}

/* A device's primary context, made as a handle when first named. CUresult. */
int rt_context_primary(CUdevice device, struct rt_context **out);
/* A green context on the device, published; it keeps the primary one. CUresult. */
int rt_context_create_green(CUdevice device, uint32_t part, uint32_t multiprocessors,
                            struct rt_context **out);
/* CUDA_ERROR_INVALID_CONTEXT if there is none. */
int rt_context_destroy_green(CUcontext handle);

/* As above, of this root, which may end the next moment unless rt_context_lock is held. */
int rt_context_make_green(struct rt_context *root, uint32_t part, uint32_t multiprocessors,
                          struct rt_context **out);
/* Only its streams end; what was made in it is its root's. rt_context_lock held. */
void rt_context_end_green(struct rt_context *c);

/* A new context, published and announced to the server; not current anywhere. CUresult. */
int rt_context_create(CUdevice device, unsigned flags, bool primary, struct rt_context **out);
/* The server hears of it, and calls may use it from now on. CUresult. */
int rt_context_activate(struct rt_context *c);
/* As rt_context_create(), but its streams run on part number `part` of the client's
 * multiprocessors, which has `multiprocessors` of them. 0, 0: on all. */
int rt_context_create_limited(CUdevice device, unsigned flags, uint32_t part,
                              uint32_t multiprocessors, struct rt_context **out);

/* Whether contexts can have fewer multiprocessors than the client: under a daemon, as with
 * NVIDIA's. */
bool rt_part_possible(CUdevice device);
/* A part with at least so many of the client's multiprocessors, another one than the last time if
 * there are several: its number, and how many those are; 0 and 0: that is all of them. CUresult. */
int rt_part_choose(CUdevice device, uint32_t wanted, uint32_t *part, uint32_t *multiprocessors);
/* The multiprocessors that CUDA_MPS_ACTIVE_THREAD_PERCENTAGE leaves a context that is made now: at
 * most so many. 0: contexts have no percentages, or it says nothing of use. */
uint32_t rt_part_percentage(CUdevice device);
/* What the program is told that a device has. Where contexts have percentages of their own, that
 * is what the current one has. */
uint32_t rt_part_visible(CUdevice device);
/* Waits for its work, then frees everything it owns; a primary context stays as an inactive handle,
 * others go. */
void rt_context_destroy(struct rt_context *c);
bool rt_context_flags_ok(unsigned flags);
void rt_context_set_flags(struct rt_context *c, unsigned flags);
/* Waits for all streams of the context, destroyed ones included. CUresult. */
int rt_context_wait(struct rt_context *c);
/* The contexts this process has ever had open; cuDevicePrimaryCtx* and cuCtx* take this lock around
 * changes. */
extern pthread_mutex_t rt_context_lock;

/* The thread's stack of contexts (thread.c). CUresult; a destroyed context on top is popped like
 * any other. */
int rt_stack_push(struct rt_context *c);
int rt_stack_pop(CUcontext *out);
/* Replaces the top, or pushes on an empty stack. */
int rt_stack_set(struct rt_context *c);
/* The handle on top, NULL if there is none. */
CUcontext rt_stack_top(void);
/* This thread's per-thread default stream in `c`, made at first use, gone with the thread.
 * CUresult. */
int rt_thread_stream(struct rt_context *c, struct rt_stream **out);

/* --- streams ---------------------------------------------------------------------------------- */

/* CUresult. */
int rt_stream_create(struct rt_context *c, enum rt_role role, unsigned flags, int priority,
                     struct rt_stream **out);
/* One that no program has a handle of, without a context; never destroyed. CUresult. */
int rt_stream_create_bare(struct rt_stream **out);
/* No wait: its number is used again when its work is done. */
void rt_stream_destroy(struct rt_stream *st);
/* The stream behind a handle, the legacy one (NULL, CU_STREAM_LEGACY) and the per-thread one
 * included. CUresult. */
int rt_stream_resolve_slow(struct rt_context *c, CUstream handle, struct rt_stream **out);

static inline int rt_stream_resolve(struct rt_context *c, CUstream handle, struct rt_stream **out)
{
    if (handle == NULL && rt_default_stream == CU_STREAM_LEGACY) {
        *out = atomic_load_explicit(&c->legacy, memory_order_acquire);
        if (GM_LIKELY(*out != NULL))
            return CUDA_SUCCESS;
    } else if (GM_LIKELY((*out = (struct rt_stream *)rt_object_find(&rt_streams, handle)) !=
                         NULL)) {
        return CUDA_SUCCESS;
    }
    return rt_stream_resolve_slow(c, handle, out);
}

static inline bool rt_stream_is_default(CUstream handle)
{
    return handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

/* What calls on a stream begin with: a stream of its own needs no current context, the default ones
 * do. *c is the stream's context. CUresult. */
int rt_enter_stream(CUstream handle, struct rt_context **c, struct rt_stream **st);

/* Waits until everything before now is done, as a stream of its role sees it. CUresult. */
int rt_stream_wait(struct rt_stream *st);
/* How the program wants to wait for it. */
struct tp_wait_policy rt_stream_policy(const struct rt_stream *st);
/* The nearest priority there is. */
int rt_stream_priority(const struct rt_context *c, int wanted);
/* CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or the sticky error. */
int rt_stream_query(struct rt_stream *st);

/* --- putting records into the ring ------------------------------------------------------------ */

/* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the stream captures: calls that can be captured have
 * looked before. Takes the ring lock and emits the waits that the stream's role asks for. On
 * failure the lock is not held. CUresult. Then any number of rt_queue_put(), then rt_queue_end().
 */
int rt_queue_begin(struct rt_stream *st);
/* Appends one record: fills in size, stream and sequence number (also to *seq unless NULL).
 * `head->op` is set by the caller. CUresult. */
int rt_queue_put(struct rt_stream *st, struct wire_record *head, size_t head_size, const void *tail,
                 size_t tail_size, uint64_t *seq);
void rt_queue_end(void);
/* Records made beforehand, `bytes` long with each padded to 8 bytes: as so many rt_queue_put(), at
 * the price of one. head.op and head.size are set. */
int rt_queue_put_run(struct rt_stream *st, void *records, size_t bytes);
/* Of a number in the context's `dirty`: how far the legacy stream has to wait for it. 0: not at
 * all, as it is another context's by now. Ring lock. */
uint64_t rt_context_dirty(const struct rt_context *c, uint32_t number);
/* Begin, put, end. */
int rt_queue_submit(struct rt_stream *st, struct wire_record *head, size_t head_size,
                    const void *tail, size_t tail_size);
/* Between begin and end: makes `st` go on when queue `other` has completed `seq`. */
int rt_queue_put_wait(struct rt_stream *st, uint32_t other, uint64_t seq);
/* Begin, that, end. */
int rt_queue_wait(struct rt_stream *st, uint32_t other, uint64_t seq);

#endif
