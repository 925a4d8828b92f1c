/*
 * Frees the pages of memory files, by threads.
 */
#include "server/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/server.h"

/* how much is freed at once: some 8 ms */
#define SLICE_BYTES (64u << 20)
/* how many threads without work stay */
#define IDLE_MAX    1u
#define STACK_BYTES (64u << 10)
/* how long a thread has to finish what it is doing when the server ends */
#define CLOSE_MS 1000u

/* --- threads ---------------------------------------------------------------------------------- */

static void free_pages(const struct srv_sweep *s)
{
    for (uint64_t done = 0; s->fd >= 0 && done < s->size; done += SLICE_BYTES) {
        if (atomic_load_explicit(&s->cancelled, memory_order_relaxed))
            return;
        /* On our own memfd this can only fail for lack of kernel memory. Then the range is not
         * cleared, but it stays with the same client, whose memfd it is. */
        int r =
            fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(s->offset + done),
                      (off_t)GM_MIN(s->size - done, (uint64_t)SLICE_BYTES));
        (void)r;
    }
}

/* The following is called with the lock held. Takes the next range of the owner whose turn it
 * is. */
static struct srv_sweep *take_turn(struct srv_sweeper *w)
{
    struct srv_sweep_owner *o = gm_list_entry(w->owners.next, struct srv_sweep_owner, link);
    struct srv_sweep *s = gm_list_entry(o->turns.next, struct srv_sweep, link);
    gm_list_remove(&o->link);
    gm_list_remove(&s->link);
    o->begun = s;
    o->busy = true;
    return s;
}

static void *sweep_thread(void *arg)
{
    struct srv_sweeper *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->closing && (!gm_list_empty(&w->owners) || w->idle < IDLE_MAX)) {
        if (gm_list_empty(&w->owners)) {
            w->idle++;
            pthread_cond_wait(&w->more, &w->lock);
            w->idle--;
            continue;
        }
        struct srv_sweep *s = take_turn(w);
        w->working++;
        pthread_mutex_unlock(&w->lock);
        free_pages(s);
        pthread_mutex_lock(&w->lock);
        w->working--;
        gm_list_append(&w->swept, &s->link);
        uv_async_send(&w->news);
    }
    w->threads--;
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Makes sure that there is a thread. False: there is none, and there will be none. */
static bool have_thread(struct srv_sweeper *w)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all;
    pthread_cond_signal(&w->more);
    if (w->idle == 0) {
        sigfillset(&all); /* the process's signals are for its first thread */
        pthread_attr_init(&attr);
        pthread_attr_setsigmask_np(&attr, &all);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attr, STACK_BYTES);
        w->threads += pthread_create(&thread, &attr, sweep_thread, w) == 0;
        pthread_attr_destroy(&attr);
    }
    return w->threads != 0;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void finish(struct srv_sweep *s)
{
    const bool cancelled = atomic_load_explicit(&s->cancelled, memory_order_relaxed);
    s->fd = gm_close(s->fd);
    s->done(s, cancelled);
}

/* Sweeps on the calling thread. Called with the lock held, which is released meanwhile. `tell`:
 * nobody else tells owners that they rest. */
static void sweep_here(struct srv_sweeper *w, bool tell)
{
    while (!gm_list_empty(&w->owners)) {
        struct srv_sweep *s = take_turn(w);
        struct srv_sweep_owner *o = s->owner;
        /* The pages go with the process. */
        const bool closing = w->closing;
        pthread_mutex_unlock(&w->lock);
        if (!closing)
            free_pages(s);
        o->begun = NULL;
        finish(s);
        pthread_mutex_lock(&w->lock);
        o->busy = false;
        if (!gm_list_empty(&o->turns)) {
            gm_list_append(&w->owners, &o->link);
        } else if (tell && o->rests) {
            pthread_mutex_unlock(&w->lock);
            o->rests(o->arg);
            pthread_mutex_lock(&w->lock);
        }
    }
}

static void hand_over(struct srv_sweeper *w, struct srv_sweep_owner *o)
{
    gm_list_append(&w->owners, &o->link);
    if (w->closing || !have_thread(w))
        sweep_here(w, false);
}

