/*
 * Opens a session: checks the geometry that the server names, maps the three memories, and answers.
 * The window is mapped with MAP_FIXED_NOREPLACE: if something of the program's lies there already,
 * the server is asked for another window.
 */
#include "client/session/session.h"

#include <cuda.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "client/session/connect.h"
#include "transport/memfd.h"

#define WINDOW_TRIES 8
#define READY_SERIAL 1 /* the serial number of the first request, rt_request_ready() */
#define SPIN_NS      (50 * (uint32_t)GM_NS_PER_US)
/* On a GPU, whose completion nobody can wake us for at once: a thread that sleeps hears of it 35 to
 * 70 us later. There are as many threads that wait in the executor as here, so that the processor
 * is given to others early. NVIDIA's library never sleeps unless the program asks for that. */
#define SPIN_GPU_NS (5 * (uint32_t)GM_NS_PER_US)
#define YIELD_NS    (100 * (uint32_t)GM_NS_PER_MS)
#define SLICE_MS    50u

static struct gm_log_topic topic = GM_LOG_TOPIC("session");

struct rt_session *rt_session;

/* Ends a wait when the session has an error, or when the server has hung up: it lives as long as
 * its end of the socket is open. */
static int watchdog(void *arg)
{
    struct rt_session *s = arg;
    int error = rt_session_error(s);
    if (error)
        return error;
    struct pollfd p = { .fd = s->fd, .events = POLLRDHUP };
    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLRDHUP))) {
        tp_session_fail(&s->shared, CUDA_ERROR_MPS_RPC_FAILURE, 0);
        return rt_session_error(s);
    }
    return 0;
}

int rt_session_look(struct rt_session *s)
{
    static _Atomic uint64_t next;
    uint64_t now = gm_now_ns(), due = atomic_load_explicit(&next, memory_order_relaxed);
    if (now < due || !atomic_compare_exchange_strong(&next, &due, now + SLICE_MS * GM_NS_PER_MS))
        return rt_session_error(s);
    return watchdog(s);
}

int rt_session_wait(struct rt_session *s, uint32_t number, uint64_t seq,
                    const struct tp_wait_policy *policy)
{
    int r = tp_word_wait(&s->shared.streams[number].completed, seq, policy ? policy : &s->patient);
    if (GM_UNLIKELY(tp_input_pending(&s->output)))
        rt_output_show(s);
    return r ? r : rt_session_error(s);
}

static int is_late(void *arg)
{
    return gm_now_ns() >= *(const uint64_t *)arg;
}

bool rt_session_wait_within(struct rt_session *s, uint32_t number, uint64_t seq, uint64_t ns)
{
    uint64_t until = gm_now_ns() + ns;
    struct tp_wait_policy policy = s->patient;
    policy.slice_ms = 1;
    policy.watchdog = is_late;
    policy.arg = &until;
    return tp_word_wait(&s->shared.streams[number].completed, seq, &policy) == 0;
}

void rt_session_keep(void *pages, size_t size)
{
    (void)madvise(pages, size, MADV_DONTFORK);
    (void)madvise(pages, size, MADV_DONTDUMP);
}

