/*
 * Ranges of memory files whose pages are being freed, by threads: for a GiB that takes 0.1 s, and
 * for as long as the client likes where it keeps the file's lock (a write from a page that does not
 * come is enough). So nobody but its owner waits for a range: each owner's are freed one after the
 * other, and there are as many threads as owners that have some.
 *
 * All functions and callbacks belong to the event loop.
 */
#ifndef GMUX_SERVER_SWEEP_H
#define GMUX_SERVER_SWEEP_H

#include <pthread.h>
#include <stdint.h>
#include <uv.h>

#include "base/attr.h"
#include "base/list.h"

struct srv_sweep;

struct srv_sweeper {
    uv_async_t news;
    uv_timer_t bound;     /* for its end */
    pthread_mutex_t lock; /* for the rest, and for owners and sweeps */
    pthread_cond_t more;
    struct gm_list owners; /* that have turns, and no thread */
    struct gm_list swept;  /* struct srv_sweep that the loop has not heard of */
    unsigned threads, idle, working;
    bool closing;
};

struct srv_sweep_owner {
    struct gm_list link;      /* sweeper->owners */
    struct gm_list turns;     /* struct srv_sweep that wait */
    struct srv_sweep *begun;  /* what a thread is at, or the loop has yet to hear of; or NULL */
    bool busy;                /* with that, or being told */
    void (*rests)(void *arg); /* nothing of it is left to wait for; may be NULL */
    void *arg;
};

/* Cancelled: pages may be there still, and what the range belongs to may be gone. */
typedef void srv_swept_fn(struct srv_sweep *s, bool cancelled);

struct srv_sweep {
    struct gm_list link; /* owner->turns, or sweeper->swept */
    struct srv_sweep_owner *owner;
    int fd; /* its own */
    uint64_t offset, size;
    _Atomic bool cancelled;
    srv_swept_fn *done;
};

GM_MUST_CHECK int srv_sweeper_init(struct srv_sweeper *w, uv_loop_t *loop);
/* What waits is done, cancelled, and nobody hears of the rest. */
void srv_sweeper_close(struct srv_sweeper *w);
void srv_sweep_owner_init(struct srv_sweep_owner *o, void (*rests)(void *arg), void *arg);
/* Frees the pages of a range, then `done`, which may be before this returns. `fd` stays the
 * caller's. */
void srv_sweep(struct srv_sweeper *w, struct srv_sweep *s, struct srv_sweep_owner *o, int fd,
               uint64_t offset, uint64_t size, srv_swept_fn *done);
/* What of that owner waits is done, cancelled; what a thread is at will be. */
void srv_sweep_cancel(struct srv_sweeper *w, struct srv_sweep_owner *o);
/* An owner that does not rest has to stay. */
GM_MUST_CHECK bool srv_sweep_rests(struct srv_sweeper *w, const struct srv_sweep_owner *o);
/* After srv_sweeper_close() and the loop's end: a thread is at something that does not end. */
bool srv_sweeper_is_stuck(struct srv_sweeper *w);

#endif
