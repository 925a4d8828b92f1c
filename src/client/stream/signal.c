/*
 * Signals of events that several processes use. One process's signals lie in a page of host memory,
 * which all of the processes and their executors map; transport/signal.h describes it. To record,
 * the device fills one word, so that no thread of the recording process has to be awake then.
 *
 * To wait for another process's record, a process looks at the word, first often, then every half
 * millisecond. In a stream this is a gate that the library's thread opens (hostfunc.c), so that on
 * every device the two executions come one after the other.
 *
 * If a process ends, the server stores its signals in its place (transport/signal.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/cleanup.h"
#include "client/stream/hostfunc.h"
#include "client/stream/signal.h"
#include "transport/memfd.h"

#define SPINS      200u
#define NAP_MIN_NS 20000u
#define NAP_MAX_NS 500000u

struct rt_signal_page {
    struct gm_list link;       /* in the list of own or of foreign pages */
    struct tp_signal_page *at; /* the device uses the same address */
    bool own;
    bool shared; /* of an own page: its token is known */
    uint32_t object;
    uint8_t token[RT_TOKEN_BYTES];
    unsigned users[TP_SIGNALS];
    unsigned count; /* users of the page, over all signals */
    unsigned next;  /* of an own page: where to look for a free signal */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gm_list pages = { &pages, &pages }; /* lock */

/* --- pages ------------------------------------------------------------------------------------ */

static uint32_t self(void)
{
    return tp_signal_recorder(rt_session->window_base, rt_session->server_pid);
}

/* Maps the page that `fd` stands for at `address`; without one, the host area's own memory. */
static int map_page(uint64_t address, int fd)
{
    struct rt_session *s = rt_session;
    off_t offset = 0;
    if (fd < 0) {
        fd = s->host_fd;
        offset = (off_t)(address - (s->window_base + s->window_half));
    } else if (tp_memfd_check(fd, TP_SIGNAL_PAGE, false) < 0) {
        return CUDA_ERROR_MAP_FAILED;
    }
    void *at = (void *)(uintptr_t)address;
    if (mmap(at, TP_SIGNAL_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) ==
        MAP_FAILED)
        return CUDA_ERROR_MAP_FAILED;
    (void)madvise(at, TP_SIGNAL_PAGE, MADV_DONTFORK);
    (void)madvise(at, TP_SIGNAL_PAGE, MADV_DONTDUMP);
    return CUDA_SUCCESS;
}

static struct rt_signal_page *page_new(uint64_t address, bool own)
{
    struct rt_signal_page *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->at = (struct tp_signal_page *)(uintptr_t)address;
    p->own = own;
    gm_list_insert(&pages, &p->link);
    return p;
}

/* Called with the lock held. */
static int create_page(struct rt_signal_page **out)
{
    struct rt_session *s = rt_session;
    struct rt_made made;
    uint64_t address = 0;
    int r = rt_request_object_create(s, TP_SIGNAL_PAGE, WIRE_MEMORY_KIND_HOST, 0, false, &made);
    GM_AUTO_FD int fd = made.fd;
    if (r)
        return r;
    r = rt_request_range_reserve(s, TP_SIGNAL_PAGE, TP_SIGNAL_PAGE, WIRE_MEMORY_KIND_HOST,
                                 &address);
    if (r)
        address = 0;
    r = r ? r
          : rt_request_object_map(s, made.object, WIRE_MEMORY_ACCESS_WRITE, address,
                                  TP_SIGNAL_PAGE);
    r = r ? r : map_page(address, fd);
    if (r == CUDA_SUCCESS && !(*out = page_new(address, true)))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS) {
        (*out)->object = made.object;
        return CUDA_SUCCESS;
    }
    if (address) {
        (void)map_page(address, -1);
        (void)rt_request_object_unmap(s, address);
        (void)rt_request_range_release(s, address);
    }
    (void)rt_request_object_release(s, made.object);
    return r;
}

