#include "device/cuda/quiet.h"

#include <time.h>

#define NAP_NS     GM_NS_PER_MS
#define NAP_MAX_NS (10 * GM_NS_PER_MS)

/* dev->lock held. At `least` so long is not too long. */
static bool stands(const struct dev_queue *q, uint64_t now, uint64_t least)
{
    uint64_t patience = GM_MAX(q->gpu->dev->patience_ns + q->grace, least);
    return q->seen < q->marked && q->since && now > q->since && now - q->since > patience;
}

static bool are_quiet(struct dev *d, uint32_t gpus, uint64_t least)
{
    bool quiet = true;
    pthread_mutex_lock(&d->lock);
    uint64_t now = gm_now_ns();
    gm_list_for_each (q, &d->active, struct dev_queue, active)
        if ((gpus >> q->gpu->index & 1) && stands(q, now, least)) {
            quiet = false;
            break;
        }
    pthread_mutex_unlock(&d->lock);
    return quiet;
}

bool cuda_is_quiet(struct dev *d, uint32_t gpus)
{
    return are_quiet(d, gpus, 0);
}

bool cuda_quiet_wait_until(struct dev *d, const struct dev_client *c, uint32_t gpus, uint64_t deadline)
{
    struct timespec nap = { .tv_nsec = (long)NAP_NS };
    const uint64_t begun = gm_now_ns();
    while (!are_quiet(d, gpus, (gm_now_ns() - begun) / CUDA_QUIET_PART)) {
        if (atomic_load_explicit(&d->dead, memory_order_relaxed) || gm_now_ns() >= deadline ||
            (c && c->leaving && atomic_load_explicit(c->leaving, memory_order_acquire)))
            return false;
        nanosleep(&nap, NULL);
        nap.tv_nsec = GM_MIN(2 * nap.tv_nsec, (long)NAP_MAX_NS);
    }
    return true;
}

bool cuda_quiet_wait(struct dev_client *c, uint32_t gpus)
{
    return cuda_quiet_wait_until(c->dev, c, gpus, UINT64_MAX);
}

static void count(struct dev *d, uint32_t gpus, uint32_t more)
{
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < DEV_DEVICES; i++)
        d->gpus[i].waits += gpus >> i & 1 ? more : 0;
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
