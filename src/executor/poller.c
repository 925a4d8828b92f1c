/*
 * A client is the poller's while it is in its place in `clients` and `at` says so. The poller
 * writes `at`, then looks whether the client is still there; its thread takes it out, then waits
 * until `at` is another one: at least one of them sees the other.
 */
#include "executor/poller.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "executor/executor.h"

#define SERVE_MAX    8u     /* records in a row; with more its own thread is better */
#define REFUSALS     3u     /* from here on the poller stands in .. */
#define RETRY        32u    /* .. once in so many times */
#define BURST        8u     /* records that came soon in a row */
#define YIELD_ROUNDS 16u    /* without a record: others may want the processor */
#define YIELDS       64u    /* until it leaves one's client; then .. */
#define PAUSE_NS     50000l /* .. pauses: it may be in the driver for long */
#define SLEEP_MS     60000u

static struct gm_log_topic topic = GM_LOG_TOPIC("poller");

/* --- the clients' threads --------------------------------------------------------------------- */

static bool is_worth_it(const struct exe_poller *p, const struct exe_client *c)
{
    const struct exe_turn *t = &c->turn;
    return !c->gates && !c->retired && !t->seldom &&
           (t->refused < REFUSALS || t->refused % RETRY == 0) &&
           atomic_load_explicit(&p->stuck, memory_order_relaxed) !=
               atomic_load_explicit(&p->rounds, memory_order_relaxed);
}

static bool take_place(struct exe_poller *p, struct exe_client *c)
{
    for (uint32_t i = 0; i < EXE_POLLED_MAX; i++) {
        struct exe_client *none = NULL;
        if (atomic_load_explicit(&p->clients[i], memory_order_relaxed))
            continue;
        c->turn.place = i;
        if (atomic_compare_exchange_strong(&p->clients[i], &none, c))
            return true;
    }
    return false;
}

/* The client is the poller's from now on. */
static bool hand_over(struct exe_poller *p, struct exe_client *c)
{
    if (!is_worth_it(p, c) || !take_place(p, c))
        return false;
    if (atomic_load(&p->sleeps) && atomic_exchange(&p->sleeps, 0))
        tp_futex_wake(&p->sleeps);
    return true;
}

static void leave(struct exe_poller *p, struct exe_client *c)
{
    struct exe_client *self = c;
    (void)atomic_compare_exchange_strong(&p->clients[c->turn.place], &self, NULL);
}

static void take_back(struct exe_poller *p, struct exe_client *c)
{
    const struct timespec pause = { .tv_nsec = PAUSE_NS };
    leave(p, c);
    for (unsigned n = 0; atomic_load(&p->at) == c; n++)
        if (n < YIELDS)
            sched_yield();
        else
            nanosleep(&pause, NULL);
}

/* Until the bell has moved on, which it does when the poller has something for the client's thread,
 * or the poller looks no more, and a slice is over, or it has not got on for a while. */
static void sleep_beside(struct exe_poller *p, struct exe_client *c, uint32_t bell,
                         uint32_t slice_ms)
{
    uint64_t before, now = atomic_load(&p->rounds);
    do {
        before = now;
        tp_ring_sleep(&c->ring, bell, p->policy.stuck_ms);
        if (tp_ring_bell(&c->ring) != bell)
            return;
        if (atomic_load(&p->clients[c->turn.place]) != c) {
            tp_ring_sleep(&c->ring, bell, slice_ms);
            return;
        }
        now = atomic_load(&p->rounds);
    } while (now != before);
    atomic_store(&p->stuck, now);
}

bool exe_poller_sleep(struct exe_client *c, uint32_t bell, uint32_t slice_ms)
{
    struct exe_poller *p = c->engine->poller;
    struct exe_turn *t = &c->turn;
    t->bell = bell;
    t->since = gm_now_ns();
    t->soon = 0;
    t->burst = false;
    t->refused += t->refused >= REFUSALS;
    if (hand_over(p, c)) {
        sleep_beside(p, c, bell, slice_ms);
        take_back(p, c);
    } else {
        tp_ring_wait(&c->ring, bell, slice_ms);
    }
    t->seldom = gm_now_ns() - t->since > p->policy.keep_ns;
    return t->burst;
}

/* --- the poller ------------------------------------------------------------------------------- */

static void wake_its_thread(struct exe_poller *p, struct exe_client *c)
{
    leave(p, c);
    tp_ring_wake(&c->session.control->ring);
}

