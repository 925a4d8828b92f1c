/*
 * Requests that an executor has been sent and has not answered: which one is its turn, how long
 * that may take, and which ones a death makes suspect.
 *
 * An executor answers in order, except for requests that it puts off (engine_later): these wait for
 * something, or are carried out beside the others.
 */
#ifndef GMUX_SERVER_REQUEST_H
#define GMUX_SERVER_REQUEST_H

#include "base/list.h"
#include "server/extent.h"
#include "transport/sock.h"

struct srv_session;

/* `result`: the executor's answer, or why it could not be asked. `answer`: its packet, of which
 * only the result has been read; NULL: there is none. May run inside srv_executor_ask() if memory
 * is short, or if the session is about to leave. */
typedef void srv_answer_fn(void *arg, int result, struct tp_packet *answer);

struct srv_request {
    struct gm_list link; /* in the order in which they were sent */
    struct srv_session *session;
    uint64_t serial;
    srv_answer_fn *done; /* NULL: it is a repeat */
    void *arg;
    int fds[TP_FDS_MAX]; /* copies, which the session owns */
    unsigned fds_count;
    unsigned suspected; /* how many deaths it is suspected of; SRV_CULPRIT: it is given up */
    bool accused;       /* it is suspected of the last one */
    bool unsent;        /* it has not been sent: the executor has to read others first */
    bool counted;       /* it counts among the requests that have their turn */
    bool later;         /* the executor has put it off */
    bool working;       /* if `later`: it is being carried out; else it waits */
    /* if the executor has not answered it by then, it hangs; 0: no limit */
    uint64_t until_ms;
    uint16_t type;
    size_t size;
    uint8_t packet[] GM_ALIGNED(8);
};

#define SRV_CULPRIT 2u

/* Copies a packet and writes the serial into the copy. NULL: no memory, or the packet is
 * malformed. */
struct srv_request *srv_request_create(struct srv_session *c, uint64_t serial,
                                       const struct wire_enc *e, const int *fds,
                                       unsigned fds_count);

/* The request that is answered next, unless it is put off; NULL: none. */
struct srv_request *srv_requests_current(const struct gm_list *sent);
/* The request with this serial if it may be answered now; else NULL. */
struct srv_request *srv_requests_find(const struct gm_list *sent, uint64_t serial);
/* The image that a load is about. */
struct srv_extent srv_request_image(const struct srv_request *load);
/* The executor has put it off. */
void srv_request_put_off(struct srv_request *r, bool working);
/* When (ms) the executor is given up if it has not answered anything by then; 0: never. */
uint64_t srv_requests_patience(struct gm_list *sent, uint64_t now_ms);
/* Whether an executor is up to date: it has answered all repeats, and all that it should have
 * answered. */
bool srv_requests_are_settled(const struct gm_list *sent);
/* An executor has died: suspects the requests that it was working on. A module that was being
 * loaded is given up at once, unless another client's work is as likely to have been the cause; if
 * `memory` was short, unless it is a repeat. Everything else is given up the second time. So are
 * repeats, unless their client was `alone` in being restored: we do not always learn what an
 * executor has begun. */
void srv_requests_accuse(struct gm_list *sent, bool memory, bool alone);

#endif
