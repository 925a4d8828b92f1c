/*
 * Servers that outlived their daemon and come to this one with their clients (src/server/relink.c).
 *
 * A server is told apart by the user it runs as, which the kernel says. What a user's own server
 * says is believed for that user only, as of servers that this daemon started; one of all users has
 * to run as theirs does.
 */
#ifndef GMUX_CONTROL_RETURN_H
#define GMUX_CONTROL_RETURN_H

#include "control/server.h"

/* A server says that it is back, over `c`, of which nothing but the socket stays. NULL, or why it
 * is not taken; then `c` stays. */
GM_MUST_CHECK const char *ctl_return_server(struct ctl_conn *c, const struct wire_link_return *m);
/* One of its clients, before it says that it is ready. False if that cannot be. */
GM_MUST_CHECK bool ctl_return_client(struct ctl_server *s, const struct wire_link_return_client *m);
/* It is ready: it takes new clients, unless another one of its user does so already. */
void ctl_return_ready(struct ctl_server *s);

/* What else there is to say of one that was announced by ctl_return_client(). False: it must not
 * say that. */
GM_MUST_CHECK bool ctl_return_group(struct ctl_server *s, const struct wire_link_return_group *m);
GM_MUST_CHECK bool ctl_return_space(struct ctl_server *s, const struct wire_link_return_space *m);

#endif
