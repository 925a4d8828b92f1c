/*
 * How much device memory control groups allow a client (device/cgroup.h). On the software device,
 * whose memory is the host's, it is the limit of memory; on a GPU it is dmem.max, which Linux 6.14
 * has. It is looked up when a client comes, and holds for each program of its group.
 *
 * Only in protocol 3, where it is called memacct and can be turned off.
 */
#ifndef GMUX_CONTROL_CGROUP_H
#define GMUX_CONTROL_CGROUP_H

#include "control/server.h"

#define CTL_CGROUP_ROOT "/sys/fs/cgroup"

struct ctl_conn;

/* Bytes of each device that the control groups of the connecting process allow. UINT64_MAX: there
 * is no limit, or it is not known. */
uint64_t ctl_cgroup_memory(struct ctl_daemon *d, const struct ctl_server *s,
                           const struct ctl_conn *conn);

#endif
