/*
 * Launches as in CUDA 3. Block size, shared memory and parameters are set on the function, one call
 * each, and stay there for later launches. Programs of that time call these functions, and so does
 * PyCUDA for kernels that are not prepared.
 *
 * The settings belong to the function and to all threads of the program, which are told not to
 * share the function.
 */
#include <stdlib.h>
#include <string.h>

#include "client/gen/api.h"
#include "client/module/module.h"
#include "client/session/attach.h"

struct rt_old_launch {
    uint32_t block[3];
    uint32_t shared_bytes;
    uint32_t size; /* bytes of the parameters */
    uint8_t params[RT_PARAMS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Finds the function's settings, and takes the lock. CUresult. */
static int begin(CUfunction handle, struct rt_old_launch **out)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    struct rt_function *f = rt_function_find(handle);
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    if (!f->old_launch)
        f->old_launch = calloc(1, sizeof(*f->old_launch));
    *out = f->old_launch;
    if (f->old_launch)
        return CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult end(int r)
{
    pthread_mutex_unlock(&lock);
    return (CUresult)r;
}

CUresult rt_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    struct rt_old_launch *o;
    int r = begin(hfunc, &o);
    if (r)
        return (CUresult)r;
    if (x <= 0 || y <= 0 || z <= 0)
        return end(CUDA_ERROR_INVALID_VALUE);
    o->block[0] = (uint32_t)x;
    o->block[1] = (uint32_t)y;
    o->block[2] = (uint32_t)z;
    return end(CUDA_SUCCESS);
}

CUresult rt_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
    struct rt_old_launch *o;
    int r = begin(hfunc, &o);
    if (r)
        return (CUresult)r;
    o->shared_bytes = bytes;
    return end(CUDA_SUCCESS);
}

CUresult rt_cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
    struct rt_old_launch *o;
    int r = begin(hfunc, &o);
    if (r)
        return (CUresult)r;
    if (numbytes > RT_PARAMS_MAX)
        return end(CUDA_ERROR_INVALID_VALUE);
    o->size = numbytes;
    return end(CUDA_SUCCESS);
}

static CUresult set(CUfunction hfunc, int offset, const void *value, unsigned bytes)
{
    struct rt_old_launch *o;
    int r = begin(hfunc, &o);
    if (r)
        return (CUresult)r;
    if (offset < 0 || bytes > RT_PARAMS_MAX || (unsigned)offset > RT_PARAMS_MAX - bytes ||
        (bytes && !value))
        return end(CUDA_ERROR_INVALID_VALUE);
    if (bytes)
        memcpy(o->params + offset, value, bytes);
    return end(CUDA_SUCCESS);
}

CUresult rt_cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
    return set(hfunc, offset, &value, sizeof(value));
}

CUresult rt_cuParamSetf(CUfunction hfunc, int offset, float value)
{
    return set(hfunc, offset, &value, sizeof(value));
}

CUresult rt_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    return set(hfunc, offset, ptr, numbytes);
}

static CUresult launch(CUfunction f, int width, int height, CUstream stream)
{
    struct rt_old_launch *known, o;
    int r = begin(f, &known);
    if (r)
        return (CUresult)r;
    o = *known;
    pthread_mutex_unlock(&lock);
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t size = o.size;
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, o.params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      CU_LAUNCH_PARAM_END };
    return rt_cuLaunchKernel(f, (unsigned)width, (unsigned)height, 1, o.block[0], o.block[1],
                             o.block[2], o.shared_bytes, stream, NULL, extra);
}

CUresult rt_cuLaunch(CUfunction f)
{
    return launch(f, 1, 1, NULL);
}

CUresult rt_cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    return launch(f, grid_width, grid_height, NULL);
}

CUresult rt_cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    return launch(f, grid_width, grid_height, hStream);
}
