/*
 * Where programs connect to a server of protocol 3, or to one of its namespaces: a directory with a
 * socket for each, below the daemon's pipe directory.
 *
 *   PIPE/SERVER/control            the server's namespace `default`
 *   PIPE/SERVER/default/control    the same
 *   PIPE/SERVER/NAMESPACE/control
 *
 * A server's log is LOG/SERVER/server.log. What is not a daemon's own at one of these names stays,
 * and nothing is made there.
 */
#ifndef GMUX_CONTROL_DOOR_H
#define GMUX_CONTROL_DOOR_H

#include "control/space.h"

/* The server that a user's programs have who name none, made if it is not there. NULL without
 * memory. */
struct ctl_named *ctl_door_user(struct ctl_daemon *d, uid_t uid);
/* Makes what is missing for a server and its namespaces. NULL, or why not: some may be there. */
GM_MUST_CHECK const char *ctl_door_open(struct ctl_daemon *d, struct ctl_named *n);
/* The directory that programs connect in. */
void ctl_door_directory(const struct ctl_daemon *d, const struct ctl_space *s, bool of_server,
                        char *out, size_t size);
/* Takes a namespace's sockets and directory away. */
void ctl_door_close(struct ctl_daemon *d, struct ctl_space *s);
/* All of a server's. */
void ctl_door_close_server(struct ctl_daemon *d, struct ctl_named *n);
/* Before the daemon is started anew: its sockets stay open, and the environment names them; the
 * next one takes those that it wants, and closes the others. `on` false: it was not started. */
void ctl_door_bequeath(struct ctl_daemon *d, bool on);
void ctl_door_forget_inherited(struct ctl_daemon *d);
/* Something was removed from the pipe directory: made again, as far as possible. */
void ctl_door_restore(struct ctl_daemon *d);

#endif
