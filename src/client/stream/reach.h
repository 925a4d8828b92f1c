/*
 * Who may be using memory that is taken away: the streams of its device, of devices that were let
 * touch it, and those copies in other streams that concern a device not their own. Nobody else is
 * waited for: with several devices what runs on one may well wait for what the program has yet to
 * launch on another.
 *
 * Sets of devices are bits by the program's numbers of them.
 */
#ifndef GMUX_CLIENT_STREAM_REACH_H
#define GMUX_CLIENT_STREAM_REACH_H

#include "client/stream/context.h"

struct rt_range;

/* True if a copy or fill in a queue of the device with the server's number `index` uses other
 * devices' memory, or may. Any lock may be held but the map's. */
bool rt_reach_is_abroad(const struct wire_record *r, uint32_t index);

/* The devices whose streams may use the memory. */
uint32_t rt_reach_of(const struct rt_range *range);
/* As above, for all memory of a device. */
uint32_t rt_reach_of_device(int device);

/* Waits for everything issued so far in streams of these devices, and for the copies of others that
 * concern more than theirs. CUresult. */
int rt_reach_wait(uint32_t devices);

#endif
