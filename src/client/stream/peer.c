/*
 * Which context may use another one's memory. Contexts of the same device always may. For another
 * device the executor maps all memory that there is, and all that is made later.
 *
 * The genuine library beside this one knows which devices can be peers. Devices that are made of
 * the host's processors can all be peers; they reach each other's memory even where that was not
 * enabled.
 */
#include "client/stream/peer.h"

#include "client/session/companion.h"

/* Taken inside rt_context_lock, and before the lock of requests. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* lock; by device and peer, how often access was enabled. */
static unsigned lets[RT_DEVICES][RT_DEVICES];

bool rt_peer_possible(CUdevice device, CUdevice peer)
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
        r = rt_peer_possible(device, peer) ? rt_request_peer_access(rt_session, device, peer, true)
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
