/*
 * The end of the daemon: servers are asked to shut down once their clients have left; behind the
 * last one the daemon's timer `end` runs out.
 */
#ifndef GMUX_CONTROL_QUIT_H
#define GMUX_CONTROL_QUIT_H

#include "control/daemon.h"

/* Begins the end. force_ms: servers are forced after that time; -1: never. Calling it again may
 * bring the force nearer. */
void ctl_quit(struct ctl_daemon *d, int64_t force_ms);
/* A server is gone: the next user's turn, or the end. */
void ctl_quit_server_gone(struct ctl_daemon *d);

#endif
