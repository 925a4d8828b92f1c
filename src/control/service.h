/*
 * The daemon as a service of systemd, or of any manager that speaks as it does: sockets that the
 * manager already listens on, and a word when the daemon can be used. Sources: sd_listen_fds(3),
 * sd_notify(3). Without a manager nothing happens.
 */
#ifndef GMUX_CONTROL_SERVICE_H
#define GMUX_CONTROL_SERVICE_H

#include "control/daemon.h"

/* Takes the sockets named "control" and "control_privileged" (FileDescriptorName=) that this
 * process was started with. Those that are missing the daemon makes. False after one line on
 * standard error: they are something else. Called once, before anything else is opened: it also
 * removes the variables, which are for this process only. */
GM_MUST_CHECK bool ctl_service_sockets(struct ctl_inherited *out);

/* Type=notify: clients can connect. */
void ctl_service_ready(void);

#endif
