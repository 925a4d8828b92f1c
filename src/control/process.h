/*
 * What any file may do to a server's process: send it a message, kill it, write what it says to
 * server.log.
 */
#ifndef GMUX_CONTROL_PROCESS_H
#define GMUX_CONTROL_PROCESS_H

#include "control/server.h"

/* Sends a packet. A server that cannot be reached is killed; the rest follows when it is
 * collected. */
void ctl_server_send(struct ctl_server *s, const struct wire_enc *e);

/* Kills it at once; everything else follows when it is collected. */
void ctl_server_kill(struct ctl_server *s, const char *reason);

/* Writes a line to server.log. The rate is limited, since a server runs as its user. */
void ctl_server_log(struct ctl_server *s, const char *line);

#endif
