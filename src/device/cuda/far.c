/*
 * Memory of another GPU than the one that a queue is on. Device memory here is mapped for the GPUs that may touch it, so
 * what the driver does with memory that it allocated itself, find out whose it is and go there, has to be done by hand:
 * an operation on memory that its own GPU may not touch takes a detour through a stream of the GPU that has it, and a copy from
 * one of those to another is one between peers, which works whether they can touch each other's memory or not.
 *
 * Where there is one GPU this only says what is mapped. The driver takes an address that it does not know for ordinary memory of this
 * process, and reads or writes it there and then; so it is not asked to copy what is not mapped, nor while it is being
 * unmapped.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "device/cuda/inflight.h"
#include "device/cuda/op.h"
#include "device/cuda/capacity.h"

#define OWNERS_MAX (1u << 20)

struct cuda_detour {
    struct cuda_gpu *gpu; /* where the stream is: of a context, and it has room there */
    CUstream stream;
    CUevent there; /* of the queue's GPU: the detour begins */
    CUevent back;
};

/* --- whose memory it is ------------------------------------------------------------------------------------------------ */

/* owners_lock held: how many begin at or below the address. */
static uint32_t upper_bound(const struct dev_client *c, uint64_t address)
{
    uint32_t low = 0, high = c->owners_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->owners[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* owners_lock held; `i` begin at or below the address: what is mapped there, or NULL. */
static struct cuda_owner *owner_at(const struct dev_client *c, uint32_t i, uint64_t address)
{
    return i && address < c->owners[i - 1].end ? &c->owners[i - 1] : NULL;
}

int cuda_owner_add(struct dev_client *c, uint64_t address, uint64_t size, uint32_t device)
{
    int r = GM_CUDA_OUT_OF_MEMORY;
    pthread_mutex_lock(&c->owners_lock);
    if (gm_array_room(&c->owners, sizeof(*c->owners), c->owners_count, OWNERS_MAX)) {
        uint32_t i = upper_bound(c, address);
        memmove(c->owners + i + 1, c->owners + i, (c->owners_count - i) * sizeof(*c->owners));
        c->owners[i] =
            (struct cuda_owner) { address, address + size, device, device == CUDA_HOST ? UINT32_MAX : 1u << device };
        c->owners_count++;
        if (device != CUDA_HOST && c->dev->count > 1) /* a detour may go there */
            atomic_fetch_or(&c->uses, 1u << device);
        r = GM_CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&c->owners_lock);
    return r;
}

void cuda_owner_reach(struct dev_client *c, uint64_t address, uint32_t gpus)
{
    pthread_mutex_lock(&c->owners_lock);
    struct cuda_owner *o = owner_at(c, upper_bound(c, address), address);
    if (o && o->address == address)
        o->reach = gpus;
    pthread_mutex_unlock(&c->owners_lock);
}

void cuda_owner_remove(struct dev_client *c, uint64_t address)
{
    pthread_mutex_lock(&c->owners_lock);
    uint32_t i = upper_bound(c, address);
    if (i && c->owners[i - 1].address == address) {
        memmove(c->owners + i - 1, c->owners + i, (c->owners_count - i) * sizeof(*c->owners));
        c->owners_count--;
    }
    pthread_mutex_unlock(&c->owners_lock);
}

void cuda_owners_finish(struct dev_client *c)
{
    free(c->owners);
    pthread_mutex_destroy(&c->owners_lock);
}

/* owners_lock held; `i` begin at or below the address: each is followed by the next one up to there. */
static bool is_mapped(const struct dev_client *c, uint32_t i, uint64_t address, uint64_t end)
{
    if (i)
        i--;
    for (; i < c->owners_count && c->owners[i].address <= address && address < c->owners[i].end && address < end; i++)
        address = c->owners[i].end;
    return address >= end;
}

static struct cuda_memory memory_inside(struct dev_client *c, uint64_t address, uint64_t size)
{
    struct cuda_memory m = { 0 };
    pthread_mutex_lock(&c->owners_lock);
    const uint32_t i = upper_bound(c, address);
    const struct cuda_owner *o = owner_at(c, i, address);
    if (o) {
        m.gpu = o->device == CUDA_HOST ? NULL : &c->dev->gpus[o->device];
        m.reach = o->reach;
    }
    m.held = size <= c->base + 2 * c->half - address && is_mapped(c, i, address, address + size);
    pthread_mutex_unlock(&c->owners_lock);
    return m;
}

/* A module's variable. */
static struct cuda_memory memory_outside(struct dev_client *c, uint64_t address, uint64_t size)
{
    struct cuda_memory found = { 0 };
    pthread_mutex_lock(&c->modules_lock);
    gm_list_for_each (m, &c->modules, struct dev_module, link)
        for (uint32_t i = 0; i < m->globals_count && !found.held; i++) {
            uint64_t at = address - m->globals[i].address;
            if (at < m->globals[i].size && size <= m->globals[i].size - at)
                found = (struct cuda_memory) { .gpu = m->gpu, .held = true };
        }
    pthread_mutex_unlock(&c->modules_lock);
    return found;
}

struct cuda_memory cuda_memory_at(struct dev_client *c, uint64_t address, uint64_t size)
{
    return address - c->base < 2 * c->half ? memory_inside(c, address, size) : memory_outside(c, address, size);
}

bool cuda_holds(struct dev_client *c, uint64_t address, uint64_t size)
{
    return cuda_memory_at(c, address, size).held;
}

/* --- detours ------------------------------------------------------------------------------------------------------------ */

#define DETOURS (2 * DEV_DEVICES)

/* To a GPU's fallback context, where arrays may be, is another one. */
static struct cuda_detour *detour(const struct dev_queue *q, const struct cuda_gpu *to)
{
    return &q->detours[to->index + to->is_fallback * DEV_DEVICES];
}

static bool has_way(const struct dev_queue *q, const struct cuda_gpu *to)
{
    return to == q->gpu || q->learning || (q->detours && detour(q, to)->back);
}

CUresult cuda_open_way(struct dev_queue *q, struct cuda_gpu *to)
{
    const struct cuda_driver *api = &q->client->dev->api;
    CUresult r = CUDA_SUCCESS;
    if (GM_LIKELY(has_way(q, to)))
        return CUDA_SUCCESS;
    if (!to->context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!q->detours && !(q->detours = calloc(DETOURS, sizeof(*q->detours))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct cuda_detour *d = detour(q, to);
    d->gpu = to;
    cuda_enter(q->gpu);
    if (!d->there)
        r = api->cuEventCreate(&d->there, CU_EVENT_DISABLE_TIMING);
    cuda_enter(to);
    if (r == CUDA_SUCCESS && !d->stream)
        r = cuda_capacity_stream_wait(q->client, to, NULL, 0, &d->stream);
    if (r == CUDA_SUCCESS && !d->back)
        r = api->cuEventCreate(&d->back, CU_EVENT_DISABLE_TIMING);
    cuda_enter(q->gpu);
    return r;
}

static CUresult begin_detour(struct dev_queue *q, struct cuda_gpu *to, CUstream *into)
{
    const struct cuda_driver *api = &q->client->dev->api;
    struct cuda_detour *d = detour(q, to);
    cuda_count(q, 4); /* two events, and a wait for each */
    cuda_enter(q->gpu);
    CUresult r = api->cuEventRecord(d->there, q->stream);
    if (r != CUDA_SUCCESS)
        return r;
    cuda_enter(to);
    *into = d->stream;
    return api->cuStreamWaitEvent(d->stream, d->there, CU_EVENT_WAIT_DEFAULT);
}

static CUresult end_detour(struct dev_queue *q, struct cuda_gpu *to)
{
    const struct cuda_driver *api = &q->client->dev->api;
    struct cuda_detour *d = detour(q, to);
    cuda_enter(to);
    CUresult r = api->cuEventRecord(d->back, d->stream);
    cuda_enter(q->gpu);
    return r == CUDA_SUCCESS ? api->cuStreamWaitEvent(q->stream, d->back, CU_EVENT_WAIT_DEFAULT) : r;
}

CUresult cuda_go(struct dev_queue *q, struct cuda_gpu *to, CUstream *into)
{
    *into = cuda_into(q);
    if (GM_LIKELY(to == q->gpu))
        return CUDA_SUCCESS;
    if (!has_way(q, to))
        return CUDA_ERROR_NOT_READY;
    return q->learning ? CUDA_ERROR_INVALID_VALUE : begin_detour(q, to, into);
}

/* What failed may have begun: the queue waits for that, too. */
CUresult cuda_leave(struct dev_queue *q, struct cuda_gpu *to, CUresult r)
{
    if (GM_LIKELY(to == q->gpu) || q->learning || !has_way(q, to))
        return r;
    CUresult end = end_detour(q, to);
    return r != CUDA_SUCCESS ? r : end;
}

/* What is in them, the queue's stream has waited for. */
void cuda_detours_destroy(struct dev_queue *q)
{
    const struct cuda_driver *api = &q->client->dev->api;
    for (uint32_t i = 0; q->detours && i < DETOURS; i++) {
        struct cuda_detour *d = &q->detours[i];
        if (d->there) {
            cuda_enter(q->gpu);
            (void)api->cuEventDestroy_v2(d->there);
        }
        if (!d->stream)
            continue;
        cuda_enter(d->gpu);
        if (d->back)
            (void)api->cuEventDestroy_v2(d->back);
        cuda_capacity_stream_destroy(d->gpu, NULL, d->stream);
    }
    free(q->detours);
    q->detours = NULL;
    cuda_enter(q->gpu);
}
