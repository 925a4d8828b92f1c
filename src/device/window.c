/*
 * Reserves the range, and opens parts of it by mapping the areas' memfds over it.
 */
#include "device/window.h"

#include <errno.h>
#include <sys/mman.h>

#define HUGE_BYTES (2u << 20)
#define PAGE_BYTES 4096u
/* What is unmapped at a time: nobody else maps anything meanwhile, some 2 ms where all pages were
 * touched. */
#define SLICE_BYTES (64u << 20)

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

int dev_window_open(struct dev_window *w, uint64_t base, uint64_t size, int device_fd, int host_fd)
{
    *w = (struct dev_window) {
        .base = base, .size = size, .device_fd = device_fd, .host_fd = host_fd
    };
    if (!gm_is_pow2(size) || size < 2 * HUGE_BYTES || (base & (size - 1)) != 0 || base == 0)
        return -EINVAL;
    void *p = mmap(pointer(base), size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    if (p != pointer(base)) { /* a kernel that does not know the flag takes the address as a hint */
        munmap(p, size);
        return -EEXIST;
    }
    w->reserved = true;
    return 0;
}

void dev_window_close(struct dev_window *w)
{
    if (w->reserved)
        munmap(pointer(w->base), w->size);
    w->reserved = false;
}

/* The area that holds the whole range, and the range's offset in it. */
static int area_of(const struct dev_window *w, uint64_t address, uint64_t size, int *fd,
                   off_t *offset)
{
    uint64_t half = w->size / 2;
    if (size == 0 || (address | size) % PAGE_BYTES != 0 || !dev_window_holds(w, address, size))
        return -EINVAL;
    uint64_t at = address - w->base;
    bool host = at >= half;
    if (host)
        at -= half;
    if (size > half - at)
        return -EINVAL;
    *fd = host ? w->host_fd : w->device_fd;
    *offset = (off_t)at;
    return 0;
}

int dev_window_map(struct dev_window *w, uint64_t address, uint64_t size)
{
    int fd = -1;
    off_t offset = 0;
    int r = area_of(w, address, size, &fd, &offset);
    if (r < 0)
        return r;
    void *p =
        mmap(pointer(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);
    if (p == MAP_FAILED)
        return -errno;
    /* A device's page tables are coarse, too; best effort, depends on the system's setting for
     * shared memory.
     */
    if (size >= HUGE_BYTES)
        (void)madvise(p, size, MADV_HUGEPAGE);
    return 0;
}

int dev_window_attach(struct dev_window *w, uint64_t address, uint64_t size, int fd,
                      uint64_t offset, bool writable)
{
    int area;
    off_t in_area;
    int r = area_of(w, address, size, &area, &in_area);
    if (r < 0)
        return r;
    void *p = mmap(pointer(address), size, PROT_READ | (writable ? PROT_WRITE : 0),
                   MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
    return p == MAP_FAILED ? -errno : 0;
}

void dev_window_unmap(struct dev_window *w, uint64_t address, uint64_t size)
{
    int fd;
    off_t offset;
    if (area_of(w, address, size, &fd, &offset) < 0)
        return;
    for (uint64_t done = 0; done < size; done += SLICE_BYTES)
        (void)mmap(pointer(address + done), GM_MIN(size - done, (uint64_t)SLICE_BYTES), PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
