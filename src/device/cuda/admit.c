/*
 * Safe points. A thread that wants one waits in dev->waiting until what is in flight is expected to
 * end soon; then it closes the contexts, and looks at the words of clients' threads and at streams
 * until nothing runs there. All that wait for the same contexts share the safe point, and the last
 * one of them opens the contexts again.
 */
#include "device/cuda/admit.h"
#include "device/cuda/place.h"

#include <time.h>

#include "base/log.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("admit");

#define NAP_NS     GM_NS_PER_MS
#define NAP_MAX_NS (4 * GM_NS_PER_MS)
#define SHORTLY_NS (20 * GM_NS_PER_US)
#define POINT_NS   (5 * GM_NS_PER_MS) /* others join a context that is idle for so long */
/* While programs have work, safe points for calls that a program waits for take at most half of the
 * time. Safe points for calls that nobody waits for take at most one NOBODYS_PART-th of it, but the
 * pause between two of them is at most PAUSE_MAX_NS. */
#define NOBODYS_PART 8u
#define PAUSE_MAX_NS (50 * GM_NS_PER_MS)
/* What is in flight may take this part of the time that somebody has waited. */
#define WAITED_PART 2u
/* Safe points at which clients come back (fallback.h) take at most a sixteenth of the time. */
#define RETURNS_PART 16u

/* When a safe point may be tried. */
struct terms {
    uint64_t rest_ns;      /* what is in flight is likely to end within this */
    uint64_t begun;        /* somebody has waited since then; 0: nobody waits */
    uint64_t pause;        /* since the last one ended, as a multiple of what that one took */
    uint64_t pause_max_ns; /* a pause of this length is always enough */
};

/* --- what is in flight; dev->lock held -------------------------------------------------------- */

static bool is_in_flight(const struct dev_queue *q)
{
    return q->seen < q->marked || q->drains;
}

/* How long the queue is likely to be busy, in nanoseconds. An operation that has taken longer than
 * predicted is expected to take as long again, so it is rarely waited for. */
static uint64_t rest_of(const struct dev_queue *q, uint64_t now)
{
    const struct dev *d = q->gpu->dev;
    const uint64_t age = q->since ? now - GM_MIN(q->since, now) : 0;
    if (!q->pace || q->drains || age > 2 * q->pace + NAP_NS)
        return age >= d->unknown_ns ? GM_MAX(age, d->rest_ns) : 0;
    const uint64_t all = q->pace * (q->marked - q->seen);
    return all - GM_MIN(age, q->pace);
}

static bool are_quiet(const struct dev *d, uint32_t gpus, uint64_t now, uint64_t rest_ns)
{
    gm_list_for_each (q, &d->active, struct dev_queue, active)
        if ((gpus & CUDA_GPU_BIT(q->gpu)) && is_in_flight(q) && rest_of(q, now) >= rest_ns)
            return false;
    return true;
}

/* The driver is asked, since clients can forge their completion words. */
static bool is_idle(const struct dev_queue *q)
{
    if (!q->stream || !atomic_load_explicit(&q->touched, memory_order_acquire))
        return true;
    if (q->gpu->waits) /* the driver would keep the asking thread */
        return false;
    cuda_enter(q->gpu);
    if (!cuda_stream_is_done(q, q->stream))
        return false;
    atomic_store_explicit(&((struct dev_queue *)(uintptr_t)q)->touched, false,
                          memory_order_relaxed);
    return true;
}

static bool all_hands_are_off(const struct dev *d, uint32_t gpus)
{
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        if (atomic_load(&c->handing) && (atomic_load(&c->uses) & gpus))
            return false;
    return true;
}

static bool are_idle(const struct dev *d, uint32_t gpus)
{
    if (!all_hands_are_off(d, gpus))
        return false;
    gm_list_for_each (q, &d->active, struct dev_queue, active)
        if ((gpus & CUDA_GPU_BIT(q->gpu)) && is_in_flight(q) && !q->drains)
            return false;
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        gm_list_for_each (q, &c->queues, struct dev_queue, link)
            if ((gpus & CUDA_GPU_BIT(q->gpu)) && !is_idle(q))
                return false;
    return true;
}

/* --- questions -------------------------------------------------------------------------------- */

static bool is_shorter(struct dev *d, uint32_t gpus, uint64_t rest_ns)
{
    pthread_mutex_lock(&d->lock);
    bool shorter = are_quiet(d, gpus, gm_now_ns(), rest_ns);
    pthread_mutex_unlock(&d->lock);
    return shorter;
}

