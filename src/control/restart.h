/*
 * The daemon started anew from its program file, in the same process: for a new version under
 * running programs. What programs need in order to find a daemon is never gone: the sockets, with
 * those who wait in them, and the lock pass to the new program. Servers come back to it as to any
 * next daemon (return.h).
 */
#ifndef GMUX_CONTROL_RESTART_H
#define GMUX_CONTROL_RESTART_H

#include "control/daemon.h"

/* At the start of the process: how to start it again. NULL without memory, or if it cannot be
 * known. */
struct ctl_restart *ctl_restart_prepare(char **argv);

void ctl_restart_free(struct ctl_restart *r);

/* Reads the argument of --restarted. False if it is not what this program wrote. */
GM_MUST_CHECK bool ctl_restart_read(struct ctl_inherited *out, const char *text);

/* Does not return, unless it fails: -errno. */
int ctl_restart(struct ctl_daemon *d);

#endif
