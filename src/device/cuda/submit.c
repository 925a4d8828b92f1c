/*
 * Hands one operation to the driver, in a call or two. If something is wrong with it, its client
 * gets an error.
 */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/admit.h"
#include "device/cuda/capacity.h"
#include "device/cuda/far.h"
#include "device/cuda/graph.h"
#include "device/cuda/stream.h"
#include "device/cuda/inflight.h"
#include "device/cuda/kernel.h"
#include "device/cuda/local.h"
#include "device/cuda/op.h"
#include "device/cuda/point.h"
#include "device/cuda/array.h"

_Static_assert(sizeof(CUlaunchAttribute) == DEV_LAUNCH_ATTRIBUTE, "as the client sends it");

/* Attributes that say how a kernel runs, and none that contains a pointer or a handle. */
static bool attribute_allowed(CUlaunchAttributeID id)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

bool cuda_attributes_take(CUlaunchAttribute *out, const void *bytes, size_t size)
{
    if (size % sizeof(*out) || size > DEV_LAUNCH_ATTRIBUTES_MAX * sizeof(*out))
        return false;
    if (size)
        memcpy(out, bytes, size);
    for (size_t i = 0; i < size / sizeof(*out); i++)
        if (!attribute_allowed(out[i].id))
            return false;
    return true;
}

/* In a green context the driver has to look the kernel up at each launch. */
static CUfunction function(const struct dev_queue *q, const struct cuda_op_launch *l)
{
    return q->place && q->place->green ? (CUfunction)l->kernel : l->loaded;
}

static CUresult launch_with_attributes(struct dev_queue *q, const struct cuda_op_launch *l,
                                       const uint8_t *bytes, bool precedes, void **extra)
{
    CUlaunchAttribute attributes[DEV_LAUNCH_ATTRIBUTES_MAX + 1];
    uint32_t count = l->attributes;
    if (!cuda_attributes_take(attributes, bytes, count * sizeof(*attributes)))
        return CUDA_ERROR_INVALID_VALUE;
    if (precedes)
        attributes[count++] = (CUlaunchAttribute) { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                                    .value.priority = cuda_stream_precedence(q) };
    const CUlaunchConfig config = {
        .gridDimX = l->grid[0],
        .gridDimY = l->grid[1],
        .gridDimZ = l->grid[2],
        .blockDimX = l->block[0],
        .blockDimY = l->block[1],
        .blockDimZ = l->block[2],
        .sharedMemBytes = l->shared_bytes,
        .hStream = cuda_into(q),
        .attrs = attributes,
        .numAttrs = count,
    };
    return q->client->dev->api.cuLaunchKernelEx(&config, function(q, l), NULL, extra);
}

static void launch(struct dev_queue *q, const struct cuda_op *op)
{
    const struct cuda_driver *api = &q->client->dev->api;
    const struct cuda_op_launch *l = &op->u.launch;
    const uint8_t *bytes = op->bytes;
    size_t before = l->attributes * DEV_LAUNCH_ATTRIBUTE, size = l->params_size - before;
    void *buffer[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)(bytes + before),
                       CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };
    void **extra = size ? buffer : NULL;
    /* Not in a run that is learnt: it is replayed later, beside other clients. */
    const bool precedes = l->precedes && !cuda_captures(q) && !q->place->green;
    CUresult r = l->attributes || precedes
                     ? launch_with_attributes(q, l, bytes, precedes, extra)
                     : api->cuLaunchKernel(function(q, l), l->grid[0], l->grid[1], l->grid[2],
                                           l->block[0], l->block[1], l->block[2], l->shared_bytes,
                                           cuda_into(q), NULL, extra);
    if (!cuda_outcome(q, r, "the device refused a launch"))
        cuda_local_unsure(q->client, q->gpu);
}

static bool extent(const struct wire_rec_copy *r, uint64_t pitch, uint64_t slice, uint64_t *out)
{
    uint64_t rows, slices;
    return !__builtin_mul_overflow(pitch, r->height - 1, &rows) &&
           !__builtin_mul_overflow(slice, r->depth - 1, &slices) &&
           !__builtin_add_overflow(rows, slices, out) &&
           !__builtin_add_overflow(*out, r->width, out);
}

