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
 *   reach, peer, capture, part, current, event_slot   state
 */
#ifndef GMUX_CLIENT_STREAM_CONTEXT_H
#define GMUX_CLIENT_STREAM_CONTEXT_H

#include "base/list.h"
#include "client/entry/dispatch.h"
#include "client/session/handle.h"
#include "client/session/session.h"

#define RT_SPIN_NS 1000000 /* how long a thread that wants to spin does so before it sleeps */
/* Smaller numbers are more urgent. These are the priorities of NVIDIA's data centre devices, so
 * that programs find what they know. */
#define RT_PRIORITY_LEAST 0

struct rt_stream;
struct rt_local;
struct rt_stream_capture;

struct rt_context {
    struct rt_object object;
    uint64_t id;     /* never used twice in a process */
    uint32_t number; /* the server's number of it, from 1 */
    bool primary;
    /* For a primary context beside a genuine library: the handle by which NVIDIA's runtime knows
     * it; else NULL. It may become known after others use the context. */
    _Atomic(CUcontext) alias;
    _Atomic bool active; /* a primary context's handle outlives its resources */
    CUdevice device;
    struct rt_context *root; /* for a green context the primary context of its device; else NULL */
    /* The part of the client's multiprocessors that it has (struct tp_part); 0: all. Constant, as
     * is the next field. */
    uint32_t part;
    /* how many multiprocessors that part has; for a green context also if it has all */
    uint32_t multiprocessors;
    _Atomic unsigned greens; /* how many green contexts have this one as their root */
    _Atomic unsigned flags;
    /* For a primary context: the flags of its resources, present or future; rt_context_lock. */
    unsigned wanted;
    /* rt_context_lock: the devices whose memory cuCtxEnablePeerAccess lets it access */
    uint32_t peers;
    unsigned references; /* rt_context_lock; for a created context: how many beyond the first */
    unsigned api_version;
    struct tp_wait_policy wait;         /* what CU_CTX_SCHED_* asks for */
    _Atomic(struct rt_stream *) legacy; /* made at first use */
    _Atomic(struct rt_local *) locals;  /* what libraries keep with it (local.h) */
    CUfunc_cache cache_config;
    uint64_t limits[RT_LIMITS];
    /* the heap of kernels; 0: none yet (module/heap.c, under its lock) */
    uint64_t heap, heap_place;
    /* Graph lock: our own streams for branches of graphs, made at first use. */
    CUstream graph_branches[8];
    /* context_event.c's lock: our own stream for what concerns all streams, made at first use. */
    CUstream barrier;
    uint32_t barrier_number; /* the number of its queue */
    /* how far streams that are made from now on wait for it; 0: not at all */
    _Atomic uint64_t barrier_seq;

    /* ring lock: the blocking streams, by number, with work that the legacy stream has not waited
     * for */
    bool dirty_any;
    uint64_t dirty[TP_STREAMS / 64];
};

enum rt_role {
    RT_ROLE_BLOCKING, /* ordered against the legacy stream */
    RT_ROLE_NON_BLOCKING,
    RT_ROLE_LEGACY,
    /* one of ours, which moves managed memory (memory/moving.c) or clears memory (memory/clear.c);
     * like a non-blocking stream, but managed memory does not move for it */
    RT_ROLE_OWN,
};

struct rt_stream {
    struct rt_object object;
    struct rt_context *context;
    uint32_t context_generation;
    uint32_t number; /* ring lock; TP_STREAMS: its number has been retired */
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
    bool in_callback; /* a host function runs on this thread: no CUDA calls allowed */
};
extern __thread struct rt_current rt_current __attribute__((tls_model("initial-exec")));

/* The device of the current context; the first device if there is no context. */
static inline int rt_current_device(void)
{
    return rt_current.context ? rt_current.context->device : 0;
}

GM_COLD int rt_current_missing(void);

/* Gets the current context, or the error that every call reports first: not initialised, no
 * context, destroyed context, the session's sticky error. */
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

/* Like rt_enter(), for calls that name their object by a handle and need no current context. */
int rt_enter_any(void);
/* Like rt_enter_any(), for calls that a current context must not be destroyed for. */
int rt_enter_living(void);
/* Like rt_enter_any(), for calls that work after the session's error, too: what they are about is
 * this process's, or known anyway. */
int rt_enter_plain(void);
/* Like rt_enter_any(), for calls that only look, which host functions may make, too. */
int rt_enter_query(void);

