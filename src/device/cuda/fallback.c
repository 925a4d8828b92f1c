/*
 * When a client changes to the fallback context or comes back. Its own thread does it, while
 * nothing of it runs; a thread for each GPU makes the safe points at which clients come back.
 */
#include "device/cuda/fallback.h"
#include "device/cuda/green.h"
#include "device/cuda/limit.h"
#include "device/cuda/queue.h"

#include "base/log.h"
#include "device/cuda/admit.h"
#include "device/cuda/array.h"
#include "device/cuda/library.h"
#include "device/cuda/op.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("fallback");

/* A client that could not go when it was time to tries again soon. */
#define RETRY_PART 8u
/* A program waits for this part of the time that it has been there. */
#define HELD_PART 16u

/* --- what keeps a client where it is ---------------------------------------------------------- */

static bool has_parts(struct dev_client *c, uint32_t device)
{
    bool any = false;
    pthread_mutex_lock(&c->places_lock);
    gm_list_for_each (p, &c->places, struct cuda_place, link)
        any |= p->gpu->index == device && p->of;
    pthread_mutex_unlock(&c->places_lock);
    return any;
}

static bool has_arrays(const struct dev_client *c, uint32_t device)
{
    for (uint32_t i = 0; i < c->arrays_count; i++)
        if (c->arrays[i].exists && c->arrays[i].gpu->index == device)
            return true;
    for (uint32_t i = 0; i < c->objects_count; i++)
        if (c->objects[i].exists && c->objects[i].gpu->index == device)
            return true;
    return c->linking != NULL;
}

/* Values in the driver's memory that go with it. */
static bool loses_values(const struct dev_module *m)
{
    return m->altered || (!m->variables && m->library->traits.loses_values);
}

static bool has_values(struct dev_client *c, uint32_t device)
{
    bool any = false;
    pthread_mutex_lock(&c->modules_lock);
    gm_list_for_each (m, &c->modules, struct dev_module, link)
        any |= m->gpu->index == device && (m->globals_count != 0 || loses_values(m));
    pthread_mutex_unlock(&c->modules_lock);
    return any;
}

/* Arrays, textures and variables that it has asked for the program counts itself. */
bool cuda_would_lose(struct dev_client *c)
{
    bool any = atomic_load_explicit(&c->session->control->mortal, memory_order_acquire) != 0 ||
               atomic_load_explicit(&c->linking, memory_order_relaxed) != NULL;
    if (any || pthread_mutex_trylock(&c->modules_lock) != 0) /* others take that one first */
        return true;
    gm_list_for_each (m, &c->modules, struct dev_module, link)
        any |= loses_values(m);
    pthread_mutex_unlock(&c->modules_lock);
    return any;
}

static bool is_over(struct dev_client *c, uint32_t device)
{
    gm_list_for_each (q, &c->queues, struct dev_queue, link)
        if (q->gpu->index == device && !cuda_queue_is_over(q))
            return false;
    return true;
}

static bool may_go(struct dev_client *c, uint32_t device)
{
    return is_over(c, device) && !has_parts(c, device) && !has_arrays(c, device) &&
           !has_values(c, device);
}

/* --- going ------------------------------------------------------------------------------------ */

/* moves_lock is held. False: not now. */
static bool go(struct dev_client *c, struct cuda_gpu *to)
{
    if (cuda_place_try(c, to, c->multiprocessors[to->index], c->priority) != CUDA_SUCCESS)
        return false;
    gm_list_for_each (q, &c->queues, struct dev_queue, link)
        if (q->gpu->index == to->index)
            cuda_queue_go(q, to);
    cuda_places_collect(c, false);
    if (c->dev->count == 1) /* elsewhere it may have a detour there */
        atomic_store(&c->uses, CUDA_GPU_BIT(to));
    return true;
}

/* --- calling back ----------------------------------------------------------------------------- */

/* A thread does that for each GPU that has had a client in its fallback context. */

/* How many clients are in the GPU's fallback context; `rings`: they are told. */
static uint32_t count_away(struct cuda_gpu *first, bool rings)
{
    uint32_t count = 0;
    pthread_mutex_lock(&first->dev->lock);
    gm_list_for_each (c, &first->dev->clients, struct dev_client, link)
        if (atomic_load_explicit(&c->away, memory_order_relaxed) & 1u << first->index) {
            count++;
            if (rings)
                tp_ring_wake(&c->session->control->ring);
        }
    pthread_mutex_unlock(&first->dev->lock);
    return count;
}

