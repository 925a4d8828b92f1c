/*
 * The pager. One thread answers the faults. It takes turns with the threads that release pages, by
 * a lock that is held while bytes are moved. No thread touches managed memory while it holds a lock
 * of this library that moving bytes needs: the pager would wait for itself.
 */
#include "client/memory/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "client/memory/userfault.h"
#include "client/stream/coherence.h"

#define PIECE (256u << 10)
/* When stale pieces leave: after so much time without a fault, or after so many more pieces. So an
 * instruction that needs several pieces gets them all; and a thread that polls sees what it waits
 * for, even if others fault all the time. */
#define STALE_MS   1
#define STALE_MOST 64u
/* Spans of equal bytes that are shorter than this are not looked for. */
#define LOOK 64u

enum state {
    THERE, /* not mapped here */
    READ,  /* mapped, but not writable */
    WRITTEN,
};

struct piece {
    struct gm_list link; /* in `here`, unless the piece is on the device */
    struct area *area;
    /* The bytes as they were fetched, if the device may write them meanwhile; else NULL. */
    uint8_t *before;
    enum state state;
    bool stale; /* work was under way when the piece was fetched */
};

struct area {
    struct area *next;
    uint64_t base, size;
    bool fresh; /* no work has entered since the area was made: what is not here is zero */
    struct piece pieces[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all that follows */
static const struct rt_pages_device *device;
static int faults = -1;
static struct area *areas;
static struct gm_list here = { &here, &here };
static unsigned stale_fetched; /* how many came since all stale pieces left */
static uint8_t fetched[PIECE];

static uint64_t start_of(const struct piece *p)
{
    return p->area->base + (uint64_t)(p - p->area->pieces) * PIECE;
}

static size_t size_of(const struct piece *p)
{
    return (size_t)GM_MIN((uint64_t)PIECE, p->area->base + p->area->size - start_of(p));
}

static void *bytes_of(const struct piece *p)
{
    return (void *)(uintptr_t)start_of(p); /* NOLINT(performance-no-int-to-ptr) */
}

static struct uffdio_range range_of(const struct piece *p)
{
    return (struct uffdio_range) { .start = start_of(p), .len = size_of(p) };
}

/* Has the threads that wait for the piece try again. */
static void wake(const struct piece *p)
{
    struct uffdio_range r = range_of(p);
    (void)ioctl(faults, UFFDIO_WAKE, &r);
}

/* Allows or forbids writing; if it allows it, it wakes the waiting threads as well. */
static void let_write(const struct piece *p, bool yes)
{
    struct uffdio_writeprotect w = { .range = range_of(p),
                                     .mode = yes ? 0 : UFFDIO_WRITEPROTECT_MODE_WP };
    while (ioctl(faults, UFFDIO_WRITEPROTECT, &w) < 0 && errno == EAGAIN)
        ;
}

static void enter(struct piece *p, enum state state, bool stale)
{
    p->state = state;
    p->stale = stale;
    gm_list_append(&here, &p->link);
}

static void leave(struct piece *p)
{
    (void)madvise(bytes_of(p), size_of(p), MADV_DONTNEED);
    free(p->before);
    p->before = NULL;
    p->state = THERE;
    gm_list_remove(&p->link);
    atomic_fetch_sub(&rt_pages_here, 1);
    if (p->stale)
        atomic_fetch_sub(&rt_pages_stale, 1);
    p->stale = false;
}

/* --- to the device ---------------------------------------------------------------------------- */

/* Sends the runs of bytes that the host has changed. The bytes beside them may have been changed by
 * the device. */
static int put_changes(const struct piece *p)
{
    const uint8_t *now = bytes_of(p), *was = p->before;
    size_t size = size_of(p);
    for (size_t i = 0; i < size;) {
        if (i % LOOK == 0 && size - i >= LOOK && memcmp(now + i, was + i, LOOK) == 0) {
            i += LOOK;
            continue;
        }
        size_t end = i;
        while (end < size && now[end] != was[end])
            end++;
        int r = end > i ? device->put(start_of(p) + i, now + i, end - i) : 0;
        if (r)
            return r;
        i = end + (end == i);
    }
    return 0;
}

/* Sends a piece. A thread that writes it meanwhile waits, and fetches it again. */
static int send(struct piece *p)
{
    int r = 0;
    if (p->state == WRITTEN) {
        let_write(p, false);
        r = p->before ? put_changes(p) : device->put(start_of(p), bytes_of(p), size_of(p));
    }
    if (r == 0)
        leave(p);
    else
        let_write(p, true); /* the session has failed; the program may keep its bytes */
    return r;
}

/* Sends all pieces, or the stale ones. Called with the lock held. */
static int send_all(bool stale_only)
{
    int r = 0;
    gm_list_for_each_safe (p, &here, struct piece, link)
        if (r == 0 && (p->stale || !stale_only))
            r = send(p);
    stale_fetched = 0;
    int settled = device->settle();
    return r ? r : settled;
}

int rt_pages_release(void)
{
    pthread_mutex_lock(&lock);
    int r = send_all(false);
    for (struct area *a = areas; a && r == 0; a = a->next)
        if (a->fresh) {
            a->fresh = false;
            atomic_fetch_sub(&rt_pages_here, 1);
        }
    pthread_mutex_unlock(&lock);
    return r;
}

/* --- from the device -------------------------------------------------------------------------- */

static void map_zero(const struct piece *p)
{
    struct uffdio_zeropage z = { .range = range_of(p) };
    while (ioctl(faults, UFFDIO_ZEROPAGE, &z) < 0 && errno == EAGAIN) {
        if (z.zeropage > 0) {
            z.range.start += (uint64_t)z.zeropage;
            z.range.len -= (uint64_t)z.zeropage;
        }
    }
}

static void map_fetched(const struct piece *p, bool write)
{
    struct uffdio_copy c = { .dst = start_of(p),
                             .src = (uintptr_t)fetched,
                             .len = size_of(p),
                             .mode = write ? 0 : UFFDIO_COPY_MODE_WP };
    while (ioctl(faults, UFFDIO_COPY, &c) < 0 && errno == EAGAIN) {
        if (c.copy > 0) {
            c.dst += (uint64_t)c.copy;
            c.src += (uint64_t)c.copy;
            c.len -= (uint64_t)c.copy;
        }
    }
}

/* Copies the bytes. Without memory for the copy nobody can tell what changed: then the whole piece
 * is sent back, as if the device had not written it. */
static uint8_t *copy_of(const void *bytes, size_t size)
{
    uint8_t *copy = malloc(size);
    if (copy)
        memcpy(copy, bytes, size);
    return copy;
}

static void fetch(struct piece *p, bool write)
{
    /* Both counts change before we ask whether work runs. Work that enters from now on releases
     * pages first, and a thread that learns from now on that work is done acquires first. Both wait
     * for us then. */
    atomic_fetch_add(&rt_pages_here, 1);
    if (p->area->fresh) {
        map_zero(p);
        enter(p, WRITTEN, false);
        return;
    }
    atomic_fetch_add(&rt_pages_stale, 1);
    bool busy = device->busy();
    if (busy)
        stale_fetched++;
    else
        atomic_fetch_sub(&rt_pages_stale, 1);
    if (device->get(fetched, start_of(p), size_of(p)) != 0)
        memset(fetched, 0, sizeof(fetched)); /* the session has failed, and its memory is gone */
    if (write && busy)
        p->before = copy_of(fetched, size_of(p));
    map_fetched(p, write);
    enter(p, write ? WRITTEN : READ, busy);
}

static struct piece *find(uint64_t address)
{
    for (struct area *a = areas; a; a = a->next)
        if (address - a->base < a->size)
            return &a->pieces[(address - a->base) / PIECE];
    return NULL;
}

static void answer(uint64_t address, uint64_t flags)
{
    struct piece *p = find(address);
    if (!p)
        return; /* the area was removed meanwhile, which woke the threads */
    bool denied = flags & UFFD_PAGEFAULT_FLAG_WP;
    if (p->state == THERE && !denied) {
        fetch(p, flags & UFFD_PAGEFAULT_FLAG_WRITE);
    } else if (p->state != THERE && denied) {
        if (p->state == READ && p->stale)
            p->before = copy_of(bytes_of(p), size_of(p));
        p->state = WRITTEN;
        let_write(p, true);
    } else {
        wake(p);
    }
}

static void *pager_main(void *arg GM_UNUSED)
{
    struct pollfd fd = { .fd = faults, .events = POLLIN };
    for (;;) {
        struct uffd_msg m;
        int n = poll(&fd, 1, atomic_load(&rt_pages_stale) ? STALE_MS : -1);
        pthread_mutex_lock(&lock);
        if (n == 0 || stale_fetched >= STALE_MOST)
            (void)send_all(true);
        if (n > 0 && read(faults, &m, sizeof(m)) == sizeof(m) && m.event == UFFD_EVENT_PAGEFAULT)
            answer(m.arg.pagefault.address, m.arg.pagefault.flags);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* --- areas ------------------------------------------------------------------------------------ */

static int start_pager(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&thread, NULL, pager_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        pthread_detach(thread);
    return -r;
}

int rt_pages_open(const struct rt_pages_device *d)
{
    struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
    int fd = rt_userfault_open(O_NONBLOCK);
    if (fd < 0)
        return fd;
    device = d;
    faults = fd;
    int r = ioctl(fd, UFFDIO_API, &api) < 0 ? -errno : start_pager();
    if (r < 0)
        faults = gm_close(fd);
    return r;
}

int rt_pages_add(uint64_t address, uint64_t size)
{
    size_t count = (size_t)(size / PIECE + (size % PIECE != 0));
    struct uffdio_register reg = { .range = { .start = address, .len = size },
                                   .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP };
    struct area *a = calloc(1, sizeof(*a) + count * sizeof(a->pieces[0]));
    if (!a)
        return -ENOMEM;
    *a = (struct area) { .base = address, .size = size, .fresh = true };
    for (size_t i = 0; i < count; i++) {
        a->pieces[i].area = a;
        gm_list_init(&a->pieces[i].link);
    }
    pthread_mutex_lock(&lock);
    int r = ioctl(faults, UFFDIO_REGISTER, &reg) < 0 ? -errno : 0;
    if (r == 0) {
        a->next = areas;
        areas = a;
        atomic_fetch_add(&rt_pages_here, 1); /* until work enters, which ends `fresh` */
    }
    pthread_mutex_unlock(&lock);
    if (r < 0)
        free(a);
    return r;
}

bool rt_pages_remove(uint64_t address)
{
    struct area **at = &areas, *a;
    pthread_mutex_lock(&lock);
    while (*at && (*at)->base != address)
        at = &(*at)->next;
    a = *at;
    if (a) {
        *at = a->next;
        gm_list_for_each_safe (p, &here, struct piece, link)
            if (p->area == a)
                leave(p);
        if (a->fresh)
            atomic_fetch_sub(&rt_pages_here, 1);
        struct uffdio_range range = { .start = a->base, .len = a->size };
        (void)ioctl(faults, UFFDIO_UNREGISTER, &range);
        free(a);
    }
    pthread_mutex_unlock(&lock);
    return a != NULL;
}

void rt_pages_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* the parent's pager may have held it */
    areas = NULL;
    faults = gm_close(faults);
    gm_list_init(&here);
    atomic_store(&rt_pages_here, 0);
    atomic_store(&rt_pages_stale, 0);
}
