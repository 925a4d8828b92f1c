/*
 * Peers: devices that may touch each other's memory.
 */
#ifndef GMUX_CLIENT_STREAM_PEER_H
#define GMUX_CLIENT_STREAM_PEER_H

#include "client/stream/context.h"

/* Whether it can be let touch what is on `peer`. */
bool rt_peer_possible(CUdevice device, CUdevice peer);
/* Lets `device` touch what this process has on `peer`, and takes it back; as often as it was let.
 * CUresult: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED where the hardware has no way. One device is its own
 * peer. */
int rt_peer_let(int device, int peer);
void rt_peer_leave(int device, int peer);
/* The devices that may touch the memory of this one: bits. */
uint32_t rt_peer_devices(int device);
/* The context ends, and what it was let with it. */
void rt_peer_forget(struct rt_context *c);

/* The context, or the one that a green one has its memory from, was let touch the peer's memory.
 * Any thread, no lock held. */
bool rt_peer_enabled(struct rt_context *c, int peer);

/* The arguments of questions about links make sense. */
bool rt_operations_ok(const unsigned *capabilities, const CUatomicOperation *operations,
                      unsigned count);

#endif