bool cuda_is_quiet(struct dev *d, uint32_t gpus)
{
    return is_shorter(d, gpus, d->rest_ns);
}

bool cuda_is_long(struct dev *d, uint32_t gpus)
{
    return !is_shorter(d, gpus, GM_MAX(d->rest_ns, d->rest_most_ns));
}

bool cuda_admit_return_is_near(struct dev *d, uint32_t gpus)
{
    return is_shorter(d, gpus, d->returns_ns);
}

bool cuda_is_leaving(const struct dev *d, const struct dev_client *c)
{
    return atomic_load_explicit(&d->dead, memory_order_relaxed) ||
           (c && c->leaving && atomic_load_explicit(c->leaving, memory_order_acquire));
}

/* --- hands ------------------------------------------------------------------------------------ */

void cuda_nap(uint64_t ns)
{
    const struct timespec t = { .tv_sec = (time_t)(ns / GM_NS_PER_S),
                                .tv_nsec = (long)(ns % GM_NS_PER_S) };
    nanosleep(&t, NULL);
}

/* Called after `handing` was set: see admit.h for the order. */
static bool is_closed(const struct dev_client *c)
{
    return atomic_load(&c->dev->closed) & atomic_load(&c->uses);
}

bool cuda_hands_try(struct dev_client *c)
{
    if (GM_LIKELY(atomic_load_explicit(&c->handing, memory_order_relaxed) && !is_closed(c)))
        return true;
    atomic_store(&c->handing, true);
    if (GM_LIKELY(!is_closed(c)))
        return true;
    cuda_hands_off(c);
    return false;
}

void cuda_hands_on(struct dev_client *c)
{
    while (!cuda_hands_try(c))
        cuda_nap(SHORTLY_NS);
}

void cuda_hands_away(struct dev_client *c)
{
    c->was_handing |= atomic_load_explicit(&c->handing, memory_order_relaxed);
    cuda_hands_off(c);
}

void cuda_hands_back(struct dev_client *c)
{
    if (c->was_handing)
        cuda_hands_on(c);
    c->was_handing = false;
}

/* --- safe points ------------------------------------------------------------------------------ */

/* dev->lock held. Somebody other than `c` has something in flight there. */
static bool others_are_busy(const struct dev *d, const struct dev_client *c, uint32_t gpus)
{
    gm_list_for_each (q, &d->active, struct dev_queue, active)
        if (q->client != c && (gpus & CUDA_GPU_BIT(q->gpu)) && is_in_flight(q))
            return true;
    return false;
}

/* dev->lock held. There is a safe point already that is young enough to join. */
static bool may_join(struct dev *d, uint32_t gpus, uint64_t now)
{
    cuda_for_each_context (g, d, gpus)
        if (!g->point.idle || (now - g->point.idle > POINT_NS && !atomic_load(&g->welcome)))
            return false;
    return true;
}

/* How long what is in flight may take now. */
static uint64_t rest_now(const struct dev *d, const struct terms *t, uint64_t now)
{
    const uint64_t waited = t->begun ? now - GM_MIN(t->begun, now) : 0;
    const uint64_t grown = GM_MIN(waited / WAITED_PART, d->rest_most_ns);
    return GM_MAX(t->rest_ns, grown);
}

/* dev->lock held. Nobody else has a safe point there, and what is in flight is likely to end soon.
 */
static bool may_begin(struct dev *d, const struct dev_client *c, uint32_t gpus, uint64_t now,
                      const struct terms *t)
{
    bool too_soon = false;
    cuda_for_each_context (g, d, gpus) {
        const struct cuda_safe_point *p = &g->point;
        if (p->calls)
            return false;
        too_soon |= now - p->over < GM_MIN(t->pause * p->took, t->pause_max_ns);
    }
    return are_quiet(d, gpus, now, rest_now(d, t, now)) &&
           !(too_soon && others_are_busy(d, c, gpus));
}

/* dev->lock held. Closes the contexts, if that is allowed now. *joins: there is a safe point
 * already, so the contexts are idle. */
