/*
 * Clearing of memory that the program had before.
 *
 * The driver gives memory that was freed back to the system, as soon as nothing else lives in its
 * pages of 2 MiB, and memory from the system is zero. Programs that read what they never wrote come
 * out right by that. What is not given back (memory/block.h) is cleared before it is used again.
 */
#ifndef GMUX_CLIENT_MEMORY_CLEAR_H
#define GMUX_CLIENT_MEMORY_CLEAR_H

#include "client/stream/context.h"

/* Begins to fill memory of the stream's device, whole words, with zeros; *seq: the operation's
 * number. CUresult. */
int rt_clear_in(struct rt_stream *st, uint64_t address, uint64_t size, uint64_t *seq);
/* Does so in a stream of ours, which waits for no other one. Others may use the memory when queue
 * *number has completed *seq. Called with the pools' lock held. CUresult. */
int rt_clear(int device, uint64_t address, uint64_t size, uint32_t *number, uint64_t *seq);

#endif
