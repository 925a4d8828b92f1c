/*
 * cuMemHostRegister: makes pages that the program already has accessible to the device. The device sees only what lies
 * in the window's host area, so the program's pages are exchanged, in place, for pages of that area with the same
 * contents. That is possible for whole pages of private anonymous memory; anything else (files, shared memory, parts
 * of pages) is CUDA_ERROR_NOT_SUPPORTED. As with NVIDIA's driver, the device's address of the memory is not the host's.
 *
 * A store by another thread while the exchange is under way may be lost; registering memory that is being written is
 * a race in the program, too.
 */
#include "client/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/gen/api.h"

enum pages {
    PAGES_MISSING, /* some of it is not mapped */
    PAGES_OTHER,   /* mapped, but not ours to exchange */
    PAGES_PRIVATE, /* private anonymous, readable and writable */
};

static enum pages what_is_there(uint64_t from, uint64_t to)
{
    GM_AUTO_FILE FILE *f = fopen("/proc/self/maps", "re");
    GM_AUTO_FREE char *line = NULL;
    size_t size = 0;
    enum pages result = PAGES_PRIVATE;

    while (f && from < to && getline(&line, &size, f) > 0) {
        unsigned long long start, end, offset, inode;
        char mode[5];
        unsigned major_number, minor_number;
        if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &start, &end, mode, &offset, &major_number, &minor_number,
                   &inode) != 7 ||
            end <= from)
            continue;
        if (start > from)
            return PAGES_MISSING;
        if (strcmp(mode, "rw-p") != 0 && strcmp(mode, "rwxp") != 0)
            result = PAGES_OTHER;
        if (inode != 0 || strstr(line, "[stack"))
            result = PAGES_OTHER;
        from = end;
    }
    return from < to ? PAGES_MISSING : result;
}

/* Puts pages of the host area in the place of the program's. */
static int exchange(uint64_t address, uint64_t size, uint64_t window)
{
    struct rt_session *s = rt_session;
    uint64_t offset = window - (s->window_base + s->window_half);
    void *pages = (void *)(uintptr_t)address;
    memcpy((void *)(uintptr_t)window, pages, size);
    void *p =
        mmap(pages, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, s->host_fd, (off_t)offset);
    return p == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* True if the host area's pages are still where a registration put them: a program may unmap memory that it has
 * registered, and something else may lie there by now. */
static bool still_there(const struct rt_range *r)
{
    GM_AUTO_FILE FILE *f = fopen("/proc/self/maps", "re");
    GM_AUTO_FREE char *line = NULL;
    struct stat st;
    size_t size = 0;
    uint64_t at = r->base;
    if (!f || fstat(rt_session->host_fd, &st) != 0)
        return false;
    while (at < r->base + r->size && getline(&line, &size, f) > 0) {
        unsigned long long start, end, inode;
        if (sscanf(line, "%llx-%llx %*s %*s %*s %llu", &start, &end, &inode) != 3 || end <= at)
            continue;
        if (start > at || inode != st.st_ino)
            return false;
        at = end;
    }
    return at >= r->base + r->size;
}

int rt_register_undo(const struct rt_range *r)
{
    if (!still_there(r))
        return rt_request_free(rt_session, r->window);
    size_t size = r->size;
    void *fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(fresh, (void *)(uintptr_t)r->window, size);
    if (mremap(fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)r->base) == MAP_FAILED) {
        munmap(fresh, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return rt_request_free(rt_session, r->window);
}

static bool overlaps_registered(uint64_t address, uint64_t size)
{
    struct rt_range r;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t at = address; at < address + size; at += page)
        if (rt_memory_find(at, &r))
            return true;
    return false;
}

CUresult rt_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                           CU_MEMHOSTREGISTER_READ_ONLY;
    struct rt_context *c;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address = (uintptr_t)p, end, window;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!p || bytesize == 0 || (Flags & ~known) || __builtin_add_overflow(address, bytesize, &end))
        return CUDA_ERROR_INVALID_VALUE;
    if (overlaps_registered(address, bytesize))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    switch (what_is_there(address, end)) {
    case PAGES_MISSING:
        return CUDA_ERROR_INVALID_VALUE;
    case PAGES_OTHER:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        break;
    }
    if (address % page || bytesize % page || (Flags & CU_MEMHOSTREGISTER_IOMEMORY))
        return CUDA_ERROR_NOT_SUPPORTED;
    r = rt_request_alloc(rt_session, bytesize, 0, WIRE_MEMORY_KIND_HOST, 0, &window);
    if (r)
        return r;
    struct rt_range range = { .base = address,
                              .size = bytesize,
                              .window = window,
                              .kind = RT_MEMORY_REGISTERED,
                              .flags = Flags,
                              .context = rt_context_owner(c),
                              .device = c->device };
    r = exchange(address, bytesize, window);
    if (r == CUDA_SUCCESS && (r = rt_memory_insert(&range)) != CUDA_SUCCESS) {
        (void)rt_register_undo(&range);
        return r;
    }
    if (r)
        (void)rt_request_free(rt_session, window);
    return r;
}

CUresult rt_cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    return rt_cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult rt_cuMemHostUnregister(void *p)
{
    struct rt_context *c;
    struct rt_range range;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!rt_memory_remove((uintptr_t)p, 1u << RT_MEMORY_REGISTERED, &range))
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    r = rt_session_wait_all(rt_session);
    return r ? r : rt_register_undo(&range);
}
