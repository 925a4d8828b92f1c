/*
 * The watch: one thread that sleeps while nothing is in flight, and otherwise looks at the completion words every few
 * microseconds. Clients spin for as long themselves before they sleep, so it is only long operations that are noticed
 * here, and a little late.
 */
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "device/cuda/state.h"

#define LOOK_NS  (20 * GM_NS_PER_US)
#define QUERY_NS GM_NS_PER_MS /* how often the driver is asked whether all is well */

/* dev->lock held. */
static void look(struct dev_queue *q)
{
    uint64_t now = atomic_load_explicit(&q->slot->completed.value, memory_order_acquire);
    if (now == q->seen)
        return;
    /* The word is the client's to forge: a number beyond the mark counts as the mark. */
    uint64_t done = GM_MIN(now, q->marked);
    if (done > q->seen) {
        atomic_fetch_add_explicit(&q->client->completed, done - q->seen, memory_order_relaxed);
        q->seen = done;
    }
    tp_word_wake(&q->slot->completed);
    if (q->seen == q->marked)
        gm_list_remove(&q->active);
}

static void *watch(void *arg)
{
    struct dev *d = arg;
    const struct timespec pause = { .tv_nsec = (long)LOOK_NS };
    uint64_t queried = 0;

    prctl(PR_SET_TIMERSLACK, 1);
    cuda_enter(d);
    for (;;) {
        CUresult r = CUDA_SUCCESS;
        pthread_mutex_lock(&d->lock);
        while (gm_list_empty(&d->active))
            pthread_cond_wait(&d->work, &d->lock);
        gm_list_for_each_safe (q, &d->active, struct dev_queue, active)
            look(q);
        uint64_t now = gm_now_ns();
        if (!gm_list_empty(&d->active) && now - queried > QUERY_NS) {
            queried = now;
            r = d->api.cuStreamQuery(gm_list_entry(d->active.next, struct dev_queue, active)->stream);
        }
        pthread_mutex_unlock(&d->lock);
        if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY)
            cuda_die(d, r);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int cuda_watch_start(struct dev *d)
{
    pthread_t thread;
    int r = pthread_create(&thread, NULL, watch, d);
    if (r == 0)
        pthread_detach(thread);
    return -r;
}
