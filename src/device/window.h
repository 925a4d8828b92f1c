/*
 * A client's window in this process: one reserved range of addresses, the same numbers that the
 * client and its kernels use. What is not mapped is PROT_NONE, so that a kernel touching it faults.
 */
#ifndef GMUX_DEVICE_WINDOW_H
#define GMUX_DEVICE_WINDOW_H

#include "base/attr.h"

struct dev_window {
    uint64_t base;
    uint64_t size;
    int device_fd; /* not owned */
    int host_fd;
    bool reserved;
};

/* Reserves [base, base + size), a power of two and aligned to it. 0, -EINVAL, -EEXIST if something
 * else of this process lies there, -errno. */
GM_MUST_CHECK int dev_window_open(struct dev_window *w, uint64_t base, uint64_t size, int device_fd,
                                  int host_fd);
void dev_window_close(struct dev_window *w);

/* Page-aligned range inside one of the two halves. 0, -EINVAL, -errno. */
GM_MUST_CHECK int dev_window_map(struct dev_window *w, uint64_t address, uint64_t size);
/* Like dev_window_map(), with other memory: that of `fd` from `offset` on, writable or
 * read-only. */
GM_MUST_CHECK int dev_window_attach(struct dev_window *w, uint64_t address, uint64_t size, int fd,
                                    uint64_t offset, bool writable);
/* One mapping serves all devices of the processor's: it can be written if one of them may
 * (DEV_ACCESS), or none is named. */
static inline bool dev_access_writes(uint32_t access)
{
    return access == 0 || (access & 0xaaaaaaaau) != 0;
}
void dev_window_unmap(struct dev_window *w, uint64_t address, uint64_t size);

/* True if [address, address + size) lies in the window. */
static inline bool dev_window_holds(const struct dev_window *w, uint64_t address, uint64_t size)
{
    return address >= w->base && address - w->base <= w->size &&
           size <= w->size - (address - w->base);
}

#endif
