/*
 * A client in the executor, and the thread that reads its ring.
 *
 * The thread takes records in batches. Between them it looks whether it is told to stop, at gates,
 * at words that streams wait for, and at the device's backlog. When it has nothing to do, it spins
 * for a moment if the machine has a processor to spare, and then sleeps on the ring's bell. While
 * it sleeps it costs nothing. A client that plays with the shared flags may miss its wake-up, which
 * harms only itself and ends with the slice.
 */
#include "executor/executor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "device/guard.h"

#define BATCH         32u
#define BACKLOG_LIMIT 4096u
#define SPIN_NS       30000u
#define SPIN_GPU_NS   120000u /* a program often waits so long for a small kernel */
/* A few threads spin for longer, so that a program that uses a GPU every few milliseconds does not
 * have to wait each time until a sleeping thread runs again. */
#define LINGER_NS     (20 * GM_NS_PER_MS) /* a frame of a film */
#define LINGER_PART   8u                  /* one thread for so many processors lingers */
#define SPIN_MISSES   3u                  /* after so many spins in vain, in a row, */
#define SPIN_RETRY    32u                 /* it spins only once in so many times */
#define IDLE_SLICE_MS 5000u
#define NAP_MAX_MS    16u
/* The pause between two looks at words that streams wait for is a LOOK_PART-th of the time that has
 * been waited, between LOOK_NS and LOOK_MAX_NS. For LOOK_SPIN_NS it spins instead of sleeping, if
 * there is a processor to spare. */
#define LOOK_NS      8000u
#define LOOK_MAX_NS  500000u
#define LOOK_PART    16u
#define LOOK_SPIN_NS (2 * GM_NS_PER_MS)
/* the device is flushed so often if the ring never runs dry */
#define FLUSH_NS (2 * GM_NS_PER_MS)
/* A thread that is told to end needs less than this, unless the device is answering its client. */
#define JOIN_S 120u
/* Enough for a record buffer and for the device, which may be a GPU driver that compiles. Only
 * pages that are touched cost memory. */
#define STACK_BYTES (8u << 20)

static struct gm_log_topic topic = GM_LOG_TOPIC("client");

/* For how long to spin; 0: not at all. Spinning is worth it if the next record comes soon, from
 * another processor. If it keeps failing, because the client takes its time or shares our processor
 * and cannot run while we spin, it is tried only now and then. */
static uint32_t spin_time(struct exe_client *c)
{
    struct exe_engine *e = c->engine;
    if (c->spin_misses >= SPIN_MISSES && c->spin_misses++ % SPIN_RETRY != 0)
        return 0;
    unsigned others = atomic_load_explicit(&e->spinning, memory_order_relaxed);
    if (others >= e->spin_limit)
        return 0;
    if (e->info->runs_elsewhere)
        return others < (e->spin_limit + LINGER_PART / 2) / LINGER_PART ? LINGER_NS : SPIN_GPU_NS;
    /* While something is in flight here, the processors are needed for that. */
    return e->ops->backlog(c->dev) != 0 ? 0 : SPIN_NS;
}

/* Pauses before the next look at words that streams wait for. Nothing tells when a word changes, so
 * the pauses grow with the time that streams have waited; but when a device has just been asked to
 * read a word, the next pause is short. `reads`: a record ends the pause. */
static void pause_between_looks(struct exe_client *c, uint32_t bell, bool reads)
{
    struct exe_engine *e = c->engine;
    const uint64_t now = gm_now_ns(), waited = now - c->look_since;
    const uint64_t longer = GM_MAX(waited / LOOK_PART, (uint64_t)LOOK_NS);
    c->asked_for = e->info->runs_elsewhere && !c->asked_for;
    const uint64_t pause = c->asked_for ? LOOK_NS : GM_MIN(longer, (uint64_t)LOOK_MAX_NS);
    if (!e->info->runs_elsewhere || waited > LOOK_SPIN_NS ||
        atomic_load_explicit(&e->spinning, memory_order_relaxed) >= e->spin_limit) {
        tp_ring_nap(&c->ring, bell, pause);
        return;
    }
    atomic_fetch_add_explicit(&e->spinning, 1, memory_order_relaxed);
    while (gm_now_ns() - now < pause && tp_ring_bell(&c->ring) == bell &&
           !(reads && tp_ring_pending(&c->ring)))
        gm_cpu_relax();
    atomic_fetch_sub_explicit(&e->spinning, 1, memory_order_relaxed);
}