/* An owner lives until it has been told. */
static void on_news(uv_async_t *news)
{
    struct srv_sweeper *w = GM_CONTAINER_OF(news, struct srv_sweeper, news);
    pthread_mutex_lock(&w->lock);
    while (!gm_list_empty(&w->swept)) {
        struct srv_sweep *s = gm_list_entry(w->swept.next, struct srv_sweep, link);
        struct srv_sweep_owner *o = s->owner;
        gm_list_remove(&s->link);
        o->begun = NULL;
        pthread_mutex_unlock(&w->lock);
        finish(s);
        pthread_mutex_lock(&w->lock);
        o->busy = false;
        bool rests = gm_list_empty(&o->turns);
        if (!rests && w->closing)
            gm_list_append(&w->owners, &o->link);
        else if (!rests)
            hand_over(w, o);
        pthread_mutex_unlock(&w->lock);
        if (rests && o->rests)
            o->rests(o->arg);
        pthread_mutex_lock(&w->lock);
    }
    if (w->closing)
        sweep_here(w, true);
    bool closes = w->closing && w->working == 0;
    pthread_mutex_unlock(&w->lock);
    if (closes && !uv_is_closing((uv_handle_t *)news)) {
        uv_close((uv_handle_t *)news, NULL);
        uv_close((uv_handle_t *)&w->bound, NULL);
    }
}

static void on_sweeper_bound(uv_timer_t *bound)
{
    struct srv_sweeper *w = GM_CONTAINER_OF(bound, struct srv_sweeper, bound);
    uv_close((uv_handle_t *)&w->news, NULL);
    uv_close((uv_handle_t *)bound, NULL);
}

int srv_sweeper_init(struct srv_sweeper *w, uv_loop_t *loop)
{
    memset(w, 0, sizeof(*w));
    gm_list_init(&w->owners);
    gm_list_init(&w->swept);
    int r = uv_async_init(loop, &w->news, on_news);
    if (r < 0)
        return r;
    uv_unref((uv_handle_t *)&w->news);
    uv_timer_init(loop, &w->bound);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    return 0;
}

void srv_sweeper_close(struct srv_sweeper *w)
{
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    uv_ref((uv_handle_t *)&w->news);
    uv_timer_start(&w->bound, on_sweeper_bound, CLOSE_MS, 0);
    uv_async_send(&w->news);
}

void srv_sweep_owner_init(struct srv_sweep_owner *o, void (*rests)(void *arg), void *arg)
{
    *o = (struct srv_sweep_owner) { .rests = rests, .arg = arg };
    gm_list_init(&o->link);
    gm_list_init(&o->turns);
}

void srv_sweep(struct srv_sweeper *w, struct srv_sweep *s, struct srv_sweep_owner *o, int fd,
               uint64_t offset, uint64_t size, srv_swept_fn *done)
{
    *s = (struct srv_sweep) { .owner = o, .offset = offset, .size = size, .done = done };
    gm_list_init(&s->link);
    /* Without a descriptor the pages stay until they are used again, or until the file goes. */
    s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_lock(&w->lock);
    gm_list_append(&o->turns, &s->link);
    if (!o->busy && gm_list_empty(&o->link))
        hand_over(w, o);
    pthread_mutex_unlock(&w->lock);
}

bool srv_sweep_rests(struct srv_sweeper *w, const struct srv_sweep_owner *o)
{
    pthread_mutex_lock(&w->lock); /* waits until a thread has taken its turn */
    const bool rests = !o->busy && gm_list_empty(&o->turns);
    pthread_mutex_unlock(&w->lock);
    return rests;
}

void srv_sweep_cancel(struct srv_sweeper *w, struct srv_sweep_owner *o)
{
    pthread_mutex_lock(&w->lock);
    gm_list_remove(&o->link);
    if (o->begun)
        atomic_store_explicit(&o->begun->cancelled, true, memory_order_relaxed);
    while (!gm_list_empty(&o->turns)) {
        struct srv_sweep *s = gm_list_entry(o->turns.next, struct srv_sweep, link);
        gm_list_remove(&s->link);
        atomic_store_explicit(&s->cancelled, true, memory_order_relaxed);
        pthread_mutex_unlock(&w->lock);
        finish(s);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

bool srv_sweeper_is_stuck(struct srv_sweeper *w)
{
    pthread_mutex_lock(&w->lock);
    const bool stuck = w->working != 0;
    pthread_mutex_unlock(&w->lock);
    return stuck;
}
