/*
 * The end of the daemon: servers are asked to end once their clients have left; after the last one
 * the daemon's timer `end` fires.
 */
#ifndef GMUX_CONTROL_QUIT_H
#define GMUX_CONTROL_QUIT_H

#include "control/daemon.h"

/* Begins the end. Servers are forced to end after force_ms; -1: never. Another call may bring that
 * time forward. */
void ctl_quit(struct ctl_daemon *d, int64_t force_ms);
/* A server is gone: it may be the next user's turn, or the end. */
void ctl_quit_server_gone(struct ctl_daemon *d);

#endif
