/*
 * Users of a server. There is one, unless the control daemon runs with -M: then clients of all
 * users come to the same server, and this is what keeps them apart: an account for each user, and
 * the images that its programs sent.
 *
 * A user exists while it has sessions, or while memory of theirs is being freed. Event loop only.
 */
#ifndef GMUX_SERVER_USER_H
#define GMUX_SERVER_USER_H

#include "base/list.h"
#include "server/account.h"
#include "server/image.h"
#include "server/sweep.h"

struct srv_server;

struct srv_user {
    struct gm_list link; /* server->users */
    struct srv_server *server;
    unsigned sessions;
    uint32_t uid;
    struct srv_account account; /* between those of its sessions and the server's */
    struct srv_images images;
    struct gm_list groups; /* group.h */
    struct srv_sweep_owner sweeps;
    struct gm_list turn;  /* in executor->turns.users */
    struct gm_list turns; /* its sessions that have requests waiting */
};

/* Finds or makes the user with this id, for one more session. NULL: no memory. */
struct srv_user *srv_user_get(struct srv_server *s, uint32_t uid);
/* Counts one session less. */
void srv_user_put(struct srv_user *u);
/* Like srv_sweep(), for what a session leaves in a file that others have open. False: that would be
 * more than its user may have. */
GM_MUST_CHECK bool srv_user_sweep(struct srv_user *u, int fd, uint64_t offset, uint64_t size);

#endif
