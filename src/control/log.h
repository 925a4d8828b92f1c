/*
 * Lines of control.log. Lines that strangers can cause at will are limited to a rate; those beyond
 * it are left out and counted.
 */
#ifndef GMUX_CONTROL_LOG_H
#define GMUX_CONTROL_LOG_H

#include "control/daemon.h"

void ctl_log_init(struct ctl_daemon *d);
void ctl_log(struct ctl_daemon *d, const char *fmt, ...) GM_PRINTF(2, 3);
/* A line that a stranger causes. */
void ctl_log_stranger(struct ctl_daemon *d, const char *fmt, ...) GM_PRINTF(2, 3);
void ctl_log_accept(struct ctl_daemon *d);
/* A line that a UI causes; limited like a stranger's unless the UI is trusted. */
void ctl_log_ui(const struct ctl_conn *c, const char *fmt, ...) GM_PRINTF(2, 3);

#endif
