/*
 * The link between the daemon and a server: what servers may say and when, and commands that a
 * server has to answer.
 */
#ifndef GMUX_CONTROL_LINK_H
#define GMUX_CONTROL_LINK_H

#include "control/request.h"
#include "control/server.h"

/* The owner is a struct ctl_server. */
extern const struct ctl_channel_ops ctl_link_ops;

/* Commands that a server answers. If it does not within CTL_ANSWER_MS, the command has failed.
 * ctl_server_terminate() ends a client. */
void ctl_server_terminate(struct ctl_server *s, uint32_t client, struct ctl_request *r);
/* Asks what the server's clients use; calls `row` for each of them. */
void ctl_server_ask_usage(struct ctl_server *s, struct ctl_request *r, ctl_usage_row *row);
/* The server is gone: answers the requests that wait for it. */
void ctl_link_give_up(struct ctl_server *s);

#endif
