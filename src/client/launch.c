/*
 * Launches. One ring record, no answer, no allocation, no system call: the parameters are packed on the stack by the
 * layout that came with the module. What CUDA checks at the call is checked here; what it finds out later arrives as
 * the session's error.
 */
#include <string.h>

#include "client/context.h"
#include "client/gen/api.h"
#include "client/module.h"

struct launch {
    struct wire_rec_launch record;
    uint8_t params[WIRE_REC_LAUNCH_PARAMS_MAX];
};
_Static_assert(offsetof(struct launch, params) == sizeof(struct wire_rec_launch), "parameters follow the record");

static inline int32_t attribute(CUdevice_attribute a)
{
    return rt_session->devices[0].attributes[a];
}

static int check_shape(const struct rt_function *f, const struct wire_rec_launch *l)
{
    uint64_t threads = (uint64_t)l->block_x * l->block_y * l->block_z;
    if (!l->grid_x || !l->grid_y || !l->grid_z || !threads || l->block_x > 1u << 20 || l->block_y > 1u << 20 ||
        l->block_z > 1u << 20)
        return CUDA_ERROR_INVALID_VALUE;
    if (GM_UNLIKELY(l->grid_x > (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
                    l->grid_y > (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) ||
                    l->grid_z > (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) ||
                    l->block_x > (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
                    l->block_y > (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) ||
                    l->block_z > (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) ||
                    threads > (uint64_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)))
        return CUDA_ERROR_INVALID_VALUE;
    if (GM_UNLIKELY(l->shared_bytes > atomic_load_explicit(&f->dynamic_limit, memory_order_relaxed)))
        return CUDA_ERROR_INVALID_VALUE;
    return GM_LIKELY(threads <= f->entry->max_threads) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
        switch (p->size) { /* the usual sizes without a call */
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

/* The program packed them itself: {POINTER, buffer, SIZE, &size, END} in any order. What is missing at the end is zero,
 * what is too much is refused with the genuine library's code. */
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

/* `l->record` has the dimensions. */
static int launch(struct launch *l, const void *function, CUstream stream, void **params, void **extra)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter(&c);
    if (GM_UNLIKELY(r))
        return r;
    struct rt_function *f = rt_function_find(function);
    if (GM_UNLIKELY(!f))
        return CUDA_ERROR_INVALID_HANDLE;
    r = rt_stream_resolve(c, stream, &st);
    if (GM_UNLIKELY(r))
        return r;
    if (GM_UNLIKELY(f->context && f->context != st->context))
        return CUDA_ERROR_INVALID_HANDLE;
    r = check_shape(f, &l->record);
    if (GM_UNLIKELY(r))
        return r;
    const struct rt_entry *e = f->entry;
    if (GM_UNLIKELY(extra != NULL))
        r = params ? CUDA_ERROR_INVALID_VALUE : take_packed(e, extra, l->params);
    else
        r = pack_params(e, params, l->params);
    if (GM_UNLIKELY(r))
        return r;
    l->record.head.op = WIRE_OP_LAUNCH;
    l->record.module = f->module->number;
    l->record.function = e->index;
    l->record.reserved = 0;
    return rt_queue_submit(st, &l->record.head, sizeof(l->record) + e->param_bytes, NULL, 0);
}

CUresult rt_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                           unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                           unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
    struct launch l;
    l.record.grid_x = gridDimX;
    l.record.grid_y = gridDimY;
    l.record.grid_z = gridDimZ;
    l.record.block_x = blockDimX;
    l.record.block_y = blockDimY;
    l.record.block_z = blockDimZ;
    l.record.shared_bytes = sharedMemBytes;
    return launch(&l, f, hStream, kernelParams, extra);
}

/* Attributes that change what a kernel computes, and that nobody here could honour, are refused; hints are not. */
static int check_attributes(const CUlaunchConfig *config)
{
    if (config->numAttrs && !config->attrs)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        switch (a->id) {
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            if (a->value.clusterDim.x > 1 || a->value.clusterDim.y > 1 || a->value.clusterDim.z > 1)
                return CUDA_ERROR_NOT_SUPPORTED;
            break;
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            if (a->value.cooperative)
                return CUDA_ERROR_NOT_SUPPORTED;
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            break;
        }
    }
    return CUDA_SUCCESS;
}

CUresult rt_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    struct launch l;
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    int r = check_attributes(config);
    if (r)
        return r;
    l.record.grid_x = config->gridDimX;
    l.record.grid_y = config->gridDimY;
    l.record.grid_z = config->gridDimZ;
    l.record.block_x = config->blockDimX;
    l.record.block_y = config->blockDimY;
    l.record.block_z = config->blockDimZ;
    l.record.shared_bytes = config->sharedMemBytes;
    return launch(&l, f, config->hStream, kernelParams, extra);
}
