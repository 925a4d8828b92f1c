/*
 * cuCtxEnablePeerAccess and what can be asked about two devices. Contexts of one device reach each
 * other's memory anyway; between devices it is the executor that maps memory for further ones, all
 * that is there and all to come.
 *
 * Which devices can be peers, the genuine library beside us knows. Devices made of the host's
 * processors all can, and do, whether they are let or not.
 */
#include "client/stream/peer.h"

#include "client/gen/api.h"
#include "client/session/attach.h"
#include "client/session/companion.h"
#include "client/stream/reach.h"

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER;                /* inside rt_context_lock; before that of requests */
static unsigned lets[RT_DEVICES][RT_DEVICES]; /* lock; by device and peer: how often */

static int check_devices(CUdevice a, CUdevice b)
{
    int r = rt_current.in_callback ? CUDA_ERROR_NOT_PERMITTED : rt_ready();
    if (r)
        return r;
    int count = (int)rt_session->device_count;
    return a >= 0 && a < count && b >= 0 && b < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static bool can_access(CUdevice device, CUdevice peer)
{
    __typeof__(cuDeviceCanAccessPeer) *genuine;
    int can = 0;
    if (device == peer)
        return false;
    if (!rt_session->memory_apart)
        return true;
    return rt_companion_function("cuDeviceCanAccessPeer", &genuine, sizeof(genuine)) &&
           genuine(&can, device, peer) == CUDA_SUCCESS && can;
}

int rt_peer_let(int device, int peer)
{
    int r = CUDA_SUCCESS;
    if (device == peer)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!lets[device][peer])
        r = can_access(device, peer) ? rt_request_peer_access(rt_session, device, peer, true)
                                     : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    lets[device][peer] += r == CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return r;
}

void rt_peer_leave(int device, int peer)
{
    if (device == peer)
        return;
    pthread_mutex_lock(&lock);
    if (--lets[device][peer] == 0)
        (void)rt_request_peer_access(rt_session, device, peer, false);
    pthread_mutex_unlock(&lock);
}

uint32_t rt_peer_devices(int device)
{
    uint32_t devices = 0;
    pthread_mutex_lock(&lock);
    for (unsigned d = 0; d < rt_session->device_count; d++)
        devices |= lets[d][device] ? 1u << d : 0;
    pthread_mutex_unlock(&lock);
    return devices;
}

void rt_peer_forget(struct rt_context *c)
{
    for (int peer = 0; c->peers && peer < (int)RT_DEVICES; peer++)
        if (c->peers >> peer & 1)
            rt_peer_leave(c->device, peer);
    c->peers = 0;
}

bool rt_peer_enabled(struct rt_context *c, int peer)
{
    pthread_mutex_lock(&rt_context_lock);
    uint32_t peers = c->peers | rt_context_owner(c)->peers;
    pthread_mutex_unlock(&rt_context_lock);
    return peers >> peer & 1;
}

/* --- entry points ----------------------------------------------------------------------------- */

CUresult rt_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    int r = check_devices(dev, peerDev);
    if (r)
        return r;
    if (!canAccessPeer)
        return CUDA_ERROR_INVALID_VALUE;
    *canAccessPeer = can_access(dev, peerDev);
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

/* Both contexts of the two calls that follow, with rt_context_lock held. */
static int enter(CUcontext handle, struct rt_context **c, struct rt_context **peer)
{
    *peer = rt_context_find(handle, true);
    if (!*peer)
        return CUDA_ERROR_INVALID_CONTEXT;
    return rt_enter(c);
}

static int enable(CUcontext handle)
{
    struct rt_context *c, *peer;
    int r = enter(handle, &c, &peer);
    if (r)
        return r;
    if (c->device == peer->device)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (c->peers >> peer->device & 1)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    r = rt_peer_let(c->device, peer->device);
    if (r == CUDA_SUCCESS)
        c->peers |= 1u << peer->device;
    return r;
}

/* What runs may still need it. */
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
    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&rt_context_lock);
    r = enable(peerContext);
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}

CUresult rt_cuCtxDisablePeerAccess(CUcontext peerContext)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    pthread_mutex_lock(&rt_context_lock);
    r = disable(peerContext);
    pthread_mutex_unlock(&rt_context_lock);
    return r;
}