/* A copy as the driver takes it in one call. */
struct volume {
    uint64_t width, height, depth;
    uint64_t dst_pitch, src_pitch;
    uint64_t dst_rows, src_rows; /* of a plane */
};

#define PITCH_MAX ((uint64_t)INT32_MAX)

static bool has_planes_of_rows(uint64_t slice, uint64_t pitch, uint64_t height)
{
    return pitch && pitch <= PITCH_MAX && slice % pitch == 0 && slice / pitch >= height;
}

/* Takes all planes in one call: a call for each would fill the driver's queues. False: planes are
 * not a whole number of rows apart, as CUDA requires. */
static bool take_volume(const struct wire_rec_copy *r, struct volume *v)
{
    if (r->height == 1 && GM_MIN(r->dst_slice, r->src_slice) >= r->width &&
        GM_MAX(r->dst_slice, r->src_slice) <= PITCH_MAX) { /* planes are rows */
        *v = (struct volume) {
            r->width, r->depth, 1, r->dst_slice, r->src_slice, r->depth, r->depth
        };
        return true;
    }
    if (!has_planes_of_rows(r->dst_slice, r->dst_pitch, r->height) ||
        !has_planes_of_rows(r->src_slice, r->src_pitch, r->height))
        return false;
    *v = (struct volume) { r->width,
                           r->height,
                           r->depth,
                           r->dst_pitch,
                           r->src_pitch,
                           r->dst_slice / r->dst_pitch,
                           r->src_slice / r->src_pitch };
    return true;
}

/* From one GPU's memory to another one's. */
static CUresult copy_volume_between(struct dev_queue *q, const struct volume *v, CUdeviceptr dst,
                                    CUdeviceptr src, const struct cuda_gpu *to,
                                    const struct cuda_gpu *from, CUstream into)
{
    const CUDA_MEMCPY3D_PEER box = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = src,
        .srcContext = from->context,
        .srcPitch = v->src_pitch,
        .srcHeight = v->src_rows,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = dst,
        .dstContext = to->context,
        .dstPitch = v->dst_pitch,
        .dstHeight = v->dst_rows,
        .WidthInBytes = v->width,
        .Height = v->height,
        .Depth = v->depth,
    };
    return q->client->dev->api.cuMemcpy3DPeerAsync(&box, into);
}

static CUresult copy_volume(struct dev_queue *q, const struct volume *v, CUdeviceptr dst,
                            CUdeviceptr src, const struct cuda_gpu *to, const struct cuda_gpu *from,
                            CUstream into)
{
    if (GM_UNLIKELY(to != from))
        return copy_volume_between(q, v, dst, src, to, from, into);
    const CUDA_MEMCPY3D box = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = src,
        .srcPitch = v->src_pitch,
        .srcHeight = v->src_rows,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = dst,
        .dstPitch = v->dst_pitch,
        .dstHeight = v->dst_rows,
        .WidthInBytes = v->width,
        .Height = v->height,
        .Depth = v->depth,
    };
    return q->client->dev->api.cuMemcpy3DAsync_v2(&box, into);
}

static CUresult copy_bytes(struct dev_queue *q, CUdeviceptr dst, CUdeviceptr src, size_t size,
                           const struct cuda_gpu *to, const struct cuda_gpu *from, CUstream into)
{
    const struct cuda_driver *api = &q->client->dev->api;
    return GM_UNLIKELY(to != from)
               ? api->cuMemcpyPeerAsync(dst, to->context, src, from->context, size, into)
               : api->cuMemcpyAsync(dst, src, size, into);
}

static CUresult copy_into(struct dev_queue *q, const struct wire_rec_copy *r,
                          const struct cuda_gpu *to, const struct cuda_gpu *from, CUstream into)
{
    const struct volume plane = { .width = r->width,
                                  .height = r->height,
                                  .depth = 1,
                                  .dst_pitch = r->dst_pitch,
                                  .src_pitch = r->src_pitch };
    bool is_run = r->height == 1 || (r->dst_pitch == r->width && r->src_pitch == r->width);
    struct volume all;
    if (GM_UNLIKELY(r->depth > 1))
        return take_volume(r, &all) ? copy_volume(q, &all, r->dst, r->src, to, from, into)
                                    : CUDA_ERROR_INVALID_VALUE;
    return is_run ? copy_bytes(q, r->dst, r->src, r->width * r->height, to, from, into)
                  : copy_volume(q, &plane, r->dst, r->src, to, from, into);
}

