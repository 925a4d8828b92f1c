/*
 * Requests that wait until the executor is asked, and which is next. Users take turns, and of each
 * user the sessions that have some: nobody waits behind all that somebody else has asked for. Of a
 * session those come first that came first.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_TURN_H
#define GMUX_SERVER_TURN_H

#include "server/request.h"

struct srv_turns {
    struct gm_list users; /* with sessions that have requests */
    unsigned begun;       /* requests that have their turn */
};

/* Of a session, one embedded. */
struct srv_waiting {
    struct gm_list turn; /* user->turns */
    struct gm_list requests;
};

void srv_turns_init(struct srv_turns *t);
void srv_waiting_init(struct srv_waiting *w);

/* The request comes last among its session's, or first. */
void srv_turns_add(struct srv_turns *t, struct srv_request *r);
void srv_turns_put_back(struct srv_turns *t, struct srv_request *r);
void srv_turns_take_out(struct srv_request *r);
/* The request is sent, and when that is over: it is answered, is for later, or has lost its
 * executor. */
void srv_turns_begin(struct srv_turns *t, struct srv_request *r);
void srv_turns_end(struct srv_turns *t, struct srv_request *r);
/* Takes out the next one that is not held back; NULL: there is none, or enough have begun. */
struct srv_request *srv_turns_next(struct srv_turns *t,
                                   bool (*is_held_back)(void *arg, const struct srv_request *r),
                                   void *arg);

#endif
