/*
 * Groups of a user's programs that have a part of the device and its memory together. A group is
 * there while it has members; what it may have is the control daemon's to say, with each member
 * (link_client_group).
 *
 * On a device without groups (srv_server.guarantees) each member has the group's share by itself,
 * at most. Event loop only.
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
    double share_pct;           /* 0: no limit */
    double guarantee_pct;       /* 0: none */
    struct srv_account account; /* between those of its sessions and its user's */
};

/* Puts the session into a group of its user's, or out of the one that it is in. The session's
 * limits are to be set anew. */
void srv_group_place(struct srv_session *c, const struct wire_link_client_group *m);
/* Of a session without charges. */
void srv_group_leave(struct srv_session *c);
/* It is in a group or guaranteed something: the executor has to know. */
bool srv_group_matters(const struct srv_session *c);
/* Tells the executor; see srv_executor_ask(). */
void srv_group_tell(struct srv_session *c, srv_answer_fn *done);

#endif
