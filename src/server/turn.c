/*
 * A list of users; for each user a list of sessions, and for each session a list of requests. A
 * user, or a session, that had its turn goes to the end of its list.
 */
#include "server/turn.h"

#include "server/server.h"

/* How many requests, of those that the executor answers one after the other, are on their way to
 * it. A client that asks for something waits for these, and not for everything that others have
 * asked for. */
#define AT_ONCE 16u

void srv_turns_init(struct srv_turns *t)
{
    gm_list_init(&t->users);
    t->begun = 0;
}

void srv_waiting_init(struct srv_waiting *w)
{
    gm_list_init(&w->turn);
    gm_list_init(&w->requests);
}

/* Puts the session, and its user, into the lists when it has a request. */
static void take_place(struct srv_turns *t, struct srv_session *c)
{
    if (gm_list_empty(&c->waiting.turn))
        gm_list_append(&c->user->turns, &c->waiting.turn);
    if (gm_list_empty(&c->user->turn))
        gm_list_append(&t->users, &c->user->turn);
}

void srv_turns_add(struct srv_turns *t, struct srv_request *r)
{
    gm_list_append(&r->session->waiting.requests, &r->link);
    take_place(t, r->session);
}

void srv_turns_put_back(struct srv_turns *t, struct srv_request *r)
{
    gm_list_prepend(&r->session->waiting.requests, &r->link);
    take_place(t, r->session);
}

void srv_turns_take_out(struct srv_request *r)
{
    struct srv_session *c = r->session;
    gm_list_remove(&r->link);
    if (gm_list_empty(&c->waiting.requests))
        gm_list_remove(&c->waiting.turn);
    if (gm_list_empty(&c->user->turns))
        gm_list_remove(&c->user->turn);
}

void srv_turns_begin(struct srv_turns *t, struct srv_request *r)
{
    r->counted = true;
    t->begun++;
}

void srv_turns_end(struct srv_turns *t, struct srv_request *r)
{
    t->begun -= r->counted;
    r->counted = false;
}

/* Moves the element to the end of the list. */
static void put_behind(struct gm_list *head, struct gm_list *e)
{
    /* It is in no list any more. */
    if (gm_list_empty(e))
        return;
    gm_list_remove(e);
    gm_list_append(head, e);
}

struct srv_request *srv_turns_next(struct srv_turns *t,
                                   bool (*is_held_back)(void *arg, const struct srv_request *r),
                                   void *arg)
{
    if (t->begun >= AT_ONCE)
        return NULL;
    gm_list_for_each (u, &t->users, struct srv_user, turn)
        gm_list_for_each (c, &u->turns, struct srv_session, waiting.turn)
            gm_list_for_each (r, &c->waiting.requests, struct srv_request, link) {
                if (is_held_back(arg, r))
                    continue;
                srv_turns_take_out(r);
                put_behind(&u->turns, &c->waiting.turn);
                put_behind(&t->users, &u->turn);
                return r;
            }
    return NULL;
}
