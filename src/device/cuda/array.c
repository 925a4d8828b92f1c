/*
 * Arrays of a client are objects of the driver, in memory that the driver allocates; the server has
 * charged the client for it. The client knows them by numbers from 1 on. A mipmapped array is one
 * object, of which a call names a level.
 *
 * An array that the client destroys goes at once, if nothing of the client runs, no long kernel of
 * another client runs (admit.h), and no texture uses it. Otherwise it can no longer be named, stays
 * charged, and goes with a later call. The program has to do the waiting: a thread that waited here
 * for an endless kernel could not be stopped.
 *
 * All on the client's thread, but for the limit.
 */
#include "base/array.h"
#include "device/cuda/array.h"
#include "device/cuda/call.h"
#include "device/cuda/far.h"
#include "device/cuda/library.h"
#include "device/cuda/inflight.h"

#include <stdlib.h>
#include <string.h>

#include "device/cuda/admit.h"
#include "device/cuda/op.h"

#define ARRAYS_MAX 16384u

static struct cuda_array *entry(struct dev_client *c, uint32_t number)
{
    return number && number <= c->arrays.count ? &c->arrays.at[number - 1] : NULL;
}

struct cuda_array *cuda_array_find(struct dev_client *c, uint32_t number, uint32_t level)
{
    struct cuda_array *a = entry(c, number);
    return a && a->exists && !a->dying && level < GM_MAX(a->shape.levels, 1u) ? a : NULL;
}

CUresult cuda_array_level(struct dev_client *c, struct cuda_array *a, uint32_t level, CUarray *out)
{
    CUresult r = CUDA_SUCCESS;
    if (a->levels && !a->levels[level])
        r = c->dev->api.cuMipmappedArrayGetLevel(&a->levels[level], a->mipmap, level);
    *out = a->levels ? a->levels[level] : a->array;
    return r;
}

/* --- memory ----------------------------------------------------------------------------------- */

int cuda_array_memory(struct dev_client *c, uint32_t device, uint64_t bytes)
{
    pthread_mutex_lock(&c->arrays.lock);
    bool ok = bytes >= c->arrays.bytes[device];
    if (ok)
        c->arrays.limit[device] = bytes;
    pthread_mutex_unlock(&c->arrays.lock);
    return ok ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_VALUE;
}

static bool take_bytes(struct dev_client *c, const struct cuda_gpu *g, uint64_t bytes)
{
    pthread_mutex_lock(&c->arrays.lock);
    uint64_t *used = &c->arrays.bytes[g->index], limit = c->arrays.limit[g->index];
    bool ok = *used <= limit && bytes <= limit - *used;
    if (ok)
        *used += bytes;
    pthread_mutex_unlock(&c->arrays.lock);
    return ok;
}

static void give_bytes(struct dev_client *c, const struct cuda_gpu *g, uint64_t bytes)
{
    pthread_mutex_lock(&c->arrays.lock);
    c->arrays.bytes[g->index] -= bytes;
    pthread_mutex_unlock(&c->arrays.lock);
}

/* --- making and destroying -------------------------------------------------------------------- */

static struct cuda_array *place(struct dev_client *c, uint32_t *number)
{
    for (uint32_t i = 0; i < c->arrays.count; i++)
        if (!c->arrays.at[i].exists) {
            *number = i + 1;
            return &c->arrays.at[i];
        }
    if (!gm_array_room(&c->arrays.at, sizeof(*c->arrays.at), c->arrays.count, ARRAYS_MAX))
        return NULL;
    *number = ++c->arrays.count;
    return memset(&c->arrays.at[*number - 1], 0, sizeof(*c->arrays.at));
}

static CUresult make(const struct cuda_driver *api, struct cuda_array *a)
{
    const struct dev_array_shape *s = &a->shape;
    const CUDA_ARRAY3D_DESCRIPTOR d = { .Width = s->width,
                                        .Height = s->height,
                                        .Depth = s->depth,
                                        .Format = (CUarray_format)s->format,
                                        .NumChannels = s->channels,
                                        .Flags = s->flags };
    if (!s->levels)
        return api->cuArray3DCreate_v2(&a->array, &d);
    a->levels = calloc(s->levels, sizeof(CUarray));
    return a->levels ? api->cuMipmappedArrayCreate(&a->mipmap, &d, s->levels)
                     : CUDA_ERROR_OUT_OF_MEMORY;
}

static void destroy(struct dev_client *c, struct cuda_array *a)
{
    atomic_fetch_add_explicit(&c->runs.memory, 1, memory_order_release);
    cuda_enter(a->gpu);
    if (a->mipmap)
        (void)CUDA_CALL(c->dev, CUDA_GPU_BIT(a->gpu), cuMipmappedArrayDestroy, a->mipmap);
    if (a->array)
        (void)CUDA_CALL(c->dev, CUDA_GPU_BIT(a->gpu), cuArrayDestroy, a->array);
    free(a->levels);
    give_bytes(c, a->gpu, a->bytes);
    memset(a, 0, sizeof(*a));
}

