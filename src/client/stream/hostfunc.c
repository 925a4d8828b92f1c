/*
 * There is one list of calls, in the order of their gates, which is also the order of every stream.
 * The library's thread sleeps on a condition while the list is empty, and else on the session's
 * count of arrivals. The list's lock is not held while a function runs. A producer that waits for
 * room in the ring does not need it, because the ring may be full for the reason that its consumer
 * waits for a gate.
 */
#include "client/stream/hostfunc.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "client/gen/api.h"
#include "client/stream/capture.h"
#include "client/stream/coherence.h"

#define LOOK_MIN_NS 10000L
#define LOOK_MAX_NS 500000L

atomic_bool rt_hostfunc_runs;

struct call {
    struct gm_list link;
    uint32_t number;
    uint64_t seq;
    CUhostFn fn;
    CUstreamCallback callback;
    bool (*ready)(void *arg); /* a gate that opens by itself; fn is called in any case */
    CUstream handle;
    void *arg;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct gm_list calls = { &calls, &calls }; /* lock */
static bool started;                              /* lock */
static unsigned looked_at;                        /* lock; how many calls have `ready` */

static bool arrived(const struct call *call)
{
    return atomic_load_explicit(&rt_session->shared.streams[call->number].arrived,
                                memory_order_acquire) >= call->seq;
}

/* Takes the first call whose gate was reached; after an error the first call. Called with the lock
 * held. */
static struct call *take_ready(bool failed)
{
    gm_list_for_each (call, &calls, struct call, link) {
        if (failed || (arrived(call) && (!call->ready || call->ready(call->arg)))) {
            looked_at -= call->ready != NULL;
            gm_list_remove(&call->link);
            return call;
        }
    }
    return NULL;
}

/* Runs a call. After an error host functions are dropped, but callbacks of the older kind are
 * told. */
static void run(struct call *call, int error)
{
    struct rt_session *s = rt_session;
    rt_coherence_acquire();
    atomic_store(&rt_hostfunc_runs, true);
    if (call->callback)
        call->callback(call->handle, (CUresult)error, call->arg);
    else if (!error || call->ready)
        call->fn(call->arg);
    atomic_store(&rt_hostfunc_runs, false);
    (void)rt_coherence_release(); /* the work behind it sees what the function wrote */
    atomic_store_explicit(&s->shared.streams[call->number].gate, call->seq, memory_order_release);
    tp_ring_kick(&s->shared.control->ring);
    free(call);
}

/* Sleeps before the next look. Nobody tells this thread when a gate may be opened, so it looks
 * often at first, and less often later. */
static void look_again(long *nap_ns)
{
    const struct timespec nap = { .tv_nsec = *nap_ns };
    nanosleep(&nap, NULL);
    *nap_ns = GM_MIN(*nap_ns * 2, LOOK_MAX_NS);
}

static void *upcall_main(void *arg GM_UNUSED)
{
    struct rt_session *s = rt_session;
    struct tp_wait_policy policy = s->patient;
    long nap_ns = LOOK_MIN_NS;
    rt_current.in_callback = true;
    for (;;) {
        uint64_t seen =
            atomic_load_explicit(&s->shared.control->arrivals.value, memory_order_acquire);
        pthread_mutex_lock(&lock);
        while (gm_list_empty(&calls))
            pthread_cond_wait(&more, &lock);
        int error = rt_session_error(s);
        struct call *call = take_ready(error != CUDA_SUCCESS);
        bool look = looked_at != 0;
        pthread_mutex_unlock(&lock);
        if (call) {
            nap_ns = LOOK_MIN_NS;
            run(call, error);
        } else if (look) {
            (void)rt_session_look(s); /* the loop sees an error at its next turn */
            look_again(&nap_ns);
        } else {
            (void)tp_word_wait(&s->shared.control->arrivals, seen + 1,
                               &policy); /* also an error of this wait */
        }
    }
    return NULL;
}

/* Starts the library's thread, which must not get the program's signals. Called with the lock
 * held. */
static int start_thread(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    if (started)
        return CUDA_SUCCESS;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, &attributes, upcall_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

int rt_hostfunc_ready(void)
{
    pthread_mutex_lock(&lock);
    int r = start_thread();
    pthread_mutex_unlock(&lock);
    return r;
}

/* Takes the call out of the list again. Returns false if the library's thread has it already. */
static bool take_back(const struct call *call)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    gm_list_for_each_safe (c, &calls, struct call, link)
        if (c == call) {
            looked_at -= c->ready != NULL;
            gm_list_remove(&c->link);
            found = true;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

/* Called between rt_queue_begin() and rt_queue_end(), so that the record's number is known before.
 * The call has to be in the list before its gate can be reached: otherwise the library's thread
 * could look for it too early, and would not be told again. */
static int put(struct rt_stream *st, const struct call *wanted)
{
    struct wire_rec_gate gate = { .head.op = WIRE_OP_GATE };
    if (st->number >= TP_STREAMS)
        return CUDA_ERROR_INVALID_HANDLE; /* another thread has just destroyed the stream */
    struct call *call = malloc(sizeof(*call));
    if (!call)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *call = *wanted;
    call->number = st->number;
    call->seq = rt_queue_issued(rt_session, st->number) + 1;
    pthread_mutex_lock(&lock);
    gm_list_append(&calls, &call->link);
    looked_at += call->ready != NULL;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
    int r = rt_queue_put(st, &gate.head, sizeof(gate), NULL, 0, NULL);
    if (r && take_back(call)) {
        free(call);
        return r;
    }
    return CUDA_SUCCESS; /* or all calls are dropped together after an error */
}

int rt_hostfunc_put(struct rt_stream *st, CUhostFn fn, void *arg)
{
    return put(st, &(struct call) { .fn = fn, .arg = arg });
}

static int add(struct rt_stream *st, const struct call *wanted)
{
    int r = rt_hostfunc_ready();
    r = r ? r : rt_queue_begin(st);
    if (r)
        return r;
    r = put(st, wanted);
    rt_queue_end();
    return r;
}

int rt_hostfunc_add(struct rt_stream *st, CUhostFn fn, CUstreamCallback callback, CUstream handle,
                    void *arg)
{
    return add(st, &(struct call) { .fn = fn, .callback = callback, .handle = handle, .arg = arg });
}

int rt_gate_add(struct rt_stream *st, bool (*ready)(void *arg), void (*end)(void *arg), void *arg)
{
    return add(st, &(struct call) { .fn = end, .ready = ready, .arg = arg });
}

int rt_gate_put(struct rt_stream *st, bool (*ready)(void *arg), void (*end)(void *arg), void *arg)
{
    return put(st, &(struct call) { .fn = end, .ready = ready, .arg = arg });
}

CUresult rt_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct rt_stream *st;
    int r = fn ? rt_enter_work(hStream, &st) : (int)CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS && GM_UNLIKELY(rt_stream_captures(st)))
        return rt_hooks.capture_host(st, fn, userData);
    return r ? r : rt_hostfunc_add(st, fn, NULL, hStream, userData);
}
