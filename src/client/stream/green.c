/*
 * The multiprocessors that the program may use, and its green contexts, which have some of them
 * each. On a GPU, a client with a share runs in a green context of the executor's, and the program
 * sees only the multiprocessors of that. A green context of the program's is a context here that
 * has streams and nothing else. Each of its streams says on which of the client's multiprocessors
 * it runs, and the executor makes green contexts of the driver's for that (device/cuda/part.c). All
 * else that is made in a green context belongs to its root, the primary context.
 *
 * How many groups a split yields is asked of the executor's driver, because it depends on how the
 * GPU is built: one GPU with 132 multiprocessors has 15 groups of 8, but two of 64.
 *
 * A context that was created with fewer multiprocessors is an ordinary one whose streams name them
 * in this way.
 *
 * A device that cannot hold clients to their shares cannot be split. The software device can, but
 * it runs all streams on all of its workers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "client/gen/api.h"
#include "client/session/attach.h"
#include "client/stream/call.h"
#include "client/stream/context.h"
#include "client/stream/part.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("context");

#define MAGIC 0x756d6772u
#define REST  TP_PART_GROUPS /* the bit for what a split leaves over */

/* A resource as we store it in the part of CUdevResource that programs do not look at. */
struct part {
    uint32_t magic;
    int32_t device;
    uint32_t size;  /* multiprocessors */
    uint32_t whole; /* 1: all of shape.of; 0: the resource came out of a split of it */
    /* Stored by value, as NVIDIA's: two equal splits make equal resources. */
    struct rt_part_shape shape;
};
_Static_assert(sizeof(struct part) <= sizeof(((CUdevResource *)NULL)->_internal_padding), "room");

struct description {
    struct rt_object object;
    int device;
    uint32_t part; /* 0: all */
    uint32_t size;
};

static struct rt_table descriptions = RT_TABLE(RT_KIND_RESOURCE, struct description);

/* --- resources -------------------------------------------------------------------------------- */

static uint32_t step_of(int device)
{
    return rt_session->devices[device].multiprocessors_step;
}

static void give(const struct part *p, CUdevResource *out)
{
    uint32_t step = step_of(p->device);
    memset(out, 0, sizeof(*out));
    memcpy(out->_internal_padding, p, sizeof(*p));
    out->type = CU_DEV_RESOURCE_TYPE_SM;
    out->sm.smCount = p->size;
    out->sm.minSmPartitionSize = step ? step : p->size;
    out->sm.smCoscheduledAlignment = out->sm.minSmPartitionSize;
}

/* Reads a resource. Returns CUDA_ERROR_INVALID_RESOURCE_TYPE or CUDA_ERROR_INVALID_VALUE if it is
 * not one of ours. */
