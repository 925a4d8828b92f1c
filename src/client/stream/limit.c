/*
 * Limits of contexts. Each context has its own as far as it can tell. The device's limits are at
 * least as large as those of all clients (device/cuda/limit.c).
 */
#include "client/entry/hooks.h"
#include "client/gen/api.h"
#include "client/stream/call.h"
#include "client/stream/capture.h"
#include "client/stream/context.h"

/* For each thread, by the CUDA C++ Programming Guide; a GPU's driver decides by itself. */
#define LOCAL_BYTES_MOST (512u << 10)

static bool limit_known(CUlimit limit)
{
    return limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE ||
           limit == CU_LIMIT_MALLOC_HEAP_SIZE ||
           limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT ||
           limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY || limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

/* Whether the limit can only be read. Sharing with graphics is off for good; cuBLAS asks for it and
 * ignores the error. */
static bool limit_is_fixed(const struct rt_context *c, CUlimit limit)
{
    return limit == CU_LIMIT_CIG_ENABLED || (limit == CU_LIMIT_SHMEM_SIZE && c->limits[limit]);
}

CUresult rt_cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pvalue || (unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!limit_known(limit) && !limit_is_fixed(c, limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *pvalue = c->limits[limit];
    return CUDA_SUCCESS;
}

/* Raises the limit of the device, which all clients share. A device that has no limits does not
 * know the request. */
static int raise_limit(const struct rt_context *c, CUlimit limit, size_t value)
{
    struct rt_call call;
    rt_call_begin(&call, WIRE_CALL_LIMIT_RAISE, 0);
    call.device = rt_session->devices[c->device].index;
    wire_put_call_limit(&call.args,
                        &(struct wire_call_limit) { .limit = (uint32_t)limit, .value = value });
    int r = rt_call_end(&call, rt_call_run(&call));
    return r == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : r;
}

static size_t multiple(size_t value, size_t of)
{
    size_t above;
    return __builtin_add_overflow(value, of - 1, &above) ? SIZE_MAX / of * of : above / of * of;
}

/* Rounds a value as the driver of an H200 did (580.159.04). The persisting part of the cache comes
 * in sixteenths of the whole. */
static int take_value(const struct rt_context *c, CUlimit limit, size_t *value)
{
    const int32_t *attributes = rt_session->devices[c->device].attributes;
    const size_t most = (size_t)attributes[CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE];
    const size_t part = (size_t)attributes[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] / 16;
    switch (limit) {
    case CU_LIMIT_STACK_SIZE:
        *value = multiple(*value, 16);
        return *value > LOCAL_BYTES_MOST ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
        *value = multiple(GM_MAX(*value, (size_t)512 << 10), 256);
        return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        *value = GM_MAX(*value, (size_t)4 << 20);
        return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
        *value = GM_MAX(*value, (size_t)32);
        return CUDA_SUCCESS;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        return *value > 128 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
        if (*value > most)
            return CUDA_ERROR_INVALID_VALUE;
        *value = part ? multiple(*value, part) : *value;
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

CUresult rt_cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct rt_context *c;
    int r = rt_enter_unsafe(&c);
    if (r)
        return r;
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit_is_fixed(c, limit))
        return CUDA_ERROR_NOT_PERMITTED;
    if (!limit_known(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    r = take_value(c, limit, &value);
    r = r ? r : raise_limit(c, limit, value);
    if (r == CUDA_SUCCESS && limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        r = rt_hooks.heap_resized(c, value);
    if (r == CUDA_SUCCESS)
        c->limits[limit] = value;
    return r;
}