/* Called in the child of a fork: its only thread has no context. Async-signal-safe. */
void rt_context_forget(void);

/* Finds a context; NULL: there is none, or it is inactive and `active` is set. */
struct rt_context *rt_context_find(CUcontext handle, bool active);
/* Finds the context of a call that waits for its work or adds to it. CUDA_ERROR_INVALID_CONTEXT:
 * there is none; CUDA_ERROR_CONTEXT_IS_DESTROYED: it is inactive. */
int rt_context_find_to_work(CUcontext handle, struct rt_context **out);
static inline CUcontext rt_context_handle(const struct rt_context *c)
{
    CUcontext alias = c ? atomic_load_explicit(&c->alias, memory_order_relaxed) : NULL;
    return !c ? NULL : alias ? alias : (CUcontext)rt_object_handle(&rt_contexts, &c->object);
}

/* The owner of what is made in a context: a green context owns streams, and nothing else. */
static inline struct rt_context *rt_context_owner(struct rt_context *c)
{
    return c && GM_UNLIKELY(c->root != NULL) ? c->root : c;
}

/* A device's primary context, whose handle is made when it is first named. CUresult. */
int rt_context_primary(CUdevice device, struct rt_context **out);
/* Makes a green context on the device, and publishes it; it keeps the primary context. CUresult. */
int rt_context_create_green(CUdevice device, uint32_t part, uint32_t multiprocessors,
                            struct rt_context **out);
/* CUDA_ERROR_INVALID_CONTEXT: there is no such context. */
int rt_context_destroy_green(CUcontext handle);

/* Like rt_context_create_green(), with this root, which may end at any time unless rt_context_lock
 * is held. */
int rt_context_make_green(struct rt_context *root, uint32_t part, uint32_t multiprocessors,
                          struct rt_context **out);
/* Ends its streams only; what was made in it belongs to its root. rt_context_lock held. */
void rt_context_end_green(struct rt_context *c);

/* Makes a context, publishes it and announces it to the server; it is not current anywhere.
 * CUresult. */
int rt_context_create(CUdevice device, unsigned flags, bool primary, struct rt_context **out);
/* Announces the context to the server; from now on calls may use it. CUresult. */
int rt_context_activate(struct rt_context *c);
/* Like rt_context_create(), but its streams run on part `part` of the client's multiprocessors,
 * which has `multiprocessors` of them. 0, 0: on all. */
int rt_context_create_limited(CUdevice device, unsigned flags, uint32_t part,
                              uint32_t multiprocessors, struct rt_context **out);

/* Whether contexts can have fewer multiprocessors than the client. As with NVIDIA's driver, only
 * under a daemon. */
bool rt_part_possible(CUdevice device);
/* Chooses a part with at least `wanted` of the client's multiprocessors; if there are several,
 * another one than the last time. Gives its number and size; 0 and 0: it would be all of them.
 * CUresult. */
int rt_part_choose(CUdevice device, uint32_t wanted, uint32_t *part, uint32_t *multiprocessors);
/* The most multiprocessors that CUDA_MPS_ACTIVE_THREAD_PERCENTAGE allows a context that is made
 * now. 0: contexts have no percentages, or the variable has no valid one. */
uint32_t rt_part_percentage(CUdevice device);
/* How many multiprocessors the program is told that the device has. If contexts have percentages,
 * those of the current one. */
uint32_t rt_part_visible(CUdevice device);
/* Waits for the context's work, then frees everything that it owns. A primary context remains as an
 * inactive handle; others are gone. */
void rt_context_destroy(struct rt_context *c);
bool rt_context_flags_ok(unsigned flags);
void rt_context_set_flags(struct rt_context *c, unsigned flags);
/* Waits for all streams of the context, destroyed ones included. CUresult. */
int rt_context_wait(struct rt_context *c);
/* Protects changes of contexts: cuDevicePrimaryCtx* and cuCtx* hold it. */
extern pthread_mutex_t rt_context_lock;

/* The thread's stack of contexts (thread.c). CUresult. A destroyed context on top is popped like
 * any other. */
int rt_stack_push(struct rt_context *c);
int rt_stack_pop(CUcontext *out);
/* Replaces the top, or pushes on an empty stack. */
int rt_stack_set(struct rt_context *c);
/* The handle on top, NULL if there is none. */
CUcontext rt_stack_top(void);
/* This thread's per-thread default stream in `c`, which is made at first use and ends with the
 * thread. CUresult. */
int rt_thread_stream(struct rt_context *c, struct rt_stream **out);

