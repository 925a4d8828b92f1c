/*
 * What anybody here may do to a server's process: tell it something, have it killed, write what it
 * says to server.log.
 */
#ifndef GMUX_CONTROL_PROCESS_H
#define GMUX_CONTROL_PROCESS_H

#include "control/server.h"

/* Sends a packet; a server that cannot be talked to is killed, which shows elsewhere. */
void ctl_server_send(struct ctl_server *s, const struct wire_enc *e);

/* Kills it at once; everything else follows when it is collected. */
void ctl_server_kill(struct ctl_server *s, const char *reason);

/* A line for server.log. Rationed: a server runs its user's code. */
void ctl_server_log(struct ctl_server *s, const char *line);

#endif
