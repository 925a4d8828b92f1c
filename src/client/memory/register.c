/*
 * cuMemHostRegister: lets the device use pages that the program has already. The device sees the
 * window's host area only. So the program's pages are exchanged, in place, for pages of that area
 * with the same contents. That concerns all pages that the memory touches, also where it begins or
 * ends within one. Other threads that write to these pages wait until they are exchanged
 * (userfaultfd).
 *
 * If the kernel does not offer that, such a store could be lost. Then pages that the memory fills
 * only in part, and that may hold something else, are exchanged only while the process has one
 * thread.
 *
 * Shared mappings, the stacks of the main thread and of the caller, who writes there meanwhile and
 * would share his stack with a child that he forks, and pages of another registration are not
 * exchanged. Such memory counts as registered, copies treat it as pageable memory, and it has no
 * address on the device: a program that asks for one gets CUDA_ERROR_NOT_SUPPORTED. As with
 * NVIDIA's driver on some systems, the device's address of registered memory differs from the
 * host's.
 */
#include "client/memory/memory.h"
#include "client/memory/userfault.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/gen/api.h"
#include "client/stream/capture.h"
#include "client/stream/reach.h"

enum pages {
    PAGES_MISSING,  /* some pages are not mapped, or not readable */
    PAGES_OTHER,    /* mapped, but they must not be exchanged */
    PAGES_READABLE, /* private, and at least some of them not writable */
    PAGES_PRIVATE,  /* private, readable and writable */
};

/* The whole pages that contain a range. */
struct span {
    uint64_t start, size;
    uint64_t window; /* the address on the device */
};

static struct span pages_of(const struct rt_range *r)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = r->base & ~(page - 1);
    uint64_t end = (r->base + r->size + page - 1) & ~(page - 1);
    return (struct span) { start, end - start, r->window - (r->base - start) };
}

/* Says what kind of pages a mapping has. A private mapping of a file will do, one of a device will
 * not. */
static enum pages kind_of(const char *mode, const char *line)
{
    if (mode[0] != 'r')
        return PAGES_MISSING;
    if (mode[3] != 'p' || strstr(line, "[stack") || strstr(line, "[v") || strstr(line, " /dev/"))
        return PAGES_OTHER;
    return mode[1] == 'w' ? PAGES_PRIVATE : PAGES_READABLE;
}

static enum pages what_is_there(uint64_t from, uint64_t to)
{
    GM_AUTO_FILE FILE *f = fopen("/proc/self/maps", "re");
    GM_AUTO_FREE char *line = NULL;
    size_t size = 0;
    enum pages result = PAGES_PRIVATE;

    while (f && from < to && getline(&line, &size, f) > 0) {
        unsigned long long start, end;
        char mode[5];
        if (sscanf(line, "%llx-%llx %4s", &start, &end, mode) != 3 || end <= from)
            continue;
        if (start > from)
            return PAGES_MISSING;
        result = GM_MIN(result, kind_of(mode, line));
        from = end;
    }
    return from < to ? PAGES_MISSING : result;
}

/* Whether one of the pages of a range is the calling thread's stack, or is one on which it runs. */
static bool is_own_stack(uint64_t from, uint64_t to)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t here = (uintptr_t)__builtin_frame_address(0);
    pthread_attr_t attr;
    void *base = NULL;
    size_t size = 0;
    from &= ~(page - 1);
    to = (to + page - 1) & ~(page - 1);
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &base, &size);
        pthread_attr_destroy(&attr);
    }
    return (here >= from && here < to) || (from < (uintptr_t)base + size && (uintptr_t)base < to);
}

static bool only_thread(void)
{
    GM_AUTO_FILE FILE *f = fopen("/proc/self/status", "re");
    GM_AUTO_FREE char *line = NULL;
    size_t size = 0;
    unsigned threads = 0;
    while (f && getline(&line, &size, f) > 0)
        if (sscanf(line, "Threads: %u", &threads) == 1)
            break;
    return threads == 1;
}

/* For functions that go over whole pages. An address sanitizer would object to what lies there
 * beside the program's data. */
#define WHOLE_PAGES __attribute__((no_sanitize_address))

WHOLE_PAGES static void copy_pages(void *to, const void *from, uint64_t size)
{
    /* Volatile, so that the compiler does not call memcpy(), which the sanitizer checks as well. */
    volatile uint64_t *t = to;
    const volatile uint64_t *f = from;
    for (uint64_t i = 0; i < size / sizeof(*t); i++)
        t[i] = f[i];
}

/* Makes all pages present, as this process's own, with their contents: writes what is there. (An
 * atomic "or" with 0 is no write with clang, which leaves it out.) */