/* False: there is something for its own thread. */
static bool serve(struct exe_client *c)
{
    static union { /* the poller's */
        struct wire_record record;
        uint8_t bytes[WIRE_RECORD_MAX];
    } buffer;
    unsigned n = 0;
    for (; n < SERVE_MAX && tp_ring_pending(&c->ring); n++) {
        if (tp_ring_peek(&c->ring, &buffer.record, sizeof(buffer)) < 0 ||
            !exe_record_is_prompt(c, &buffer.record))
            break;
        if (!exe_client_take(c, &buffer.record, false))
            return false;
    }
    if (n > 0 && c->engine->ops->flush)
        c->engine->ops->flush(c->dev);
    bool all = !tp_ring_pending(&c->ring);
    c->turn.refused = all ? 0 : c->turn.refused + 1;
    return all;
}

/* A record has come. Until its thread has taken the ring back the client is served. */
static void note_burst(const struct exe_poller *p, struct exe_client *c, uint64_t now)
{
    struct exe_turn *t = &c->turn;
    t->soon = now - t->since < p->policy.soon_ns ? t->soon + 1 : 0;
    t->since = now;
    if (t->soon < BURST || t->burst ||
        atomic_load_explicit(p->spinning, memory_order_relaxed) >= p->policy.spin_limit)
        return;
    t->burst = true;
    tp_ring_wake(&c->session.control->ring);
}

/* The client is the poller's. True if a record was there. */
static bool look(struct exe_poller *p, struct exe_client *c, uint64_t now)
{
    struct exe_turn *t = &c->turn;
    if (tp_ring_pending(&c->ring)) {
        note_burst(p, c, now);
        if (!serve(c))
            wake_its_thread(p, c);
        return true;
    }
    if (tp_ring_bell(&c->ring) != t->bell && !t->burst)
        wake_its_thread(p, c);
    else if (now > t->since + p->policy.keep_ns && tp_ring_look_no_more(&c->ring, t->bell))
        leave(p, c);
    return false;
}

static void sleep_if_alone(struct exe_poller *p)
{
    atomic_store(&p->sleeps, 1);
    for (uint32_t i = 0; i < EXE_POLLED_MAX; i++)
        if (atomic_load(&p->clients[i])) {
            atomic_store(&p->sleeps, 0);
            return;
        }
    atomic_fetch_sub_explicit(p->spinning, 1, memory_order_relaxed);
    while (atomic_load(&p->sleeps))
        tp_futex_wait(&p->sleeps, 1, SLEEP_MS);
    atomic_fetch_add_explicit(p->spinning, 1, memory_order_relaxed);
}

static void *poll_clients(void *arg)
{
    struct exe_poller *p = arg;
    unsigned idle = 0;

    pthread_setname_np(pthread_self(), "poller");
    atomic_fetch_add_explicit(p->spinning, 1, memory_order_relaxed);
    for (;;) {
        uint64_t now = gm_now_ns();
        bool any = false, came = false;
        atomic_fetch_add(&p->rounds, 1);
        for (uint32_t i = 0; i < EXE_POLLED_MAX; i++) {
            struct exe_client *c = atomic_load_explicit(&p->clients[i], memory_order_relaxed);
            if (!c)
                continue;
            any = true;
            atomic_store(&p->at, c);
            if (atomic_load(&p->clients[i]) == c)
                came |= look(p, c, now);
            atomic_store_explicit(&p->at, NULL, memory_order_release);
        }
        idle = came ? 0 : idle + 1;
        if (!any)
            sleep_if_alone(p);
        else if (idle % YIELD_ROUNDS == YIELD_ROUNDS - 1)
            sched_yield();
        else
            gm_cpu_relax();
    }
    return NULL;
}

struct exe_poller *exe_poller_start(_Atomic unsigned *spinning,
                                    const struct exe_poller_policy *policy)
{
    struct exe_poller *p = calloc(1, sizeof(*p));
    pthread_t thread;
    if (!p)
        return NULL;
    p->spinning = spinning;
    p->policy = *policy;
    p->rounds = 1; /* before its first one it is not stuck */
    int r = exe_thread_start(&thread, poll_clients, p);
    if (r < 0) {
        gm_warn(&topic, "no thread that polls: %s", strerror(-r));
        free(p);
        return NULL;
    }
    pthread_detach(thread);
    return p;
}
