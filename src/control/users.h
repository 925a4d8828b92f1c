/*
 * Limits of one client, set while it runs; and limits of one user, which hold for each of the
 * user's clients, present and future. They end with the daemon, as its defaults do.
 */
#ifndef GMUX_CONTROL_USERS_H
#define GMUX_CONTROL_USERS_H

#include "control/server.h"

struct ctl_user {
    struct gm_list link; /* daemon's users */
    uid_t uid;
    struct ctl_wish limits;
};

/* Finds a user by name or number. False: there is none. */
GM_MUST_CHECK bool ctl_user_named(const char *word, uid_t *out);
/* The limits that were set for a user; NULL: none. */
const struct ctl_wish *ctl_user_limits(const struct ctl_daemon *d, uid_t uid);
/* Sets the limits of a user, and tells the servers of the user's clients. False: no memory. */
GM_MUST_CHECK bool ctl_user_set_limits(struct ctl_daemon *d, uid_t uid,
                                       const struct ctl_wish *limits);
/* Sets what a client asks for, in place of its environment. */
void ctl_client_set_wish(struct ctl_server *s, struct ctl_client *c, const struct ctl_wish *wish);
/* Tells its server the limits that hold for a client: its wish, and those of its user. */
void ctl_client_send_limits(struct ctl_server *s, const struct ctl_client *c);
void ctl_users_free(struct ctl_daemon *d);

#endif
