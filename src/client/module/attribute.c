/*
 * Attributes of launches. Those that change what a kernel computes go to the device.
 */
#include <string.h>

#include "client/module/launch.h"

enum rt_attribute_use rt_attribute_use(const CUlaunchAttribute *a)
{
    switch (a->id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return a->value.clusterDim.x > 1 || a->value.clusterDim.y > 1 || a->value.clusterDim.z > 1
                   ? RT_ATTRIBUTE_MATTERS
                   : RT_ATTRIBUTE_HINT;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        return a->value.cooperative ? RT_ATTRIBUTE_MATTERS : RT_ATTRIBUTE_HINT;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return rt_session->memory_apart ? RT_ATTRIBUTE_MATTERS : RT_ATTRIBUTE_HINT;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        return rt_session->memory_apart && a->value.programmaticStreamSerializationAllowed
                   ? RT_ATTRIBUTE_MATTERS
                   : RT_ATTRIBUTE_HINT;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return RT_ATTRIBUTE_EVENT;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: /* only of a stream */
        return RT_ATTRIBUTE_UNKNOWN;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return rt_stream_domains_ok(a->value.memSyncDomainMap) ? RT_ATTRIBUTE_HINT
                                                               : RT_ATTRIBUTE_UNKNOWN;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return (unsigned)a->value.memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE
                   ? RT_ATTRIBUTE_HINT
                   : RT_ATTRIBUTE_UNKNOWN;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return RT_ATTRIBUTE_REFUSED;
    default:
        return (unsigned)a->id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
                   ? RT_ATTRIBUTE_HINT
                   : RT_ATTRIBUTE_UNKNOWN;
    }
}

static bool can_cooperate(const CUlaunchAttribute *a)
{
    return a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
           rt_session->devices[rt_current_device()]
               .attributes[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH];
}

int rt_launch_take_attributes(struct rt_launch *l, const CUlaunchAttribute *attributes,
                              unsigned count)
{
    static atomic_bool said;
    l->record.attributes = 0;
    if (count && !attributes)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        const CUlaunchAttribute *a = &attributes[i];
        enum rt_attribute_use use = rt_attribute_use(a);
        if (use == RT_ATTRIBUTE_UNKNOWN)
            return CUDA_ERROR_INVALID_VALUE;
        if (use == RT_ATTRIBUTE_REFUSED)
            return (int)rt_not_supported("a launch of a node that kernels update", &said);
        if (use == RT_ATTRIBUTE_MATTERS && !rt_session->memory_apart && !can_cooperate(a))
            return CUDA_ERROR_NOT_SUPPORTED; /* the device's attributes say so, too */
        if (use != RT_ATTRIBUTE_MATTERS)
            continue;
        if (l->record.attributes == RT_LAUNCH_ATTRIBUTES)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(l->params + l->record.attributes++ * sizeof(*a), a, sizeof(*a));
    }
    return CUDA_SUCCESS;
}
