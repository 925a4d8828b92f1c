/*
 * Operations: each becomes a call or two of the driver on the queue's stream, and none waits. See state.h for how
 * completion comes back.
 *
 * A stream's events for others are recorded where it stands when somebody first asks for them, which may be later than
 * what was asked for: a wait may wait for more than it has to, but never for a gate, since the event is recorded anew
 * before each.
 */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/state.h"

#define MARK_EVERY 64u
/* A gate takes so much more room in the driver's queues than a launch; a client's thread that stops in the driver for
 * want of room could not open gates any more. */
#define GATE_WEIGHT 16u

/* --- marks -------------------------------------------------------------------------------------------------------- */

static void mark_now(struct dev_queue *q)
{
    struct dev_client *c = q->client;
    struct dev *d = c->dev;
    CUdeviceptr word = c->streams_at + q->number * sizeof(struct tp_stream_slot);
    q->unmarked = 0;
    gm_list_remove(&q->dirty);
    if (q->marked == q->last)
        return;
    if (!cuda_check(c, d->api.cuStreamWriteValue64_v2(q->stream, word, q->last, CU_STREAM_WRITE_VALUE_DEFAULT),
                    "the device refused to write a completion"))
        return;
    pthread_mutex_lock(&d->lock);
    q->marked = q->last;
    if (gm_list_empty(&q->active)) {
        if (gm_list_empty(&d->active))
            pthread_cond_signal(&d->work);
        gm_list_append(&d->active, &q->active);
    }
    pthread_mutex_unlock(&d->lock);
}

void cuda_flush(struct dev_client *c)
{
    cuda_enter(c->dev);
    while (!gm_list_empty(&c->dirty))
        mark_now(gm_list_entry(c->dirty.next, struct dev_queue, dirty));
}

/* The operation is with the driver, or failed and the client with it. */
static int submitted(struct dev_queue *q, uint64_t seq)
{
    atomic_fetch_add_explicit(&q->client->submitted, seq - q->last, memory_order_relaxed);
    q->last = seq;
    if (gm_list_empty(&q->dirty))
        gm_list_append(&q->client->dirty, &q->dirty);
    if (++q->unmarked >= MARK_EVERY)
        mark_now(q);
    return GM_CUDA_SUCCESS;
}

uint32_t cuda_backlog(struct dev_client *c)
{
    uint64_t completed = atomic_load_explicit(&c->completed, memory_order_relaxed);
    uint64_t all = atomic_load_explicit(&c->submitted, memory_order_relaxed);
    uint64_t ahead = GATE_WEIGHT * (uint64_t)atomic_load_explicit(&c->gates_ahead, memory_order_relaxed);
    ahead += all > completed ? all - completed : 0;
    return (uint32_t)GM_MIN(ahead, (uint64_t)UINT32_MAX);
}

/* --- queues ------------------------------------------------------------------------------------------------------- */

int cuda_queue_create(struct dev_client *c, uint32_t stream, int priority, struct dev_queue **out)
{
    struct dev_queue *q = calloc(1, sizeof(*q));
    if (!q)
        return GM_CUDA_OUT_OF_MEMORY;
    cuda_enter(c->dev);
    q->client = c;
    q->number = stream;
    q->slot = &c->session->streams[stream];
    q->last = q->marked = q->seen = atomic_load_explicit(&q->slot->completed.value, memory_order_relaxed);
    gm_list_init(&q->dirty);
    gm_list_init(&q->active);
    CUresult r = c->dev->api.cuStreamCreateWithPriority(&q->stream, CU_STREAM_NON_BLOCKING, priority);
    if (r != CUDA_SUCCESS) {
        free(q);
        return (int)r;
    }
    atomic_store_explicit(&c->gates[stream], 0, memory_order_relaxed);
    gm_list_append(&c->queues, &q->link);
    *out = q;
    return GM_CUDA_SUCCESS;
}

void cuda_queue_destroy(struct dev_queue *q)
{
    if (!q)
        return;
    struct dev_client *c = q->client;
    struct dev *d = c->dev;
    cuda_enter(d);
    pthread_mutex_lock(&d->lock);
    gm_list_remove(&q->active);
    atomic_fetch_add_explicit(&c->completed, q->last - q->seen, memory_order_relaxed);
    pthread_mutex_unlock(&d->lock);
    gm_list_remove(&q->dirty);
    gm_list_remove(&q->link);
    if (q->event)
        (void)d->api.cuEventDestroy_v2(q->event);
    (void)d->api.cuStreamDestroy_v2(q->stream);
    free(q);
}

