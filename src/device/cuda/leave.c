/*
 * A client's end. First its work is taken off the device, then its objects are freed. Arrays and
 * pinned memory can be freed only while contexts are idle, and that may take as long as somebody
 * else's kernel. One thread waits for this on behalf of all clients, so that clients who come and
 * go beside an endless kernel leave no threads behind.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/cuda/admit.h"
#include "device/cuda/array.h"
#include "device/cuda/capacity.h"
#include "device/cuda/client.h"
#include "device/cuda/fallback.h"
#include "device/cuda/graph.h"
#include "device/cuda/place.h"
#include "device/cuda/inflight.h"
#include "device/cuda/link.h"
#include "device/cuda/local.h"
#include "device/cuda/memory.h"
#include "device/cuda/module.h"
#include "device/cuda/output.h"
#include "device/cuda/queue.h"

/* A kernel of a client that is gone may run for STOP_NS. After that the executor ends itself, as
 * soon as nobody else has anything in flight, or anything that would be lost. After STOP_LATE_NS it
 * no longer cares about what would be lost, and stops clients from handing over so that nothing is
 * in flight. After STOP_MAX_NS, which is less than the server's patience, it ends in any case. */
#define STOP_NS       (250 * GM_NS_PER_MS)
#define STOP_LOOK_NS  (10 * GM_NS_PER_MS)
#define STOP_PAUSE_NS (100 * GM_NS_PER_US)
#define STOP_LATE_NS  (20 * GM_NS_PER_S)
#define STOP_AGAIN_NS (2 * GM_NS_PER_S)
#define FREEZE_NS     (200 * GM_NS_PER_MS)
#define STOP_MAX_NS   (120 * GM_NS_PER_S)
/* How long one safe point is used to unpin a client's memory; at least one range is unpinned. */
#define UNPIN_NS GM_NS_PER_MS

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

/* --- its work --------------------------------------------------------------------------------- */

/* The client waits for an operation that is not done. The server goes by the same words when it
 * decides who has lost something with an executor. */
static bool waits_for_something(const struct dev_client *c)
{
    for (uint32_t i = 0; i < c->session->streams_count; i++) {
        struct tp_stream_slot *slot = &c->session->streams[i];
        if (atomic_load_explicit(&slot->accepted, memory_order_acquire) >
            atomic_load_explicit(&slot->completed.value, memory_order_acquire))
            return true;
    }
    return false;
}

/* Somebody would mind if all contexts ended now, because it has something in flight; with `spares`,
 * also because it has something that no other executor can make again. */
static bool somebody_minds(struct dev *d, bool spares)
{
    bool minds = spares && atomic_load(&d->orders) != 0;
    pthread_mutex_lock(&d->lock);
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        if (!minds && !atomic_load_explicit(&c->gone, memory_order_relaxed))
            minds =
                cuda_unfinished(c) != 0 || (spares && cuda_would_lose(c)) || waits_for_something(c);
    pthread_mutex_unlock(&d->lock);
    return minds;
}

bool cuda_freeze(struct dev *d, uint64_t patience_ns, bool spares)
{
    const uint64_t until = gm_now_ns() + patience_ns;
    if (spares && somebody_minds(d, true))
        return false;
    atomic_fetch_add(&d->frozen, 1);
    cuda_nap(GM_NS_PER_MS); /* until threads have handed over what they have just read */
    while (somebody_minds(d, spares)) {
        if (gm_now_ns() > until) {
            atomic_fetch_sub(&d->frozen, 1);
            return false;
        }
        cuda_nap(GM_NS_PER_MS);
    }
    return true;
}

/* The contexts may end now, because of a client that was stopped at `stopped`. If not, *next says
 * when to ask again. */
static bool may_give_up(struct dev *d, uint64_t now, uint64_t stopped, uint64_t *next)
{
    const bool late = now > stopped + STOP_LATE_NS;
    *next = now + (late ? STOP_AGAIN_NS : STOP_LOOK_NS);
    return cuda_freeze(d, late ? FREEZE_NS : 0, !late) || now > stopped + STOP_MAX_NS;
}

/* Waits for what the queue has: a single kernel cannot be ended, since the context is everybody's.
 * A kernel that does not end is ended together with the context, if possible at a moment when
 * nobody else loses anything. */
static void drain(struct dev_client *c, struct dev_queue *q, uint64_t stopped)
{
    struct dev *d = c->dev;
    uint64_t next = stopped + STOP_NS, now;
    CUresult r = CUDA_SUCCESS;
    cuda_enter(q->gpu);
    while (q->stream && (r = d->api.cuStreamQuery(q->stream)) == CUDA_ERROR_NOT_READY) {
        now = gm_now_ns();
        if (now > next && may_give_up(d, now, stopped, &next)) {
            gm_error(&topic,
                     "a kernel of a client that is gone does not end; giving up the context");
            cuda_die(d, CUDA_ERROR_LAUNCH_TIMEOUT);
        }
        cuda_nap(STOP_PAUSE_NS);
    }
    if (r != CUDA_SUCCESS && cuda_is_fatal(r))
        cuda_die(d, r);
    cuda_drains(q, false);
}

