/*
 * Names of servers, for protocol 3. A server is its user's, and is called uid_UID unless it was
 * given another name; each user has one at a time.
 */
#ifndef GMUX_CONTROL_NAME_H
#define GMUX_CONTROL_NAME_H

#include "control/daemon.h"

#define CTL_SERVER_NAME_MAX 64

struct ctl_server_name {
    struct gm_list link; /* daemon's names */
    uid_t uid;
    char name[CTL_SERVER_NAME_MAX + 1];
};

/* Lowercase letters, digits and '_'. */
bool ctl_name_is_good(const char *s);
void ctl_name_of(const struct ctl_daemon *d, uid_t uid, char out[CTL_SERVER_NAME_MAX + 1]);
/* Whose server that is, or would be. */
GM_MUST_CHECK bool ctl_name_find(const struct ctl_daemon *d, const char *name, uid_t *uid);
/* NULL, or why not. */
const char *ctl_name_set(struct ctl_daemon *d, uid_t uid, const char *name);
/* It is called uid_UID again. */
void ctl_name_drop(struct ctl_daemon *d, uid_t uid);
void ctl_names_free(struct ctl_daemon *d);

#endif