/* --- operations ----------------------------------------------------------------------------------------------------- */

int cuda_launch(struct dev_queue *q, uint64_t seq, const struct dev_launch *l)
{
    const struct cuda_driver *api = &q->client->dev->api;
    size_t size = l->params_size;
    cuda_enter(q->client->dev);
    if (l->function >= l->module->functions_count) {
        (void)cuda_check(q->client, CUDA_ERROR_INVALID_HANDLE, "launch names a function that does not exist");
        return submitted(q, seq);
    }
    struct cuda_function *f = &l->module->functions[l->function];
    if (l->shared_bytes > f->dynamic_max &&
        api->cuFuncSetAttribute(f->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)l->shared_bytes) ==
            CUDA_SUCCESS)
        f->dynamic_max = l->shared_bytes;
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)l->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
                      &size, CU_LAUNCH_PARAM_END };
    CUresult r = size == f->param_bytes
                     ? api->cuLaunchKernel(f->handle, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
                                           l->block[2], l->shared_bytes, q->stream, NULL, size ? extra : NULL)
                     : CUDA_ERROR_INVALID_VALUE;
    (void)cuda_check(q->client, r, "the device refused a launch");
    return submitted(q, seq);
}

/* Inside the window, or inside a variable of one of the client's modules. */
static bool holds(struct dev_client *c, uint64_t address, uint64_t size)
{
    uint64_t window = 2 * c->half;
    bool found = false;
    if (address - c->base < window)
        return size <= window - (address - c->base);
    pthread_mutex_lock(&c->modules_lock);
    gm_list_for_each (m, &c->modules, struct dev_module, link)
        for (uint32_t i = 0; i < m->globals_count && !found; i++)
            found = address - m->globals[i].address < m->globals[i].size &&
                    size <= m->globals[i].size - (address - m->globals[i].address);
    pthread_mutex_unlock(&c->modules_lock);
    return found;
}

static bool extent(const struct wire_rec_copy *r, uint64_t pitch, uint64_t slice, uint64_t *out)
{
    uint64_t rows, slices;
    return !__builtin_mul_overflow(pitch, r->height - 1, &rows) &&
           !__builtin_mul_overflow(slice, r->depth - 1, &slices) && !__builtin_add_overflow(rows, slices, out) &&
           !__builtin_add_overflow(*out, r->width, out);
}

static CUresult copy_plane(struct dev_queue *q, const struct wire_rec_copy *r, uint64_t z)
{
    const struct cuda_driver *api = &q->client->dev->api;
    CUdeviceptr dst = r->dst + z * r->dst_slice, src = r->src + z * r->src_slice;
    if (r->height == 1 || (r->dst_pitch == r->width && r->src_pitch == r->width))
        return api->cuMemcpyAsync(dst, src, r->width * r->height, q->stream);
    const CUDA_MEMCPY3D box = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = src,
        .srcPitch = r->src_pitch,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = dst,
        .dstPitch = r->dst_pitch,
        .WidthInBytes = r->width,
        .Height = r->height,
        .Depth = 1,
    };
    return api->cuMemcpy3DAsync_v2(&box, q->stream);
}

int cuda_copy(struct dev_queue *q, uint64_t seq, const struct wire_rec_copy *r)
{
    uint64_t dst_size, src_size;
    cuda_enter(q->client->dev);
    if (r->width && r->height && r->depth) {
        CUresult result = CUDA_SUCCESS;
        if (!extent(r, r->dst_pitch, r->dst_slice, &dst_size) || !extent(r, r->src_pitch, r->src_slice, &src_size) ||
            (r->height > 1 && (r->dst_pitch < r->width || r->src_pitch < r->width)) || r->depth > 1u << 16 ||
            !holds(q->client, r->dst, dst_size) || !holds(q->client, r->src, src_size))
            q->client->dev->events.client_fault(q->client->dev->events.arg, q->client, GM_CUDA_ILLEGAL_ADDRESS,
                                                r->dst, "copy outside the program's device memory");
        else
            for (uint64_t z = 0; z < r->depth && result == CUDA_SUCCESS; z++)
                result = copy_plane(q, r, z);
        (void)cuda_check(q->client, result, "the device refused a copy");
    }
    return submitted(q, seq);
}

