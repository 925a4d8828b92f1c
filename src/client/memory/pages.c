/*
 * The pager. One thread answers the faults. It takes turns with the threads that release pages, by
 * a lock that is held while bytes are moved. No thread touches managed memory while it holds a lock
 * of this library that moving bytes needs: the pager would wait for itself.
 *
 * The pages are those of a file in memory that is mapped twice: where the program sees them, and
 * where only this file does (`own`). A piece leaves the program's mapping first and its bytes are
 * sent then, so nobody writes them meanwhile; and bytes are there before the program's mapping has
 * them. So nothing is copied in between, and pages are used again.
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
#include "base/clock.h"
#include "base/list.h"
#include "client/memory/userfault.h"
#include "client/session/session.h"
#include "client/stream/coherence.h"
#include "transport/memfd.h"

#define PIECE (64u << 10)
/* A thread that goes through memory gets as many pieces as it had just before, up to so many; fewer
 * while work is under way, since each of them may have to be fetched again. */
#define RUN_MOST       32u
#define RUN_MOST_STALE 4u
/* Pages in excess of so many bytes are given back to the system when their pieces leave. */
#define KEPT_MOST (256ull << 20)
/* When stale pieces leave: after so much time without a fault, or after so many more pieces. So an
 * instruction that needs several pieces gets them all; and a thread that polls sees what it waits
 * for, even if others fault all the time. */
#define STALE_MS   1
#define STALE_MOST 256u
/* How long a thread that touches a piece waits for work to end, the first time. All the waits that
 * were in vain take twice as long at most. */
#define PATIENCE_NS (GM_NS_PER_S / 2)
/* Spans of equal bytes that are shorter than this are not looked for. */
#define LOOK 64u

/* In this order. */
enum state {
    THERE,   /* only on the device */
    FETCHED, /* its bytes are in `own`, but the program has not touched it */
    READ,    /* mapped, but not writable */
    WRITTEN, /* mapped, and perhaps written */
};

struct piece {
    struct gm_list link; /* in `here`, unless the piece is on the device */
    struct area *area;
    /* The bytes as they were fetched, if the device may write them meanwhile; else NULL. */
    uint8_t *before;
    enum state state;
    bool stale; /* work was under way when the piece was fetched */
    bool kept;  /* has pages in `own`, whether it is here or not */
};

