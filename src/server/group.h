/*
 * Groups of a user's programs that have a part of the device, and memory, together. A group exists
 * while it has members. The control daemon decides what a group may have, and says it with each
 * member (link_client_group).
 *
 * On a device without groups (srv_server.guarantees is false) each member by itself has at most the
 * group's share. Event loop only.
 */
#ifndef GMUX_SERVER_GROUP_H
#define GMUX_SERVER_GROUP_H

#include "server/account.h"
#include "server/request.h"
#include "server/user.h"

struct srv_session;
struct wire_link_client_group;

struct srv_group {
    struct gm_list link; /* user->groups */
    uint32_t number;     /* the executor's name for it */
    unsigned members;
    char name[65];
    double share_pct;     /* 0: no limit */
    double guarantee_pct; /* 0: none */
    /* its parent is the user's account, and its sessions' accounts are below it */
    struct srv_account account;
};

/* Puts the session into a group of its user's, or takes it out of its group. The caller sets the
 * session's limits again. */
void srv_group_place(struct srv_session *c, const struct wire_link_client_group *m);
/* Called for a session without charges. */
void srv_group_leave(struct srv_session *c);
/* Whether the executor has to know: the session is in a group, or has a guarantee. */
bool srv_group_matters(const struct srv_session *c);
/* Tells the executor; see srv_executor_ask(). */
void srv_group_tell(struct srv_session *c, srv_answer_fn *done);

#endif