static void wait_for_work(struct exe_client *c, uint32_t bell, bool was_active)
{
    if (c->values) {
        pause_between_looks(c, bell, true);
        return;
    }
    uint32_t spin_ns = was_active ? spin_time(c) : 0;
    if (spin_ns) {
        atomic_fetch_add_explicit(&c->engine->spinning, 1, memory_order_relaxed);
        bool came = tp_ring_spin(&c->ring, bell, spin_ns);
        atomic_fetch_sub_explicit(&c->engine->spinning, 1, memory_order_relaxed);
        c->spin_misses = came ? 0 : c->spin_misses + 1;
        if (came)
            return;
    }
    tp_ring_wait(&c->ring, bell, IDLE_SLICE_MS);
}

/* Hands the record that was peeked last to the device and takes it off the ring. `more`: other
 * records wait behind it. False: the client has failed. */
static bool take(struct exe_client *c, const struct wire_record *r, bool more)
{
    const char *why = NULL;
    int result = exe_record_take(c, r, more, &why);
    if (result != 0)
        exe_client_fail(c, result, 0, why);
    else
        tp_ring_advance(&c->ring);
    return result == 0;
}

/* Takes up to a batch of records; fewer if a run of many operations has filled the device. Returns
 * how many, or -1 if the client has failed. */
static int take_batch(struct exe_client *c, struct wire_record *record, size_t capacity,
                      uint32_t depth)
{
    for (unsigned n = 0; n < BATCH; n++) {
        int peeked = tp_ring_peek(&c->ring, record, capacity);
        if (peeked == 0)
            return (int)n;
        if (peeked < 0) {
            exe_client_fail(c, GM_CUDA_INVALID_VALUE, 0, "broken command ring");
            return -1;
        }
        if (!take(c, record, record->op == WIRE_OP_LAUNCH && tp_ring_more(&c->ring)))
            return -1;
        if (record->op == WIRE_OP_RUN && c->engine->ops->backlog(c->dev) >= depth)
            return (int)n + 1;
    }
    return BATCH;
}

/* Flushes the device now and then although the ring does not run dry: some thread of the program
 * may wait for what came long ago, while others keep the ring busy. */
static void flush_in_time(struct exe_client *c, uint64_t *flushed)
{
    uint64_t now = gm_now_ns();
    if (now - *flushed < FLUSH_NS)
        return;
    *flushed = now;
    if (c->engine->ops->flush)
        c->engine->ops->flush(c->dev);
}

static void *client_thread(void *arg)
{
    struct exe_client *c = arg;
    const struct dev_ops *ops = c->engine->ops;
    union {
        struct wire_record record;
        uint8_t bytes[WIRE_RECORD_MAX];
    } buffer;
    const uint32_t depth = c->engine->info->depth_max ? c->engine->info->depth_max : BACKLOG_LIMIT;
    uint32_t nap_ms = 1;
    uint64_t flushed = 0;
    bool active = false;
    char name[16];

    snprintf(name, sizeof(name), "client %u", c->pid);
    pthread_setname_np(pthread_self(), name);

    while (!atomic_load_explicit(&c->stop, memory_order_acquire) &&
           !atomic_load_explicit(&c->failed, memory_order_acquire)) {
        uint32_t bell = tp_ring_bell(&c->ring);
        if (c->gates)
            exe_record_open_gates(c);
        if (ops->backlog(c->dev) >= depth) {
            if (ops->flush) /* without it the backlog might never shrink */
                ops->flush(c->dev);
            if (c->values)
                pause_between_looks(c, bell, false);
            else
                tp_ring_nap(&c->ring, bell, nap_ms * GM_NS_PER_MS);
            nap_ms = GM_MIN(nap_ms * 2, NAP_MAX_MS);
            continue;
        }
        nap_ms = 1;
        int n = take_batch(c, &buffer.record, sizeof(buffer), depth);
        if (n < 0)
            break;
        if (n > 0) {
            if (active)
                flush_in_time(c, &flushed);
            else
                flushed = gm_now_ns();
            active = true;
            continue;
        }
        if (ops->flush)
            ops->flush(c->dev);
        if (c->retired && ops->backlog(c->dev) == 0)
            exe_record_reap(c);
        /* If it is told to stop after this, the bell has moved, and the wait ends at once. */
        if (atomic_load_explicit(&c->stop, memory_order_acquire))
            break;
        wait_for_work(c, bell, active);
        active = false;
    }
    return NULL;
}

