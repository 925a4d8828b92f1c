/*
 * How contexts end. A context's objects are found by searching the tables for objects that name it.
 * So creating an object need not keep a list.
 */
#include "client/entry/hooks.h"
#include "client/stream/coherence.h"
#include "client/stream/context.h"
#include "client/stream/event.h"
#include "client/stream/local.h"
#include "client/stream/peer.h"

static int wait_own(struct rt_context *c)
{
    struct rt_session *s = rt_session;
    uint32_t used = atomic_load_explicit(&s->queues_used, memory_order_acquire);
    for (uint32_t i = 0; i < used; i++) {
        if (atomic_load_explicit(&s->queues[i].context, memory_order_relaxed) != c->id)
            continue;
        int r = rt_session_wait(s, i, rt_queue_issued(s, i), &c->wait);
        if (r)
            return r;
    }
    rt_coherence_acquire();
    return rt_session_error(s);
}

struct waiting {
    struct rt_context *root;
    int result;
};

static void wait_green(struct rt_object *o, void *arg)
{
    struct rt_context *c = (struct rt_context *)(void *)o;
    struct waiting *w = arg;
    if (c->root == w->root && w->result == CUDA_SUCCESS)
        w->result = wait_own(c);
}

/* Waits for the context; for a primary context also for the green contexts whose root it is. */
int rt_context_wait(struct rt_context *c)
{
    struct waiting w = { c, wait_own(c) };
    if (GM_UNLIKELY(atomic_load_explicit(&c->greens, memory_order_relaxed) != 0))
        rt_table_each(&rt_contexts, wait_green, &w);
    return w.result;
}

static void end_stream(struct rt_object *o, void *arg)
{
    struct rt_stream *st = (struct rt_stream *)(void *)o;
    if (st->context == arg)
        rt_stream_destroy(st);
}

static void end_streams(struct rt_context *c)
{
    (void)rt_context_wait(c); /* an error ends the wait as well */
    atomic_store_explicit(&c->active, false, memory_order_release);
    atomic_store_explicit(&c->legacy, NULL, memory_order_release);
    rt_local_destroy_all(c);
    rt_peer_forget(c);
    rt_table_each(&rt_streams, end_stream, c);
}

void rt_context_end_green(struct rt_context *c)
{
    end_streams(c);
    atomic_fetch_sub_explicit(&c->root->greens, 1, memory_order_relaxed);
    rt_object_release(&rt_contexts, &c->object);
}

static void end_green(struct rt_object *o, void *arg)
{
    struct rt_context *c = (struct rt_context *)(void *)o;
    if (c->root == arg)
        rt_context_end_green(c);
}

void rt_context_destroy(struct rt_context *c)
{
    if (GM_UNLIKELY(atomic_load_explicit(&c->greens, memory_order_relaxed) != 0))
        rt_table_each(&rt_contexts, end_green, c);
    end_streams(c);
    rt_event_destroy_all(c);
    rt_hooks.context_ends(c);
    (void)rt_request_context_close(rt_session, c->number);
    if (!c->primary)
        rt_object_release(&rt_contexts, &c->object);
}