/* Nothing of the client runs or waits to run. */
static bool is_idle(struct dev_client *c)
{
    gm_list_for_each (q, &c->queues, struct dev_queue, link)
        if (!cuda_queue_is_done(q))
            return false;
    return true;
}

/* Frees arrays that were destroyed while something used them, if they can go now. */
static void reap(struct dev_client *c)
{
    if (!c->arrays.dying || !is_idle(c))
        return;
    for (uint32_t i = 0; i < c->arrays.count; i++)
        if (c->arrays.at[i].dying && !c->arrays.at[i].users) {
            const uint32_t gpus = CUDA_GPU_BIT(c->arrays.at[i].gpu);
            if (!cuda_admit_try(c->dev, c, gpus))
                continue;
            destroy(c, &c->arrays.at[i]);
            cuda_admit_end(c->dev, gpus);
            c->arrays.dying--;
        }
}

/* Takes bytes of the client's limit. If there are too few, waits for arrays that are to go. */
static bool find_bytes(struct dev_client *c, uint64_t bytes)
{
    if (take_bytes(c, c->asked, bytes))
        return true;
    if (!c->arrays.dying || !is_idle(c) ||
        !cuda_admit_wait(c->dev, c, CUDA_GPU_BIT(c->asked), gm_now_ns(), UINT64_MAX))
        return false;
    reap(c); /* joins this safe point */
    cuda_admit_end(c->dev, CUDA_GPU_BIT(c->asked));
    cuda_enter(c->asked);
    return take_bytes(c, c->asked, bytes);
}

static void answer(const struct dev_client *c, uint32_t number, struct wire_enc *reply)
{
    /* Without the lock: only this thread changes the bytes in use. */
    wire_put_call_array_is(reply, &(struct wire_call_array_is) {
                                      .array = number, .bytes = c->arrays.bytes[c->asked->index] });
}

int cuda_array_create(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_array_create w;
    uint32_t number;
    wire_get_call_array_create(args, &w);
    const struct dev_array_shape shape = { w.width,    w.height, w.depth, w.format,
                                           w.channels, w.flags,  w.levels };
    int result = args->fatal ? GM_CUDA_INVALID_VALUE : dev_array_check(&shape);
    if (result != 0)
        return result;
    reap(c);
    cuda_enter(c->asked);
    struct cuda_array *a = place(c, &number);
    uint64_t bytes = dev_array_bytes(&shape);
    if (!a || !find_bytes(c, bytes))
        return GM_CUDA_OUT_OF_MEMORY;
    *a = (struct cuda_array) { .exists = true, .gpu = c->asked, .shape = shape, .bytes = bytes };
    CUresult r = make(&c->dev->api, a);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        cuda_memory_trim(c, c->asked->index);
        cuda_enter(c->asked);
        free(a->levels);
        a->levels = NULL;
        r = make(&c->dev->api, a);
    }
    if (r != CUDA_SUCCESS)
        destroy(c, a);
    else
        answer(c, number, reply);
    return (int)r;
}

int cuda_array_destroy(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_array w;
    wire_get_call_array(args, &w);
    struct cuda_array *a = cuda_array_find(c, w.array, 0);
    if (!a)
        return GM_CUDA_INVALID_HANDLE;
    a->dying = true;
    c->arrays.dying++;
    reap(c);
    answer(c, 0, reply);
    return GM_CUDA_SUCCESS;
}

void cuda_arrays_finish(struct dev_client *c)
{
    for (uint32_t i = 0; i < c->arrays.count; i++)
        if (c->arrays.at[i].exists)
            destroy(c, &c->arrays.at[i]);
    free(c->arrays.at);
    c->arrays.at = NULL;
    c->arrays.count = 0;
}

/* --- copies ----------------------------------------------------------------------------------- */

/* One side of a copy. */
struct side {
    uint32_t array, level, x, y, z; /* array 0: memory */
    uint64_t address, pitch, slice;
    CUarray handle;
    struct cuda_gpu *gpu; /* of an array; NULL: memory */
    uint64_t rows;        /* of a plane of memory */
};

static CUresult take_array(struct dev_client *c, const struct wire_rec_copy_array *r,
                           struct side *s)
{
    struct cuda_array *a = cuda_array_find(c, s->array, s->level);
    if (!a)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!dev_array_holds(&a->shape, s->level, s->x, s->y, s->z, r->width, r->height, r->depth))
        return CUDA_ERROR_INVALID_VALUE;
    s->gpu = a->gpu;
    return cuda_array_level(c, a, s->level, &s->handle);
}

