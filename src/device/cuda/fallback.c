/*
 * How a client changes to the fallback context and comes back. Its own thread does that, while
 * nothing of it runs. A thread for each GPU makes the safe points at which clients come back.
 */
#include "device/cuda/fallback.h"
#include "device/cuda/place.h"
#include "device/cuda/local.h"
#include "device/cuda/queue.h"

#include "base/log.h"
#include "device/cuda/admit.h"
#include "device/cuda/array.h"
#include "device/cuda/chain.h"
#include "device/cuda/inflight.h"
#include "device/cuda/kernel.h"
#include "device/cuda/module.h"
#include "device/cuda/settle.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("fallback");

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
    for (uint32_t i = 0; i < c->arrays.count; i++)
        if (c->arrays.at[i].exists && c->arrays.at[i].gpu->index == device)
            return true;
    for (uint32_t i = 0; i < c->objects.count; i++)
        if (c->objects.at[i].exists && c->objects.at[i].gpu->index == device)
            return true;
    return c->linking != NULL;
}

/* The module has values in the driver's memory, which would be lost with its context. */
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

/* The client counts arrays, textures and variables that it has asked for (`mortal`). */
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

/* It has something there that cannot be made again. */
static bool has_to_stay(struct dev_client *c, uint32_t device)
{
    return has_parts(c, device) || has_arrays(c, device) || has_values(c, device);
}

static bool may_go(struct dev_client *c, uint32_t device)
{
    return is_over(c, device) && !has_to_stay(c, device);
}

/* --- going ------------------------------------------------------------------------------------ */

/* The client's place, queues and streams are in the other context from now on. moves_lock is held.
 * False: it cannot go now. */
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

/* --- the thread that calls clients back: one for each GPU that had some in its fallback context -
 */

/* Counts the clients in the GPU's fallback context; with `rings`, wakes their threads. */
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

/* Makes a safe point of the primary context, at which clients come back. Returns how many did.
 * Clients in the fallback context hand over nothing from when the primary one is closed, so that
 * what they have in flight ends at the same time as what runs there. */
static uint32_t call_back(struct cuda_gpu *first, uint32_t away)
{
    struct dev *d = first->dev;
    const uint32_t gpus = CUDA_GPU_BIT(first);
    uint32_t left = away;
    if (!cuda_admit_return_is_due(d, gpus, gm_now_ns() + d->away_ns))
        return 0;
    atomic_store(&first->welcome, true);
    (void)count_away(first, true);
    if (cuda_admit_return(d, gpus, gm_now_ns() + CUDA_WELCOME_NS)) {
        const uint64_t until = gm_now_ns() + CUDA_WELCOME_NS;
        while ((left = count_away(first, true)) != 0 && gm_now_ns() < until)
            cuda_nap(GM_NS_PER_MS);
        cuda_admit_end(d, gpus);
    }
    atomic_store(&first->welcome, false);
    return away > left ? away - left : 0;
}

/* Every attempt stops everybody for a moment, so there are fewer and fewer while nobody can come
 * back. */
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

/* If the thread cannot be started, clients stay in the fallback context; the next client that goes
 * there tries again. */
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
    gm_info(&topic, "a client is in the fallback context of device %u: a kernel keeps it waiting",
            fallback->index);
}

/* moves_lock is held. */
static void note_back(struct dev_client *c, const struct cuda_gpu *first)
{
    atomic_fetch_and_explicit(&c->away, ~(1u << first->index), memory_order_relaxed);
    gm_info(&topic, "a client is back in the primary context of device %u", first->index);
}

void cuda_fallback_move(struct dev_client *c, struct cuda_gpu *from)
{
    if (pthread_mutex_trylock(&c->moves_lock) != 0)
        return;
    struct cuda_gpu *to = !may_go(c, from->index) ? NULL
                          : from->is_fallback     ? cuda_other_context(from)
                                                  : cuda_fallback_open(from);
    if (to && go(c, to)) {
        if (to->is_fallback)
            note_away(c, to);
        else
            note_back(c, to);
    }
    pthread_mutex_unlock(&c->moves_lock);
}

/* At the safe point it makes what the client needs in the primary context: its share, stacks as
 * large as here, and one loaded kernel of each of its libraries. moves_lock is held. */
