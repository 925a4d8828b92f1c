/*
 * Requests that wait until the executor is asked, and which one is next. Users take turns, and so
 * do the sessions of each user: nobody waits behind everything that another client has asked for. A
 * session's requests keep their order.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_TURN_H
#define GMUX_SERVER_TURN_H

#include "server/request.h"

struct srv_turns {
    struct gm_list users; /* users that have sessions with requests */
    unsigned begun;       /* how many requests have their turn */
};

/* A session's requests that wait; embedded in the session. */
struct srv_waiting {
    struct gm_list turn; /* user->turns */
    struct gm_list requests;
};

void srv_turns_init(struct srv_turns *t);
void srv_waiting_init(struct srv_waiting *w);

/* Adds a request, as the last or the first of its session. */
void srv_turns_add(struct srv_turns *t, struct srv_request *r);
void srv_turns_put_back(struct srv_turns *t, struct srv_request *r);
void srv_turns_take_out(struct srv_request *r);
/* srv_turns_begin(): the request is sent. srv_turns_end(): it has been answered or put off, or has
 * lost its executor. */
void srv_turns_begin(struct srv_turns *t, struct srv_request *r);
void srv_turns_end(struct srv_turns *t, struct srv_request *r);
/* Takes out the next request that is not held back. NULL: there is none, or enough have begun. */
struct srv_request *srv_turns_next(struct srv_turns *t,
                                   bool (*is_held_back)(void *arg, const struct srv_request *r),
                                   void *arg);

#endif