WHOLE_PAGES static void touch(char *pages, uint64_t size)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t at = 0; at < size; at += page) {
        char is = __atomic_load_n(pages + at, __ATOMIC_RELAXED);
        (void)__atomic_compare_exchange_n(pages + at, &is, is, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED);
    }
}

/* Makes threads that write to these pages wait until the pages are exchanged and the descriptor is
 * closed. Returns -1 if that is not possible. */
static int hold_writers(const struct span *s)
{
    /* System calls that write there should wait, too. Where only privileged processes may hold them
     * up, they fail. */
    int all = rt_userfault_open(0);
    GM_AUTO_FD int fd =
        all >= 0 ? all : (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = { .api = UFFD_API };
    struct uffdio_register r = { .range = { s->start, s->size }, .mode = UFFDIO_REGISTER_MODE_WP };
    struct uffdio_writeprotect w = { .range = { s->start, s->size },
                                     .mode = UFFDIO_WRITEPROTECT_MODE_WP };
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &r) != 0)
        return -1;
    touch((char *)(uintptr_t)s->start, s->size); /* only a page that is present can be protected */
    return ioctl(fd, UFFDIO_WRITEPROTECT, &w) == 0 ? gm_take_fd(&fd) : -1;
}

/* While the caller exchanges pages: no signal handler of its thread writes there, and no other
 * thread, if the process has userfaultfd and the pages may be written. */
struct hold {
    sigset_t before;
    int writers; /* -1: they are not held */
};

static struct hold hold(const struct span *s, bool writable)
{
    struct hold h;
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &h.before);
    h.writers = writable ? hold_writers(s) : -1;
    return h;
}

static void let_go(struct hold *h)
{
    gm_close(h->writers);
    pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}

/* Read by who exchanges pages, written by who forks: a child has all of them or none. */
static pthread_rwlock_t fork_lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_size_t exchanged; /* ranges whose pages may be the host area's */

static off_t offset_of(const struct span *s)
{
    return (off_t)(s->window - (rt_session->window_base + rt_session->window_half));
}

/* Exchanges the program's pages for pages of the host area. Returns CUDA_ERROR_NOT_SUPPORTED if
 * stores of other threads could be lost. */
static int exchange(const struct span *s, bool whole, bool writable)
{
    void *pages = (void *)(uintptr_t)s->start, *p = MAP_FAILED;
    pthread_rwlock_rdlock(&fork_lock);
    struct hold h = hold(s, writable);
    bool safe = whole || h.writers >= 0 || only_thread();
    if (safe) {
        copy_pages((void *)(uintptr_t)s->window, pages, s->size);
        p = mmap(pages, s->size, PROT_READ | (writable ? PROT_WRITE : 0),
                 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, rt_session->host_fd, offset_of(s));
    }
    let_go(&h);
    if (p != MAP_FAILED)
        atomic_fetch_add_explicit(&exchanged, 1, memory_order_relaxed);
    pthread_rwlock_unlock(&fork_lock);
    return p != MAP_FAILED ? CUDA_SUCCESS
           : safe          ? CUDA_ERROR_OUT_OF_MEMORY
                           : CUDA_ERROR_NOT_SUPPORTED;
}

/* Whether the host area's pages are still where a registration has put them. A program may unmap
 * registered memory, and something else may lie there by now. */
static bool still_there(const struct rt_range *r, bool *writable)
{
    GM_AUTO_FILE FILE *f = fopen("/proc/self/maps", "re");
    GM_AUTO_FREE char *line = NULL;
    const struct span s = pages_of(r);
    struct stat st;
    size_t size = 0;
    uint64_t at = s.start;
    if (!f || fstat(rt_session->host_fd, &st) != 0)
        return false;
    *writable = true;
    while (at < s.start + s.size && getline(&line, &size, f) > 0) {
        unsigned long long start, end, inode;
        char may[8];
        if (sscanf(line, "%llx-%llx %7s %*s %*s %llu", &start, &end, may, &inode) != 4 || end <= at)
            continue;
        if (start > at || inode != st.st_ino)
            return false;
        *writable &= may[1] == 'w';
        at = end;
    }
    return at >= s.start + s.size;
}

/* Makes private pages with the same contents. Returns false without memory. No thread's store is
 * lost: the new mapping has the same bytes, and the kernel copies a page when it is first
 * written. */
static bool make_private(const struct rt_range *r, bool writable)
{
    const struct span s = pages_of(r);
    char *pages = (char *)(uintptr_t)s.start;
    if (mmap(pages, s.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, rt_session->host_fd,
             offset_of(&s)) == MAP_FAILED)
        return false;
    touch(pages, s.size);
    return writable || mprotect(pages, s.size, PROT_READ) == 0;
}

