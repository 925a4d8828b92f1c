/*
 * Requests that an executor has been sent and has not answered: whose turn it is, for how long it
 * may go on like that, and whom a death in the middle of it makes a suspect.
 *
 * An executor answers in order, but for what it says is for later (engine_later): that waits for
 * something, or is carried out beside the others.
 */
#ifndef GMUX_SERVER_REQUEST_H
#define GMUX_SERVER_REQUEST_H

#include "base/list.h"
#include "transport/sock.h"

struct srv_session;

/* `result`: what the executor said, or why it could not be asked. `answer`: its packet, body read
 * past nothing; NULL where none came. May run inside srv_executor_ask() when memory is short, or
 * the session is about to leave. */
typedef void srv_answer_fn(void *arg, int result, struct tp_packet *answer);

struct srv_request {
    struct gm_list link; /* in the order in which they were sent */
    struct srv_session *session;
    uint64_t serial;
    srv_answer_fn *done; /* NULL: a repeat */
    void *arg;
    int fds[TP_FDS_MAX]; /* the session's */
    unsigned fds_count;
    unsigned suspected; /* deaths over it; SRV_CULPRIT: given up */
    bool accused;       /* of the last one */
    bool unsent;        /* the executor has yet to take others */
    bool counted;       /* among those that have their turn */
    bool later;         /* the executor answers others first */
    bool working;       /* with `later`: it is carried out meanwhile; else it waits */
    /* an executor that has not answered it by then hangs; 0: it has all the time */
    uint64_t until_ms;
    uint16_t type;
    size_t size;
    uint8_t packet[] GM_ALIGNED(8);
};

#define SRV_CULPRIT 2u

/* A copy of a packet, with the serial written into it. NULL: no memory, or the packet is none. */
struct srv_request *srv_request_create(struct srv_session *c, uint64_t serial,
                                       const struct wire_enc *e, const int *fds,
                                       unsigned fds_count);

/* The one that is answered next, if it is not put off; NULL: none. */
struct srv_request *srv_requests_current(const struct gm_list *sent);
/* The one with this serial if it may be answered now; else NULL. */
struct srv_request *srv_requests_find(const struct gm_list *sent, uint64_t serial);
/* The executor says that it is for later. */
void srv_request_put_off(struct srv_request *r, bool working);
/* When (ms) to give up the executor if it has not answered anything by then; 0: never. */
uint64_t srv_requests_patience(struct gm_list *sent, uint64_t now_ms);
/* An executor has been brought up to date: nothing is left of what it was told again, and nothing
 * that it should have answered. */
bool srv_requests_are_settled(const struct gm_list *sent);
/* The executor has died: counts that for what it was working at. A module that was being loaded is
 * given up at once if nobody else's work is as likely to have been the cause, or, where `memory`
 * was short, if it is no repeat; for everything else that takes a second time. So it does for
 * repeats, unless their client was `alone` told again: what an executor has begun is not always
 * heard. */
void srv_requests_accuse(struct gm_list *sent, bool memory, bool alone);

#endif
