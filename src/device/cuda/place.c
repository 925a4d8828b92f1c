/*
 * Places: where a client's streams live. A client with a share of the multiprocessors has a green
 * context of its own, made of groups of multiprocessors. A client without a limit has the whole
 * device: its streams belong to the primary context.
 *
 * The device is split into groups once. They are as small as the driver makes them (8
 * multiprocessors on Hopper), and all come from one split, because only such groups can be joined
 * in one context. A share is a number of groups. It gets the least used ones, so that clients do
 * not overlap while there is room, and overlap evenly when there is none. What the split leaves
 * over belongs to no group; only clients without a limit run there. Nobody is moved when others
 * come and go.
 *
 * Only streams belong to a place. Memory, modules, functions and events belong to the primary
 * context and serve all places.
 *
 * When a program makes a green context within what it has, that is a place, too: a part of its
 * client's place (part.c). Its streams name it.
 *
 * With a new share or priority a client gets a new place. Each stream moves there with its next
 * operation, which waits for what was submitted before. The old place goes when the driver has
 * finished all that was in it.
 */
#include <stdlib.h>

#include "base/log.h"
#include "device/cuda/admit.h"
#include "device/cuda/hooks.h"
#include "device/cuda/place.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

/* --- the device ------------------------------------------------------------------------------- */

static CUresult split(struct cuda_gpu *gpu)
{
    struct dev *d = gpu->dev;
    struct cuda_groups *g = &gpu->groups;
    const CUdevResourceType type = CU_DEV_RESOURCE_TYPE_SM;
    CUdevResource all = { 0 };
    unsigned count = 0;
    CUresult r = d->api.cuDeviceGetDevResource(gpu->device, &all, type);
    /* How many there would be; the driver rounds the size up to its smallest. */
    if (r == CUDA_SUCCESS)
        r = d->api.cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, 1);
    if (r != CUDA_SUCCESS)
        return r;
    count = GM_MIN(count, CUDA_GROUPS_MAX);
    r = count ? d->api.cuDevSmResourceSplitByCount(g->group, &count, &all, NULL, 0, 1)
              : CUDA_ERROR_NOT_SUPPORTED;
    if (r != CUDA_SUCCESS)
        return r;
    g->size = g->group[0].sm.smCount;
    while (g->count < count && g->group[g->count].sm.smCount == g->size)
        g->count++;
    return g->size ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

void cuda_places_open(struct cuda_gpu *g)
{
    struct dev_info *i = &g->info;
    CUresult r = split(g);
    if (r != CUDA_SUCCESS) {
        gm_warn(&topic, "no green contexts: error %d; shares of multiprocessors are not enforced",
                (int)r);
        g->groups.count = g->groups.size = 0;
    }
    i->multiprocessors_step = g->groups.size;
    i->multiprocessors_shared = g->groups.size * g->groups.count;
}

void cuda_priorities_open(struct cuda_gpu *g)
{
    struct dev *d = g->dev;
    int least = 0, greatest = 0;
    cuda_enter(&d->gpus[0]);
    /* The lowest of the device's priorities are for the clients below normal, so that even their
     * most urgent stream comes after everything of the others. Both kinds of clients are told the
     * driver's range, as they would be without us. A priority that is more urgent than a client can
     * have counts as the most urgent one that it has. */
    if (d->api.cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS || greatest > least)
        least = greatest = 0;
    uint32_t all = (uint32_t)(least - greatest) + 1;
    uint32_t low = all >= 4 ? 2 : 1;
    g->info.priorities = all;
    g->priority_least = least;
    g->priorities_low = low;
    g->priorities_normal = all >= 2 ? all - low : 1;
}

/* --- places ----------------------------------------------------------------------------------- */

/* Takes `wanted` groups for the place, the least used first. */
static void take_groups(struct cuda_place *p, uint32_t wanted)
{
    struct dev *d = p->gpu->dev;
    struct cuda_groups *g = &p->gpu->groups;
    pthread_mutex_lock(&d->lock);
    for (uint32_t n = 0; n < wanted; n++) {
        uint32_t best = CUDA_GROUPS_MAX;
        for (uint32_t i = 0; i < g->count; i++)
            if (!(p->groups >> i & 1) && (best == CUDA_GROUPS_MAX || g->use[i] < g->use[best]))
                best = i;
        p->groups |= 1ull << best;
        g->use[best]++;
    }
    pthread_mutex_unlock(&d->lock);
}

static void give_groups(const struct cuda_place *p)
{
    struct dev *d = p->gpu->dev;
    struct cuda_groups *g = &p->gpu->groups;
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < g->count; i++)
        g->use[i] -= (uint32_t)(p->groups >> i & 1);
    pthread_mutex_unlock(&d->lock);
}

