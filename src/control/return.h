/*
 * Servers that outlived their daemon and come to this one with their clients (src/server/relink.c).
 *
 * A server is judged by the user that it runs as, which the kernel says. What a user's own server
 * says is believed for that user only, as with servers that this daemon started. A server of all
 * users has to run as this daemon's would.
 */
#ifndef GMUX_CONTROL_RETURN_H
#define GMUX_CONTROL_RETURN_H

#include "control/server.h"

/* A server says over `c` that it is back; only the socket of `c` is kept. NULL; or why it is
 * refused, and then `c` stays. */
GM_MUST_CHECK const char *ctl_return_server(struct ctl_conn *c, const struct wire_link_return *m);
/* Adds one of its clients, before it is ready. False: that is not possible. */
GM_MUST_CHECK bool ctl_return_client(struct ctl_server *s, const struct wire_link_return_client *m);
/* The server is ready: it takes new clients, unless another server of its user does already. */
void ctl_return_ready(struct ctl_server *s);

/* Adds group and limits of a client that ctl_return_client() announced. False: the server may not
 * say that. */
GM_MUST_CHECK bool ctl_return_group(struct ctl_server *s, const struct wire_link_return_group *m);
GM_MUST_CHECK bool ctl_return_space(struct ctl_server *s, const struct wire_link_return_space *m);

#endif
