/*
 * Groups of programs of one user, by name: what the programs in it may have together, and what they
 * are guaranteed. A group exists while a program is in it, or something is set for it. The server
 * and the device decide what that means (server/group.h).
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

/* The group, for one more client. NULL: no name, or no memory. */
struct ctl_group *ctl_group_get(struct ctl_daemon *d, uid_t uid, const char *name);
/* The group has one client less. NULL is accepted. */
void ctl_group_put(struct ctl_group *g);
/* The limits of a group; NULL: it does not exist. */
const struct ctl_wish *ctl_group_limits(const struct ctl_daemon *d, uid_t uid, const char *name);
/* Sets the limits of a group, and tells the servers of its clients. NULL, or why not. */
const char *ctl_group_set(struct ctl_daemon *d, uid_t uid, const char *name,
                          const struct ctl_wish *limits);
/* Puts a client into the group, and gives it the guarantee, that its wish says; tells its
 * server. */
void ctl_client_place(struct ctl_server *s, struct ctl_client *c);
void ctl_groups_free(struct ctl_daemon *d);

#endif
