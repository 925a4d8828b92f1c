/*
 * The multiprocessors that are the program's, and its green contexts: parts of them. On a GPU a client with a share lives in a
 * green context of the executor's; what the program is told of is simply that. A green context of its own is a context here
 * which has nothing but streams, and says of each which of the client's groups of multiprocessors it is to run on: the executor makes
 * green contexts of the driver's of that (device/cuda/green.c). Everything else that is made in one is its root's, the primary context's.
 *
 * A device that does not hold anybody to a share cannot be split; the software device can, but runs all streams on all its workers.
 */
#include <string.h>

#include "client/attach.h"
#include "client/context.h"
#include "client/gen/api.h"

#define MAGIC      0x756d6772u
#define GROUPS_MAX 64u

/* What a resource is: in the part of CUdevResource that programs do not look at. */
struct part {
    uint32_t magic;
    int32_t device;
    uint64_t groups; /* bit for each */
    uint32_t over;   /* multiprocessors that are in none: only the whole has them */
    uint32_t whole;  /* 1: it is not what came out of a split */
    uint64_t split;  /* which that was */
};
_Static_assert(sizeof(struct part) <= sizeof(((CUdevResource *)NULL)->_internal_padding), "room");

struct description {
    struct rt_object object;
    struct part part;
};

static struct rt_table descriptions = RT_TABLE(RT_KIND_RESOURCE, struct description);

static int ready(void)
{
    return rt_current.in_callback ? CUDA_ERROR_NOT_PERMITTED : rt_ready();
}

/* --- resources ---------------------------------------------------------------------------------------------------- */

static uint32_t step_of(int device)
{
    return rt_session->devices[device].multiprocessors_step;
}

static uint32_t size_of(const struct part *p)
{
    return (uint32_t)__builtin_popcountll(p->groups) * step_of(p->device) + p->over;
}

static void give(const struct part *p, CUdevResource *out)
{
    uint32_t step = step_of(p->device);
    memset(out, 0, sizeof(*out));
    memcpy(out->_internal_padding, p, sizeof(*p));
    out->type = CU_DEV_RESOURCE_TYPE_SM;
    out->sm.smCount = size_of(p);
    out->sm.minSmPartitionSize = step ? step : out->sm.smCount;
    out->sm.smCoscheduledAlignment = out->sm.minSmPartitionSize;
}