/* The GPU that does a copy: the queue's, if that is one of the two. */
static struct cuda_gpu *doer(const struct dev_queue *q, struct cuda_gpu *to, struct cuda_gpu *from)
{
    return to == q->gpu || from == q->gpu ? q->gpu : from;
}

/* A copy on a machine with several GPUs. *does: the GPU that does it. */
static CUresult copy_far(struct dev_queue *q, const struct wire_rec_copy *r,
                         const struct cuda_memory *dst, const struct cuda_memory *src,
                         struct cuda_gpu **does)
{
    struct cuda_gpu *to = dst->gpu, *from = src->gpu;
    CUstream into;
    if (dst->reach & src->reach & 1u << q->gpu->index)
        to = from = q->gpu; /* wherever it lies; who has it may not be let to touch it */
    to = to ? to : from ? from : q->gpu; /* the host's memory is anybody's */
    from = from ? from : to;
    *does = doer(q, to, from);
    if (to != from &&
        (cuda_captures(q) || !to->context || !from->context)) /* that is no operation for a graph */
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuda_go(q, *does, &into);
    if (result == CUDA_SUCCESS)
        result = copy_into(q, r, to, from, into);
    return cuda_leave(q, *does, result);
}

static bool find_both(struct dev_client *c, const struct wire_rec_copy *r, struct cuda_memory *dst,
                      struct cuda_memory *src)
{
    uint64_t dst_size, src_size;
    if (!extent(r, r->dst_pitch, r->dst_slice, &dst_size) ||
        !extent(r, r->src_pitch, r->src_slice, &src_size) ||
        (r->height != 1 && (r->dst_pitch < r->width || r->src_pitch < r->width)) ||
        r->depth > 1u << 16)
        return false;
    *dst = cuda_memory_at(c, r->dst, dst_size);
    *src = cuda_memory_at(c, r->src, src_size);
    return dst->held && src->held;
}

/* False: it is not all the client's memory. */
static bool try_copy(struct dev_queue *q, const struct wire_rec_copy *r, CUresult *result,
                     struct cuda_gpu **does)
{
    struct dev_client *c = q->client;
    struct cuda_memory dst, src;
    pthread_mutex_lock(&c->memory_lock);
    bool held = find_both(c, r, &dst, &src);
    if (held)
        *result = GM_UNLIKELY(c->dev->count > 1) ? copy_far(q, r, &dst, &src, does)
                                                 : copy_into(q, r, q->gpu, q->gpu, cuda_into(q));
    pthread_mutex_unlock(&c->memory_lock);
    return held;
}

/* A way to another GPU may have to be waited for. That is done without memory_lock, since threads
 * that unmap memory need it, and everybody waits for those. */
static void copy(struct dev_queue *q, const struct wire_rec_copy *r)
{
    CUresult result = CUDA_SUCCESS;
    struct cuda_gpu *does = q->gpu;
    if (!r->width || !r->height || !r->depth)
        return;
    bool held = try_copy(q, r, &result, &does);
    while (GM_UNLIKELY(held && result == CUDA_ERROR_NOT_READY) &&
           (result = cuda_open_way(q, does)) == CUDA_SUCCESS)
        held = try_copy(q, r, &result, &does);
    if (!held)
        cuda_misplaced(q, CUDA_ERROR_ILLEGAL_ADDRESS, r->dst,
                       "copy outside the program's device memory");
    (void)cuda_outcome(q, result, "the device refused a copy");
}

/* The GPU that has to do an operation on one piece of memory. */
static struct cuda_gpu *doer_at(const struct dev_queue *q, const struct cuda_memory *m)
{
    return !m->gpu || (m->reach & 1u << q->gpu->index) ? q->gpu : m->gpu;
}

static CUresult go(struct dev_queue *q, struct cuda_gpu *does, CUstream *into)
{
    CUresult r = cuda_open_way(q, does);
    return r == CUDA_SUCCESS ? cuda_go(q, does, into) : r;
}