static bool begin(struct dev *d, const struct dev_client *c, uint32_t gpus, uint64_t now,
                  const struct terms *t, bool *joins)
{
    *joins = may_join(d, gpus, now);
    if (!*joins && !may_begin(d, c, gpus, now, t))
        return false;
    cuda_for_each_context (g, d, gpus)
        if (g->point.calls++ == 0)
            g->point.since = now;
    atomic_fetch_or(&d->closed, gpus);
    return true;
}

/* dev->lock held. The last one to leave opens the contexts again. */
static void end(struct dev *d, uint32_t gpus, uint64_t now)
{
    cuda_for_each_context (g, d, gpus) {
        struct cuda_safe_point *p = &g->point;
        if (--p->calls != 0)
            continue;
        atomic_fetch_and(&d->closed, ~CUDA_GPU_BIT(g));
        *p = (struct cuda_safe_point) { .over = now, .took = now - p->since };
    }
    pthread_cond_broadcast(&d->points);
}

/* dev->lock held, but not all the while. Waits until no thread is in the middle of handing over and
 * nothing is in flight. False: it took too long. */
static bool drain(struct dev *d, const struct dev_client *c, uint32_t gpus, uint64_t until)
{
    struct cuda_gpu *here = cuda_entered();
    bool idle;
    while (!(idle = are_idle(d, gpus)) && gm_now_ns() < until && !cuda_is_leaving(d, c)) {
        pthread_mutex_unlock(&d->lock);
        cuda_nap(SHORTLY_NS);
        pthread_mutex_lock(&d->lock);
    }
    if (here)
        cuda_enter(here);
    return idle;
}

/* A thread that waits for a safe point. */
struct waiter {
    struct gm_list link; /* dev->waiting */
    uint32_t gpus;
    bool admitted;
};

/* dev->lock held. The contexts are idle: everybody who waits for that joins, so that clients are
 * stopped once for all of them. */
static void admit_others(struct dev *d, uint64_t now)
{
    gm_list_for_each_safe (w, &d->waiting, struct waiter, link) {
        if (!may_join(d, w->gpus, now))
            continue;
        gm_list_remove(&w->link);
        w->admitted = true;
        cuda_for_each_context (g, d, w->gpus)
            g->point.calls++;
    }
    pthread_cond_broadcast(&d->points);
}

/* dev->lock held. */
static bool admit(struct dev *d, const struct dev_client *c, uint32_t gpus, const struct terms *t)
{
    const uint64_t now = gm_now_ns();
    bool joins, admitted = begin(d, c, gpus, now, t, &joins);
    if (!admitted || joins)
        return admitted;
    const uint64_t rest = rest_now(d, t, now);
    admitted = drain(d, c, gpus, now + GM_MAX(rest + rest / 3, NAP_NS));
    const uint64_t idle = gm_now_ns();
    cuda_for_each_context (g, d, gpus)
        g->point.idle = admitted ? idle : 0;
    if (admitted)
        admit_others(d, idle);
    else
        end(d, gpus, idle);
    return admitted;
}

static struct terms usual(const struct dev *d, const struct dev_client *c, uint64_t begun)
{
    return (struct terms) { d->rest_ns, begun, c ? 1 : NOBODYS_PART - 1,
                            c ? UINT64_MAX : PAUSE_MAX_NS };
}

bool cuda_admit_try(struct dev *d, struct dev_client *c, uint32_t gpus)
{
    const struct terms t = usual(d, c, 0);
    if (d->rest_ns == CUDA_NEVER)
        return true;
    pthread_mutex_lock(&d->lock);
    bool admitted = admit(d, c, gpus, &t);
    pthread_mutex_unlock(&d->lock);
    return admitted;
}

static void wait_for_point(struct dev *d, struct waiter *w, uint64_t ns)
{
    const uint64_t end = gm_now_ns() + ns;
    const struct timespec until = { .tv_sec = (time_t)(end / GM_NS_PER_S),
                                    .tv_nsec = (long)(end % GM_NS_PER_S) };
    gm_list_append(&d->waiting, &w->link);
    (void)pthread_cond_clockwait(&d->points, &d->lock, CLOCK_MONOTONIC, &until);
    gm_list_remove(&w->link);
}