static void use(struct rt_signal_page *p, uint32_t slot, struct rt_signal *out)
{
    p->users[slot]++;
    p->count++;
    *out = (struct rt_signal) { .page = p,
                                .words = &p->at->signals[slot],
                                .device = (uint64_t)(uintptr_t)&p->at->signals[slot],
                                .slot = slot };
}

/* Called with the lock held. */
static bool take_slot(struct rt_signal_page *p, struct rt_signal *out)
{
    for (unsigned i = 0; i < TP_SIGNALS; i++) {
        uint32_t slot =
            (p->next + i) % TP_SIGNALS; /* the signal that was given back last is used again last */
        if (p->users[slot])
            continue;
        p->next = slot + 1;
        use(p, slot, out);
        return true;
    }
    return false;
}

int rt_signal_create(struct rt_signal *out)
{
    struct rt_signal_page *fresh;
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    gm_list_for_each (p, &pages, struct rt_signal_page, link)
        if (p->own && take_slot(p, out))
            goto done;
    r = create_page(&fresh);
    if (r == CUDA_SUCCESS)
        (void)take_slot(fresh, out);
done:
    pthread_mutex_unlock(&lock);
    return r;
}

/* Called with the lock held. */
static int open_page(const uint8_t token[RT_TOKEN_BYTES], struct rt_signal_page **out)
{
    GM_AUTO_FD int fd = -1;
    uint64_t address, size;
    int device; /* host memory, which is no device's */
    int r = rt_request_memory_open(rt_session, token, &address, &size, &device, &fd);
    if (r)
        return r;
    r = fd >= 0 && size == TP_SIGNAL_PAGE ? map_page(address, fd) : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS && !(*out = page_new(address, false)))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        if (fd >= 0)
            (void)map_page(address, -1);
        (void)rt_request_object_unmap(rt_session, address);
        return r;
    }
    memcpy((*out)->token, token, RT_TOKEN_BYTES);
    (*out)->shared = true;
    return CUDA_SUCCESS;
}

static struct rt_signal_page *find_page(const uint8_t token[RT_TOKEN_BYTES])
{
    gm_list_for_each (p, &pages, struct rt_signal_page, link)
        if (p->shared && memcmp(p->token, token, RT_TOKEN_BYTES) == 0)
            return p;
    return NULL;
}

int rt_signal_open(const struct rt_ipc_handle *h, struct rt_signal *out)
{
    int r = CUDA_SUCCESS;
    if (h->slot >= TP_SIGNALS)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct rt_signal_page *p = find_page(h->token);
    if (p && p->own)
        r = CUDA_ERROR_INVALID_CONTEXT;
    else if (!p)
        r = open_page(h->token, &p);
    if (r == CUDA_SUCCESS)
        use(p, h->slot, out);
    pthread_mutex_unlock(&lock);
    return r;
}

void rt_signal_ref(const struct rt_signal *s)
{
    pthread_mutex_lock(&lock);
    s->page->users[s->slot]++;
    s->page->count++;
    pthread_mutex_unlock(&lock);
}

/* Own pages stay, for the next event. */
void rt_signal_release(const struct rt_signal *s)
{
    struct rt_signal_page *p = s->page;
    pthread_mutex_lock(&lock);
    p->users[s->slot]--;
    if (--p->count == 0 && !p->own) {
        uint64_t address = (uintptr_t)p->at;
        (void)map_page(address, -1);
        (void)rt_request_object_unmap(rt_session, address);
        gm_list_remove(&p->link);
        free(p);
    }
    pthread_mutex_unlock(&lock);
}

bool rt_signal_is_own(const struct rt_signal *s)
{
    return s->page->own;
}

