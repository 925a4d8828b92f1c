/*
 * Starts the daemon again from its program file, in the same process: for upgrades under running
 * programs. What programs need to find a daemon never disappears: the sockets, with the connections
 * that wait in them, and the lock pass to the new program. Servers come back to it as to any next
 * daemon (return.h).
 */
#ifndef GMUX_CONTROL_RESTART_H
#define GMUX_CONTROL_RESTART_H

#include "control/daemon.h"

/* Called at the start of the process: reads what the program that was here before has passed on. */
void ctl_restart_read(struct ctl_options *out);

/* Does not return, unless it fails with -errno. */
int ctl_restart(struct ctl_daemon *d);

#endif
