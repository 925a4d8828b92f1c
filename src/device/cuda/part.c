/*
 * Partitions that a program makes itself: green contexts, and contexts with an execution affinity,
 * within what its client has.
 *
 * The driver does the splitting. It splits the device for a client without a limit, the client's
 * green context for a client with a share, and a part's green context if a program splits that
 * again. So the program gets the groups of multiprocessors that it would get without gmux, and can
 * join them in the same ways.
 *
 * Session memory describes each part (struct tp_part): which split it comes from, and which groups
 * of that split it has. The part is made when a stream first wants to be in it, or when it is split
 * itself. A client whose share changes gets another place, in which the same descriptions are
 * followed again. If the new place has fewer groups, their numbers wrap around; a part for which
 * there is no room is the whole place.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda/call.h"
#include "device/cuda/settle.h"
#include "device/cuda/place.h"

#define PARTS_MAX 64u /* of one client */
#define DEPTH_MAX 16u /* parts of parts */

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

struct pieces {
    CUdevResource group[TP_PART_GROUPS + 1]; /* room for the rest */
    CUdevResource rest;
    unsigned count;
};

static bool is_some(const CUdevResource *r)
{
    return r->type == CU_DEV_RESOURCE_TYPE_SM && r->sm.smCount != 0;
}

static CUresult resource_of(const struct cuda_place *p, CUdevResource *out)
{
    const struct cuda_driver *api = &p->gpu->dev->api;
    memset(out, 0, sizeof(*out));
    return p->green ? api->cuGreenCtxGetDevResource(p->green, out, CU_DEV_RESOURCE_TYPE_SM)
                    : api->cuDeviceGetDevResource(p->gpu->device, out, CU_DEV_RESOURCE_TYPE_SM);
}

/* Splits the place: at least one group, or an error. */
static CUresult split(const struct cuda_place *p, const struct wire_call_split *how,
                      struct pieces *out)
{
    const struct cuda_driver *api = &p->gpu->dev->api;
    const unsigned most = how->wanted ? GM_MIN(how->wanted, TP_PART_GROUPS) : TP_PART_GROUPS;
    CUdevResource all;
    if (how->flags & ~(uint32_t)(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                                 CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE))
        return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof(*out));
    CUresult r = resource_of(p, &all);
    if (r == CUDA_SUCCESS && how->minimum > all.sm.smCount)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = api->cuDevSmResourceSplitByCount(NULL, &out->count, &all, NULL, how->flags,
                                             how->minimum);
    out->count = GM_MIN(out->count, most);
    if (r == CUDA_SUCCESS && out->count == 0)
        r = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (r == CUDA_SUCCESS)
        r = api->cuDevSmResourceSplitByCount(out->group, &out->count, &all, &out->rest, how->flags,
                                             how->minimum);
    if (r == CUDA_SUCCESS && (out->count == 0 || out->count > most))
        r = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    return r;
}

/* Moves the groups that the part has to the front, and returns how many they are. */
static unsigned choose(struct pieces *s, const struct tp_part *part)
{
    bool chosen[TP_PART_GROUPS] = { false };
    unsigned count = 0;
    uint64_t word = 0;
    for (unsigned i = 0; i <= TP_PART_GROUPS; i++) {
        if (i % 64 == 0)
            word = atomic_load_explicit(&part->groups[i / 64], memory_order_relaxed);
        if ((word >> i % 64 & 1) && i < TP_PART_GROUPS)
            chosen[i % s->count] = true;
    }
    bool rest = (word >> TP_PART_GROUPS % 64 & 1) && is_some(&s->rest);
    for (unsigned i = 0; i < s->count; i++)
        if (chosen[i])
            s->group[count++] = s->group[i];
    if (rest)
        s->group[count++] = s->rest;
    return count;
}

static CUresult fill(struct cuda_place *p, const struct tp_part *part)
{
    struct pieces s;
    const struct wire_call_split how = {
        .flags = atomic_load_explicit(&part->flags, memory_order_relaxed),
        .minimum = atomic_load_explicit(&part->minimum, memory_order_relaxed),
        .wanted = atomic_load_explicit(&part->wanted, memory_order_relaxed)
    };
    CUresult r = split(p->parent, &how, &s);
    unsigned count = r == CUDA_SUCCESS ? choose(&s, part) : 0;
    if (r == CUDA_SUCCESS && count == 0)
        r = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    return r == CUDA_SUCCESS ? cuda_place_make_green(p, s.group, count) : r;
}

