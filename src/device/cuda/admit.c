#include "device/cuda/quiet.h"

#include <time.h>

#include "device/cuda/inflight.h"

#define NAP_NS     GM_NS_PER_MS
#define NAP_MAX_NS (10 * GM_NS_PER_MS)
#define FREEZE_NS  (200 * GM_NS_PER_MS)

/* dev->lock held. It may take long; `least`: so long is not. What the watch has not seen yet, and is not known to be short, may be older than whoever
 * asks, by a pause of its. */
static bool stands(const struct dev_queue *q, uint64_t now, uint64_t least)
{
    const struct dev *d = q->gpu->dev;
    uint64_t patience = q->grace && !q->drains ? d->patience_ns + q->grace : d->unknown_ns;
    uint64_t age = q->since ? now - GM_MIN(q->since, now) : q->grace ? 0 : NAP_NS;
    return (q->seen < q->marked || q->drains) && age >= GM_MAX(patience, least);
}

/* dev->lock held. By its words the queue has nothing to do, or had when it was first looked. */
static void look_for_hidden(struct dev_queue *q, uint64_t now)
{
    cuda_enter(q->gpu);
    if (cuda_stream_is_done(q, q->stream) || cuda_calls_are_proven(q)) {
        q->hidden = 0;
        atomic_store_explicit(&q->doubted, false, memory_order_relaxed);
        atomic_store_explicit(&q->told, 0, memory_order_relaxed);
    } else if (!q->hidden) {
        q->hidden = now;
        atomic_store_explicit(&q->doubted, true, memory_order_relaxed);
    }
}

/* The same: what is found holds until somebody looks again. */
static void look_for_all_hidden(struct dev *d, uint64_t now)
{
    struct cuda_gpu *here = cuda_entered();
    if (now < d->hidden_looked + NAP_NS)
        return;
    d->hidden_looked = now;
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        gm_list_for_each (q, &c->queues, struct dev_queue, link)
            if (q->stream && (q->hidden || gm_list_empty(&q->active)) && !q->gpu->waits)
                look_for_hidden(q, now);
    if (here)
        cuda_enter(here);
}

/* The same. */
static bool is_hidden(const struct dev *d, uint32_t gpus, uint64_t now, uint64_t least)
{
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        gm_list_for_each (q, &c->queues, struct dev_queue, link)
            if (q->hidden && now - q->hidden >= least && (gpus & CUDA_GPU_BIT(q->gpu)))
                return true;
    return false;
}

/* At `least` so long is not too long. */
static bool are_quiet(struct dev *d, uint32_t gpus, uint64_t least)
{
    bool quiet = true;
    pthread_mutex_lock(&d->lock);
    uint64_t now = gm_now_ns();
    gm_list_for_each (q, &d->active, struct dev_queue, active)
        if ((gpus & CUDA_GPU_BIT(q->gpu)) && stands(q, now, least)) {
            quiet = false;
            break;
        }
    if (quiet) {
        look_for_all_hidden(d, now);
        quiet = !is_hidden(d, gpus, now, least);
    }
    pthread_mutex_unlock(&d->lock);
    return quiet;
}

bool cuda_is_quiet(struct dev *d, uint32_t gpus)
{
    return are_quiet(d, gpus, 0);
}

bool cuda_is_quiet_for(struct dev *d, uint32_t gpus, uint64_t begun)
{
    return are_quiet(d, gpus, (gm_now_ns() - begun) / CUDA_QUIET_PART);
}

bool cuda_is_held(struct dev *d, uint32_t gpus, uint64_t ns)
{
    return !are_quiet(d, gpus, ns);
}

void cuda_quiet_drains(struct dev_queue *q, bool drains)
{
    struct dev *d = q->client->dev;
    pthread_mutex_lock(&d->lock);
    q->drains = drains;
    if (drains && gm_list_empty(&q->active)) {
        q->since = gm_now_ns();
        gm_list_append(&d->active, &q->active);
        d->newcomer = true;
        pthread_cond_signal(&d->work);
    }
    pthread_mutex_unlock(&d->lock);
}