/* The driver's copy to the device takes device memory only; a word of host memory is written by the
 * GPU. */
static CUresult write_into(const struct dev_client *c, const struct cuda_op *op, bool to_host,
                           CUstream into)
{
    const struct cuda_driver *api = &c->dev->api;
    uint64_t word;
    if (!to_host || op->u.write.size != sizeof(word) || op->u.write.dst % sizeof(word))
        return api->cuMemcpyHtoDAsync_v2(op->u.write.dst, op->bytes, op->u.write.size, into);
    memcpy(&word, op->bytes, sizeof(word));
    return api->cuStreamWriteValue64_v2(into, op->u.write.dst, word, CU_STREAM_WRITE_VALUE_DEFAULT);
}

/* From pageable memory: the driver has taken the bytes when it returns. */
static void write_bytes(struct dev_queue *q, const struct cuda_op *op)
{
    struct dev_client *c = q->client;
    const struct cuda_memory m = cuda_memory_at(c, op->u.write.dst, op->u.write.size);
    struct cuda_gpu *does = doer_at(q, &m);
    CUstream into;
    if (!m.held)
        cuda_wrong(c, CUDA_ERROR_ILLEGAL_ADDRESS, op->u.write.dst,
                   "write outside the program's device memory");
    else if (op->u.write.size) {
        CUresult r = go(q, does, &into);
        if (r == CUDA_SUCCESS)
            r = write_into(c, op, !m.gpu, into);
        (void)cuda_outcome(q, cuda_leave(q, does, r), "the device refused a write");
    }
}

static CUresult fill_rows(const struct dev_queue *q, const struct wire_rec_fill *r, CUstream into)
{
    const struct cuda_driver *api = &q->client->dev->api;
    if (r->height == 1) {
        switch (r->element_size) {
        case 1:
            return api->cuMemsetD8Async(r->dst, (unsigned char)r->value, r->width, into);
        case 2:
            return api->cuMemsetD16Async(r->dst, (unsigned short)r->value, r->width, into);
        default:
            return api->cuMemsetD32Async(r->dst, r->value, r->width, into);
        }
    }
    switch (r->element_size) {
    case 1:
        return api->cuMemsetD2D8Async(r->dst, r->pitch, (unsigned char)r->value, r->width,
                                      r->height, into);
    case 2:
        return api->cuMemsetD2D16Async(r->dst, r->pitch, (unsigned short)r->value, r->width,
                                       r->height, into);
    default:
        return api->cuMemsetD2D32Async(r->dst, r->pitch, r->value, r->width, r->height, into);
    }
}

static void fill(struct dev_queue *q, const struct wire_rec_fill *r)
{
    struct cuda_memory m = { 0 };
    uint64_t row, size;
    CUstream into;
    if (!r->width || !r->height)
        return;
    bool sane = (r->element_size == 1 || r->element_size == 2 || r->element_size == 4) &&
                !__builtin_mul_overflow(r->width, r->element_size, &row) &&
                !__builtin_mul_overflow(r->pitch, r->height - 1, &size) &&
                !__builtin_add_overflow(size, row, &size);
    if (sane)
        m = cuda_memory_at(q->client, r->dst, size);
    if (!m.held)
        cuda_misplaced(q, CUDA_ERROR_ILLEGAL_ADDRESS, r->dst,
                       "fill outside the program's device memory");
    else {
        struct cuda_gpu *does = doer_at(q, &m);
        CUresult result = go(q, does, &into);
        if (result == CUDA_SUCCESS)
            result = fill_rows(q, r, into);
        (void)cuda_outcome(q, cuda_leave(q, does, result), "the device refused a fill");
    }
}

static void wait_for(struct dev_queue *q, struct dev_queue *other, uint64_t other_seq)
{
    CUevent event;
    if (!other->stream) /* has had nothing for the GPU to do */
        return;
    CUresult r = cuda_point_find(other, other_seq, &event);
    cuda_enter(q->gpu);
    if (r == CUDA_SUCCESS)
        r = q->client->dev->api.cuStreamWaitEvent(q->stream, event, CU_EVENT_WAIT_DEFAULT);
    (void)cuda_check(q->client, r, "the device refused a wait");
}