/* CUDA_ERROR_INVALID_RESOURCE_TYPE, CUDA_ERROR_INVALID_VALUE for what is none of ours. */
static int take(const CUdevResource *r, struct part *out)
{
    if (r->type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    memcpy(out, r->_internal_padding, sizeof(*out));
    if (out->magic != MAGIC || out->device < 0 || (unsigned)out->device >= rt_session->device_count)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static uint64_t first_groups(uint32_t count)
{
    return count >= GROUPS_MAX ? UINT64_MAX : (1ull << count) - 1;
}

/* All that the client has. */
static struct part whole(int device)
{
    const struct rt_device *d = &rt_session->devices[device];
    uint32_t have = rt_multiprocessors(rt_session, device), step = d->multiprocessors_step;
    uint32_t grouped = GM_MIN(have, d->multiprocessors_shared);
    uint32_t groups = step ? GM_MIN(grouped / step, GROUPS_MAX) : 0;
    return (struct part) {
        .magic = MAGIC, .device = device, .groups = first_groups(groups), .over = have - groups * step, .whole = 1
    };
}

static int describe(const struct rt_context *c, int device, CUdevResource *resource, CUdevResourceType type)
{
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    struct part p = whole(device);
    if (c && c->groups) {
        p.groups = c->groups;
        p.over = 0;
    }
    give(&p, resource);
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    int r = ready();
    if (r)
        return r;
    if (device < 0 || (unsigned)device >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    return describe(NULL, device, resource, type);
}

CUresult rt_cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    int r = ready();
    if (r)
        return r;
    const struct rt_context *c = rt_context_find(hCtx, true);
    return c ? describe(c, c->device, resource, type) : CUDA_ERROR_INVALID_CONTEXT;
}

/* Takes out the lowest `count` groups. */
static uint64_t cut(uint64_t *groups, uint32_t count)
{
    uint64_t taken = 0;
    for (; count && *groups; count--) {
        taken |= *groups & -*groups;
        *groups &= *groups - 1;
    }
    return taken;
}

static void split(const struct part *from, uint32_t each, unsigned count, CUdevResource *result,
                  CUdevResource *remaining)
{
    static _Atomic uint64_t splits;
    struct part rest = *from;
    rest.whole = 0;
    rest.over = 0;
    rest.split = atomic_fetch_add_explicit(&splits, 1, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++) {
        struct part p = rest;
        p.groups = cut(&rest.groups, each);
        if (result)
            give(&p, &result[i]);
    }
    if (remaining)
        give(&rest, remaining);
    if (remaining && remaining->sm.smCount == 0)
        memset(remaining, 0, sizeof(*remaining));
}

/* Groups are as large as the device's, whatever the flags: they would make smaller ones, or such as suit large clusters. */
CUresult rt_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups, const CUdevResource *input,
                                        CUdevResource *remaining, unsigned int useFlags, unsigned int minCount)
{
    const unsigned known =
        CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    struct part p;
    int r = ready();
    if (r)
        return r;
    if (!nbGroups || !input || (useFlags & ~known) || (result && *nbGroups == 0))
        return CUDA_ERROR_INVALID_VALUE;
    r = take(input, &p);
    if (r)
        return r;
    uint32_t step = step_of(p.device);
    if (minCount > size_of(&p))
        return CUDA_ERROR_INVALID_VALUE;
    if (!p.whole || !step)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    uint32_t each = GM_MAX((minCount + step - 1) / step, 1u);
    unsigned most = (unsigned)__builtin_popcountll(p.groups) / each;
    if (most == 0)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *nbGroups = result ? GM_MIN(*nbGroups, most) : most;
    split(&p, each, *nbGroups, result, remaining);
    return CUDA_SUCCESS;
}

CUresult rt_cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
    struct part all, one;
    int r = ready();
    if (r)
        return r;
    if (!phDesc || !resources || nbResources == 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = take(&resources[0], &all);
    for (unsigned i = 1; i < nbResources && r == CUDA_SUCCESS; i++) {
        r = take(&resources[i], &one);
        if (r == CUDA_SUCCESS && (one.device != all.device || one.whole || all.whole || one.split != all.split ||
                                  (one.groups & all.groups)))
            r = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        all.groups |= one.groups;
    }
    if (r)
        return r;
    struct description *d = rt_object_take(&descriptions); /* CUDA has no call that ends one */
    if (!d)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->part = all;
    rt_object_publish(&d->object);
    *phDesc = (CUdevResourceDesc)rt_object_handle(&descriptions, &d->object);
    return CUDA_SUCCESS;
}

/* --- green contexts ----------------------------------------------------------------------------------------------- */

static CUgreenCtx green_handle(const struct rt_context *c)
{
    return c && c->root ? (CUgreenCtx)(void *)rt_context_handle(c) : NULL;
}

static int find_green(CUgreenCtx handle, struct rt_context **c)
{
    int r = ready();
    if (r)
        return r;
    *c = handle ? rt_context_find((CUcontext)(void *)handle, true) : NULL;
    return *c && (*c)->root ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult rt_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
    struct rt_context *c;
    int r = ready();
    if (r)
        return r;
    const struct description *d = rt_object_find(&descriptions, desc);
    if (!phCtx || !d || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (dev < 0 || (unsigned)dev >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    if (d->part.device != dev)
        return CUDA_ERROR_INVALID_VALUE;
    bool all = d->part.whole && d->part.groups == whole(dev).groups;
    r = rt_context_create_green(dev, all ? 0 : d->part.groups, size_of(&d->part), &c);
    if (r == CUDA_SUCCESS)
        *phCtx = green_handle(c);
    return r;
}

CUresult rt_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    struct rt_context *c;
    int r = find_green(hCtx, &c);
    return r ? r : rt_context_destroy_green((CUcontext)(void *)hCtx);
}

CUresult rt_cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    struct rt_context *c;
    int r = find_green(hCtx, &c);
    if (r)
        return r;
    if (!pContext)
        return CUDA_ERROR_INVALID_VALUE;
    *pContext = rt_context_handle(c);
    return CUDA_SUCCESS;
}

CUresult rt_cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
    struct rt_context *c;
    int r = find_green(hCtx, &c);
    return r ? r : describe(c, c->device, resource, type);
}

CUresult rt_cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
    struct rt_context *c;
    int r = find_green(greenCtx, &c);
    if (r)
        return r;
    if (!greenCtxId)
        return CUDA_ERROR_INVALID_VALUE;
    *greenCtxId = c->id;
    return CUDA_SUCCESS;
}

CUresult rt_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct rt_context *c;
    int r = find_green(hCtx, &c);
    return r ? (CUresult)r : rt_cuCtxRecordEvent(rt_context_handle(c), hEvent);
}

CUresult rt_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    struct rt_context *c;
    int r = find_green(hCtx, &c);
    return r ? (CUresult)r : rt_cuCtxWaitEvent(rt_context_handle(c), hEvent);
}

CUresult rt_cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = find_green(greenCtx, &c);
    if (r)
        return r;
    if (!phStream || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_stream_create(c, RT_ROLE_NON_BLOCKING, flags, rt_stream_priority(c, priority), &st);
    if (r == CUDA_SUCCESS)
        *phStream = (CUstream)rt_object_handle(&rt_streams, &st->object);
    return r;
}

CUresult rt_cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    if (!phCtx)
        return CUDA_ERROR_INVALID_VALUE;
    *phCtx = green_handle(c);
    return CUDA_SUCCESS;
}

/* Of a stream in a green context: that, and its root. */
CUresult rt_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    if (!pCtx)
        return CUDA_ERROR_INVALID_VALUE;
    *pCtx = rt_context_handle(rt_context_owner(c));
    if (pGreenCtx)
        *pGreenCtx = green_handle(c);
    return CUDA_SUCCESS;
}

/* Contexts with fewer multiprocessors than the client has cannot be created so (cuDeviceGetExecAffinitySupport says it):
 * each but the green ones has them all. */
CUresult rt_cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pExecAffinity)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    pExecAffinity->type = type;
    pExecAffinity->param.smCount.val = c->root ? c->multiprocessors : rt_multiprocessors(rt_session, c->device);
    return CUDA_SUCCESS;
}
