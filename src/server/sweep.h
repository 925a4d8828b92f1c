/*
 * Frees pages of memory files, by threads: a GiB takes 0.1 s, and if a client holds the file's lock
 * (for which a write from a page that does not arrive is enough) it takes as long as the client
 * likes. So only its own owner ever waits for a range: each owner's ranges are freed one after the
 * other, and there are as many threads as owners that have some.
 *
 * All functions are called, and all callbacks come, on the event loop.
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
    uv_timer_t bound;     /* bounds the end of the sweeper */
    pthread_mutex_t lock; /* protects the rest, and owners and sweeps */
    pthread_cond_t more;
    struct gm_list owners; /* owners that have turns and no thread */
    struct gm_list swept;  /* struct srv_sweep of which the loop has not been told */
    unsigned threads, idle, working;
    bool closing;
};

struct srv_sweep_owner {
    struct gm_list link;  /* sweeper->owners */
    struct gm_list turns; /* struct srv_sweep that wait */
    /* what a thread works on, or what the loop has yet to be told; or NULL */
    struct srv_sweep *begun;
    bool busy;                /* something has begun, or is being told */
    void (*rests)(void *arg); /* nothing of it is left to wait for; may be NULL */
    void *arg;
};

/* Cancelled: the pages may still be there, and the object that the range belonged to may be
 * gone. */
typedef void srv_swept_fn(struct srv_sweep *s, bool cancelled);

struct srv_sweep {
    struct gm_list link; /* owner->turns, or sweeper->swept */
    struct srv_sweep_owner *owner;
    int fd; /* a copy of the caller's */
    uint64_t offset, size;
    _Atomic bool cancelled;
    srv_swept_fn *done;
};

GM_MUST_CHECK int srv_sweeper_init(struct srv_sweeper *w, uv_loop_t *loop);
/* Ends the threads. Sweeps that wait are done, as cancelled; of the rest nobody is told. */
void srv_sweeper_close(struct srv_sweeper *w);
void srv_sweep_owner_init(struct srv_sweep_owner *o, void (*rests)(void *arg), void *arg);
/* Frees the pages of a range, then calls `done`, perhaps before this returns. `fd` stays the
 * caller's. */
void srv_sweep(struct srv_sweeper *w, struct srv_sweep *s, struct srv_sweep_owner *o, int fd,
               uint64_t offset, uint64_t size, srv_swept_fn *done);
/* Cancels the owner's sweeps that wait; the one that a thread works on is finished. */
void srv_sweep_cancel(struct srv_sweeper *w, struct srv_sweep_owner *o);
/* Whether the owner has no sweeps any more. Until then it must not be freed. */
GM_MUST_CHECK bool srv_sweep_rests(struct srv_sweeper *w, const struct srv_sweep_owner *o);
/* After srv_sweeper_close() and the loop's end: whether a thread works on something that does not
 * end. */
bool srv_sweeper_is_stuck(struct srv_sweeper *w);

#endif