/* A safe point of the primary context at which clients come back. How many did. */
static uint32_t call_back(struct cuda_gpu *first, uint32_t away)
{
    struct dev *d = first->dev;
    if (!cuda_admit_return(d, CUDA_GPU_BIT(first), gm_now_ns() + d->away_ns))
        return 0;
    const uint64_t until = gm_now_ns() + CUDA_WELCOME_NS;
    uint32_t left;
    atomic_store(&first->welcome, true);
    while ((left = count_away(first, true)) != 0 && gm_now_ns() < until)
        cuda_nap(GM_NS_PER_MS);
    atomic_store(&first->welcome, false);
    cuda_admit_end(d, CUDA_GPU_BIT(first));
    return away > left ? away - left : 0;
}

/* Where nobody can come back, nobody is stopped for that often. */
static void *call_back_all(void *arg)
{
    struct cuda_gpu *first = arg;
    const uint64_t usual = GM_MAX(first->dev->away_ns, GM_NS_PER_MS);
    uint64_t pause = usual;
    uint32_t before = 0;
    for (;;) {
        cuda_nap(pause);
        const uint32_t away = count_away(first, false);
        if (!away)
            pause = usual;
        else if (call_back(first, away) || away > before)
            pause = usual;
        else
            pause = GM_MIN(2 * pause, 64 * usual);
        before = away;
    }
    return NULL;
}

/* Without the thread its clients stay in the fallback context; the next one to go tries again. */
static void start_calling(struct cuda_gpu *first)
{
    pthread_mutex_lock(&first->dev->lock);
    first->calls_back = first->calls_back || cuda_thread_start(first, call_back_all) == 0;
    pthread_mutex_unlock(&first->dev->lock);
}

/* --- away, and back --------------------------------------------------------------------------- */

/* moves_lock is held, or nobody else knows of the client yet. */
static void note_away(struct dev_client *c, const struct cuda_gpu *fallback)
{
    atomic_fetch_or_explicit(&c->away, 1u << fallback->index, memory_order_release);
    start_calling(&c->dev->gpus[fallback->index]);
    gm_info(
        &topic,
        "a client is in the fallback context of device %u: a kernel keeps it from loading its own",
        fallback->index);
}

static struct cuda_gpu *other_of(struct cuda_gpu *g)
{
    return g->is_fallback ? &g->dev->gpus[g->index] : &g->dev->fallbacks[g->index];
}

/* moves_lock is held. */
static void note_back(struct dev_client *c, const struct cuda_gpu *first)
{
    atomic_fetch_and_explicit(&c->away, ~(1u << first->index), memory_order_relaxed);
    gm_info(&topic, "a client is back in the primary context of device %u", first->index);
}

/* To the GPU's other context, if it can go. */
static void move(struct dev_client *c, struct cuda_gpu *from)
{
    if (pthread_mutex_trylock(&c->moves_lock) != 0)
        return;
    struct cuda_gpu *to = !may_go(c, from->index) ? NULL
                          : from->is_fallback     ? other_of(from)
                                                  : cuda_fallback_open(from);
    if (to && go(c, to)) {
        if (to->is_fallback)
            note_away(c, to);
        else
            note_back(c, to);
    }
    pthread_mutex_unlock(&c->moves_lock);
}

/* What it has to have there is made at the safe point: its share, stacks as large as here, and of
 * each of its libraries something that is loaded. moves_lock is held. */
static bool come_back(struct dev_client *c, struct cuda_gpu *first)
{
    struct dev *d = c->dev;
    struct cuda_gpu *fallback = &d->fallbacks[first->index];
    const uint32_t gpus = CUDA_GPU_BIT(first);
    if (!cuda_own_wait(c, CUDA_GPU_BIT(fallback), gm_now_ns() + CUDA_WELCOME_NS) ||
        !may_go(c, first->index) || !cuda_admit_try(d, c, gpus))
        return false;
    bool back = go(c, first);
    if (back) {
        cuda_enter(first);
        cuda_limits_follow(first, fallback);
        cuda_libraries_follow(c, first);
    }
    cuda_admit_end(d, gpus);
    return back;
}