static bool come_back(struct dev_client *c, struct cuda_gpu *first)
{
    struct dev *d = c->dev;
    const uint32_t gpus = CUDA_GPU_BIT(first);
    if (!may_go(c, first->index) || !cuda_admit_try(d, c, gpus))
        return false;
    bool back = go(c, first);
    if (back) {
        cuda_enter(first);
        cuda_stack_follow(first, &d->fallbacks[first->index]);
        cuda_libraries_follow(c, first);
        note_back(c, first);
    }
    cuda_admit_end(d, gpus);
    return back;
}

static bool is_away(const struct dev_client *c, const struct cuda_gpu *first)
{
    return cuda_home(c, first->index)->is_fallback;
}

static bool is_called(const struct dev_client *c, const struct cuda_gpu *first)
{
    return atomic_load_explicit(&first->welcome, memory_order_acquire) && is_away(c, first) &&
           !cuda_is_leaving(c->dev, c);
}

static bool try_to_come_back(struct dev_client *c, struct cuda_gpu *first)
{
    if (pthread_mutex_trylock(&c->moves_lock) != 0)
        return false;
    const bool back = !is_away(c, first) || come_back(c, first);
    pthread_mutex_unlock(&c->moves_lock);
    return back;
}

void cuda_fallback_return(struct dev_client *c)
{
    struct dev *d = c->dev;
    for (uint32_t i = 0; i < d->count; i++) {
        struct cuda_gpu *first = &d->gpus[i];
        if (!is_called(c, first) || has_to_stay(c, i))
            continue;
        cuda_hands_on(c); /* rows that wait have to be handed over before it can go */
        cuda_hand_over(c);
        cuda_hands_off(c);
        while (is_called(c, first) && !try_to_come_back(c, first))
            cuda_nap(GM_NS_PER_MS);
    }
}

void cuda_fallback_await(struct dev_client *c, uint32_t device)
{
    struct cuda_gpu *first = &c->dev->gpus[device];
    const uint64_t until = gm_now_ns() + c->dev->stays_ns;
    while (is_away(c, first) && !has_to_stay(c, device) && !cuda_is_leaving(c->dev, c) &&
           cuda_admit_return_is_near(c->dev, CUDA_GPU_BIT(first)) && gm_now_ns() < until) {
        cuda_nap(GM_NS_PER_MS);
        cuda_fallback_return(c);
    }
}

/* --- a blocked context ------------------------------------------------------------------------ */

/* The context is blocked, and the GPU's other one is not. */
static bool is_blocked(const struct dev *d, struct cuda_gpu *g)
{
    const uint32_t blocked = atomic_load_explicit(&d->blocked, memory_order_relaxed);
    return (blocked & CUDA_GPU_BIT(g)) && !(blocked & CUDA_GPU_BIT(cuda_other_context(g)));
}

void cuda_fallback_flee(struct dev_client *c)
{
    for (uint32_t i = 0; i < c->dev->count; i++) {
        struct cuda_gpu *home = cuda_home(c, i);
        if (!home->is_fallback && is_blocked(c->dev, home) && cuda_unfinished(c) == 0)
            cuda_fallback_move(c, home);
    }
}

/* --- a client that begins --------------------------------------------------------------------- */

CUresult cuda_fallback_seat(struct dev_client *c, struct cuda_gpu *g)
{
    struct dev *d = c->dev;
    const uint32_t multiprocessors = c->multiprocessors[g->index];
    struct cuda_gpu *fallback = NULL;
    if (cuda_place_is_part(g, multiprocessors)) {
        const uint64_t now = gm_now_ns();
        if (cuda_admit_wait(d, c, CUDA_GPU_BIT(g), now, cuda_patience(c, now)))
            cuda_admit_end(d, CUDA_GPU_BIT(g)); /* it is about to be taken again */
        else if (!cuda_is_leaving(d, c))
            fallback = cuda_fallback_open(g);
    } else if (is_blocked(d, g)) {
        fallback = cuda_fallback_open(g);
    }
    CUresult r = cuda_place_set(c, fallback ? fallback : g, multiprocessors, c->priority);
    if (r == CUDA_SUCCESS && fallback)
        note_away(c, fallback);
    return r;
}
