/*
 * Launches. A launch is one record of the ring, without an answer, an allocation or a system call.
 * The parameters are packed on the stack, by the layout that came with the module. What CUDA checks
 * at the call is checked here. What it finds out later arrives as the session's error.
 */
#include "client/module/launch.h"

#include <string.h>

#include "base/log.h"
#include "client/gen/api.h"
#include "client/stream/capture.h"
#include "client/stream/event.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("launch");

/* Returns the error for too many threads. More than the kernel was compiled for is an invalid
 * value; more than there are registers for is another error. If both limits are equal it is the one
 * about registers. */
static int too_many_threads(const struct rt_function *f)
{
    uint32_t fit = rt_occupancy_register_threads(f);
    return fit && f->entry->max_threads >= fit ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                               : CUDA_ERROR_INVALID_VALUE;
}

static bool is_cooperative(const struct wire_rec_launch *r)
{
    for (uint32_t i = 0; i < r->attributes; i++) {
        CUlaunchAttribute a;
        memcpy(&a, r->params + i * sizeof(a), sizeof(a));
        if (a.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            return true;
    }
    return false;
}

/* Whether not even one such block fits, because of its shared memory. */
static int too_much_shared(const struct wire_rec_launch *l)
{
    return is_cooperative(l) ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_ERROR_INVALID_VALUE;
}

static int check_shape(const struct rt_function *f, const struct wire_rec_launch *l)
{
    const int32_t *limit = rt_session->devices[f->module->device].attributes;
    uint64_t threads = (uint64_t)l->block_x * l->block_y * l->block_z;
    if (!l->grid_x || !l->grid_y || !l->grid_z || !threads || l->block_x > 1u << 20 ||
        l->block_y > 1u << 20 || l->block_z > 1u << 20)
        return CUDA_ERROR_INVALID_VALUE;
    if (GM_UNLIKELY(l->grid_x > (uint32_t)limit[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] ||
                    l->grid_y > (uint32_t)limit[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] ||
                    l->grid_z > (uint32_t)limit[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] ||
                    l->block_x > (uint32_t)limit[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] ||
                    l->block_y > (uint32_t)limit[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] ||
                    l->block_z > (uint32_t)limit[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] ||
                    threads > (uint64_t)limit[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK]))
        return CUDA_ERROR_INVALID_VALUE;
    const uint32_t *required = f->entry->required;
    if (GM_UNLIKELY(required[0] && (l->block_x != required[0] || l->block_y != required[1] ||
                                    l->block_z != required[2])))
        return CUDA_ERROR_INVALID_VALUE;
    if (GM_UNLIKELY(l->shared_bytes >
                    atomic_load_explicit(&f->dynamic_limit, memory_order_relaxed)))
        return too_much_shared(l);
    return GM_LIKELY(threads <= f->entry->max_threads) ? CUDA_SUCCESS : too_many_threads(f);
}

static int pack_params(const struct rt_entry *e, void **values, uint8_t *out)
{
    if (e->param_count && !values)
        return CUDA_ERROR_INVALID_VALUE;
    if (e->padded)
        memset(out, 0, e->param_bytes);
    for (uint32_t i = 0; i < e->param_count; i++) {
        const struct rt_param *p = &e->params[i];
        if (GM_UNLIKELY(!values[i]))
            return CUDA_ERROR_INVALID_VALUE;
        switch (p->size) { /* the usual sizes need no call */
        case 4:
            memcpy(out + p->offset, values[i], 4);
            break;
        case 8:
            memcpy(out + p->offset, values[i], 8);
            break;
        default:
            memcpy(out + p->offset, values[i], p->size);
            break;
        }
    }
    return CUDA_SUCCESS;
}

/* Takes parameters that the program has packed: {POINTER, buffer, SIZE, &size, END} in any order.
 * Missing ones at the end are zero. Too many are refused with the genuine library's code. */
static int take_packed(const struct rt_entry *e, void **extra, uint8_t *out)
{
    const void *buffer = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
            size = *(const size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (size > e->param_bytes)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (size && !buffer)
        return CUDA_ERROR_INVALID_VALUE;
    if (size)
        memcpy(out, buffer, size);
    memset(out + size, 0, e->param_bytes - size);
    return CUDA_SUCCESS;
}

/* Blocks of a cooperative launch wait for each other, so that all of them must fit at once. */
static int check_cooperative(const struct rt_launch *l, struct rt_function *f)
{
    const struct wire_rec_launch *r = &l->record;
    uint32_t each = 0;
    if (!is_cooperative(r))
        return CUDA_SUCCESS;
    int result =
        rt_occupancy_blocks(f, r->block_x * r->block_y * r->block_z, r->shared_bytes, &each);
    uint32_t all = rt_multiprocessors(rt_session, f->module->device);
    uint64_t places = (uint64_t)each * (l->multiprocessors ? GM_MIN(l->multiprocessors, all) : all);
    bool fits = (uint64_t)r->grid_x * r->grid_y * r->grid_z <= places;
    return result || fits ? result : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

static int cannot_launch(const struct rt_entry *e)
{
    gm_warn(&topic, "kernel %s cannot be launched: %s", e->name, e->lacks);
    return CUDA_ERROR_NOT_SUPPORTED;
}

int rt_launch_prepare(struct rt_launch *l, struct rt_function *f, void **params, void **extra)
{
    const struct rt_entry *e = f->entry;
    size_t before = l->record.attributes * sizeof(CUlaunchAttribute);
    int r = e->lacks ? cannot_launch(e) : check_shape(f, &l->record);
    if (GM_UNLIKELY(r == CUDA_SUCCESS && l->record.attributes))
        r = check_cooperative(l, f);
    if (GM_UNLIKELY(r == CUDA_SUCCESS && (l->record.attributes || e->cluster[0])))
        r = rt_launch_check_clusters(l, f);
    if (GM_UNLIKELY(r))
        return r;
    if (GM_UNLIKELY(extra != NULL))
        r = params ? CUDA_ERROR_INVALID_VALUE : take_packed(e, extra, l->params + before);
    else
        r = pack_params(e, params, l->params + before);
    if (GM_UNLIKELY(r))
        return r;
    l->record.head.op = WIRE_OP_LAUNCH;
    l->record.head.size = (uint32_t)(sizeof(l->record) + before) + e->param_bytes;
    l->record.module = f->module->number;
    l->record.function = e->index;
    return CUDA_SUCCESS;
}

/* Launches. `l->record` has the dimensions and attributes, which are also in `config` unless that
 * is NULL. */
static int launch(struct rt_launch *l, const void *function, CUstream stream, void **params,
                  void **extra, const CUlaunchConfig *config)
{
    struct rt_stream *st;
    int r = rt_enter_work(stream, &st);
    if (GM_UNLIKELY(r))
        return r;
    struct rt_function *f = rt_function_find(function);
    if (GM_UNLIKELY(!f))
        return CUDA_ERROR_INVALID_HANDLE;
    if (GM_UNLIKELY(f->context && f->context != st->context &&
                    f->context != rt_context_owner(st->context)))
        return CUDA_ERROR_INVALID_HANDLE;
    r = rt_function_on(&f, st->context->device);
    if (GM_UNLIKELY(r))
        return rt_capture_failed(st, r);
    l->multiprocessors = st->context->multiprocessors;
    r = rt_launch_prepare(l, f, params, extra);
    if (GM_UNLIKELY(r))
        return rt_capture_failed(st, r);
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return rt_hooks.capture_launch(st, function, l, config ? config->attrs : NULL,
                                       config ? config->numAttrs : 0);
    return rt_queue_submit(st, &l->record.head, l->record.head.size, NULL, 0);
}

CUresult rt_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                           unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                           unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                           void **kernelParams, void **extra)
{
    struct rt_launch l;
    l.record.grid_x = gridDimX;
    l.record.grid_y = gridDimY;
    l.record.grid_z = gridDimZ;
    l.record.block_x = blockDimX;
    l.record.block_y = blockDimY;
    l.record.block_z = blockDimZ;
    l.record.shared_bytes = sharedMemBytes;
    l.record.attributes = 0;
    return launch(&l, f, hStream, kernelParams, extra, NULL);
}

static CUevent event_of(const CUlaunchAttribute *a)
{
    switch (a->id) {
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return a->value.launchCompletionEvent.event;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        return a->value.programmaticEvent.event;
    default:
        return NULL;
    }
}

static int check_events(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (rt_attribute_use(&config->attrs[i]) == RT_ATTRIBUTE_EVENT &&
            !rt_event_is_plain(event_of(&config->attrs[i])))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* CUDA leaves to the driver at which time all blocks have begun, or have let others follow. Here it
 * is the end of the kernel. */
static int record_events(const CUlaunchConfig *config)
{
    int r = CUDA_SUCCESS;
    for (unsigned i = 0; i < config->numAttrs && r == CUDA_SUCCESS; i++)
        if (rt_attribute_use(&config->attrs[i]) == RT_ATTRIBUTE_EVENT)
            r = (int)rt_cuEventRecord(event_of(&config->attrs[i]), config->hStream);
    return r;
}

static int launch_config(const CUlaunchConfig *config, const void *f, void **params, void **extra)
{
    struct rt_launch l;
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    r = rt_launch_take_attributes(&l, config->attrs, config->numAttrs);
    r = r ? r : check_events(config);
    if (r)
        return r;
    l.record.grid_x = config->gridDimX;
    l.record.grid_y = config->gridDimY;
    l.record.grid_z = config->gridDimZ;
    l.record.block_x = config->blockDimX;
    l.record.block_y = config->blockDimY;
    l.record.block_z = config->blockDimZ;
    l.record.shared_bytes = config->sharedMemBytes;
    r = launch(&l, f, config->hStream, params, extra, config);
    return r ? r : record_events(config);
}

CUresult rt_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                             void **extra)
{
    return config ? (CUresult)launch_config(config, f, kernelParams, extra)
                  : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                      unsigned int gridDimZ, unsigned int blockDimX,
                                      unsigned int blockDimY, unsigned int blockDimZ,
                                      unsigned int sharedMemBytes, CUstream hStream,
                                      void **kernelParams)
{
    CUlaunchAttribute cooperative = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                      .value.cooperative = 1 };
    const CUlaunchConfig config = { .gridDimX = gridDimX,
                                    .gridDimY = gridDimY,
                                    .gridDimZ = gridDimZ,
                                    .blockDimX = blockDimX,
                                    .blockDimY = blockDimY,
                                    .blockDimZ = blockDimZ,
                                    .sharedMemBytes = sharedMemBytes,
                                    .hStream = hStream,
                                    .attrs = &cooperative,
                                    .numAttrs = 1 };
    return (CUresult)launch_config(&config, f, kernelParams, NULL);
}
