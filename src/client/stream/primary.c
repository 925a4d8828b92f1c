/*
 * cuDevicePrimaryCtx*: primary contexts, which are counted, and green contexts, each of which keeps
 * the primary context of its device.
 */
#include "client/entry/hooks.h"
#include "client/gen/api.h"
#include "client/stream/context.h"

CUresult rt_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct rt_context *c;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS && !atomic_load(&c->active)) {
        rt_context_set_flags(c, c->wanted | CU_CTX_MAP_HOST);
        r = rt_context_activate(c);
    }
    if (r == CUDA_SUCCESS) {
        c->references++;
        *pctx = rt_context_handle(c);
    }
    pthread_mutex_unlock(&rt_context_lock);
    if (r == CUDA_SUCCESS)
        rt_hooks.primary_retained(c);
    return r;
}

/* Ends the primary context. The next one begins with the flags that are set from now on. Called
 * with the lock held. */
static void primary_end(struct rt_context *c)
{
    rt_context_destroy(c);
    c->wanted = 0;
}

CUresult rt_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    struct rt_context *c;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS && c->references == 0)
        r = CUDA_ERROR_INVALID_CONTEXT;
    else if (r == CUDA_SUCCESS && --c->references == 0 && atomic_load(&c->active))
        primary_end(c);
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

CUresult rt_cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return rt_cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult rt_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    struct rt_context *c;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS && atomic_load(&c->active))
        rt_context_destroy(c); /* threads that have retained it still release it */
    if (r == CUDA_SUCCESS)
        c->wanted = 0;
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

CUresult rt_cuDevicePrimaryCtxReset(CUdevice dev)
{
    return rt_cuDevicePrimaryCtxReset_v2(dev);
}

CUresult rt_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    struct rt_context *c;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS && (!rt_context_flags_ok(flags) || (flags & CU_CTX_MAP_HOST)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS) {
        c->wanted = flags;
        rt_context_set_flags(c, flags | CU_CTX_MAP_HOST);
    }
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

CUresult rt_cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return rt_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult rt_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    struct rt_context *c;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&rt_context_lock);
    int r = rt_context_primary(dev, &c);
    if (r == CUDA_SUCCESS) {
        *active = atomic_load(&c->active);
        *flags = c->wanted | (*active ? atomic_load(&c->flags) & CU_CTX_SYNC_MEMOPS : 0);
    }
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

/* --- green contexts --------------------------------------------------------------------------- */

int rt_context_create_green(CUdevice device, uint32_t part, uint32_t multiprocessors,
                            struct rt_context **out)
{
    CUcontext primary;
    int r = rt_cuDevicePrimaryCtxRetain(&primary, device);
    if (r)
        return r;
    pthread_mutex_lock(&rt_context_lock);
    struct rt_context *root = rt_context_find(primary, true);
    r = root ? rt_context_make_green(root, part, multiprocessors, out) : CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_unlock(&rt_context_lock);
    if (r)
        (void)rt_cuDevicePrimaryCtxRelease_v2(device);
    return r;
}

int rt_context_destroy_green(CUcontext handle)
{
    pthread_mutex_lock(&rt_context_lock);
    struct rt_context *c = rt_context_find(handle, true);
    struct rt_context *root = c ? c->root : NULL;
    if (root)
        rt_context_end_green(c);
    pthread_mutex_unlock(&rt_context_lock);
    return root ? (int)rt_cuDevicePrimaryCtxRelease_v2(root->device) : CUDA_ERROR_INVALID_CONTEXT;
}
