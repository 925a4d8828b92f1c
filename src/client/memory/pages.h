/*
 * Memory with two homes: this process, and a device whose memory it cannot access. Each piece is in
 * one of them. A thread that touches a piece on the device waits while it is fetched (by
 * userfaultfd, so that system calls may touch it, too). When work enters the device, all pieces
 * that are here move there.
 *
 * What the host writes while work runs is told apart from what the device writes by a copy that is
 * made when the piece is fetched: only bytes that differ from it are written back. So both may
 * write at the same time, as long as it is not the same byte. A piece that was fetched while work
 * ran is checked again when the work is done, or after a millisecond: so a program that polls sees
 * what it waits for.
 *
 * Of two writes to one word at once one is lost, also if they are atomic operations. So a thread
 * that touches a piece first waits for the work to end, for a while. If it does not end in that
 * time, which is what happens if it waits for the host, the next wait is half as long.
 *
 * This file knows nothing of CUDA. It maintains the counts of stream/coherence.h.
 */
#ifndef GMUX_CLIENT_MEMORY_PAGES_H
#define GMUX_CLIENT_MEMORY_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RT_PAGE 4096u

/* The other home. Functions return CUresult values; only one of them is called at a time. */
struct rt_pages_device {
    /* Queues a write, in order; `bytes` may be reused when it returns. */
    int (*put)(uint64_t address, const void *bytes, size_t size);
    /* Waits until what was put is there. */
    int (*settle)(void);
    int (*get)(void *bytes, uint64_t address, size_t size);
    /* Whether work is under way, or may enter without rt_pages_release() having been called since
     * rt_pages_here was raised. */
    bool (*busy)(void);
    /* Waits until the work that is under way has ended, for at most so long. False: it has not. No
     * lock held; others may be called meanwhile. */
    bool (*rest)(uint64_t ns);
};

/* Called once in a process. All such memory is going to be within [base, base + size). 0, or a
 * negative errno: the system does not let us see such accesses, or has no memory. */
int rt_pages_open(const struct rt_pages_device *device, uint64_t base, uint64_t size);

/* Adds [address, address + size): whole pages, zero on the device so far. Maps pages there, in
 * place of what was mapped; a child of a fork does not have them. 0 or a negative errno. */
int rt_pages_add(uint64_t address, uint64_t size);
/* Removes the memory, whose contents are lost; its pages stay mapped. False: it was not added. */
bool rt_pages_remove(uint64_t address);

/* Moves everything that is here to the device. CUresult. */
int rt_pages_release(void);

/* Called in the child of a fork: it has none of this memory. */
void rt_pages_forget(void);

#endif
