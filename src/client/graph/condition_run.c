/*
 * Runs conditional nodes. When a launch comes to one, a thread begins for it. The thread looks at
 * the value, launches bodies with the graph lock held, and waits for them without it.
 */
#include <signal.h>

#include "base/log.h"
#include "client/graph/exec.h"
#include "client/stream/hostfunc.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("graph");

int rt_conditional_ready(struct rt_exec_body *b, struct rt_context *c)
{
    int r = CUDA_SUCCESS;
    for (struct rt_conditional_run *run = b->conditionals; run && r == CUDA_SUCCESS;
         run = run->next) {
        struct rt_stream *st = rt_object_find(&rt_streams, run->stream);
        if (st && st->context == c)
            continue;
        r = rt_stream_create(c, RT_ROLE_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 0, &st);
        if (r == CUDA_SUCCESS)
            run->stream = (CUstream)rt_object_handle(&rt_streams, &st->object);
    }
    return r;
}

int rt_conditional_begin(const struct rt_exec_body *b, struct rt_stream *st)
{
    int r = CUDA_SUCCESS;
    for (const struct rt_conditional_run *run = b->conditionals; run && r == CUDA_SUCCESS;
         run = run->next) {
        const struct wire_rec_fill fill = { .head.op = WIRE_OP_FILL,
                                            .dst = run->condition->handle,
                                            .pitch = sizeof(uint32_t),
                                            .width = 1,
                                            .height = 1,
                                            .value = run->condition->initial,
                                            .element_size = sizeof(uint32_t) };
        if (run->condition->assign) {
            struct wire_rec_fill record = fill;
            r = rt_queue_put(st, &record.head, sizeof(record), NULL, 0, NULL);
        }
        for (unsigned i = 0; i < run->count && r == CUDA_SUCCESS; i++)
            r = rt_conditional_begin(run->bodies[i], st);
    }
    return r;
}

/* Returns NULL if there is no body for the value. */
static struct rt_exec_body *body_for(const struct rt_conditional_run *run, uint32_t value)
{
    switch (run->kind) {
    case CU_GRAPH_COND_TYPE_SWITCH:
        return value < run->count ? run->bodies[value] : NULL;
    case CU_GRAPH_COND_TYPE_IF:
        return value ? run->bodies[0] : run->count > 1 ? run->bodies[1] : NULL;
    default:
        return value ? run->bodies[0] : NULL;
    }
}

static int run_body(const struct rt_conditional_run *run, struct rt_exec_body *body)
{
    rt_graph_lock();
    struct rt_stream *st = rt_object_find(&rt_streams, run->stream);
    int r = st ? run->launch(body, st) : CUDA_ERROR_INVALID_HANDLE;
    const uint32_t number = body->last_number;
    const uint64_t seq = body->last_seq;
    rt_graph_unlock();
    return r ? r : rt_session_wait(rt_session, number, seq, &rt_session->patient);
}

static void *work(void *arg)
{
    struct rt_conditional_run *run = arg;
    struct rt_exec_body *owner = run->owner, *body;
    int r = CUDA_SUCCESS;
    do {
        body = body_for(run, atomic_load(rt_condition_word(run->condition)));
        r = body ? run_body(run, body) : CUDA_SUCCESS;
    } while (body && r == CUDA_SUCCESS && run->kind == CU_GRAPH_COND_TYPE_WHILE);
    if (r)
        gm_warn(&topic, "the body of a conditional node ended with error %d", r);
    atomic_store(&run->done, true);
    atomic_fetch_sub(&owner->running, 1); /* the thread touches nothing after this */
    return NULL;
}

/* Called by the library's thread when the stream has come here. The new thread must not get the
 * program's signals. */
static bool is_done(void *arg)
{
    struct rt_conditional_run *run = arg;
    pthread_t thread;
    sigset_t every, before;
    if (!run->started) {
        run->started = true;
        atomic_fetch_add(&run->owner->running, 1);
        sigfillset(&every);
        pthread_sigmask(SIG_SETMASK, &every, &before);
        if (pthread_create(&thread, NULL, work, run) == 0) {
            (void)pthread_detach(thread);
        } else {
            gm_warn(&topic, "no thread for a conditional node: its bodies do not run");
            atomic_store(&run->done, true);
            atomic_fetch_sub(&run->owner->running, 1);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return atomic_load(&run->done);
}

/* Waits for the thread, which also ends if the session has failed. */
static void end(void *arg)
{
    struct rt_conditional_run *run = arg;
    if (!atomic_load(&run->done))
        return;
    run->started = false;
    atomic_store(&run->done, false);
}

int rt_conditional_put(struct rt_conditional_run *run, struct rt_stream *st)
{
    return rt_gate_put(st, is_done, end, run);
}
