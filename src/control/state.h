/*
 * What commands have set: defaults, limits of users and of groups. While the daemon runs it is kept
 * as a file of such commands in the pipe directory, so that the next daemon has it again when this
 * one is killed or restarted. A daemon that ends in order removes the file.
 */
#ifndef GMUX_CONTROL_STATE_H
#define GMUX_CONTROL_STATE_H

#include "control/daemon.h"

/* Executes one line of the file; false: it is no command. */
typedef bool ctl_state_run(struct ctl_daemon *d, const char *line);
/* Executes what an earlier daemon has left; called before anybody is served. */
void ctl_state_load(struct ctl_daemon *d, ctl_state_run *run);
/* Writes the file again; called after each command that is marked CTL_KEPT. */
void ctl_state_save(struct ctl_daemon *d);
void ctl_state_remove(struct ctl_daemon *d);

#endif