static int take(const CUdevResource *r, struct part *out)
{
    if (r->type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    memcpy(out, r->_internal_padding, sizeof(*out));
    if (out->magic != MAGIC || out->device < 0 ||
        (unsigned)out->device >= rt_session->device_count || !rt_part_exists(out->shape.of))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static int describe(const struct rt_context *c, int device, CUdevResource *resource,
                    CUdevResourceType type)
{
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    struct part p = {
        .magic = MAGIC, .device = device, .size = rt_multiprocessors(rt_session, device), .whole = 1
    };
    p.shape.of = c ? c->part : rt_part_all();
    if (c && c->multiprocessors)
        p.size = c->multiprocessors;
    give(&p, resource);
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (device < 0 || (unsigned)device >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    return describe(NULL, device, resource, type);
}

CUresult rt_cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    const struct rt_context *c = rt_context_find(hCtx, true);
    return c ? describe(c, c->device, resource, type) : CUDA_ERROR_INVALID_CONTEXT;
}

/* --- splits ----------------------------------------------------------------------------------- */

/* Asks the driver how a split comes out. The executor can answer while there is a context on the
 * device. */
static int ask(int device, const struct wire_call_split *how, struct wire_call_split_is *out)
{
    struct rt_call c;
    CUcontext primary;
    int r = rt_cuDevicePrimaryCtxRetain(&primary, device);
    if (r)
        return r;
    rt_call_begin(&c, WIRE_CALL_SPLIT, 0);
    c.device = rt_session->devices[device].index;
    wire_put_call_split(&c.args, how);
    r = rt_call_run(&c);
    if (r == CUDA_SUCCESS)
        wire_get_call_split_is(&c.reply, out);
    r = rt_call_end(&c, r);
    (void)rt_cuDevicePrimaryCtxRelease_v2(device);
    return r;
}

/* Computes a split on a device whose multiprocessors are mere numbers. Groups consist of whole
 * steps. The flags, which ask for smaller groups or for those that suit large clusters, are
 * ignored. */
static int compute(const struct part *p, const struct wire_call_split *how,
                   struct wire_call_split_is *out)
{
    uint32_t step = step_of(p->device), steps = GM_MAX((how->minimum + step - 1) / step, 1u);
    out->size = steps * step;
    out->groups = GM_MIN(p->size / out->size, how->wanted);
    out->rest = p->size - out->groups * out->size;
    return CUDA_SUCCESS;
}

static int plan(const struct part *p, const struct wire_call_split *how,
                struct wire_call_split_is *out)
{
    int r = rt_session->memory_apart ? ask(p->device, how, out) : compute(p, how, out);
    if (r)
        return r;
    if (out->groups > how->wanted)
        return CUDA_ERROR_UNKNOWN;
    return out->groups ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

static void give_piece(const struct part *from, const struct wire_call_split *how,
                       const struct wire_call_split_is *is, uint32_t number, uint32_t size,
                       CUdevResource *out)
{
    struct part p = { .magic = MAGIC, .device = from->device, .size = size };
    p.shape = (struct rt_part_shape) {
        .of = from->shape.of, .flags = how->flags, .minimum = how->minimum, .wanted = is->groups
    };
    p.shape.groups[number / 64] = 1ull << number % 64;
    give(&p, out);
}

CUresult rt_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                        const CUdevResource *input, CUdevResource *remaining,
                                        unsigned int useFlags, unsigned int minCount)
{
    const unsigned known = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                           CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    struct part p;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!nbGroups || !input || (useFlags & ~known) || (result && *nbGroups == 0))
        return CUDA_ERROR_INVALID_VALUE;
    r = take(input, &p);
    if (r)
        return r;
    if (minCount > p.size)
        return CUDA_ERROR_INVALID_VALUE;
    if (!p.whole || !step_of(p.device))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const struct wire_call_split how = { .of = p.shape.of,
                                         .flags = useFlags,
                                         .minimum = minCount,
                                         .wanted = result ? GM_MIN(*nbGroups, TP_PART_GROUPS)
                                                          : TP_PART_GROUPS };
    struct wire_call_split_is is;
    r = plan(&p, &how, &is);
    if (r)
        return r;
    *nbGroups = is.groups;
    for (uint32_t i = 0; result && i < is.groups; i++)
        give_piece(&p, &how, &is, i, is.size, &result[i]);
    if (remaining && is.rest)
        give_piece(&p, &how, &is, REST, is.rest, remaining);
    else if (remaining)
        memset(remaining, 0, sizeof(*remaining));
    return CUDA_SUCCESS;
}

/* Adds the multiprocessors of another resource. Only a driver could say whether pieces of different
 * splits overlap, and CUDA does not let anybody join them. */
static int join(struct part *all, const struct part *one)
{
    const struct rt_part_shape *a = &all->shape, *b = &one->shape;
    if (all->whole || one->whole || all->device != one->device || a->of != b->of ||
        a->flags != b->flags || a->minimum != b->minimum || a->wanted != b->wanted ||
        (a->groups[0] & b->groups[0]) || (a->groups[1] & b->groups[1]))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    all->shape.groups[0] |= b->groups[0];
    all->shape.groups[1] |= b->groups[1];
    all->size += one->size;
    return CUDA_SUCCESS;
}

CUresult rt_cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                      unsigned int nbResources)
{
    struct part all, one;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!phDesc || !resources || nbResources == 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = take(&resources[0], &all);
    for (unsigned i = 1; i < nbResources && r == CUDA_SUCCESS; i++) {
        r = take(&resources[i], &one);
        r = r ? r : join(&all, &one);
    }
    if (r)
        return r;
    uint32_t number = all.whole ? all.shape.of : rt_part_number(&all.shape);
    /* CUDA has no call to end one */
    struct description *d = all.whole || number ? rt_object_take(&descriptions) : NULL;
    if (!d)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->device = all.device;
    d->part = number;
    d->size = all.size;
    rt_object_publish(&d->object);
    *phDesc = (CUdevResourceDesc)rt_object_handle(&descriptions, &d->object);
    return CUDA_SUCCESS;
}