CUresult cuda_place_make_green(struct cuda_place *p, CUdevResource *chosen, unsigned count)
{
    struct dev *d = p->gpu->dev;
    CUdevResource got = { 0 };
    CUdevResourceDesc description;
    unsigned wanted = 0;
    for (unsigned i = 0; i < count; i++)
        wanted += chosen[i].sm.smCount;
    CUresult r = d->api.cuDevResourceGenerateDesc(&description, chosen, count);
    if (r == CUDA_SUCCESS)
        r = CUDA_CALL(d, CUDA_GPU_BIT(p->gpu), cuGreenCtxCreate, &p->green, description,
                      p->gpu->device, CU_GREEN_CTX_DEFAULT_STREAM);
    if (r == CUDA_SUCCESS && (r = d->api.cuCtxFromGreenCtx(&p->context, p->green)) != CUDA_SUCCESS)
        (void)d->api.cuGreenCtxDestroy(p->green);
    if (r != CUDA_SUCCESS) {
        p->green = NULL;
        return r;
    }
    r = d->api.cuGreenCtxGetDevResource(p->green, &got, CU_DEV_RESOURCE_TYPE_SM);
    if (r != CUDA_SUCCESS || got.sm.smCount != wanted)
        gm_warn(&topic, "a client was granted %u multiprocessors, but got %u (error %d)", wanted,
                got.sm.smCount, (int)r);
    return CUDA_SUCCESS;
}

/* Makes the place's green context of its groups. */
static CUresult join_groups(struct cuda_place *p)
{
    const struct cuda_groups *g = &p->gpu->groups;
    CUdevResource chosen[CUDA_GROUPS_MAX];
    unsigned count = 0;
    for (uint32_t i = 0; i < g->count; i++)
        if (p->groups >> i & 1)
            chosen[count++] = g->group[i];
    return cuda_place_make_green(p, chosen, count);
}

bool cuda_place_is_part(const struct cuda_gpu *g, uint32_t multiprocessors)
{
    return multiprocessors && multiprocessors < g->info.multiprocessors && g->groups.count;
}

CUresult cuda_place_try(struct dev_client *c, struct cuda_gpu *g, uint32_t multiprocessors,
                        int priority)
{
    struct cuda_seat *seat = &c->seats[g->index];
    const struct cuda_place *now = atomic_load_explicit(&seat->place, memory_order_relaxed);
    CUresult r = CUDA_SUCCESS;
    if (!cuda_place_is_part(g, multiprocessors))
        multiprocessors = 0;
    if (now && now->gpu == g && now->multiprocessors == multiprocessors &&
        now->low == (priority > 0))
        return CUDA_SUCCESS;
    struct cuda_place *p = calloc(1, sizeof(*p));
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (multiprocessors && !cuda_admit_try(c->dev, c, CUDA_GPU_BIT(g))) {
        free(p);
        return CUDA_ERROR_NOT_READY;
    }
    p->gpu = g;
    p->low = priority > 0;
    p->multiprocessors = multiprocessors;
    if (multiprocessors) {
        uint32_t wanted = GM_MIN(multiprocessors / g->groups.size, g->groups.count);
        take_groups(p, GM_MAX(wanted, 1u));
        r = join_groups(p);
        cuda_admit_end(c->dev, CUDA_GPU_BIT(g));
    }
    if (r != CUDA_SUCCESS) {
        give_groups(p);
        free(p);
        return r;
    }
    pthread_mutex_lock(&c->places_lock);
    p->number = ++c->places_made;
    gm_list_append(&c->places, &p->link);
    /* Under the lock: until then it would be collected, as a place that was left. */
    atomic_store_explicit(&seat->place, p, memory_order_release);
    atomic_store_explicit(&seat->home, g, memory_order_release);
    atomic_fetch_or(&c->uses, CUDA_GPU_BIT(g));
    pthread_mutex_unlock(&c->places_lock);
    return CUDA_SUCCESS;
}

CUresult cuda_place_set(struct dev_client *c, struct cuda_gpu *g, uint32_t multiprocessors,
                        int priority)
{
    CUresult r;
    while ((r = cuda_place_try(c, g, multiprocessors, priority)) == CUDA_ERROR_NOT_READY &&
           !cuda_is_leaving(c->dev, c))
        cuda_nap(GM_NS_PER_MS);
    return r;
}

/* Graphs name the green context, so they go first. */
static void place_destroy(struct dev_client *c, struct cuda_place *p)
{
    gm_list_remove(&p->link);
    cuda_hooks.place_goes(c, p->number);
    if (p->green)
        (void)c->dev->api.cuGreenCtxDestroy(p->green);
    give_groups(p);
    if (p->parent)
        p->parent->parts--;
    free(p);
}

/* It is the client's place now, or something is part of it. */
static bool is_in_use(const struct dev_client *c, const struct cuda_place *p)
{
    if (p->parts)
        return true;
    if (p->of)
        return p->queues != 0;
    return p == atomic_load_explicit(&c->seats[p->gpu->index].place, memory_order_acquire);
}

void cuda_places_collect(struct dev_client *c, bool all)
{
    pthread_mutex_lock(&c->places_lock);
    gm_list_for_each_safe (p, &c->places, struct cuda_place, link)
        if (p->graphs == 0 && (all || (!is_in_use(c, p) && p->streams == 0 && !p->unsure)))
            place_destroy(c, p);
    pthread_mutex_unlock(&c->places_lock);
}