int rt_register_undo(const struct rt_range *r)
{
    pthread_rwlock_rdlock(&fork_lock);
    bool writable, is_private = !still_there(r, &writable) || make_private(r, writable);
    if (is_private)
        atomic_fetch_sub_explicit(&exchanged, 1, memory_order_relaxed);
    pthread_rwlock_unlock(&fork_lock);
    if (!is_private)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return rt_request_free(rt_session, pages_of(r).window);
}

/* --- forks ------------------------------------------------------------------------------------ */

/* Up to so many bytes a child gets pages of its own, as they are at the fork. Beyond that it shares
 * them until it writes: copying would take too long, and more memory than there may be. */
#define FORK_COPY_BYTES (64u << 20)

/* Where glibc's heaps for threads begin. The first page has the heap's own state, and what was
 * allocated first. */
#define HEAP_ALIGNMENT (64u << 20)

/* The program's pages that are the host area's, during a fork. */
static struct kept {
    struct span pages;
    void *copy;   /* NULL: there is no copy */
    bool is_heap; /* may be the first page of such a heap */
} * kept;
static size_t kept_count;

static void keep(uint64_t start, uint64_t end, uint64_t offset)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t window = rt_session->window_base + rt_session->window_half + offset;
    struct kept *grown = realloc(kept, (kept_count + 2) * sizeof(*kept));
    if (!grown)
        return;
    kept = grown;
    if (start % HEAP_ALIGNMENT == 0) {
        kept[kept_count++] = (struct kept) { { start, page, window }, NULL, true };
        start += page;
        window += page;
    }
    if (start < end)
        kept[kept_count++] = (struct kept) { { start, end - start, window }, NULL, false };
}

/* Finds them in the list of mappings: the map of memory does not have those that are about to be
 * private again. */
static void keep_all(void)
{
    GM_AUTO_FILE FILE *f = fopen("/proc/self/maps", "re");
    GM_AUTO_FREE char *line = NULL;
    const uint64_t window_size = 2 * (uint64_t)rt_session->window_half;
    struct stat st;
    size_t size = 0;
    if (!f || fstat(rt_session->host_fd, &st) != 0)
        return;
    while (getline(&line, &size, f) > 0) {
        unsigned long long start, end, offset, inode;
        char mode[5];
        if (sscanf(line, "%llx-%llx %4s %llx %*s %llu", &start, &end, mode, &offset, &inode) != 5)
            continue;
        bool in_window = start - rt_session->window_base < window_size;
        if (inode == st.st_ino && mode[3] == 's' && !in_window)
            keep(start, end, offset);
    }
}

static void *copy_of(const struct span *s)
{
    void *p = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    copy_pages(p, (void *)(uintptr_t)s->start, s->size);
    return p;
}

/* A child of glibc's writes to the state of each heap before it calls anybody. So that page is the
 * process's own during the fork, with what the device and the program have written before. Keeps a
 * copy of that. */