static CUresult take_memory(struct dev_client *c, const struct wire_rec_copy_array *r,
                            struct side *s)
{
    uint64_t rows, planes, size;
    if (r->height == 1 && r->depth == 1)
        s->pitch = s->slice = r->width;
    else if (r->depth == 1)
        s->slice = s->pitch; /* of no interest */
    if (s->pitch < r->width || s->slice % s->pitch)
        return CUDA_ERROR_INVALID_VALUE;
    s->rows = r->depth == 1 ? r->height
                            : s->slice / s->pitch; /* the driver wants no less than the height */
    if (r->depth > 1 && s->rows < r->height)
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(s->pitch, r->height - 1, &rows) ||
        __builtin_mul_overflow(s->slice, r->depth - 1, &planes) ||
        __builtin_add_overflow(rows, planes, &size) ||
        __builtin_add_overflow(size, r->width, &size) || !cuda_holds(c, s->address, size))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    return CUDA_SUCCESS;
}

static CUresult take(struct dev_client *c, const struct wire_rec_copy_array *r, struct side *s)
{
    return s->array ? take_array(c, r, s) : take_memory(c, r, s);
}

static CUresult copy(struct dev_queue *q, const struct wire_rec_copy_array *r,
                     const struct side *dst, const struct side *src, struct cuda_gpu **by)
{
    const CUDA_MEMCPY3D box = {
        .srcXInBytes = src->x,
        .srcY = src->y,
        .srcZ = src->z,
        .srcMemoryType = src->array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .srcDevice = src->address,
        .srcArray = src->handle,
        .srcPitch = src->pitch,
        .srcHeight = src->rows,
        .dstXInBytes = dst->x,
        .dstY = dst->y,
        .dstZ = dst->z,
        .dstMemoryType = dst->array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .dstDevice = dst->address,
        .dstArray = dst->handle,
        .dstPitch = dst->pitch,
        .dstHeight = dst->rows,
        .WidthInBytes = r->width,
        .Height = r->height,
        .Depth = r->depth,
    };
    struct cuda_gpu *does = dst->gpu ? dst->gpu : src->gpu;
    CUstream into;
    *by = does;
    CUresult result = cuda_go(q, does, &into);
    if (result == CUDA_SUCCESS)
        result = q->client->dev->api.cuMemcpy3DAsync_v2(&box, into);
    return cuda_leave(q, does, result);
}

/* Returns what is wrong with the copy; if nothing is, *result is the driver's answer and *does the
 * GPU that does it. */
static CUresult try_copy(struct dev_queue *q, const struct wire_rec_copy_array *r, CUresult *result,
                         struct cuda_gpu **does)
{
    struct dev_client *c = q->client;
    struct side dst = { r->dst_array, r->dst_level, r->dst_x,     r->dst_y,
                        r->dst_z,     r->dst,       r->dst_pitch, r->dst_slice };
    struct side src = { r->src_array, r->src_level, r->src_x,     r->src_y,
                        r->src_z,     r->src,       r->src_pitch, r->src_slice };
    pthread_mutex_lock(&c->memory_lock);
    CUresult wrong = dst.array || src.array ? take(c, r, &dst) : CUDA_ERROR_INVALID_VALUE;
    if (wrong == CUDA_SUCCESS)
        wrong = take(c, r, &src);
    if (wrong == CUDA_SUCCESS && dst.gpu && src.gpu && dst.gpu != src.gpu)
        wrong = CUDA_ERROR_INVALID_HANDLE;
    if (wrong == CUDA_SUCCESS)
        *result = copy(q, r, &dst, &src, does);
    pthread_mutex_unlock(&c->memory_lock);
    return wrong;
}

/* Like other copies (submit.c), it waits for a way to the other GPU without the lock. */
void cuda_array_copy(struct dev_queue *q, const struct wire_rec_copy_array *r)
{
    CUresult result = CUDA_SUCCESS;
    struct cuda_gpu *does = q->gpu;
    if (!r->width || !r->height || !r->depth)
        return;
    CUresult wrong = try_copy(q, r, &result, &does);
    while (wrong == CUDA_SUCCESS && result == CUDA_ERROR_NOT_READY &&
           (result = cuda_open_way(q, does)) == CUDA_SUCCESS)
        wrong = try_copy(q, r, &result, &does);
    if (wrong != CUDA_SUCCESS)
        cuda_misplaced(
            q, wrong, r->dst,
            "copy of an array that does not exist, or beyond its bounds, or outside the window");
    (void)cuda_outcome(q, result, "the device refused a copy of an array");
}
