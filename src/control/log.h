/*
 * Lines for control.log. What strangers can cause at will is rationed: above a rate lines are left
 * out, and counted.
 */
#ifndef GMUX_CONTROL_LOG_H
#define GMUX_CONTROL_LOG_H

#include "control/daemon.h"

void ctl_log_init(struct ctl_daemon *d);
void ctl_log(struct ctl_daemon *d, const char *fmt, ...) GM_PRINTF(2, 3);
/* What a stranger causes. */
void ctl_log_stranger(struct ctl_daemon *d, const char *fmt, ...) GM_PRINTF(2, 3);
void ctl_log_accept(struct ctl_daemon *d);
/* What a UI causes: by who it is, either of the first two. */
void ctl_log_ui(const struct ctl_conn *c, const char *fmt, ...) GM_PRINTF(2, 3);

#endif
