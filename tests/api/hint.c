/* Attributes of streams, and whose managed memory is: kept and answered, checked where the
 * documentation says so. */
#include "tap.h"

#include <string.h>
#include <unistd.h>

static CUstreamAttrValue get(CUstream s, CUstreamAttrID id)
{
    CUstreamAttrValue v;
    memset(&v, 0, sizeof(v));
    OK(cuStreamGetAttribute(s, id, &v));
    return v;
}

static void window(void)
{
    CUstream s, t;
    CUdeviceptr p;
    CUstreamAttrValue v;
    int most = 0;
    OK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 0));
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamCreate(&t, 0));
    OK(cuMemAlloc(&p, 4096));
    EQ(get(s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.num_bytes, 0);
    memset(&v, 0, sizeof(v));
    v.accessPolicyWindow.base_ptr =
        (void *)(uintptr_t)p; /* NOLINT: the interface's way to say it */
    v.accessPolicyWindow.num_bytes = most < 4096 ? (size_t)most : 4096;
    v.accessPolicyWindow.hitRatio = 0.5f;
    v.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_STREAMING;
    v.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
    OK(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v));
    TRUE(get(s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.hitRatio == 0.5f);
    EQ(get(t, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.num_bytes, 0);
    OK(cuStreamCopyAttributes(t, s));
    CUaccessPolicyWindow copied =
        get(t, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow;
    TRUE((uintptr_t)copied.base_ptr == p);
    EQ(copied.num_bytes, v.accessPolicyWindow.num_bytes);
    EQ(copied.missProp, CU_ACCESS_PROPERTY_STREAMING);
    OK(cuMemsetD8Async(p, 7, 4096, s)); /* still a stream to work in */
    OK(cuStreamSynchronize(s));
    v.accessPolicyWindow.hitRatio = 1.5f;
    IS(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v),
       CUDA_ERROR_INVALID_VALUE);
    v.accessPolicyWindow.hitRatio = 0.5f;
    v.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_PERSISTING;
    IS(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v),
       CUDA_ERROR_INVALID_VALUE);
    EQ(get(s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.missProp,
       CU_ACCESS_PROPERTY_STREAMING);
    OK(cuStreamDestroy(s));
    OK(cuStreamDestroy(t));
    OK(cuMemFree(p));
}

static void policy(void)
{
    CUstream s;
    CUdeviceptr p;
    CUstreamAttrValue v;
    OK(cuMemAlloc(&p, 4));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EQ(get(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy,
       (CUsynchronizationPolicy)-1); /* nobody set one */
    for (int i = CU_SYNC_POLICY_BLOCKING_SYNC; i >= CU_SYNC_POLICY_AUTO; i--) {
        uint32_t word = 0;
        memset(&v, 0, sizeof(v));
        v.syncPolicy = (CUsynchronizationPolicy)i;
        OK(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
        EQ(get(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy, i);
        OK(cuMemsetD32Async(p, (unsigned)i, 1, s));
        OK(cuStreamSynchronize(s));
        OK(cuMemcpyDtoH(&word, p, 4));
        EQ(word, i);
    }
    memset(&v, 0x55, sizeof(v));
    IS(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v),
       CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamDestroy(s));
    OK(cuMemFree(p));
}

static void priority_and_domains(void)
{
    CUstream s;
    CUstreamAttrValue v;
    int least, greatest, now, domains = 0;
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    OK(cuDeviceGetAttribute(&domains, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 0));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EQ(get(s, CU_STREAM_ATTRIBUTE_PRIORITY).priority, least);
    memset(&v, 0, sizeof(v));
    v.priority = greatest;
    OK(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_PRIORITY, &v));
    EQ(get(s, CU_STREAM_ATTRIBUTE_PRIORITY).priority, greatest);
    OK(cuStreamGetPriority(s, &now));
    EQ(now, greatest);
    EQ(get(s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain,
       CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
    memset(&v, 0, sizeof(v));
    v.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    OK(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &v));
    EQ(get(s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
    EQ(get(s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP).memSyncDomainMap.default_, 0);
    EQ(get(s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP).memSyncDomainMap.remote,
       domains > 1 ? 1 : 0);
    memset(&v, 0xff, sizeof(v));
    IS(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &v),
       CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamDestroy(s));
}

static void wrong(void)
{
    CUstreamAttrValue v;
    memset(&v, 0, sizeof(v));
    IS(cuStreamGetAttribute(NULL, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamSetAttribute(NULL, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &v),
       CUDA_ERROR_INVALID_VALUE);
    if (!tap_genuine()) { /* which does not survive it */
        IS(cuStreamGetAttribute(NULL, CU_STREAM_ATTRIBUTE_PRIORITY, NULL),
           CUDA_ERROR_INVALID_VALUE);
        IS(cuStreamSetAttribute(NULL, CU_STREAM_ATTRIBUTE_PRIORITY, NULL),
           CUDA_ERROR_INVALID_VALUE);
    }
    OK(cuCtxResetPersistingL2Cache());
}

/* For memory that other devices could write to. */
static void handles_of_ranges(void)
{
    CUdeviceptr p;
    int supported = 0, fd = -1;
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    OK(cuMemAlloc(&p, 2 << 20));
    IS(cuMemGetHandleForAddressRange(NULL, p, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
       CUDA_ERROR_INVALID_VALUE);
    IS(cuMemGetHandleForAddressRange(&fd, p, 100, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
       CUDA_ERROR_INVALID_VALUE);
    IS(cuMemGetHandleForAddressRange(&fd, p, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
       supported ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
    if (supported)
        (void)close(fd);
    OK(cuMemFree(p));
}

static void attach_memory(void)
{
    CUstream s;
    CUdeviceptr managed, device;
    OK(cuStreamCreate(&s, 0));
    OK(cuMemAllocManaged(&managed, 8192, CU_MEM_ATTACH_HOST));
    OK(cuMemAlloc(&device, 8192));
    OK(cuStreamAttachMemAsync(s, managed, 0, CU_MEM_ATTACH_SINGLE));
    OK(cuStreamAttachMemAsync(s, managed, 8192, CU_MEM_ATTACH_HOST));
    OK(cuStreamAttachMemAsync(NULL, managed, 0, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemsetD8Async(managed, 3, 8192, s));
    OK(cuStreamSynchronize(s));
    EQ(((const unsigned char *)(uintptr_t)managed)[8191], 3); /* NOLINT: the host's address too */
    IS(cuStreamAttachMemAsync(NULL, managed, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamAttachMemAsync(s, managed, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamAttachMemAsync(s, managed, 0, 8), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamAttachMemAsync(s, device, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(managed));
    OK(cuMemFree(device));
    OK(cuStreamDestroy(s));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(window), TEST(policy),        TEST(priority_and_domains),
        TEST(wrong),  TEST(attach_memory), TEST(handles_of_ranges),
    };
    return tap_main(tests, COUNT(tests));
}
