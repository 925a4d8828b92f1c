/*
 * The daemon started anew from its program file, in the same process: for a new version under
 * running programs. What programs need in order to find a daemon is never gone: the sockets, with
 * those who wait in them, and the lock pass to the new program. Servers come back to it as to any
 * next daemon (return.h).
 */
#ifndef GMUX_CONTROL_RESTART_H
#define GMUX_CONTROL_RESTART_H

#include "control/daemon.h"

/* At the start of the process: what the program that was here before has passed on. */
void ctl_restart_read(struct ctl_options *out);

/* Does not return, unless it fails: -errno. */
int ctl_restart(struct ctl_daemon *d);

#endif
