/*
 * Users of a server. It has one, unless the control daemon runs with -M: then all users' clients
 * come to the same server, and here is what keeps them apart: each user's account, and the images
 * his programs sent.
 *
 * A user is there while he has sessions, or memory of theirs is being freed. Event loop only.
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
    struct srv_account account; /* between those of his sessions and the server's */
    struct srv_images images;
    struct gm_list groups; /* group.h */
    struct srv_sweep_owner sweeps;
    struct gm_list turn;  /* executor->turns.users */
    struct gm_list turns; /* sessions with requests that wait */
};

/* The user with this id, for one more session; NULL without memory. */
struct srv_user *srv_user_get(struct srv_server *s, uint32_t uid);
/* One session less. */
void srv_user_put(struct srv_user *u);
/* As srv_sweep(), for what a session leaves behind in a file that others have open. False: that is
 * more than its user may have. */
GM_MUST_CHECK bool srv_user_sweep(struct srv_user *u, int fd, uint64_t offset, uint64_t size);

#endif