static int map_area(int fd, uint64_t address, uint64_t size, int protection)
{
    int r = tp_memfd_check(fd, size, false);
    if (r < 0)
        return r;
    void *want = (void *)(uintptr_t)address;
    void *p = mmap(want, size, protection, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    /* A kernel before 4.17 does not know the flag and treats the address as a hint. */
    if (p != want) {
        munmap(p, size);
        return -EEXIST;
    }
    rt_session_keep(p, size); /* it is sparse and may be terabytes wide */
    return 0;
}

void rt_session_hide(const struct rt_session *s, uint64_t address, uint64_t size)
{
    void *p =
        mmap((void *)(uintptr_t)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
             s->device_fd, (off_t)(address - s->window_base));
    if (p != MAP_FAILED)
        rt_session_keep(p, size);
}

/* Returns 0, or -EEXIST if the addresses are in use. */
static int map_window(struct rt_session *s)
{
    const int both = PROT_READ | PROT_WRITE;
    int r =
        map_area(s->device_fd, s->window_base, s->window_half, s->memory_apart ? PROT_NONE : both);
    if (r < 0)
        return r;
    r = map_area(s->host_fd, s->window_base + s->window_half, s->window_half, both);
    if (r < 0)
        munmap((void *)(uintptr_t)s->window_base, s->window_half);
    return r;
}

static int read_devices(struct rt_session *s, const struct wire_session_open *m)
{
    struct wire_dec d;
    wire_dec_init(&d, m->devices.data, m->devices.size);
    s->devices = calloc(RT_DEVICES, sizeof(*s->devices));
    if (!s->devices)
        return -ENOMEM;
    while (!wire_dec_end(&d) && s->device_count < RT_DEVICES) {
        struct wire_device w;
        wire_get_device(&d, &w);
        if (d.fatal)
            break;
        struct rt_device *out = &s->devices[s->device_count];
        out->index = s->device_count++;
        strncpy(out->name, w.name, sizeof(out->name) - 1);
        memcpy(out->uuid, w.uuid.data, GM_MIN((size_t)w.uuid.size, sizeof(out->uuid)));
        memcpy(out->attributes, w.attributes.data,
               GM_MIN((size_t)w.attributes.size, sizeof(out->attributes)));
        memcpy(out->limits, w.limits.data, GM_MIN((size_t)w.limits.size, sizeof(out->limits)));
        out->pci_domain = w.pci_domain;
        out->pci_bus = w.pci_bus;
        out->pci_device = w.pci_device;
        out->memory_total = w.memory_total;
        out->multiprocessors = w.multiprocessors;
        out->multiprocessors_granted = w.multiprocessors_granted;
        out->multiprocessors_step = w.multiprocessors_step;
        uint32_t priorities = GM_MIN(w.priorities, 64u);
        out->priority_greatest = priorities > 1 ? 1 - (int)priorities : 0;
    }
    return wire_dec_finish(&d) && s->device_count ? 0 : -EBADMSG;
}

static bool window_is_sane(const struct wire_session_open *m)
{
    return gm_is_pow2(m->window_size) && m->window_size >= (1u << 20) && m->window_base != 0 &&
           m->window_base % m->window_size == 0 && m->window_base < 1ull << 47 &&
           m->window_size < 1ull << 47;
}

static int take_descriptors(struct rt_session *s, int *session_fd)
{
    *session_fd = tp_packet_take_fd(s->packet, 0);
    s->device_fd = tp_packet_take_fd(s->packet, 1);
    s->host_fd = tp_packet_take_fd(s->packet, 2);
    return *session_fd >= 0 && s->device_fd >= 0 && s->host_fd >= 0 ? 0 : -EBADMSG;
}

/* Handles one message session_open. Returns 0 when everything is mapped, -EEXIST when the window's
 * addresses are in use, or another -errno. */
static int take_offer(struct rt_session *s, const struct wire_session_open *m)
{
    GM_AUTO_FD int session_fd = -1;
    int r = take_descriptors(s, &session_fd);
    if (r < 0)
        return r;
    if (m->version != WIRE_VERSION || !window_is_sane(m))
        return -EPROTO;
    s->window_base = m->window_base;
    s->window_half = m->window_size / 2;
    s->memory_apart = (m->features & WIRE_FEATURE_MEMORY_APART) != 0;
    r = map_window(s);
    if (r < 0)
        return r;
    s->memory_limit = m->memory_limit;
    s->server_pid = m->server_pid;
    s->driver_version = (int)m->driver_version;
    r = read_devices(s, m);
    return r < 0 ? r : tp_session_attach(&s->shared, session_fd, m->session_size);
}

static int say_window_busy(struct rt_session *s, uint64_t base)
{
    struct wire_enc e;
    wire_enc_init(&e, s->request, WIRE_PACKET_MAX);
    wire_pack_session_window_busy(&e, 0,
                                  &(struct wire_session_window_busy) { .window_base = base });
    return tp_send(s->fd, &e, NULL, 0);
}

static int failed(char *why, size_t why_size, int result, const char *text)
{
    (void)snprintf(why, why_size, "%s", text);
    return result ? result : CUDA_ERROR_UNKNOWN;
}

/* Reads packets until there is a session, or there cannot be one. Returns a CUresult. */
static int negotiate(struct rt_session *s, char *why, size_t why_size)
{
    s->unanswered = true;
    for (int tries = 0; tries < WINDOW_TRIES;) {
        struct tp_packet *p = s->packet;
        int r = tp_recv(s->fd, p);
        s->unanswered &= r <= 0 && r != -EAGAIN;
        if (r == -EAGAIN)
            return failed(why, why_size, CUDA_ERROR_MPS_CONNECTION_FAILED,
                          "neither it nor a server answers");
        if (r <= 0)
            return failed(why, why_size, CUDA_ERROR_MPS_CONNECTION_FAILED,
                          "the connection was closed");
        if (p->header.type == WIRE_REFUSED) {
            struct wire_refused m;
            wire_get_refused(&p->body, &m);
            return failed(why, why_size, m.result, m.reason);
        }
        if (p->header.type == WIRE_SESSION_FAILED) {
            struct wire_session_failed m;
            wire_get_session_failed(&p->body, &m);
            return failed(why, why_size, m.result, m.reason);
        }
        if (p->header.type != WIRE_SESSION_OPEN) {
            tp_packet_finish(p);
            continue;
        }
        struct wire_session_open m;
        wire_get_session_open(&p->body, &m);
        r = wire_dec_finish(&p->body) ? take_offer(s, &m) : -EBADMSG;
        tp_packet_finish(p);
        if (r == 0)
            return CUDA_SUCCESS;
        if (r == -ENOMEM) {
            (void)snprintf(why, why_size, "no room for %llu GiB of addresses (see ulimit -v)",
                           (unsigned long long)m.window_size >> 30);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (r != -EEXIST)
            return failed(why, why_size, CUDA_ERROR_MPS_CONNECTION_FAILED, strerror(-r));
        s->device_fd = gm_close(s->device_fd);
        s->host_fd = gm_close(s->host_fd);
        tries++;
        gm_debug(&topic, "window at %#llx is taken", (unsigned long long)m.window_base);
        if (say_window_busy(s, m.window_base) < 0)
            return failed(why, why_size, CUDA_ERROR_MPS_CONNECTION_FAILED,
                          "the connection was closed");
    }
    return failed(why, why_size, CUDA_ERROR_OUT_OF_MEMORY, "no free range of addresses");
}

void rt_session_close(struct rt_session *s)
{
    if (!s)
        return;
    if (s->shared.base) {
        tp_session_detach(&s->shared);
        munmap((void *)(uintptr_t)s->window_base, s->window_half * 2);
    }
    gm_close(s->fd);
    gm_close(s->device_fd);
    gm_close(s->host_fd);
    free(s->devices);
    free(s->packet);
    free(s->request);
    free(s);
}

bool rt_session_leave(struct rt_session *s)
{
    pthread_mutex_lock(&s->request_lock);
    bool unused = s->serial == READY_SERIAL && atomic_load(&s->queues_used) == 0;
    if (unused) {
        (void)shutdown(s->fd, SHUT_RDWR);
        munmap((void *)(uintptr_t)s->window_base, s->window_half * 2);
    }
    pthread_mutex_unlock(&s->request_lock);
    return unused;
}

struct rt_session *rt_session_create(int fd)
{
    struct rt_session *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->fd = fd;
    s->device_fd = s->host_fd = -1;
    return s;
}

int rt_session_open(struct rt_session *s, char *why, size_t why_size)
{
    const int fd = s->fd;
    s->packet = calloc(1, sizeof(*s->packet));
    s->request = malloc(WIRE_PACKET_MAX);
    pthread_mutex_init(&s->request_lock, NULL);
    pthread_mutex_init(&s->ring_lock, NULL);
    pthread_mutex_init(&s->output_lock, NULL);
    s->patient =
        (struct tp_wait_policy) { .spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS : 0,
                                  .slice_ms = SLICE_MS,
                                  .watchdog = watchdog,
                                  .arg = s };
    const char *of_contexts =
        secure_getenv("CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING");
    s->shares_of_contexts = of_contexts && *of_contexts && strcmp(of_contexts, "0") != 0;
    rt_answers_within(fd, true);
    int result = s->packet && s->request ? negotiate(s, why, why_size) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        tp_input_init(&s->output, &s->shared);
        if (s->memory_apart) {
            s->patient.spin_ns = GM_MIN(s->patient.spin_ns, SPIN_GPU_NS);
            s->patient.yield_ns = YIELD_NS;
        }
        tp_ring_init_producer(&s->ring, &s->shared.control->ring, s->shared.ring_data,
                              s->shared.ring_size);
        result = rt_request_ready(s);
        if (result != CUDA_SUCCESS)
            (void)snprintf(why, why_size, "the server could not attach it to the device");
    }
    rt_answers_within(fd, false);
    return result;
}

void rt_session_abandon(struct rt_session *s)
{
    /* The child does not have the mappings (MADV_DONTFORK). Its copy of the socket must not outlive
     * the parent. */
    s->fd = gm_close(s->fd);
    s->device_fd = gm_close(s->device_fd);
    s->host_fd = gm_close(s->host_fd);
}
