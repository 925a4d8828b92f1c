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

#define CTL_DOOR_NAME (2 * CTL_SERVER_NAME_MAX + 16)

/* The server for programs of a user that name none; made if it does not exist. NULL: no memory. */
struct ctl_named *ctl_door_user(struct ctl_daemon *d, uid_t uid);
/* Makes the directories and sockets that are missing for a server and its namespaces. NULL, or why
 * not; some may exist then. */
GM_MUST_CHECK const char *ctl_door_open(struct ctl_daemon *d, struct ctl_named *n);
/* The directory in which a namespace's programs connect. */
void ctl_door_directory(const struct ctl_daemon *d, const struct ctl_space *s, bool of_server,
                        char *out, size_t size);
/* The path of the socket in that directory, below the pipe directory; CTL_DOOR_NAME bytes. */
void ctl_door_name(const struct ctl_space *s, bool of_server, char *out);
/* Removes a namespace's sockets and directory. */
void ctl_door_close(struct ctl_daemon *d, struct ctl_space *s);
/* Removes those of all namespaces of a server. */
void ctl_door_close_server(struct ctl_daemon *d, struct ctl_named *n);
/* Called when something was removed from the pipe directory: makes it again, if possible. */
void ctl_door_restore(struct ctl_daemon *d);

#endif