static void take_heap(struct kept *k)
{
    const struct span *p = &k->pages;
    void *at = (void *)(uintptr_t)p->start, *own = NULL;
    struct hold h = hold(p, true);
    if (h.writers >= 0 || only_thread())
        k->copy = copy_of(p);
    if (k->copy)
        own = copy_of(&(struct span) { .start = (uintptr_t)k->copy, .size = p->size });
    if (own && mremap(own, p->size, p->size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
        munmap(own, p->size);
        own = NULL;
    }
    if (k->copy && !own) {
        munmap(k->copy, p->size);
        k->copy = NULL;
    }
    let_go(&h);
}

/* Gives the page back to the device, with what the program has written meanwhile. */
static void return_heap(const struct kept *k)
{
    const struct span *p = &k->pages;
    const volatile char *now = (void *)(uintptr_t)p->start, *then = k->copy;
    volatile char *area = (void *)(uintptr_t)p->window;
    struct hold h = hold(p, true);
    for (uint64_t i = 0; i < p->size; i++)
        if (now[i] != then[i])
            area[i] = now[i];
    (void)mmap((void *)(uintptr_t)p->start, p->size, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_FIXED | MAP_NORESERVE, rt_session->host_fd, offset_of(p));
    let_go(&h);
}

void rt_memory_fork_prepare(void)
{
    uint64_t left = FORK_COPY_BYTES;
    pthread_rwlock_wrlock(&fork_lock);
    rt_memory_freeze();
    kept_count = 0;
    if (atomic_load_explicit(&exchanged, memory_order_relaxed) > 0)
        keep_all();
    for (size_t i = 0; i < kept_count; i++) {
        if (kept[i].is_heap) {
            take_heap(&kept[i]);
        } else if (kept[i].pages.size <= left) {
            kept[i].copy = copy_of(&kept[i].pages);
            left -= kept[i].pages.size;
        }
    }
}

static void give_child(const struct kept *k)
{
    const struct span *p = &k->pages;
    void *at = (void *)(uintptr_t)p->start;
    if (!k->copy ||
        mremap(k->copy, p->size, p->size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
        (void)mmap(at, p->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                   rt_session->host_fd, offset_of(p));
}

static void end_fork(bool child)
{
    for (size_t i = 0; i < kept_count; i++) {
        const bool taken = kept[i].is_heap && kept[i].copy;
        if (child && !taken)
            give_child(&kept[i]);
        if (!child && taken)
            return_heap(&kept[i]);
        if (!child && kept[i].copy)
            munmap(kept[i].copy, kept[i].pages.size);
    }
    free(kept);
    kept = NULL;
    rt_memory_thaw(child);
    /* The lock knows the writer by a thread's number, which is another one in the child. */
    if (child)
        (void)pthread_rwlock_init(&fork_lock, NULL);
    else
        pthread_rwlock_unlock(&fork_lock);
}

void rt_memory_fork_parent(void)
{
    end_fork(false);
}

void rt_memory_fork_child(void)
{
    end_fork(true);
}

/* --- registration ----------------------------------------------------------------------------- */

/* Exchanges the range's pages for the host area's. Returns a CUresult; CUDA_ERROR_NOT_SUPPORTED if
 * they cannot be exchanged. */
static int register_pages(struct rt_range *range, bool writable)
{
    struct span s = pages_of(range);
    range->kind = RT_MEMORY_REGISTERED;
    int r = rt_request_alloc(rt_session, s.size, (uint64_t)sysconf(_SC_PAGESIZE),
                             WIRE_MEMORY_KIND_HOST, 0, &s.window);
    if (r)
        return r;
    range->window = s.window + (range->base - s.start);
    r = exchange(&s, s.start == range->base && s.size == range->size, writable);
    if (r == CUDA_SUCCESS && (r = rt_memory_insert(range)) != CUDA_SUCCESS) {
        (void)rt_register_undo(range);
        return r;
    }
    if (r)
        (void)rt_request_free(rt_session, s.window);
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

/* What cuMemHostRegister has made, and not an allocation. */
#define REGISTERED (1u << RT_MEMORY_REGISTERED | 1u << RT_MEMORY_PAGEABLE)

static bool is_registered(const struct rt_range *range)
{
    return REGISTERED >> range->kind & 1;
}

CUresult rt_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                           CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    struct rt_context *c;
    struct rt_range range;
    uint64_t address = (uintptr_t)p, end;
    int r = rt_enter_unsafe(&c);
    if (r)
        return r;
    if (!p || bytesize == 0 || (Flags & ~known) || __builtin_add_overflow(address, bytesize, &end))
        return CUDA_ERROR_INVALID_VALUE;
    if (rt_memory_overlaps(address, bytesize))
        return rt_memory_find(address, &range) && !is_registered(&range)
                   ? CUDA_ERROR_INVALID_VALUE
                   : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    enum pages pages = what_is_there(address, end);
    if (pages == PAGES_MISSING ||
        (pages == PAGES_READABLE && !(Flags & CU_MEMHOSTREGISTER_READ_ONLY)))
        return CUDA_ERROR_INVALID_VALUE;
    range = (struct rt_range) { .base = address,
                                .size = bytesize,
                                .flags = Flags,
                                .context = rt_context_owner(c),
                                .device = c->device };
    bool ours = pages != PAGES_OTHER && !is_own_stack(address, end) &&
                !(Flags & CU_MEMHOSTREGISTER_IOMEMORY);
    r = ours ? register_pages(&range, pages == PAGES_PRIVATE) : CUDA_ERROR_NOT_SUPPORTED;
    return r == CUDA_ERROR_NOT_SUPPORTED ? register_as_is(&range) : r;
}

CUresult rt_cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    return rt_cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult rt_cuMemHostUnregister(void *p)
{
    struct rt_context *c;
    struct rt_range range;
    int r = rt_enter_unsafe(&c);
    if (r)
        return r;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!rt_memory_remove((uintptr_t)p, REGISTERED, &range))
        return rt_memory_find((uintptr_t)p, &range) ? CUDA_ERROR_INVALID_VALUE
                                                    : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    r = rt_reach_wait(rt_reach_of(&range));
    return r || range.kind == RT_MEMORY_PAGEABLE ? r : rt_register_undo(&range);
}