void cuda_fallback_return(struct dev_client *c)
{
    struct dev *d = c->dev;
    for (uint32_t i = 0; i < d->count; i++) {
        struct cuda_gpu *first = &d->gpus[i];
        if (!atomic_load_explicit(&first->welcome, memory_order_acquire) ||
            !cuda_home(c, i)->is_fallback || pthread_mutex_trylock(&c->moves_lock) != 0)
            continue;
        cuda_hands_on(c); /* what waits in rows is the driver's, too, before it can go */
        cuda_hand_over(c);
        cuda_hands_off(c);
        if (come_back(c, first))
            note_back(c, first);
        pthread_mutex_unlock(&c->moves_lock);
    }
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Until when to wait: a program that begins does not, one that has been there for long rather does
 * than that it leaves. */
static uint64_t patience(const struct dev_client *c, uint64_t begun)
{
    return begun + GM_MIN(c->dev->held_ns, CUDA_HELD_MIN_NS + (begun - c->came) / HELD_PART);
}

enum verdict {
    GO,   /* there is a safe point */
    MOVE, /* to the GPU's other context, in which nothing keeps it */
    WAIT,
    LEAVE /* it is about to be stopped */
};

/* What a client does that wants a context idle, having waited since `begun`, and after another wait
 * until `until`. */
static enum verdict decide(struct dev_client *c, struct cuda_gpu *g, bool may_move, uint64_t begun,
                           uint64_t until)
{
    struct dev *d = c->dev;
    const uint32_t gpus = CUDA_GPU_BIT(g);
    if ((cuda_own_wait(c, gpus, until) || !may_move) && cuda_admit_wait(d, c, gpus, until))
        return GO;
    if (cuda_is_leaving(d, c))
        return LEAVE;
    const bool stands = !cuda_is_quiet(d, gpus) || gm_now_ns() - begun > d->held_ns;
    return may_move && stands && cuda_is_quiet(d, CUDA_GPU_BIT(other_of(g))) ? MOVE : WAIT;
}

struct cuda_gpu *cuda_settle(struct dev_client *c, struct cuda_gpu *g, bool may_move)
{
    const struct dev *d = c->dev;
    const uint64_t begun = gm_now_ns();
    uint64_t until = patience(c, begun);
    enum verdict v;
    cuda_hand_over(c); /* others see what it has running; and it cannot go before */
    cuda_hands_away(c);
    while ((v = decide(c, g, may_move, begun, until)) == MOVE || v == WAIT) {
        if (v == MOVE) {
            move(c, g);
            g = cuda_home(c, g->index);
        }
        until = gm_now_ns() + d->held_ns / RETRY_PART;
    }
    if (v == LEAVE) {
        cuda_hands_back(c);
        return NULL;
    }
    cuda_enter(g);
    cuda_limits_follow(g, other_of(g));
    return g;
}

void cuda_settled(struct dev_client *c, struct cuda_gpu *g)
{
    cuda_admit_end(c->dev, CUDA_GPU_BIT(g));
    cuda_hands_back(c);
}

CUresult cuda_fallback_seat(struct dev_client *c, struct cuda_gpu *g)
{
    struct dev *d = c->dev;
    const uint32_t multiprocessors = c->multiprocessors[g->index];
    struct cuda_gpu *fallback = NULL;
    if (cuda_place_is_part(g, multiprocessors)) {
        if (cuda_admit_wait(d, c, CUDA_GPU_BIT(g), patience(c, gm_now_ns())))
            cuda_admit_end(d, CUDA_GPU_BIT(g)); /* it is about to be taken again */
        else if (!cuda_is_leaving(d, c))
            fallback = cuda_fallback_open(g);
    }
    CUresult r = cuda_place_set(c, fallback ? fallback : g, multiprocessors, c->priority);
    if (r == CUDA_SUCCESS && fallback)
        note_away(c, fallback);
    return r;
}

struct cuda_gpu *cuda_fallback_or_first(struct dev_client *c, uint32_t device)
{
    struct dev *d = c->dev;
    struct cuda_gpu *g = cuda_home(c, device);
    uint64_t until = patience(c, gm_now_ns());
    while (!cuda_admit_wait(d, c, CUDA_GPU_BIT(g), until)) {
        if (cuda_is_leaving(d, c))
            return NULL;
        until = gm_now_ns() + d->held_ns / RETRY_PART;
        struct cuda_gpu *other = g->is_fallback ? &d->gpus[device] : cuda_fallback_open(g);
        if (other)
            g = other;
    }
    cuda_enter(g);
    return g;
}

/* --- kernels ---------------------------------------------------------------------------------- */

void cuda_fallback_allow(const struct dev *d, CUfunction f, uint32_t bytes)
{
    const CUfunction_attribute a = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int now = 0;
    if (bytes > INT32_MAX || d->api.cuFuncGetAttribute(&now, a, f) != CUDA_SUCCESS ||
        (uint32_t)now >= bytes)
        return; /* what it may not have, its launch will say */
    (void)d->api.cuFuncSetAttribute(f, a, (int)bytes);
}

bool cuda_fallback_find(struct dev_queue *q, struct cuda_op_launch *l)
{
    struct dev_client *c = q->client;
    CUresult r = cuda_library_launch(c, q->gpu->index, l->library, l->kernel, &l->loaded);
    if (r != CUDA_SUCCESS && cuda_is_leaving(c->dev, c))
        return false;
    if (!cuda_check(c, r, "the device refused to load a kernel"))
        return false;
    if (!q->stream)
        cuda_stream_place(q); /* it has gone there */
    if (l->shared_bytes)
        cuda_fallback_allow(c->dev, l->loaded, l->shared_bytes);
    return q->stream != NULL;
}
