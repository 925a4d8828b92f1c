/*
 * Peers: devices that may access each other's memory.
 */
#ifndef GMUX_CLIENT_STREAM_PEER_H
#define GMUX_CLIENT_STREAM_PEER_H

#include "client/stream/context.h"

/* Whether the device can access memory of `peer`. */
bool rt_peer_possible(CUdevice device, CUdevice peer);
/* rt_peer_let() lets `device` access what this process has on `peer`; it is taken back as often as
 * it was granted. CUresult; CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: the hardware cannot. A device is
 * its own peer. */
int rt_peer_let(int device, int peer);
void rt_peer_leave(int device, int peer);
/* The devices that may access this one's memory, one bit each. */
uint32_t rt_peer_devices(int device);
/* The context ends, and with it the access that it was granted. */
void rt_peer_forget(struct rt_context *c);

/* Whether the context, or the one that owns a green context's memory, may access the peer's memory.
 * Any thread, no lock held. */
bool rt_peer_enabled(struct rt_context *c, int peer);

/* Whether the arguments of questions about links are valid. */
bool rt_operations_ok(const unsigned *capabilities, const CUatomicOperation *operations,
                      unsigned count);

#endif