/* --- streams ---------------------------------------------------------------------------------- */

/* CUresult. */
int rt_stream_create(struct rt_context *c, enum rt_role role, unsigned flags, int priority,
                     struct rt_stream **out);
/* Makes a stream of a device without a context, of which no program has a handle; it is never
 * destroyed. `priority`: one that the device has. CUresult. */
int rt_stream_create_bare(int device, int priority, struct rt_stream **out);
/* Whether the device has the domains of memory synchronisation that the map names. */
bool rt_stream_domains_ok(CUlaunchMemSyncDomainMap map);
/* Destroys a stream without waiting: its number is used again when its work is done. */
void rt_stream_destroy(struct rt_stream *st);
/* Finds a stream, including the legacy one (NULL, CU_STREAM_LEGACY) and the per-thread one.
 * CUresult. */
int rt_stream_resolve_slow(struct rt_context *c, CUstream handle, struct rt_stream **out);

/* The number of the context's legacy stream; TP_STREAMS: it has none. Under the ring lock. */
static inline uint32_t rt_context_legacy(const struct rt_context *c)
{
    const struct rt_stream *legacy = atomic_load_explicit(&c->legacy, memory_order_relaxed);
    return legacy ? legacy->number : TP_STREAMS;
}

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

/* Calls on a stream begin with this. A stream that the program made needs no current context, the
 * default ones do. *c is the stream's context. CUresult. */
int rt_enter_stream(CUstream handle, struct rt_context **c, struct rt_stream **st);
/* Like rt_enter_stream(), for a call that only looks, which host functions may make, too. */
int rt_enter_stream_query(CUstream handle, struct rt_stream **st);

/* Like rt_enter_stream(), for the calls of which there are many: quick where there is a current
 * context. */
static inline int rt_enter_work(CUstream handle, struct rt_stream **st)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    return GM_UNLIKELY(r) ? rt_enter_stream(handle, &c, st) : rt_stream_resolve(c, handle, st);
}

/* Waits until everything issued before is done; for the default streams that includes what their
 * role orders before them. CUresult. */
int rt_stream_wait(struct rt_stream *st);
/* How the program wants to wait for the stream. */
struct tp_wait_policy rt_stream_policy(const struct rt_stream *st);
/* The nearest priority that the device has. */
int rt_stream_priority(int device, int wanted);
/* CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or the sticky error. */
int rt_stream_query(struct rt_stream *st);
/* Both for what the caller does itself in place of work of the stream: they look at everything that
 * such work would wait for, so for a blocking stream also at the legacy stream's. */
int rt_stream_wait_turn(struct rt_stream *st);
int rt_stream_query_turn(struct rt_stream *st);

/* --- putting records into the ring ------------------------------------------------------------ */

/* Begins to put records into the ring: takes the ring lock, and emits the waits that the stream's
 * role requires. CUresult; on failure the lock is not held. CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
 * the stream captures; calls that can be captured have checked that before. Then follow any number
 * of rt_queue_put(), and rt_queue_end(). */
int rt_queue_begin(struct rt_stream *st);
/* Appends one record: fills in size, stream and sequence number (also to *seq unless NULL).
 * `head->op` is set by the caller. CUresult. */
int rt_queue_put(struct rt_stream *st, struct wire_record *head, size_t head_size, const void *tail,
                 size_t tail_size, uint64_t *seq);
void rt_queue_end(void);
/* Appends records that were made before, `bytes` long with each padded to 8 bytes: like many calls
 * of rt_queue_put(), at the cost of one. head.op and head.size are set. */
int rt_queue_put_run(struct rt_stream *st, void *records, size_t bytes);
/* How far the legacy stream has to wait for a number in the context's `dirty`. 0: not at all, since
 * it belongs to another context by now. Ring lock held. */
uint64_t rt_context_dirty(const struct rt_context *c, uint32_t number);
/* rt_queue_begin(), rt_queue_put(), rt_queue_end(). */
int rt_queue_submit(struct rt_stream *st, struct wire_record *head, size_t head_size,
                    const void *tail, size_t tail_size);
/* Between begin and end: makes `st` go on when queue `other` has completed `seq`. */
int rt_queue_put_wait(struct rt_stream *st, uint32_t other, uint64_t seq);
/* rt_queue_begin(), rt_queue_put_wait(), rt_queue_end(). */
int rt_queue_wait(struct rt_stream *st, uint32_t other, uint64_t seq);

#endif
