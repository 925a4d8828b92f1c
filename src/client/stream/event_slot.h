/*
 * Slots of session memory into which the device writes the times of events: who has which. Any
 * thread; no other lock is taken inside.
 */
#ifndef GMUX_CLIENT_STREAM_EVENT_SLOT_H
#define GMUX_CLIENT_STREAM_EVENT_SLOT_H

#include <stdint.h>

#define RT_NO_SLOT UINT32_MAX

/* A slot that nobody has, and to which the device writes no more; RT_NO_SLOT: there is none. */
uint32_t rt_event_slot_take(void);
/* Nobody has the slot any more. The device writes to it for the last time with the operation `seq`
 * of the stream `number`; 0: it has done so. */
void rt_event_slot_give(uint32_t slot, uint32_t number, uint64_t seq);
/* The time in a slot, in nanoseconds. */
uint64_t rt_event_slot_time(uint32_t slot);

#endif
