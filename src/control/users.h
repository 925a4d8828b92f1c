/*
 * Limits of one client, set while it runs, and of one user, which hold for each of his clients,
 * those to come too. They end with the daemon, as its defaults do.
 */
#ifndef GMUX_CONTROL_USERS_H
#define GMUX_CONTROL_USERS_H

#include "control/server.h"

struct ctl_user {
    struct gm_list link; /* daemon's users */
    uid_t uid;
    struct ctl_wish limits;
};

/* A user by name or number. */
GM_MUST_CHECK bool ctl_user_named(const char *word, uid_t *out);
/* What was set for a user; NULL: nothing. */
const struct ctl_wish *ctl_user_limits(const struct ctl_daemon *d, uid_t uid);
/* Sets it, and tells the servers of his clients. False without memory. */
GM_MUST_CHECK bool ctl_user_set_limits(struct ctl_daemon *d, uid_t uid,
                                       const struct ctl_wish *limits);
/* Sets what a client asks for, in place of what its environment said. */
void ctl_client_set_wish(struct ctl_server *s, struct ctl_client *c, const struct ctl_wish *wish);
/* Tells its server what holds for a client: its wish and what its user may have. */
void ctl_client_send_limits(struct ctl_server *s, const struct ctl_client *c);
void ctl_users_free(struct ctl_daemon *d);

#endif