int cuda_write(struct dev_queue *q, uint64_t seq, uint64_t dst, const void *data, uint32_t size)
{
    struct dev_client *c = q->client;
    cuda_enter(c->dev);
    if (!holds(c, dst, size))
        c->dev->events.client_fault(c->dev->events.arg, c, GM_CUDA_ILLEGAL_ADDRESS, dst,
                                    "write outside the program's device memory");
    else if (size) /* from pageable memory: the driver has taken the bytes when it returns */
        (void)cuda_check(c, c->dev->api.cuMemcpyHtoDAsync_v2(dst, data, size, q->stream),
                         "the device refused a write");
    return submitted(q, seq);
}

static CUresult fill(struct dev_queue *q, const struct wire_rec_fill *r)
{
    const struct cuda_driver *api = &q->client->dev->api;
    if (r->height == 1) {
        switch (r->element_size) {
        case 1:
            return api->cuMemsetD8Async(r->dst, (unsigned char)r->value, r->width, q->stream);
        case 2:
            return api->cuMemsetD16Async(r->dst, (unsigned short)r->value, r->width, q->stream);
        default:
            return api->cuMemsetD32Async(r->dst, r->value, r->width, q->stream);
        }
    }
    switch (r->element_size) {
    case 1:
        return api->cuMemsetD2D8Async(r->dst, r->pitch, (unsigned char)r->value, r->width, r->height, q->stream);
    case 2:
        return api->cuMemsetD2D16Async(r->dst, r->pitch, (unsigned short)r->value, r->width, r->height, q->stream);
    default:
        return api->cuMemsetD2D32Async(r->dst, r->pitch, r->value, r->width, r->height, q->stream);
    }
}

int cuda_fill(struct dev_queue *q, uint64_t seq, const struct wire_rec_fill *r)
{
    struct dev_client *c = q->client;
    uint64_t row, size;
    cuda_enter(c->dev);
    if (r->width && r->height) {
        bool sane = (r->element_size == 1 || r->element_size == 2 || r->element_size == 4) &&
                    !__builtin_mul_overflow(r->width, r->element_size, &row) &&
                    !__builtin_mul_overflow(r->pitch, r->height - 1, &size) &&
                    !__builtin_add_overflow(size, row, &size);
        if (!sane || !holds(c, r->dst, size))
            c->dev->events.client_fault(c->dev->events.arg, c, GM_CUDA_ILLEGAL_ADDRESS, r->dst,
                                        "fill outside the program's device memory");
        else
            (void)cuda_check(c, fill(q, r), "the device refused a fill");
    }
    return submitted(q, seq);
}

/* An event behind everything that `q` has so far. */
static CUresult record(struct dev_queue *q)
{
    const struct cuda_driver *api = &q->client->dev->api;
    CUresult r = CUDA_SUCCESS;
    if (!q->event)
        r = api->cuEventCreate(&q->event, CU_EVENT_DISABLE_TIMING);
    if (r == CUDA_SUCCESS)
        r = api->cuEventRecord(q->event, q->stream);
    if (r == CUDA_SUCCESS)
        q->event_seq = q->last;
    return r;
}

int cuda_wait(struct dev_queue *q, uint64_t seq, struct dev_queue *other, uint64_t other_seq)
{
    const struct cuda_driver *api = &q->client->dev->api;
    cuda_enter(q->client->dev);
    CUresult r = CUDA_SUCCESS;
    if (!other->event || other->event_seq < other_seq)
        r = record(other);
    if (r == CUDA_SUCCESS)
        r = api->cuStreamWaitEvent(q->stream, other->event, CU_EVENT_WAIT_DEFAULT);
    (void)cuda_check(q->client, r, "the device refused a wait");
    return submitted(q, seq);
}

int cuda_stamp(struct dev_queue *q, uint64_t seq, uint32_t event)
{
    struct dev_client *c = q->client;
    uint64_t slot = c->events_at + event * sizeof(struct tp_event_slot);
    void *params[] = { &slot, &seq };
    cuda_enter(c->dev);
    (void)cuda_check(c, c->dev->api.cuLaunchKernel(c->dev->stamp, 1, 1, 1, 1, 1, 1, 0, q->stream, params, NULL),
                     "the device refused a time stamp");
    return submitted(q, seq);
}

int cuda_mark(struct dev_queue *q, uint64_t seq)
{
    return submitted(q, seq);
}

/* --- gates ---------------------------------------------------------------------------------------------------------- */

/* A stream of the driver that stands at a wait for memory lets the driver's own calls stand still with it, so a gate
 * cannot be put into a stream. */
int cuda_gate(struct dev_queue *q, uint64_t seq)
{
    (void)cuda_check(q->client, CUDA_ERROR_NOT_SUPPORTED, "host functions do not work on this device yet");
    return submitted(q, seq);
}

void cuda_gate_moved(struct dev_queue *q)
{
}