void cuda_client_stop(struct dev_client *c)
{
    const uint64_t now = gm_now_ns();
    atomic_store_explicit(&c->gone, true, memory_order_relaxed);
    cuda_hands_off(c); /* its thread has ended */
    cuda_enter(&c->dev->gpus[0]);
    gm_list_for_each (q, &c->queues, struct dev_queue, link)
        cuda_queue_drop(q);
    gm_list_for_each (q, &c->queues, struct dev_queue, link)
        cuda_drains(q, q->stream != NULL);
    gm_list_for_each (q, &c->queues, struct dev_queue, link)
        drain(c, q, now);
    gm_list_for_each (q, &c->queues, struct dev_queue, link)
        cuda_output_drop(q); /* from here on nobody else moves its completion word */
    cuda_output_stop(c);
    cuda_device_unmap(c); /* this never waits */
}

/* --- the rest --------------------------------------------------------------------------------- */

/* Frees all that can be freed without waiting. Its memory was unmapped when it was stopped, unless
 * it never began. */
static void take_apart(struct dev_client *c)
{
    cuda_enter(&c->dev->gpus[0]);
    cuda_runs_finish(c);
    gm_list_for_each_safe (q, &c->queues, struct dev_queue, link)
        cuda_queue_destroy(q);
    cuda_capacity_collect(c, true);
    cuda_places_collect(c, true);
    gm_list_for_each_safe (m, &c->modules, struct dev_module, link)
        cuda_module_unload(m);
    cuda_link_finish(c);
    cuda_device_unmap(c);
}

/* Frees some of the rest. There is a safe point of all contexts, or all of them are about to end.
 * True: nothing is left that needs a safe point. */
static bool unpin_some(struct dev_client *c)
{
    const uint64_t until = gm_now_ns() + UNPIN_NS;
    cuda_enter(&c->dev->gpus[0]);
    cuda_graphs_finish(c);
    cuda_places_collect(c, true); /* in which graphs were */
    cuda_objects_finish(c);
    cuda_arrays_finish(c);
    for (struct cuda_range r; cuda_range_next(c, c->base + c->half, &r);) {
        cuda_pinned_unmap(c, &r);
        if (gm_now_ns() > until)
            return false;
    }
    if (c->registered)
        cuda_unpin(c->dev, c->session->streams);
    cuda_output_leave(c); /* so that its local memory counts no longer */
    cuda_local_shrink(c->dev);
    cuda_words_finish(c);
    return true;
}

/* Frees the rest, at safe points. */
static void finish(struct dev_client *c)
{
    for (bool over = false; !over;) {
        const bool waited = cuda_admit_wait(c->dev, NULL, UINT32_MAX, 0, UINT64_MAX);
        over = unpin_some(c);
        if (waited)
            cuda_admit_end(c->dev, UINT32_MAX);
    }
    if (c->reserved)
        (void)c->dev->api.cuMemAddressFree(c->base, c->half);
    if (c->host_reserved)
        munmap((void *)(uintptr_t)(c->base + c->half), c->half);
    cuda_ranges_finish(c);
    tp_output_finish(&c->prints.output);
    pthread_mutex_destroy(&c->moves_lock);
    pthread_mutex_destroy(&c->memory_lock);
    pthread_mutex_destroy(&c->arrivals_lock);
    pthread_mutex_destroy(&c->modules_lock);
    free(c);
}

static void *finish_all(void *arg)
{
    struct dev *d = arg;
    pthread_setname_np(pthread_self(), "leave");
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (gm_list_empty(&d->gone))
            pthread_cond_wait(&d->more_gone, &d->lock);
        struct dev_client *c = gm_list_entry(d->gone.next, struct dev_client, gone_link);
        struct tp_session *session = c->session;
        gm_list_remove(&c->gone_link);
        pthread_mutex_unlock(&d->lock);
        finish(c);
        d->events.client_gone(d->events.arg, session);
        pthread_mutex_lock(&d->lock);
    }
    return NULL;
}

int cuda_leave_start(struct dev *d)
{
    return cuda_thread_start(d, finish_all);
}

void cuda_client_destroy(struct dev_client *c)
{
    struct dev *d = c->dev;
    take_apart(c);
    pthread_mutex_lock(&d->lock);
    gm_list_append(&d->gone, &c->gone_link);
    pthread_cond_signal(&d->more_gone);
    pthread_mutex_unlock(&d->lock);
}

void cuda_client_discard(struct dev_client *c)
{
    take_apart(c);
    finish(c);
}
