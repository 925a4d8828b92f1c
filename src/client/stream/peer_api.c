/*
 * cuCtxEnablePeerAccess, and questions about two devices.
 */
#include "client/gen/api.h"
#include "client/session/attach.h"
#include "client/session/companion.h"
#include "client/stream/capture.h"
#include "client/stream/peer.h"
#include "client/stream/reach.h"

static int check_devices(CUdevice a, CUdevice b)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    int count = (int)rt_session->device_count;
    return a >= 0 && a < count && b >= 0 && b < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult rt_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    int r = check_devices(dev, peerDev);
    if (r)
        return r;
    if (!canAccessPeer)
        return CUDA_ERROR_INVALID_VALUE;
    *canAccessPeer = rt_peer_possible(dev, peerDev);
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                    CUdevice dstDevice)
{
    static atomic_bool said;
    __typeof__(cuDeviceGetP2PAttribute) *genuine;
    int r = check_devices(srcDevice, dstDevice);
    if (r)
        return r;
    if (srcDevice == dstDevice)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    if (rt_session->memory_apart)
        return rt_companion_function("cuDeviceGetP2PAttribute", &genuine, sizeof(genuine))
                   ? genuine(value, attrib, srcDevice, dstDevice)
                   : rt_not_supported("cuDeviceGetP2PAttribute", &said);
    *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
             attrib == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
                                             const CUatomicOperation *operations,
                                             unsigned int count, CUdevice srcDevice,
                                             CUdevice dstDevice)
{
    static atomic_bool said;
    __typeof__(cuDeviceGetP2PAtomicCapabilities) *genuine;
    int r = check_devices(srcDevice, dstDevice);
    if (r)
        return r;
    if (srcDevice == dstDevice)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!rt_operations_ok(capabilities, operations, count))
        return CUDA_ERROR_INVALID_VALUE;
    if (rt_session->memory_apart &&
        rt_companion_function("cuDeviceGetP2PAtomicCapabilities", &genuine, sizeof(genuine)))
        return genuine(capabilities, operations, count, srcDevice, dstDevice);
    return rt_not_supported("cuDeviceGetP2PAtomicCapabilities", &said);
}

/* Finds the two contexts of the calls below. rt_context_lock is held afterwards. */
static int enter(CUcontext handle, struct rt_context **c, struct rt_context **peer)
{
    *peer = rt_context_find(handle, true);
    if (!*peer)
        return CUDA_ERROR_INVALID_CONTEXT;
    return rt_enter(c);
}

static int enable(CUcontext handle, unsigned flags)
{
    struct rt_context *c, *peer;
    int r = enter(handle, &c, &peer);
    if (r)
        return r;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (c->device == peer->device)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (c->peers >> peer->device & 1)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    r = rt_peer_let(c->device, peer->device);
    if (r == CUDA_SUCCESS)
        c->peers |= 1u << peer->device;
    return r;
}

/* Ends the access, after it has waited for the work that may still use the memory. */
static int disable(CUcontext handle)
{
    struct rt_context *c, *peer;
    int r = enter(handle, &c, &peer);
    if (r)
        return r;
    if (!(c->peers >> peer->device & 1))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    r = rt_reach_wait(1u << c->device);
    if (r)
        return r;
    c->peers &= ~(1u << peer->device);
    rt_peer_leave(c->device, peer->device);
    return CUDA_SUCCESS;
}

CUresult rt_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    pthread_mutex_lock(&rt_context_lock);
    r = enable(peerContext, Flags);
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

CUresult rt_cuCtxDisablePeerAccess(CUcontext peerContext)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!peerContext)
        return CUDA_ERROR_INVALID_CONTEXT;
    r = rt_capture_unsafe();
    if (r)
        return r;
    pthread_mutex_lock(&rt_context_lock);
    r = disable(peerContext);
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}