/* By the words: it is those that say who is told of a loss. */
static bool somebody_is_busy(struct dev *d)
{
    bool busy = false;
    pthread_mutex_lock(&d->lock);
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        busy |= !atomic_load_explicit(&c->gone, memory_order_relaxed) && cuda_unfinished(c) != 0;
    pthread_mutex_unlock(&d->lock);
    return busy;
}

bool cuda_quiet_freeze(struct dev *d)
{
    const struct timespec nap = { .tv_nsec = (long)NAP_NS };
    const uint64_t until = gm_now_ns() + FREEZE_NS;
    atomic_fetch_add(&d->frozen, 1);
    nanosleep(&nap, NULL); /* what their threads have just read they hand over */
    while (somebody_is_busy(d)) {
        if (gm_now_ns() > until) {
            atomic_fetch_sub(&d->frozen, 1);
            return false;
        }
        nanosleep(&nap, NULL);
    }
    return true;
}

bool cuda_is_leaving(const struct dev *d, const struct dev_client *c)
{
    return atomic_load_explicit(&d->dead, memory_order_relaxed) ||
           (c && c->leaving && atomic_load_explicit(c->leaving, memory_order_acquire));
}

bool cuda_quiet_wait_until(struct dev *d, const struct dev_client *c, uint32_t gpus, uint64_t begun,
                           uint64_t deadline)
{
    struct timespec nap = { .tv_nsec = (long)NAP_NS };
    while (!cuda_is_quiet_for(d, gpus, begun)) {
        if (cuda_is_leaving(d, c) || gm_now_ns() >= deadline)
            return false;
        nanosleep(&nap, NULL);
        nap.tv_nsec = GM_MIN(2 * nap.tv_nsec, (long)NAP_MAX_NS);
    }
    return true;
}

bool cuda_quiet_wait(struct dev_client *c, uint32_t gpus)
{
    return cuda_quiet_wait_until(c->dev, c, gpus, gm_now_ns(), UINT64_MAX);
}

static bool is_done(struct dev_client *c, uint32_t gpus)
{
    gm_list_for_each (q, &c->queues, struct dev_queue, link) {
        if (!q->stream || !(gpus & CUDA_GPU_BIT(q->gpu)))
            continue;
        cuda_enter(q->gpu);
        if (!cuda_stream_is_done(q, q->stream))
            return false;
    }
    return true;
}

bool cuda_quiet_wait_for_own(struct dev_client *c, uint32_t gpus, uint64_t deadline)
{
    struct timespec nap = { .tv_nsec = (long)NAP_NS / 16 };
    while (!is_done(c, gpus)) {
        if (cuda_is_leaving(c->dev, c) || gm_now_ns() >= deadline)
            return false;
        nanosleep(&nap, NULL);
        nap.tv_nsec = GM_MIN(2 * nap.tv_nsec, (long)NAP_MAX_NS);
    }
    return true;
}

bool cuda_quiet_wait_own_too(struct dev_client *c, uint32_t gpus)
{
    (void)!cuda_quiet_wait_for_own(c, gpus, gm_now_ns() + c->dev->held_ns);
    return cuda_quiet_wait(c, gpus);
}

bool cuda_is_calm(struct cuda_gpu *g, uint64_t ns)
{
    pthread_mutex_lock(&g->dev->lock);
    bool calm = gm_now_ns() - g->stood >= ns;
    pthread_mutex_unlock(&g->dev->lock);
    return calm;
}

static void count(struct dev *d, uint32_t gpus, uint32_t more)
{
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < d->count; i++) {
        d->gpus[i].waits += gpus & CUDA_GPU_BIT(&d->gpus[i]) ? more : 0;
        d->seconds[i].waits += gpus & CUDA_GPU_BIT(&d->seconds[i]) ? more : 0;
    }
    pthread_mutex_unlock(&d->lock);
}

void cuda_wait_begin(struct dev *d, uint32_t gpus)
{
    count(d, gpus, 1);
}

void cuda_wait_end(struct dev *d, uint32_t gpus)
{
    count(d, gpus, UINT32_MAX); /* one less */
}
