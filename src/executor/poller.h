/*
 * The poller: one thread that looks at the rings of all clients whose own threads have gone to
 * sleep, as io_uring's SQPOLL thread does, and takes what comes there in their stead: who comes
 * back after a pause does not have to wait until a sleeping thread runs again.
 *
 * It takes only what is prompt (device.h). For everything else, and when there is much, it wakes
 * the client's thread and has nothing more to do with that client until its thread sleeps again; a
 * client for which that happens each time does without. Whose records come soon after one another
 * is better served by a thread that spins, as long as there are processors for it: one thread
 * cannot hand over for many. A client that is silent for a while sleeps altogether; with none left
 * the poller sleeps, too. When a driver keeps the poller, the clients' threads notice, and do
 * without it until it gets on.
 */
#ifndef GMUX_EXECUTOR_POLLER_H
#define GMUX_EXECUTOR_POLLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* More would wait for each other. */
#define EXE_POLLED_MAX 16u
#define EXE_KEEP_NS    (20 * GM_NS_PER_MS) /* a frame of a film */
#define EXE_SOON_NS    100000u             /* a client's thread spins for a little longer */
#define EXE_STUCK_MS   50u                 /* a round takes microseconds */

struct exe_client;

struct exe_poller_policy {
    uint64_t keep_ns;    /* a silent client is looked at for so long */
    uint64_t soon_ns;    /* records with shorter pauses are for a thread that spins .. */
    unsigned spin_limit; /* .. unless so many do */
    uint32_t stuck_ms;   /* a round that takes longer is one that it is stuck in */
};

struct exe_poller {
    _Atomic(struct exe_client *) clients[EXE_POLLED_MAX]; /* in no order; NULL: a free place */
    _Atomic(struct exe_client *) at; /* whose ring it is at, if that is still in its place */
    _Atomic uint64_t rounds;         /* that it has begun */
    _Atomic uint64_t stuck;          /* the one that takes it long; 0: none */
    _Atomic uint32_t sleeps;         /* a futex */
    _Atomic unsigned *spinning;      /* the engine's */
    struct exe_poller_policy policy;
};

/* What it remembers of a client: the client's thread's, and the poller's while it stands in. */
struct exe_turn {
    uint32_t place;   /* in clients */
    uint32_t bell;    /* when its thread went to sleep */
    uint64_t since;   /* its last record, or then */
    bool seldom;      /* the last pause was too long to stand in for so long */
    uint32_t refused; /* how often in a row there was something for its own thread */
    uint32_t soon;    /* how often in a row a record came soon .. */
    bool burst;       /* .. and its thread is on its way */
};

/* Starts one, which stays for good and counts among those that spin while it is awake. NULL: there
 * is none to be had. */
struct exe_poller *exe_poller_start(_Atomic unsigned *spinning,
                                    const struct exe_poller_policy *policy);
/* The client's thread, where there is a poller, with everything handed over: it sleeps until its
 * bell has moved on from there, or a slice is over. Meanwhile the poller stands in for it, if that
 * is worth it. True: records come soon after one another, and it had better spin. */
bool exe_poller_sleep(struct exe_client *c, uint32_t bell, uint32_t slice_ms);

#endif
