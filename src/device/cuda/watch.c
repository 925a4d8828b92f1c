/*
 * The watch: one thread that sleeps while nothing is in flight, and otherwise looks at completion
 * words every few microseconds. Clients look at their words themselves for 100 ms before they
 * sleep, so the watch only has to wake them after long operations, where a small delay does not
 * matter.
 */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/precedence.h"
#include "device/cuda/output.h"

#define LOOK_NS     (20 * GM_NS_PER_US)
#define LOOK_MIN_NS (5 * GM_NS_PER_US) /* while somebody sleeps until something is done */
#define LOOK_PART   32                 /* of the time without a completion, for the next pause */
#define LOOK_MAX_NS (500 * GM_NS_PER_US)
/* When so many operations complete together they were a run, and not single ones. */
#define RUN      128u
#define QUERY_NS GM_NS_PER_MS /* how often the driver is asked whether all is well */

/* A client's thread naps when it has handed over too much. It is woken before the GPU has done all
 * of that, and when a run is done that makes room for another one. */
static bool is_time_for_more(uint32_t before, uint32_t now)
{
    return (before >= CUDA_DEPTH / 2 && now < CUDA_DEPTH / 2) ||
           (before >= CUDA_DEPTH && now < CUDA_DEPTH && before - now >= RUN);
}

/* dev->lock held. The queue's operations up to `done` are done. */
static void note_done(struct dev_queue *q, uint64_t now, uint64_t done)
{
    struct dev_client *c = q->client;
    const uint32_t before = cuda_unfinished(c);
    cuda_precedence_done(q, now);
    cuda_pace_note(q, now, done - q->seen);
    cuda_ahead_note(q);
    q->gpu->ended_at = now;
    atomic_fetch_add_explicit(&c->completed, done - q->seen, memory_order_relaxed);
    q->seen = done;
    if (is_time_for_more(before, cuda_unfinished(c)) || atomic_load(&c->full) || cuda_ahead_ends(q))
        tp_ring_wake(&c->session->control->ring);
}

/* dev->lock held. True if something has completed. */
static bool look(struct dev_queue *q, uint64_t at)
{
    cuda_output_look(q);
    /* The client can forge the word: a number beyond the mark counts as the mark, and a number that
     * goes back is ignored. */
    const uint64_t now = atomic_load_explicit(&q->slot->completed.value, memory_order_acquire);
    const uint64_t done = GM_MIN(now, q->marked);
    const bool moved = now > q->seen;
    if (done > q->seen)
        note_done(q, at, done);
    if (moved)
        tp_word_wake(&q->slot->completed);
    cuda_pace_note(q, at, 0);
    if (q->seen == q->marked && !q->prints.seq && !q->drains) {
        gm_list_remove(&q->active);
        q->since = 0;
    }
    return moved;
}

/* dev->lock held. A program sleeps until something is done. */
static bool somebody_sleeps(const struct dev *d)
{
    gm_list_for_each (q, &d->active, struct dev_queue, active)
        if (atomic_load_explicit(&q->slot->completed.sleepers, memory_order_relaxed))
            return true;
    return false;
}

/* Makes a pause. dev->lock is held, but not during the pause. If nothing has completed for a while,
 * long operations are running. If nobody sleeps until they are done, the pause grows with their
 * time; a queue that has just become active ends it. */
static void rest(struct dev *d, uint64_t now, uint64_t moved)
{
    uint64_t pause =
        somebody_sleeps(d) ? LOOK_MIN_NS : GM_MIN((now - moved) / LOOK_PART, LOOK_MAX_NS);
    if (pause <= LOOK_NS) {
        const struct timespec shortly = { .tv_nsec = (long)(pause == LOOK_MIN_NS ? LOOK_MIN_NS
                                                                                 : LOOK_NS) };
        pthread_mutex_unlock(&d->lock);
        nanosleep(&shortly, NULL);
        pthread_mutex_lock(&d->lock);
        return;
    }
    const struct timespec until = { .tv_sec = (time_t)((now + pause) / GM_NS_PER_S),
                                    .tv_nsec = (long)((now + pause) % GM_NS_PER_S) };
    d->resting = true;
    (void)pthread_cond_clockwait(&d->work, &d->lock, CLOCK_MONOTONIC, &until);
    d->resting = false;
}

/* dev->lock held. The driver has just said that the queue's stream is done, so the GPU has written
 * the last mark. If the word says less, the client has written it back, which would keep others
 * from their safe points. */
static void overrule(struct dev_queue *q, uint64_t now)
{
    const uint64_t word = atomic_load_explicit(&q->slot->completed.value, memory_order_acquire);
    if (word < q->marked && q->seen < q->marked && !q->prints.seq)
        note_done(q, now, q->marked);
}

/* dev->lock held. Asks the driver whether each context with something to do is still well, by
 * asking about one of its queues, a different one each time. */
static void ask(struct dev *d, uint64_t now)
{
    uint32_t asked = 0;
    gm_list_for_each_safe (q, &d->active, struct dev_queue, active) {
        if ((asked & CUDA_GPU_BIT(q->gpu)) || q->gpu->waits)
            continue;
        asked |= CUDA_GPU_BIT(q->gpu);
        cuda_enter(q->gpu);
        CUresult r = d->api.cuStreamQuery(q->stream);
        if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY) {
            pthread_mutex_unlock(&d->lock);
            cuda_die(d, r);
        }
        if (r == CUDA_SUCCESS)
            overrule(q, now);
        gm_list_remove(&q->active);
        gm_list_append(&d->active, &q->active);
    }
}

/* dev->lock held. Notes which contexts are blocked (fallback.h). */
static void note_blocked(struct dev *d, uint64_t now)
{
    uint32_t busy = 0, crowded = 0, blocked = 0;
    const struct dev_client *first[2 * DEV_DEVICES];
    gm_list_for_each (q, &d->active, struct dev_queue, active) {
        const uint32_t bit = CUDA_GPU_BIT(q->gpu);
        if (q->seen == q->marked)
            continue;
        if (!(d->busy & bit))
            q->gpu->ended_at = now;
        if (!(busy & bit))
            first[__builtin_ctz(bit)] = q->client;
        else if (first[__builtin_ctz(bit)] != q->client)
            crowded |= bit;
        busy |= bit;
    }
    cuda_for_each_context (g, d, crowded)
        if (now - g->ended_at > d->blocked_ns)
            blocked |= CUDA_GPU_BIT(g);
    d->busy = busy;
    atomic_store_explicit(&d->blocked, blocked, memory_order_relaxed);
}

static void *watch(void *arg)
{
    struct dev *d = arg;
    uint64_t asked = 0, moved = 0;

    pthread_mutex_lock(&d->lock);
    for (;;) {
        bool idle = gm_list_empty(&d->active);
        while (gm_list_empty(&d->active))
            pthread_cond_wait(&d->work, &d->lock);
        uint64_t now = gm_now_ns();
        if (idle || d->newcomer)
            moved = now;
        d->newcomer = false;
        gm_list_for_each_safe (q, &d->active, struct dev_queue, active)
            if (look(q, now))
                moved = now;
        cuda_output_turns(d, now);
        if (!gm_list_empty(&d->active) && now - asked > QUERY_NS) {
            asked = now;
            cuda_precedence_look(d, now);
            note_blocked(d, now);
            ask(d, now);
        }
        if (gm_list_empty(&d->active))
            note_blocked(d, now);
        if (!gm_list_empty(&d->active))
            rest(d, now, moved);
    }
    return NULL;
}

int cuda_watch_start(struct dev *d)
{
    return cuda_thread_start(d, watch);
}
