/*
 * Who may be using memory that is freed: the streams of its device, of devices that may access it,
 * and copies in other streams that concern a device not their own. Others are not waited for: with
 * several devices, work on one may wait for what the program has yet to launch on another.
 *
 * A set of devices has one bit for each device, by the program's numbers.
 */
#ifndef GMUX_CLIENT_STREAM_REACH_H
#define GMUX_CLIENT_STREAM_REACH_H

#include "client/stream/context.h"

struct rt_range;

/* Whether a copy or fill in a queue of device `index` (the server's number) uses memory of other
 * devices, or may do so. Any lock may be held, except the map's. */
bool rt_reach_is_abroad(const struct wire_record *r, uint32_t index);

/* The devices whose streams may use the memory. */
uint32_t rt_reach_of(const struct rt_range *range);
/* The devices whose streams may use memory of a device. */
uint32_t rt_reach_of_device(int device);

/* Waits for everything issued so far in streams of these devices, and for other streams' copies
 * that concern a device not their own. CUresult. */
int rt_reach_wait(uint32_t devices);

#endif