struct area {
    struct area *next;
    uint64_t base, size;
    size_t count; /* of its pieces */
    bool fresh;   /* no work has entered since the area was made: what is not here is zero */
    struct piece pieces[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all that follows */
static const struct rt_pages_device *device;
static int faults = -1;
static int file = -1; /* the bytes of all addresses from `file_base` on */
static uint64_t file_base;
static uint8_t *own; /* where it is mapped as a whole */
static struct area *areas;
static struct gm_list here = { &here, &here };
static unsigned stale_fetched;          /* how many came since all stale pieces left */
static uint64_t kept;                   /* bytes of the pieces that have pages */
static bool protects;                   /* pieces can be mapped for reading only */
static uint64_t patience = PATIENCE_NS; /* the pager's */

/* --- runs: pieces of an area that follow each other ------------------------------------------ */

struct run {
    struct piece *first;
    size_t count;
};

static struct run run_of(struct piece *p)
{
    return (struct run) { p, 1 };
}

static uint64_t offset_of(struct run r)
{
    return (uint64_t)(r.first - r.first->area->pieces) * PIECE;
}

static uint64_t start_of(struct run r)
{
    return r.first->area->base + offset_of(r);
}

static size_t size_of(struct run r)
{
    return (size_t)GM_MIN((uint64_t)r.count * PIECE, r.first->area->size - offset_of(r));
}

static uint8_t *own_bytes(struct run r)
{
    return own + (start_of(r) - file_base);
}

static struct uffdio_range range_of(struct run r)
{
    return (struct uffdio_range) { .start = start_of(r), .len = size_of(r) };
}

/* A thread goes through memory: the piece, and as many behind it that are in the same state as
 * there are in a later state right before it. At most so many; no fewer than one. */
static struct run run_from(struct piece *p, size_t most)
{
    const struct area *a = p->area;
    size_t before = 0;
    while (before < most && p - before > a->pieces && (p - before - 1)->state > p->state)
        before++;
    struct run r = run_of(p);
    while (r.count < before && p + r.count < a->pieces + a->count && p[r.count].state == p->state)
        r.count++;
    return r;
}

/* --- the mapping that the program sees -------------------------------------------------------- */

/* Has the threads that wait for the pieces try again. */
static void wake(struct run r)
{
    struct uffdio_range range = range_of(r);
    (void)ioctl(faults, UFFDIO_WAKE, &range);
}

static void set_state(struct run r, enum state state)
{
    for (struct piece *p = r.first; p < r.first + r.count; p++)
        p->state = state;
}

/* Maps bytes that are in `own`, and wakes the threads that wait for them. */
static void map(struct run r, bool write)
{
    struct uffdio_continue c = { .range = range_of(r),
                                 .mode = write ? 0 : UFFDIO_CONTINUE_MODE_WP };
    set_state(r, write ? WRITTEN : READ);
    while (ioctl(faults, UFFDIO_CONTINUE, &c) < 0 && errno == EAGAIN) {
        if (c.mapped > 0) {
            c.range.start += (uint64_t)c.mapped;
            c.range.len -= (uint64_t)c.mapped;
        }
    }
}

static void unmap(struct run r)
{
    void *p = (void *)(uintptr_t)start_of(r); /* NOLINT(performance-no-int-to-ptr) */
    (void)madvise(p, size_of(r), MADV_DONTNEED);
}

/* Allows writing, and wakes the threads that wait for that. */
static void let_write(struct run r)
{
    struct uffdio_writeprotect w = { .range = range_of(r) };
    set_state(r, WRITTEN);
    while (ioctl(faults, UFFDIO_WRITEPROTECT, &w) < 0 && errno == EAGAIN)
        ;
}

/* Makes pages that are zero, or leaves those that there are. */
static void populate(struct run r)
{
    size_t missing = 0;
    for (struct piece *p = r.first; p < r.first + r.count; p++) {
        missing += !p->kept;
        p->kept = true;
    }
    kept += missing * PIECE;
    if (missing)
        (void)fallocate(file, 0, (off_t)(start_of(r) - file_base), (off_t)size_of(r));
}

/* Gives the pages back to the system. */
static void give_back(struct run r)
{
    (void)madvise(own_bytes(r), size_of(r), MADV_REMOVE);
    for (struct piece *p = r.first; p < r.first + r.count; p++) {
        kept -= p->kept ? PIECE : 0;
        p->kept = false;
    }
}

/* The pieces are only on the device from now on. */
static void leave(struct run r)
{
    for (struct piece *p = r.first; p < r.first + r.count; p++) {
        free(p->before);
        p->before = NULL;
        p->state = THERE;
        gm_list_remove(&p->link);
        atomic_fetch_sub(&rt_pages_here, 1);
        if (p->stale)
            atomic_fetch_sub(&rt_pages_stale, 1);
        p->stale = false;
    }
}

/* --- to the device ---------------------------------------------------------------------------- */

/* Sends the runs of bytes that the host has changed. The bytes beside them may have been changed by
 * the device. */
static int put_changes(struct run r, const uint8_t *was)
{
    const uint8_t *now = own_bytes(r);
    size_t size = size_of(r);
    for (size_t i = 0; i < size;) {
        if (i % LOOK == 0 && size - i >= LOOK && memcmp(now + i, was + i, LOOK) == 0) {
            i += LOOK;
            continue;
        }
        size_t end = i;
        while (end < size && now[end] != was[end])
            end++;
        int result = end > i ? device->put(start_of(r) + i, now + i, end - i) : 0;
        if (result)
            return result;
        i = end + (end == i);
    }
    return 0;
}

/* Sends pieces that are all written or all only read. A thread that touches them meanwhile waits,
 * and fetches them again. */
static int send(struct run r)
{
    const struct piece *p = r.first;
    int result = 0;
    if (p->state != FETCHED)
        unmap(r);
    if (p->state == WRITTEN)
        result = p->before ? put_changes(r, p->before)
                           : device->put(start_of(r), own_bytes(r), size_of(r));
    if (result) {
        map(r, true); /* the session has failed; the program may keep its bytes */
        return result;
    }
    leave(r);
    if (kept > KEPT_MOST)
        give_back(r);
    return 0;
}

/* The piece, and those that came right after it, lie behind it, and can be sent with it. */
static struct run sent_with(struct piece *p, bool stale_only)
{
    struct run r = run_of(p);
    for (;;) {
        struct gm_list *next = r.first[r.count - 1].link.next;
        const struct piece *q = gm_list_entry(next, struct piece, link);
        if (next == &here || q != r.first + r.count || q->area != p->area || q->state != p->state ||
            q->before || p->before || (stale_only && !q->stale))
            return r;
        r.count++;
    }
}

/* Sends all pieces, or the stale ones. Called with the lock held. */
static int send_all(bool stale_only)
{
    int result = 0;
    struct gm_list *next = here.next;
    while (next != &here && result == 0) {
        struct piece *p = gm_list_entry(next, struct piece, link);
        next = next->next;
        if (stale_only && !p->stale)
            continue;
        struct run r = sent_with(p, stale_only);
        next = r.first[r.count - 1].link.next;
        result = send(r);
    }
    stale_fetched = 0;
    int settled = device->settle();
    return result ? result : settled;
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

/* Keeps the bytes as they are, for each piece that the device may write meanwhile. Without memory
 * for that nobody can tell what changed: then the whole piece is sent back, as if the device had
 * not written it. */
static void keep_before(struct run r)
{
    for (struct run one = run_of(r.first); one.first < r.first + r.count; one.first++)
        if (one.first->stale && (one.first->before = malloc(size_of(one))))
            memcpy(one.first->before, own_bytes(one), size_of(one));
}

/* Brings a run into `own`. */
static struct run fetch(struct piece *p)
{
    const bool fresh = p->area->fresh;
    /* Both counts change before we ask whether work runs. Work that enters from now on releases
     * pages first, and a thread that learns from now on that work is done acquires first. Both wait
     * for us then. */
    atomic_fetch_add(&rt_pages_here, RUN_MOST);
    atomic_fetch_add(&rt_pages_stale, RUN_MOST);
    bool busy = !fresh && device->busy();
    struct run r = run_from(p, busy ? RUN_MOST_STALE : RUN_MOST);
    atomic_fetch_sub(&rt_pages_here, RUN_MOST - r.count);
    atomic_fetch_sub(&rt_pages_stale, busy ? RUN_MOST - r.count : RUN_MOST);
    stale_fetched += busy ? (unsigned)r.count : 0;
    populate(r);
    if (!fresh && device->get(own_bytes(r), start_of(r), size_of(r)) != 0)
        memset(own_bytes(r), 0, size_of(r)); /* the session has failed, and its memory is gone */
    set_state(r, FETCHED);
    for (p = r.first; p < r.first + r.count; p++) {
        p->stale = busy;
        gm_list_append(&here, &p->link);
    }
    return r;
}

/* A thread waits for the piece, which is not mapped. If it goes through memory, what comes next is
 * fetched while it uses the piece. */
static void show(struct piece *p, bool write)
{
    struct run r = p->state == THERE ? fetch(p) : run_from(p, RUN_MOST);
    write |= p->area->fresh || !protects;
    if (write)
        keep_before(r);
    map(r, write);
    struct piece *next = r.first + r.count;
    if (r.count > 1 && !p->stale && next < p->area->pieces + p->area->count && next->state == THERE)
        (void)fetch(next);
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
    if (p->state <= FETCHED && !denied) {
        show(p, flags & UFFD_PAGEFAULT_FLAG_WRITE);
    } else if (p->state == READ && denied) {
        struct run r = run_from(p, RUN_MOST);
        keep_before(r);
        let_write(r);
    } else {
        wake(run_of(p));
    }
}

/* A thread waits for bytes of the device: work ends first, if it ends soon. Releases the lock
 * meanwhile. */
static void let_work_end(uint64_t address)
{
    const struct piece *p = find(address);
    if (!p || p->state != THERE || p->area->fresh)
        return;
    pthread_mutex_unlock(&lock);
    if (!device->rest(patience))
        patience /= 2;
    pthread_mutex_lock(&lock);
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
        if (n > 0 && read(faults, &m, sizeof(m)) == sizeof(m) && m.event == UFFD_EVENT_PAGEFAULT) {
            let_work_end(m.arg.pagefault.address);
            answer(m.arg.pagefault.address, m.arg.pagefault.flags);
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* --- opening ---------------------------------------------------------------------------------- */

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

/* Asks for what Linux has since 6.4, or else for what it has since 5.14. */
static int choose_features(int fd)
{
    const uint64_t least = UFFD_FEATURE_MINOR_SHMEM;
    struct uffdio_api all = { .api = UFFD_API,
                              .features = least | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
                                          UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
                                          UFFD_FEATURE_WP_UNPOPULATED };
    struct uffdio_api some = { .api = UFFD_API, .features = least };
    protects = ioctl(fd, UFFDIO_API, &all) == 0;
    return protects || ioctl(fd, UFFDIO_API, &some) == 0 ? 0 : -errno;
}

/* Maps a part of the file; nothing of it is inherited or written into a core dump. NULL: errno says
 * why. */
static void *map_file(void *at, size_t size, uint64_t offset, int flags)
{
    void *p = mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | flags, file,
                   (off_t)offset);
    if (p == MAP_FAILED)
        return NULL;
    rt_session_keep(p, size);
    return p;
}

static int open_file(uint64_t base, uint64_t size)
{
    file = tp_memfd_create("gmux-managed", size);
    if (file < 0)
        return file;
    file_base = base;
    own = map_file(NULL, size, 0, 0);
    return own ? 0 : -errno;
}

int rt_pages_open(const struct rt_pages_device *d, uint64_t base, uint64_t size)
{
    device = d;
    faults = rt_userfault_open(O_NONBLOCK);
    int r = faults < 0 ? faults : choose_features(faults);
    r = r < 0 ? r : open_file(base, size);
    r = r < 0 ? r : start_pager();
    if (r < 0) {
        if (own)
            munmap(own, size);
        own = NULL;
        file = gm_close(file);
        faults = gm_close(faults);
    }
    return r;
}

/* --- areas ------------------------------------------------------------------------------------ */

static int area_watch(const struct area *a)
{
    struct uffdio_register reg = { .range = { .start = a->base, .len = a->size },
                                   .mode = UFFDIO_REGISTER_MODE_MISSING |
                                           UFFDIO_REGISTER_MODE_MINOR |
                                           (protects ? UFFDIO_REGISTER_MODE_WP : 0) };
    return ioctl(faults, UFFDIO_REGISTER, &reg) < 0 ? -errno : 0;
}

int rt_pages_add(uint64_t address, uint64_t size)
{
    size_t count = (size_t)(size / PIECE + (size % PIECE != 0));
    struct area *a = calloc(1, sizeof(*a) + count * sizeof(a->pieces[0]));
    if (!a)
        return -ENOMEM;
    a->base = address;
    a->size = size;
    a->count = count;
    a->fresh = true;
    for (size_t i = 0; i < count; i++) {
        a->pieces[i].area = a;
        gm_list_init(&a->pieces[i].link);
    }
    void *at = (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
    pthread_mutex_lock(&lock);
    int r = map_file(at, size, address - file_base, MAP_FIXED) ? area_watch(a) : -errno;
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
        const struct run all = { a->pieces, a->count };
        struct uffdio_range range = range_of(all);
        (void)ioctl(faults, UFFDIO_UNREGISTER, &range);
        gm_list_for_each_safe (p, &here, struct piece, link)
            if (p->area == a)
                leave(run_of(p));
        give_back(all);
        if (a->fresh)
            atomic_fetch_sub(&rt_pages_here, 1);
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
    file = gm_close(file);
    own = NULL; /* the child does not have the mapping */
    gm_list_init(&here);
    kept = 0;
    atomic_store(&rt_pages_here, 0);
    atomic_store(&rt_pages_stale, 0);
}
