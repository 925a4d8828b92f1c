/*
 * Memory with two homes: this process, and a device that it cannot look at. A piece of it is here
 * or there. Who touches one that is there waits while it is fetched (userfaultfd, so that system
 * calls may touch it, too); when work enters the device, all that is here goes there.
 *
 * What the host writes while work runs is told from what the device writes by a copy that is made
 * when the piece is fetched: only bytes that differ from it go back. So both may write at the same
 * time, as long as it is not the same byte. A piece that was fetched while work ran is looked at
 * again when that is done, or after a millisecond: a program that polls sees what it waits for.
 * What is not done is atomic operations on the same word from both sides at once.
 *
 * This file knows nothing of CUDA. The counts of stream/coherence.h are its to write.
 */
#ifndef GMUX_CLIENT_MEMORY_PAGES_H
#define GMUX_CLIENT_MEMORY_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RT_PAGE 4096u

/* The other home. Functions return CUresult values; one of them is called at a time. */
struct rt_pages_device {
    /* Queued, in order; `bytes` are free again when it returns. */
    int (*put)(uint64_t address, const void *bytes, size_t size);
    /* What was put is there. */
    int (*settle)(void);
    int (*get)(void *bytes, uint64_t address, size_t size);
    /* Work is under way, or may enter without rt_pages_release() having been called since
     * rt_pages_here was raised. */
    bool (*busy)(void);
};

/* Once in a process: 0, or a negative errno where the system does not let us see such accesses. */
int rt_pages_open(const struct rt_pages_device *device);

/* [address, address + size), whole pages, is mapped, private, empty, and so far zero on the device.
 * 0 or a negative errno. */
int rt_pages_add(uint64_t address, uint64_t size);
/* The memory's contents are lost; false if it is not ours. Its pages stay mapped. */
bool rt_pages_remove(uint64_t address);

/* Everything here goes to the device. CUresult. */
int rt_pages_release(void);

/* After a fork, in the child: it has none of it. */
void rt_pages_forget(void);

#endif