/* places_lock held, also in what follows. NULL: the driver refuses to make it. */
static struct cuda_place *make(struct dev_client *c, struct cuda_place *whole,
                               struct cuda_place *parent, uint32_t number)
{
    struct cuda_place *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->gpu = whole->gpu;
    p->low = whole->low;
    p->of = whole->number;
    p->part = number;
    p->parent = parent;
    CUresult r = fill(p, &c->session->parts[number]);
    if (r != CUDA_SUCCESS) {
        gm_error(&topic, "a program's green context is all that its client has: error %d", (int)r);
        free(p);
        return NULL;
    }
    p->number = ++c->places_made;
    parent->parts++;
    gm_list_prepend(
        &c->places,
        &p->link); /* before its parent: nothing is destroyed before what is part of it */
    return p;
}

static struct cuda_place *find(const struct dev_client *c, const struct cuda_place *whole,
                               uint32_t number, unsigned *count)
{
    *count = 0;
    gm_list_for_each (p, &c->places, struct cuda_place, link) {
        if (p->of == whole->number && p->part == number)
            return p;
        *count += p->of != 0;
    }
    return NULL;
}

static struct cuda_place *find_or_make(struct dev_client *c, struct cuda_place *whole,
                                       struct cuda_place *parent, uint32_t number)
{
    unsigned count;
    struct cuda_place *p = find(c, whole, number, &count);
    return p || count >= PARTS_MAX ? p : make(c, whole, parent, number);
}

/* Finds the part, or makes it with all that it is part of. NULL: it cannot be made. */
static struct cuda_place *obtain(struct dev_client *c, struct cuda_place *whole, uint32_t number)
{
    uint32_t path[DEPTH_MAX];
    unsigned depth = 0;
    struct cuda_place *p = whole;
    for (uint32_t at = number; at != 0; depth++) {
        if (at >= TP_PARTS || depth == DEPTH_MAX)
            return NULL;
        path[depth] = at;
        uint32_t of = atomic_load_explicit(&c->session->parts[at].of, memory_order_relaxed);
        if (of >= at)
            return NULL;
        at = of;
    }
    while (p && depth)
        p = find_or_make(c, whole, p, path[--depth]);
    return p;
}

void cuda_part_forget(struct dev_queue *q)
{
    if (q->part)
        q->part->queues--;
    q->part = NULL;
    q->part_of = 0;
}

static bool is_made(struct dev_client *c, const struct cuda_place *whole, uint32_t number)
{
    unsigned count;
    pthread_mutex_lock(&c->places_lock);
    bool made = !number || find(c, whole, number, &count);
    pthread_mutex_unlock(&c->places_lock);
    return made;
}

struct cuda_place *cuda_place_part(struct dev_queue *q, struct cuda_place *whole)
{
    struct dev_client *c = q->client;
    if (GM_UNLIKELY(q->part_of != whole->number || q->part_wanted != q->wanted)) {
        const bool made = is_made(c, whole, q->wanted),
                   may = made || cuda_settle(c, whole->gpu, CUDA_STAYS);
        cuda_enter(q->gpu);
        pthread_mutex_lock(&c->places_lock);
        cuda_part_forget(q);
        q->part = may ? obtain(c, whole, q->wanted) : NULL;
        if (q->part)
            q->part->queues++;
        q->part_of = whole->number;
        q->part_wanted = q->wanted;
        pthread_mutex_unlock(&c->places_lock);
        if (may && !made)
            cuda_settled(c, whole->gpu);
    }
    return q->part ? q->part : whole;
}

int cuda_split(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_split how;
    struct pieces s;
    wire_get_call_split(args, &how);
    cuda_places_collect(c, false); /* what was made for earlier questions */
    struct cuda_place *whole =
        atomic_load_explicit(&c->seats[c->asked->index].place, memory_order_acquire);
    if (args->fatal || !whole)
        return GM_CUDA_INVALID_VALUE;
    const bool made = is_made(c, whole, how.of);
    if (!made && !cuda_settle(c, whole->gpu, CUDA_STAYS))
        return (int)CUDA_ERROR_NOT_READY;
    cuda_enter(c->asked);
    pthread_mutex_lock(&c->places_lock);
    const struct cuda_place *p = obtain(c, whole, how.of);
    CUresult r = p ? split(p, &how, &s) : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    pthread_mutex_unlock(&c->places_lock);
    if (!made)
        cuda_settled(c, whole->gpu);
    if (r == CUDA_SUCCESS)
        wire_put_call_split_is(reply, &(struct wire_call_split_is) {
                                          .groups = s.count,
                                          .size = s.group[0].sm.smCount,
                                          .rest = is_some(&s.rest) ? s.rest.sm.smCount : 0 });
    return (int)r;
}
