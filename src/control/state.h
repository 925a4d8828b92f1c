/*
 * What commands have set: defaults, limits of users and of groups. It is kept as a file of such
 * commands in the pipe directory for as long as the daemon runs, so that the next one has it again
 * when this one is killed or restarted. A daemon that ends in order takes it away.
 */
#ifndef GMUX_CONTROL_STATE_H
#define GMUX_CONTROL_STATE_H

#include "control/daemon.h"

/* Executes one line of it; false: that is none. */
typedef bool ctl_state_run(struct ctl_daemon *d, const char *line);
/* Executes what an earlier daemon has left; before anybody is served. */
void ctl_state_load(struct ctl_daemon *d, ctl_state_run *run);
/* Writes it anew; called after each command that is marked CTL_KEPT. */
void ctl_state_save(struct ctl_daemon *d);
void ctl_state_remove(struct ctl_daemon *d);

#endif