void exe_multiprocessors(const struct wire_bytes *encoded, uint32_t out[DEV_DEVICES])
{
    memset(out, 0, DEV_DEVICES * sizeof(*out));
    if (encoded->size)
        memcpy(out, encoded->data, GM_MIN((size_t)encoded->size, DEV_DEVICES * sizeof(*out)));
}

int exe_client_create(struct exe_engine *e, const struct wire_engine_client_add *m,
                      struct exe_client **out)
{
    struct exe_client *c = calloc(1, sizeof(*c));
    if (!c)
        return GM_CUDA_OUT_OF_MEMORY;
    *c = (struct exe_client) { .engine = e,
                               .id = m->client,
                               .pid = m->pid,
                               .devices = 1,
                               .areas = { -1, -1 },
                               .resumed = m->resumed != 0 };
    for (unsigned i = 0; i < EXE_MODULE_BUCKETS; i++)
        gm_list_init(&c->modules[i]);
    pthread_mutex_init(&c->modules_lock, NULL);
    gm_list_init(&c->orders);
    c->host_area = m->window_base + m->window_size / 2;
    pthread_mutex_lock(&e->clients_lock);
    gm_list_append(&e->clients, &c->link);
    pthread_mutex_unlock(&e->clients_lock);
    *out = c;
    return 0;
}

int exe_client_open(struct exe_client *c, const struct wire_engine_client_add *m, int *fds)
{
    struct exe_engine *e = c->engine;
    struct dev_client *dev = NULL;
    if (tp_session_attach(&c->session, fds[0], m->session_size) < 0)
        return GM_CUDA_INVALID_VALUE;
    c->areas[0] = gm_take_fd(&fds[1]);
    c->areas[1] = gm_take_fd(&fds[2]);
    struct dev_client_config config = {
        .id = m->client,
        .uid = m->uid,
        .window_base = m->window_base,
        .window_size = m->window_size,
        .device_fd = c->areas[0],
        .host_fd = c->areas[1],
        .share_pct = m->share_pct,
        .priority = m->priority,
        .session = &c->session,
        .leaving = &c->leaving,
    };
    exe_multiprocessors(&m->multiprocessors, config.multiprocessors);
    int result = e->ops->client_create(e->dev, &config, &dev);
    if (result != 0)
        return result;
    c->calls = atomic_load_explicit(&c->session.control->replied.value, memory_order_relaxed);
    tp_ring_init_consumer(&c->ring, &c->session.control->ring, c->session.ring_data,
                          c->session.ring_size);
    pthread_mutex_lock(&e->clients_lock); /* a fault finds its client by `dev` */
    c->dev = dev;
    pthread_mutex_unlock(&e->clients_lock);
    return 0;
}

int exe_client_device(struct exe_client *c, uint32_t device)
{
    const struct dev_ops *ops = c->engine->ops;
    if (device >= c->engine->devices)
        return GM_CUDA_INVALID_DEVICE;
    int result =
        !exe_client_uses(c, device) && ops->client_device ? ops->client_device(c->dev, device) : 0;
    if (result == 0)
        atomic_fetch_or_explicit(&c->devices, 1u << device, memory_order_release);
    return result;
}

