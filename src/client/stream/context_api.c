/*
 * cuCtx*: created contexts, the thread's stack of contexts, and questions about contexts.
 */
#include "client/gen/api.h"
#include "client/stream/call.h"
#include "client/stream/capture.h"
#include "client/stream/context.h"

/* --- life ------------------------------------------------------------------------------------- */

/* Creates a context. `limit` is its number of multiprocessors, which is rounded up; with NULL it
 * has as many as its percentage says, or all. */
static int create(CUcontext *pctx, const unsigned *limit, unsigned flags, CUdevice dev)
{
    struct rt_context *c;
    uint32_t part = 0, multiprocessors = 0, share = 0;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (dev < 0 || (unsigned)dev >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pctx || !rt_context_flags_ok(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (!limit && (share = rt_part_percentage(dev)) != 0)
        limit = &share;
    if (limit)
        r = rt_part_possible(dev) ? rt_part_choose(dev, *limit, &part, &multiprocessors)
                                  : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (r == CUDA_SUCCESS)
        r = rt_context_create_limited(dev, flags, part, multiprocessors, &c);
    if (r)
        return r;
    r = rt_stack_push(c);
    if (r) {
        rt_context_destroy(c);
        return r;
    }
    *pctx = rt_context_handle(c);
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return (CUresult)create(pctx, NULL, flags, dev);
}

/* If there are several parameters of one kind, the last one counts. */
CUresult rt_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                           unsigned int flags, CUdevice dev)
{
    if (numParams < 0 || (numParams > 0 && !paramsArray))
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned *limit = NULL;
    for (int i = 0; i < numParams; i++) {
        if (paramsArray[i].type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
            return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
        limit = &paramsArray[i].param.smCount.val;
    }
    if (limit && *limit == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)create(pctx, limit, flags, dev);
}

CUresult rt_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                           CUdevice dev)
{
    static atomic_bool said;
    if (ctxCreateParams && ctxCreateParams->cigParams)
        return rt_not_supported("a context that shares with a graphics queue", &said);
    return rt_cuCtxCreate_v3(pctx, ctxCreateParams ? ctxCreateParams->execAffinityParams : NULL,
                             ctxCreateParams ? ctxCreateParams->numExecAffinityParams : 0, flags,
                             dev);
}

CUresult rt_cuCtxDestroy_v2(CUcontext ctx)
{
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    int r = rt_enter_plain();
    if (r)
        return r;
    pthread_mutex_lock(&rt_context_lock);
    struct rt_context *c = rt_context_find(ctx, true);
    if (!c || c->primary || c->root)
        r = CUDA_ERROR_INVALID_CONTEXT;
    else
        rt_context_destroy(c);
    pthread_mutex_unlock(&rt_context_lock);
    if (r == CUDA_SUCCESS && rt_stack_top() == ctx)
        (void)rt_stack_pop(NULL);
    return r;
}

/* Attaches to a context, as CUDA 2 had it. A created context begins with one reference;
 * `references` counts those beyond it. */
CUresult rt_cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pctx || flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&rt_context_lock);
    c->references++;
    pthread_mutex_unlock(&rt_context_lock);
    *pctx = rt_context_handle(c);
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxDetach(CUcontext ctx)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!ctx || rt_context_find(ctx, true) != c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (c->primary)
        return rt_cuDevicePrimaryCtxRelease_v2(c->device);
    pthread_mutex_lock(&rt_context_lock);
    bool last = c->references == 0;
    c->references -= !last;
    pthread_mutex_unlock(&rt_context_lock);
    return last ? rt_cuCtxDestroy_v2(ctx) : CUDA_SUCCESS;
}

/* --- the thread's stack ----------------------------------------------------------------------- */

CUresult rt_cuCtxPushCurrent_v2(CUcontext ctx)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_context *c = rt_context_find(ctx, false);
    return c ? rt_stack_push(c) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult rt_cuCtxPopCurrent_v2(CUcontext *pctx)
{
    int r = rt_enter_plain();
    return r ? r : rt_stack_pop(pctx);
}

CUresult rt_cuCtxSetCurrent(CUcontext ctx)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!ctx) {
        (void)rt_stack_pop(NULL);
        return CUDA_SUCCESS;
    }
    struct rt_context *c = rt_context_find(ctx, false);
    return c ? rt_stack_set(c) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult rt_cuCtxGetCurrent(CUcontext *pctx)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = rt_stack_top();
    return CUDA_SUCCESS;
}