static bool wait_for(struct dev *d, struct dev_client *c, uint32_t gpus, uint64_t deadline,
                     const struct terms *t)
{
    struct waiter w = { .gpus = gpus };
    gm_list_init(&w.link);
    if (d->rest_ns == CUDA_NEVER)
        return true;
    pthread_mutex_lock(&d->lock);
    w.admitted = admit(d, c, gpus, t);
    for (uint64_t pause = SHORTLY_NS;
         !w.admitted && !cuda_is_leaving(d, c) && gm_now_ns() < deadline;
         pause = GM_MIN(2 * pause, NAP_MAX_NS)) {
        wait_for_point(d, &w, pause);
        w.admitted = w.admitted || admit(d, c, gpus, t);
    }
    pthread_mutex_unlock(&d->lock);
    return w.admitted;
}

bool cuda_admit_wait(struct dev *d, struct dev_client *c, uint32_t gpus, uint64_t begun,
                     uint64_t deadline)
{
    const struct terms t = usual(d, c, begun);
    return wait_for(d, c, gpus, deadline, &t);
}

static struct terms returns(const struct dev *d)
{
    return (struct terms) { d->returns_ns, 0, RETURNS_PART - 1, UINT64_MAX };
}

bool cuda_admit_return_is_due(struct dev *d, uint32_t gpus, uint64_t deadline)
{
    const struct terms t = returns(d);
    for (;;) {
        pthread_mutex_lock(&d->lock);
        const uint64_t now = gm_now_ns();
        const bool due = d->rest_ns == CUDA_NEVER || may_begin(d, NULL, gpus, now, &t);
        pthread_mutex_unlock(&d->lock);
        if (due || now >= deadline)
            return due;
        cuda_nap(NAP_MAX_NS);
    }
}

bool cuda_admit_return(struct dev *d, uint32_t gpus, uint64_t deadline)
{
    const struct terms t = returns(d);
    return wait_for(d, NULL, gpus, deadline, &t);
}

void cuda_admit_end(struct dev *d, uint32_t gpus)
{
    if (d->rest_ns == CUDA_NEVER)
        return;
    pthread_mutex_lock(&d->lock);
    end(d, gpus, gm_now_ns());
    pthread_mutex_unlock(&d->lock);
}

/* --- own work --------------------------------------------------------------------------------- */

static bool is_done(struct dev_client *c, uint32_t gpus)
{
    gm_list_for_each (q, &c->queues, struct dev_queue, link) {
        if (!q->stream || !(gpus & CUDA_GPU_BIT(q->gpu)))
            continue;
        cuda_enter(q->gpu);
        if (!cuda_stream_is_done(q, q->stream))
            return false;
    }
    return true;
}

bool cuda_own_wait(struct dev_client *c, uint32_t gpus, uint64_t deadline)
{
    uint64_t pause = NAP_NS / 16;
    while (!is_done(c, gpus)) {
        if (cuda_is_leaving(c->dev, c) || gm_now_ns() >= deadline)
            return false;
        cuda_nap(pause);
        pause = GM_MIN(2 * pause, NAP_MAX_NS);
    }
    return true;
}

/* --- the end of a client ---------------------------------------------------------------------- */

void cuda_drains(struct dev_queue *q, bool drains)
{
    struct dev *d = q->client->dev;
    pthread_mutex_lock(&d->lock);
    q->drains = drains;
    if (drains && gm_list_empty(&q->active)) {
        q->since = gm_now_ns();
        gm_list_append(&d->active, &q->active);
        d->newcomer = true;
        pthread_cond_signal(&d->work);
    }
    pthread_mutex_unlock(&d->lock);
}

/* --- calls that may wait in the driver -------------------------------------------------------- */

/* dev->lock held. */
static bool is_idle_there(struct dev *d, uint32_t gpus)
{
    cuda_for_each_context (g, d, gpus)
        if (g->context && !g->point.idle)
            return false;
    return true;
}

void cuda_call_begin(struct dev *d, uint32_t gpus, enum cuda_call_class class)
{
    pthread_mutex_lock(&d->lock);
    const bool early = class == CUDA_IDLE && d->rest_ns != CUDA_NEVER && !is_idle_there(d, gpus);
    cuda_for_each_context (g, d, gpus)
        g->waits++;
    pthread_mutex_unlock(&d->lock);
    if (early && !atomic_load(&d->dead))
        gm_warn(&topic, "a call that wants a context idle is made outside of a safe point");
}

CUresult cuda_call_end(struct dev *d, uint32_t gpus, CUresult r)
{
    pthread_mutex_lock(&d->lock);
    cuda_for_each_context (g, d, gpus)
        g->waits--;
    pthread_mutex_unlock(&d->lock);
    return r;
}