int exe_thread_start(pthread_t *thread, void *(*body)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setguardsize(&attr, DEV_GUARD_STACK_BYTES); /* a device may run kernels on it */
    int r = pthread_create(thread, &attr, body, arg);
    pthread_attr_destroy(&attr);
    return -r;
}

int exe_client_start(struct exe_client *c)
{
    c->started = true;
    if (c->has_thread || c->stopped)
        return 0;
    if (c->resumed &&
        atomic_load_explicit(&c->session.control->mortal, memory_order_acquire) != 0) {
        exe_client_fail(c, GM_CUDA_LAUNCH_FAILED, 0,
                        "variables, arrays or textures were lost with the executor");
        return 0;
    }
    int r = exe_thread_start(&c->thread, client_thread, c);
    c->has_thread = r == 0;
    if (r == 0)
        return 0;
    gm_error(&topic, "no thread for client %u: %s", c->pid, strerror(-r));
    return GM_CUDA_OUT_OF_MEMORY;
}

/* Waits for the client's thread. The device may take as long as it likes for an answer. If the
 * thread hangs for another reason, it hangs in the driver, perhaps behind a kernel that does not
 * end, and the executor gives up. */
static void join(struct exe_client *c)
{
    struct timespec until;
    unsigned seconds = 0;
    for (;;) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        if (pthread_timedjoin_np(c->thread, NULL, &until) == 0)
            return;
        seconds = atomic_load_explicit(&c->asking, memory_order_acquire) ? 0 : seconds + 1;
        if (seconds > JOIN_S) {
            gm_error(&topic, "the thread of client %u does not end; giving up the device", c->pid);
            _exit(1);
        }
    }
}

void exe_client_stop(struct exe_client *c)
{
    if (c->stopped)
        return;
    atomic_store_explicit(&c->leaving, true, memory_order_release);
    atomic_store_explicit(&c->stop, true, memory_order_release);
    if (c->has_thread) {
        tp_ring_wake(&c->session.control->ring);
        if (c->engine->ops->client_leave)
            c->engine->ops->client_leave(c->dev);
        join(c);
        c->has_thread = false;
    }
    c->stopped = true;
    c->engine->ops->client_stop(c->dev);
    /* If the client has an error, its threads may wait for what will never happen. */
    if (c->session.base &&
        atomic_load_explicit(&c->session.control->error, memory_order_acquire) != 0)
        tp_session_release_waiters(&c->session);
}

bool exe_client_end(struct exe_client *c)
{
    struct exe_engine *e = c->engine;
    struct dev_client *dev = c->dev;
    exe_client_stop(c);
    pthread_mutex_lock(&e->clients_lock);
    c->dev = NULL; /* a fault of another client with the same address is not this one's */
    pthread_mutex_unlock(&e->clients_lock);
    e->ops->client_destroy(dev); /* destroys its queues and modules as well */
    return !e->info->leaves_later;
}

void exe_client_free(struct exe_client *c)
{
    pthread_mutex_lock(&c->engine->clients_lock);
    gm_list_remove(&c->link);
    pthread_mutex_unlock(&c->engine->clients_lock);
    for (unsigned i = 0; i < EXE_MODULE_BUCKETS; i++)
        gm_list_for_each_safe (m, &c->modules[i], struct exe_module, link)
            free(m);
    for (unsigned i = 0; i < GM_ARRAY_LEN(c->chunks); i++)
        free(c->chunks[i]);
    tp_session_detach(&c->session);
    gm_close(c->areas[0]);
    gm_close(c->areas[1]);
    pthread_mutex_destroy(&c->modules_lock);
    free(c->reply);
    free(c);
}

void exe_client_destroy(struct exe_client *c)
{
    if (!c)
        return;
    if (c->dev)
        (void)exe_client_end(c);
    exe_client_free(c);
}