static void stamp(struct dev_queue *q, uint64_t seq, uint32_t event)
{
    struct dev_client *c = q->client;
    uint64_t slot = c->seats[q->gpu->index].events_at + event * sizeof(struct tp_event_slot);
    void *params[] = { &slot, &seq };
    (void)cuda_check(
        c, c->dev->api.cuLaunchKernel(q->gpu->stamp, 1, 1, 1, 1, 1, 1, 0, q->stream, params, NULL),
        "the device refused a time stamp");
}

struct arrival {
    struct dev_client *client;
    struct tp_stream_slot *slot;
    uint64_t seq;
};

/* On a thread of the driver's, in the stream's order. */
static void CUDA_CB arrive(void *arg)
{
    struct arrival *a = arg;
    struct dev_client *c = a->client;
    pthread_mutex_lock(&c->arrivals_lock);
    atomic_store_explicit(&a->slot->arrived, a->seq, memory_order_release);
    tp_word_publish(&c->session->control->arrivals, ++c->arrivals);
    pthread_mutex_unlock(&c->arrivals_lock);
    free(a);
}

static void gate(struct dev_queue *q, uint64_t seq)
{
    struct dev_client *c = q->client;
    struct arrival *a = malloc(sizeof(*a));
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
    if (a) {
        *a = (struct arrival) { c, q->slot, seq };
        r = c->dev->api.cuLaunchHostFunc(q->stream, arrive, a);
    }
    if (r != CUDA_SUCCESS)
        free(a);
    (void)cuda_check(c, r, "the device refused a host function");
}

/* Graphs with conditional nodes follow each other in their context (graph.h). */
static CUresult launch_graph(struct dev_queue *q, struct cuda_graph *graph)
{
    const struct cuda_driver *api = &q->client->dev->api;
    struct cuda_gpu *g = q->gpu;
    cuda_count(q, 2);
    pthread_mutex_lock(&g->graphs_lock);
    CUresult r = g->graphs ? api->cuStreamWaitEvent(q->stream, g->graphs, CU_EVENT_WAIT_DEFAULT)
                           : api->cuEventCreate(&g->graphs, CU_EVENT_DISABLE_TIMING);
    if (r == CUDA_SUCCESS)
        r = cuda_capacity_graph_launch(q, &graph->made->exec);
    if (r == CUDA_SUCCESS)
        r = api->cuEventRecord(g->graphs, q->stream);
    pthread_mutex_unlock(&g->graphs_lock);
    return r;
}

bool cuda_op_find_kernel(struct dev_queue *q, struct cuda_op_launch *l)
{
    struct dev_client *c = q->client;
    CUresult r = cuda_library_launch(c, q->gpu->index, l->library, l->kernel, &l->loaded);
    if (r != CUDA_SUCCESS && cuda_is_leaving(c->dev, c))
        return false;
    if (!cuda_check(c, r, "the device refused to load a kernel"))
        return false;
    if (!q->stream)
        cuda_stream_place(q); /* it has gone there */
    if (l->shared_bytes)
        cuda_kernel_allow(c->dev, l->loaded, l->shared_bytes);
    return q->stream != NULL;
}

void cuda_op_submit(struct dev_queue *q, const struct cuda_op *op)
{
    switch (op->kind) {
    case CUDA_OP_LAUNCH:
        launch(q, op);
        break;
    case CUDA_OP_COPY:
        copy(q, &op->u.copy);
        break;
    case CUDA_OP_COPY_ARRAY:
        cuda_array_copy(q, &op->u.copy_array);
        break;
    case CUDA_OP_WRITE:
        write_bytes(q, op);
        break;
    case CUDA_OP_FILL:
        fill(q, &op->u.fill);
        break;
    case CUDA_OP_WAIT:
        wait_for(q, op->u.wait.other, op->u.wait.seq);
        break;
    case CUDA_OP_STAMP:
        stamp(q, op->seq, op->u.event);
        break;
    case CUDA_OP_GATE:
        gate(q, op->seq);
        break;
    case CUDA_OP_GRAPH:
        (void)cuda_outcome(q, launch_graph(q, op->u.graph), "the device refused to launch a graph");
        break;
    case CUDA_OP_VALUE: /* wait_value.c */
    case CUDA_OP_MARK:
        break;
    }
}
