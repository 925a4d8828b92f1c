/*
 * The link between the daemon and a server: what servers may say and when, the lines they write to
 * server.log, and commands that a server has to answer.
 */
#ifndef GMUX_CONTROL_LINK_H
#define GMUX_CONTROL_LINK_H

#include "control/server.h"

/* The owner is a struct ctl_server. */
extern const struct ctl_channel_ops ctl_link_ops;

/* Sends a packet; a server that cannot be talked to is killed, which shows elsewhere. */
void ctl_link_send(struct ctl_server *s, const struct wire_enc *e);

/* A line for server.log. Rationed: a server runs its user's code. */
void ctl_link_log(struct ctl_server *s, const char *line);

/* Commands that a server has to answer first; one that does not within CTL_ANSWER_MS has failed. */
void ctl_server_terminate(struct ctl_server *s, uint32_t client, struct ctl_request *r);
void ctl_server_ask_usage(struct ctl_server *s, struct ctl_request *r);
/* The server is gone: answers those that wait for it. */
void ctl_link_give_up(struct ctl_server *s);

#endif