int rt_signal_handle(const struct rt_signal *s, struct rt_ipc_handle *out)
{
    struct rt_signal_page *p = s->page;
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!p->shared)
        r = rt_request_memory_share(rt_session, 0, p->object, p->token);
    if (r == CUDA_SUCCESS) {
        p->shared = true;
        rt_ipc_handle_init(out, RT_IPC_EVENT, p->token);
        out->slot = s->slot;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

/* --- recording and waiting -------------------------------------------------------------------- */

int rt_signal_wait_for_room(const struct rt_signal *s)
{
    uint32_t last = atomic_load_explicit(&s->words->recorded, memory_order_acquire);
    return rt_signal_wait(s, last + 1 - TP_SIGNAL_WORDS);
}

/* Stores the signal if the session has failed meanwhile. While anything of the session runs, the
 * server will still store the signals that we have taken. Afterwards it may have done that before
 * we took this one. */
static void store_if_late(struct rt_signal *s, uint32_t queue, uint32_t number)
{
    if (GM_UNLIKELY(rt_queue_done(rt_session, queue, TP_SEQ_FAILED)))
        tp_signal_store(s->words, number);
}

int rt_signal_record(struct rt_signal *s, struct rt_stream *st, uint64_t *seq)
{
    bool in_a_row =
        st->number == s->queue && s->run >= TP_SIGNAL_WORDS; /* one stream stores them in order */
    uint64_t in_order = in_a_row ? (uint32_t)(s->last + 1) : TP_SIGNAL_NONE;
    uint32_t n;
    if (tp_signal_take(s->words, self(), in_order, &n) < 0)
        return -EAGAIN;
    struct wire_rec_fill fill = {
        .head.op = WIRE_OP_FILL,
        .dst =
            s->device + offsetof(struct tp_signal, done) + n % TP_SIGNAL_WORDS * sizeof(uint32_t),
        .pitch = sizeof(uint32_t),
        .width = 1,
        .height = 1,
        .value = n,
        .element_size = sizeof(uint32_t),
    };
    s->run = n == s->last + 1 && st->number == s->queue ? s->run + 1 : 1;
    s->last = n;
    s->queue = st->number;
    int r = rt_queue_put(st, &fill.head, sizeof(fill), NULL, 0, seq);
    store_if_late(s, st->number, n);
    return r;
}

uint32_t rt_signal_last(const struct rt_signal *s, bool *own)
{
    uint32_t n = atomic_load_explicit(&s->words->recorded, memory_order_acquire);
    *own = n && tp_signal_is_of(s->words, n, self());
    return n;
}

bool rt_signal_reached(const struct rt_signal *s, uint32_t number)
{
    return tp_signal_reached(s->words, number);
}

int rt_signal_wait(const struct rt_signal *s, uint32_t number)
{
    struct timespec nap = { .tv_nsec = NAP_MIN_NS };
    for (unsigned i = 0; !rt_signal_reached(s, number); i++) {
        int error = i < SPINS ? rt_session_error(rt_session) : rt_session_look(rt_session);
        if (error)
            return error;
        if (i < SPINS)
            continue;
        nanosleep(&nap, NULL);
        nap.tv_nsec = GM_MIN(nap.tv_nsec * 2, (long)NAP_MAX_NS);
    }
    return rt_session_error(rt_session);
}

struct waiting {
    struct rt_signal signal;
    uint32_t number;
};

static bool is_over(void *arg)
{
    const struct waiting *w = arg;
    return rt_signal_reached(&w->signal, w->number);
}

static void end_waiting(void *arg)
{
    struct waiting *w = arg;
    rt_signal_release(&w->signal);
    free(w);
}

int rt_signal_wait_in(const struct rt_signal *s, uint32_t number, struct rt_stream *st)
{
    if (rt_signal_reached(s, number))
        return CUDA_SUCCESS;
    struct waiting *w = malloc(sizeof(*w));
    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *w = (struct waiting) { *s, number };
    rt_signal_ref(s);
    int r = rt_gate_add(st, is_over, end_waiting, w);
    if (r)
        end_waiting(w);
    return r;
}
