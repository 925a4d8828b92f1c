/*
 * The daemon as a service of systemd, or of a manager with the same protocol: takes sockets on
 * which the manager listens already, and reports when the daemon can be used. Sources:
 * sd_listen_fds(3), sd_notify(3). Without a manager nothing happens.
 */
#ifndef GMUX_CONTROL_SERVICE_H
#define GMUX_CONTROL_SERVICE_H

#include "control/daemon.h"

/* Takes the sockets named "control" and "control_privileged" (FileDescriptorName=) that this
 * process was started with; the daemon makes those that are missing. False, after one line on
 * standard error: the descriptors are something else. Called once, before anything else is opened.
 * It also removes the variables, which are for this process only. */
GM_MUST_CHECK bool ctl_service_sockets(struct ctl_inherited *out);

/* For Type=notify: reports that clients can connect. */
void ctl_service_ready(void);

#endif
