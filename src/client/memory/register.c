/*
 * cuMemHostRegister: makes pages that the program already has accessible to the device. The device sees only what lies
 * in the window's host area, so the program's pages are exchanged, in place, for pages of that area with the same
 * contents. That is possible for whole pages of private anonymous memory. Anything else (files, shared memory, parts of
 * pages) stays as it is: it counts as registered, its copies are made as those of pageable memory, and it has no address
 * for the device. Who says that he wants one gets CUDA_ERROR_NOT_SUPPORTED. As with NVIDIA's driver, the device's address of
 * the memory is not the host's.
 *
 * A store by another thread while the exchange is under way may be lost; registering memory that is being written is
 * a race in the program, too.
 */
#include "client/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/gen/api.h"
#include "client/stream/reach.h"

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

/* Private pages with the same contents; false without memory. */
static bool make_private(const struct rt_range *r)
{
    size_t size = r->size;
    void *fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return false;
    memcpy(fresh, (void *)(uintptr_t)r->base, size);
    if (mremap(fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)r->base) != MAP_FAILED)
        return true;
    munmap(fresh, size);
    return false;
}

int rt_register_undo(const struct rt_range *r)
{
    if (still_there(r) && !make_private(r))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return rt_request_free(rt_session, r->window);
}

/* --- forks -------------------------------------------------------------------------------------------------------- */

/* A child gets its own pages, as they are at the fork, up to so many bytes. Beyond that it shares them until it writes: copies
 * would take too long, and more memory than there may be. */
#define FORK_COPY_BYTES (64u << 20)

/* Registered ranges during a fork; rt_memory_fork_prepare() holds the map's lock. */
static struct kept {
    const struct rt_range *range;
    uint64_t there; /* bytes that are still the host area's */
    void *copy;     /* NULL: none */
} * kept;
static size_t kept_count;

static bool keep_registered(const struct rt_range *ranges, size_t count)
{
    kept_count = 0;
    for (size_t i = 0; i < count; i++)
        kept_count += ranges[i].kind == RT_MEMORY_REGISTERED;
    kept = kept_count ? calloc(kept_count, sizeof(*kept)) : NULL;
    for (size_t i = 0, n = 0; kept && i < count; i++)
        if (ranges[i].kind == RT_MEMORY_REGISTERED)
            kept[n++].range = &ranges[i];
    return kept != NULL;
}

/* Both lists are sorted. */
static void see_what_is_there(void)
{
    GM_AUTO_FILE FILE *f = fopen("/proc/self/maps", "re");
    GM_AUTO_FREE char *line = NULL;
    struct stat st;
    size_t size = 0, i = 0;
    if (!f || fstat(rt_session->host_fd, &st) != 0)
        return;
    while (i < kept_count && getline(&line, &size, f) > 0) {
        unsigned long long start, end, inode;
        if (sscanf(line, "%llx-%llx %*s %*s %*s %llu", &start, &end, &inode) != 3 || inode != st.st_ino)
            continue;
        while (i < kept_count && kept[i].range->base + kept[i].range->size <= start)
            i++;
        for (size_t k = i; k < kept_count && kept[k].range->base < end; k++) {
            const struct rt_range *r = kept[k].range;
            kept[k].there += GM_MIN(r->base + r->size, (uint64_t)end) - GM_MAX(r->base, (uint64_t)start);
        }
    }
}

static void *copy_of(const struct rt_range *r)
{
    void *p = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : memcpy(p, (void *)(uintptr_t)r->base, r->size);
}

void rt_memory_fork_prepare(void)
{
    uint64_t left = FORK_COPY_BYTES;
    size_t count;
    const struct rt_range *ranges = rt_memory_freeze(&count);
    if (!keep_registered(ranges, count))
        return;
    see_what_is_there();
    for (size_t i = 0; i < kept_count; i++) {
        const struct rt_range *r = kept[i].range;
        if (kept[i].there == r->size && r->size <= left) {
            kept[i].copy = copy_of(r);
            left -= r->size;
        }
    }
}

static void give_child(const struct kept *k)
{
    const struct rt_session *s = rt_session;
    const struct rt_range *r = k->range;
    void *at = (void *)(uintptr_t)r->base;
    if (k->there != r->size)
        return;
    if (!k->copy || mremap(k->copy, r->size, r->size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
        (void)mmap(at, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, s->host_fd,
                   (off_t)(r->window - (s->window_base + s->window_half)));
}

static void end_fork(bool child)
{
    for (size_t i = 0; kept && i < kept_count; i++) {
        if (child)
            give_child(&kept[i]);
        else if (kept[i].copy)
            munmap(kept[i].copy, kept[i].range->size);
    }
    free(kept);
    kept = NULL;
    rt_memory_thaw(child);
}

void rt_memory_fork_parent(void)
{
    end_fork(false);
}

void rt_memory_fork_child(void)
{
    end_fork(true);
}

/* --- registration ------------------------------------------------------------------------------------------------- */

/* The pages become the host area's. CUresult. */
static int register_pages(struct rt_range *range)
{
    range->kind = RT_MEMORY_REGISTERED;
    int r = rt_request_alloc(rt_session, range->size, 0, WIRE_MEMORY_KIND_HOST, 0, &range->window);
    if (r)
        return r;
    r = exchange(range->base, range->size, range->window);
    if (r == CUDA_SUCCESS && (r = rt_memory_insert(range)) != CUDA_SUCCESS) {
        (void)rt_register_undo(range);
        return r;
    }
    if (r)
        (void)rt_request_free(rt_session, range->window);
    return r;
}

static int register_as_is(struct rt_range *range)
{
    static atomic_bool said;
    if (range->flags & (CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY))
        return rt_not_supported("registering what is not whole private pages, for kernels", &said);
    range->kind = RT_MEMORY_PAGEABLE;
    return rt_memory_insert(range);
}

CUresult rt_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                           CU_MEMHOSTREGISTER_READ_ONLY;
    struct rt_context *c;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address = (uintptr_t)p, end;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!p || bytesize == 0 || (Flags & ~known) || __builtin_add_overflow(address, bytesize, &end))
        return CUDA_ERROR_INVALID_VALUE;
    if (rt_memory_overlaps(address, bytesize))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    enum pages pages = what_is_there(address, end);
    if (pages == PAGES_MISSING)
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_range range = {
        .base = address, .size = bytesize, .flags = Flags, .context = rt_context_owner(c), .device = c->device
    };
    bool whole = pages == PAGES_PRIVATE && (address | bytesize) % page == 0 && !(Flags & CU_MEMHOSTREGISTER_IOMEMORY);
    return whole ? register_pages(&range) : register_as_is(&range);
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
    if (!rt_memory_remove((uintptr_t)p, 1u << RT_MEMORY_REGISTERED | 1u << RT_MEMORY_PAGEABLE, &range))
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    r = rt_reach_wait(rt_reach_of(&range));
    return r || range.kind == RT_MEMORY_PAGEABLE ? r : rt_register_undo(&range);
}
