/*
 * Groups of programs of one user, by name: what all in it may have together, and are guaranteed. A
 * group is there while somebody is in it, or something is set for it. What it means is the server's
 * and the device's (server/group.h).
 */
#ifndef GMUX_CONTROL_GROUP_H
#define GMUX_CONTROL_GROUP_H

#include "control/server.h"

struct ctl_group {
    struct gm_list link; /* daemon's groups */
    uid_t uid;
    char name[CTL_GROUP_MAX + 1];
    unsigned clients;
    struct ctl_wish limits; /* share, guarantee and memory */
};

/* For one more client; NULL without a name or memory. */
struct ctl_group *ctl_group_get(struct ctl_daemon *d, uid_t uid, const char *name);
/* One less. NULL is fine. */
void ctl_group_put(struct ctl_group *g);
/* What is set for it; NULL: nobody is in it and nothing is set. */
const struct ctl_wish *ctl_group_limits(const struct ctl_daemon *d, uid_t uid, const char *name);
/* Sets it, and tells the servers of its clients. NULL, or why not. */
const char *ctl_group_set(struct ctl_daemon *d, uid_t uid, const char *name,
                          const struct ctl_wish *limits);
/* Changes the group that a client is in, and what it is guaranteed, to what its wish says, and
 * tells its server. */
void ctl_client_place(struct ctl_server *s, struct ctl_client *c);
void ctl_groups_free(struct ctl_daemon *d);

#endif