/* --- green contexts --------------------------------------------------------------------------- */

static CUgreenCtx green_handle(const struct rt_context *c)
{
    return c && c->root ? (CUgreenCtx)(void *)rt_context_handle(c) : NULL;
}

static int find_green(CUgreenCtx handle, struct rt_context **c)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    *c = handle ? rt_context_find((CUcontext)(void *)handle, true) : NULL;
    return *c && (*c)->root ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult rt_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                             unsigned int flags)
{
    struct rt_context *c;
    int r = rt_enter_plain();
    if (r)
        return r;
    const struct description *d = rt_object_find(&descriptions, desc);
    if (!phCtx || !d || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (dev < 0 || (unsigned)dev >= rt_session->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    if (d->device != dev)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_context_create_green(dev, d->part, d->size, &c);
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

CUresult rt_cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource,
                                     CUdevResourceType type)
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

CUresult rt_cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                   int priority)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = find_green(greenCtx, &c);
    if (r)
        return r;
    if (!phStream || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_stream_create(c, RT_ROLE_NON_BLOCKING, flags, rt_stream_priority(c->device, priority),
                         &st);
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

/* Returns the context of a stream. For a stream of a green context that is the green context, and
 * its root. */
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

/* --- contexts with fewer multiprocessors ------------------------------------------------------ */

bool rt_part_possible(CUdevice device)
{
    return !rt_session->is_private && step_of(device) != 0;
}

/* Chooses one of equal groups, of which there are as many as fit. So several contexts of one size
 * get different multiprocessors. */
int rt_part_choose(CUdevice device, uint32_t wanted, uint32_t *part, uint32_t *multiprocessors)
{
    static _Atomic uint32_t turns;
    const struct part all = { .device = device, .size = rt_multiprocessors(rt_session, device) };
    const struct wire_call_split how = { .of = rt_part_all(),
                                         .minimum = wanted,
                                         .wanted = TP_PART_GROUPS };
    struct wire_call_split_is is = { 0 };
    *part = *multiprocessors = 0;
    int r = wanted < all.size ? plan(&all, &how, &is) : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (r == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION ||
        (r == CUDA_SUCCESS && is.size >= all.size))
        return CUDA_SUCCESS;
    if (r)
        return r;
    uint32_t group = atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed) % is.groups;
    struct rt_part_shape s = { .of = how.of, .minimum = wanted, .wanted = is.groups };
    s.groups[group / 64] = 1ull << group % 64;
    *part = rt_part_number(&s);
    *multiprocessors = is.size;
    return *part ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

uint32_t rt_part_percentage(CUdevice device)
{
    const struct rt_device *d = &rt_session->devices[device];
    const char *text = secure_getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double share;
    if (!rt_session->shares_of_contexts || !text || !rt_part_possible(device))
        return 0;
    if (!gm_parse_percentage(text, &share)) {
        gm_warn(&topic, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%s is not a percentage; ignored", text);
        return 0;
    }
    if (share == 100) /* All multiprocessors, of which some may not fill a whole step. */
        return 0;
    /* 33 % of 100 must not become 32.999... */
    uint32_t steps = (uint32_t)(d->multiprocessors * share / 100 + 1e-9) / step_of(device);
    return GM_MAX(steps, 1u) * step_of(device);
}

uint32_t rt_part_visible(CUdevice device)
{
    const struct rt_context *c = rt_current.context;
    uint32_t all = rt_multiprocessors(rt_session, device);
    if (!rt_session->shares_of_contexts || !c || c->device != device || !c->multiprocessors ||
        rt_object_generation(&c->object) != rt_current.generation)
        return all;
    return GM_MIN(c->multiprocessors, all);
}

/* Answers what the client may use, unless the context was created with fewer multiprocessors. */
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
    pExecAffinity->param.smCount.val =
        c->multiprocessors ? c->multiprocessors : rt_multiprocessors(rt_session, c->device);
    return CUDA_SUCCESS;
}
