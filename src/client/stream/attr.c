/*
 * Attributes of streams. Those about caches, and about who must see a write, affect speed only:
 * they are checked, kept and answered, and the device is not told. The synchronization policy is
 * how this process waits for the stream.
 */
#include "client/gen/api.h"
#include "client/stream/capture.h"
#include "client/stream/context.h"

/* The answer of NVIDIA's driver for a stream whose policy was never set. */
#define POLICY_NONE ((CUsynchronizationPolicy)-1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the hints of all streams */

static int32_t attribute(CUdevice_attribute a)
{
    return rt_session->devices[rt_current_device()].attributes[a];
}

static bool window_ok(const CUaccessPolicyWindow *w)
{
    int32_t most = GM_MAX(attribute(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE), 0);
    return w->num_bytes <= (size_t)most && w->hitRatio >= 0.0f && w->hitRatio <= 1.0f &&
           (unsigned)w->hitProp <= CU_ACCESS_PROPERTY_PERSISTING &&
           (unsigned)w->missProp <= CU_ACCESS_PROPERTY_STREAMING;
}

/* Sets the priority. It counts for a stream that has had no work yet: the device makes its own
 * stream with the first work. */
static void set_priority(struct rt_stream *st, int priority)
{
    pthread_mutex_lock(&rt_session->ring_lock);
    st->priority = rt_stream_priority(st->context->device, priority);
    if (st->number < TP_STREAMS)
        atomic_store_explicit(&rt_session->shared.streams[st->number].priority, st->priority,
                              memory_order_relaxed);
    pthread_mutex_unlock(&rt_session->ring_lock);
}

static CUlaunchMemSyncDomainMap domains(const struct rt_stream_hints *h)
{
    bool one = attribute(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT) <= 1;
    return h->domains_set ? h->domains
                          : (CUlaunchMemSyncDomainMap) { .default_ = 0, .remote = one ? 0 : 1 };
}

bool rt_stream_domains_ok(CUlaunchMemSyncDomainMap map)
{
    int32_t count = GM_MAX(attribute(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT), 1);
    return map.default_ < count && map.remote < count;
}

/* Called with the lock held. */
static int set_hint(struct rt_stream_hints *h, CUstreamAttrID attr, const CUstreamAttrValue *v)
{
    bool good = false;
    switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        good = window_ok(&v->accessPolicyWindow);
        if (good)
            h->window = v->accessPolicyWindow;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        good = rt_stream_domains_ok(v->memSyncDomainMap);
        if (good)
            h->domains = v->memSyncDomainMap;
        h->domains_set = h->domains_set || good;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        good = (unsigned)v->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
        if (good)
            h->domain = v->memSyncDomain;
        break;
    default:
        break;
    }
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                                 const CUstreamAttrValue *param)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : rt_capture_usable(st);
    if (r)
        return r;
    if (!param)
        return CUDA_ERROR_INVALID_VALUE;
    if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        set_priority(st, param->priority);
        return CUDA_SUCCESS;
    }
    if (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
        if (param->syncPolicy < CU_SYNC_POLICY_AUTO ||
            param->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
            return CUDA_ERROR_INVALID_VALUE;
        atomic_store_explicit(&st->sync_policy, (unsigned)param->syncPolicy, memory_order_relaxed);
        return CUDA_SUCCESS;
    }
    pthread_mutex_lock(&lock);
    r = set_hint(&st->hints, attr, param);
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult rt_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(hStream, &c, &st);
    r = r ? r : rt_capture_usable(st);
    if (r)
        return r;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned policy = atomic_load_explicit(&st->sync_policy, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value->accessPolicyWindow = st->hints.window;
        break;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = policy ? (CUsynchronizationPolicy)policy : POLICY_NONE;
        break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = st->priority;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        value->memSyncDomainMap = domains(&st->hints);
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value->memSyncDomain = st->hints.domain;
        break;
    default:
        r = CUDA_ERROR_INVALID_VALUE;
        break;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult rt_cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream)
{
    struct rt_context *c;
    struct rt_stream *to, *from;
    int r = rt_enter_stream(dstStream, &c, &to);
    r = r ? r : rt_enter_stream(srcStream, &c, &from);
    r = r ? r : rt_capture_usable(to);
    r = r ? r : rt_capture_usable(from);
    if (r)
        return r;
    if (to->context != from->context)
        return CUDA_ERROR_INVALID_VALUE;
    set_priority(to, from->priority);
    atomic_store_explicit(&to->sync_policy,
                          atomic_load_explicit(&from->sync_policy, memory_order_relaxed),
                          memory_order_relaxed);
    pthread_mutex_lock(&lock);
    to->hints = from->hints;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Cache lines only persist in windows that a device was told of, and it is told of none. */
CUresult rt_cuCtxResetPersistingL2Cache(void)
{
    struct rt_context *c;
    return rt_enter(&c);
}