/* --- questions -------------------------------------------------------------------------------- */

/* Finds the context that a question is about; NULL means the current one. Sticky errors do not
 * matter: the answers are known anyway. */
static int subject(CUcontext ctx, struct rt_context **out)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    *out = rt_context_find(ctx ? ctx : rt_stack_top(), true);
    if (*out)
        return CUDA_SUCCESS;
    return !ctx && rt_current.context ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                      : CUDA_ERROR_INVALID_CONTEXT;
}

/* Like subject(), but also a primary context that nobody retains: NVIDIA's runtime asks before it
 * retains it. */
static int subject_or_primary(CUcontext ctx, struct rt_context **out)
{
    int r = subject(ctx, out);
    if (r == CUDA_SUCCESS || rt_enter_plain() != CUDA_SUCCESS)
        return r;
    *out = rt_context_find(ctx ? ctx : rt_stack_top(), false);
    return *out && (*out)->primary ? CUDA_SUCCESS : r;
}

CUresult rt_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    struct rt_context *c;
    int r = subject_or_primary(ctx, &c);
    if (r)
        return r;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = c->device;
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxGetDevice(CUdevice *device)
{
    return rt_cuCtxGetDevice_v2(device, NULL);
}

CUresult rt_cuCtxGetFlags(unsigned int *flags)
{
    struct rt_context *c;
    int r = subject_or_primary(NULL, &c);
    if (r)
        return r;
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = atomic_load(&c->active) ? atomic_load(&c->flags) : c->wanted;
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxSetFlags(unsigned int flags)
{
    struct rt_context *c;
    int r = subject(NULL, &c);
    if (r)
        return r;
    if (!rt_context_flags_ok(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_CTX_SYNC_MEMOPS) /* what the context does by now ends before that */
        r = rt_capture_context_used(c);
    if (r)
        return r;
    /* Some flags are the context's from its beginning. */
    const unsigned kept = CU_CTX_MAP_HOST | CU_CTX_COREDUMP_ENABLE;
    rt_context_set_flags(c, (flags & ~(unsigned)CU_CTX_COREDUMP_ENABLE) |
                                (atomic_load(&c->flags) & kept));
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct rt_context *c;
    int r = subject(ctx, &c);
    if (r)
        return r;
    if (!ctxId)
        return CUDA_ERROR_INVALID_VALUE;
    *ctxId = c->id;
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    struct rt_context *c;
    int r = subject(ctx, &c);
    if (r)
        return r;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = c->api_version;
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxSynchronize_v2(CUcontext ctx)
{
    struct rt_context *c;
    int r = rt_enter_plain();
    r = r ? r : ctx ? rt_context_find_to_work(ctx, &c) : subject(NULL, &c);
    r = r ? r : rt_capture_context_used(c);
    r = r ? r : rt_context_wait(c);
    if (r == CUDA_SUCCESS)
        rt_hooks.synchronized();
    return r;
}

CUresult rt_cuCtxSynchronize(void)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    r = r ? r : rt_capture_context_used(c);
    r = r ? r : rt_context_wait(c);
    if (r == CUDA_SUCCESS)
        rt_hooks.synchronized();
    return r;
}

CUresult rt_cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pconfig)
        return CUDA_ERROR_INVALID_VALUE;
    *pconfig = c->cache_config;
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct rt_context *c;
    int r = rt_enter_unsafe(&c);
    if (r)
        return r;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    c->cache_config = config;
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pConfig)
        return CUDA_ERROR_INVALID_VALUE;
    /* Since compute capability 5.0 no device has a choice. */
    *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    struct rt_context *c;
    int r = rt_enter_unsafe(&c);
    if (r)
        return r;
    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* --- the same under the names of CUDA 3 and 2, for programs that look them up by hand --------- */

CUresult rt_cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return rt_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult rt_cuCtxDestroy(CUcontext ctx)
{
    return rt_cuCtxDestroy_v2(ctx);
}

CUresult rt_cuCtxPushCurrent(CUcontext ctx)
{
    return rt_cuCtxPushCurrent_v2(ctx);
}

CUresult rt_cuCtxPopCurrent(CUcontext *pctx)
{
    return rt_cuCtxPopCurrent_v2(pctx);
}
