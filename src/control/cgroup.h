/*
 * What control groups allow a client of device memory (device/cgroup.h): that of memory on the
 * software device, whose memory is the host's; dmem.max, which Linux 6.14 has, on a GPU. It is
 * looked up when a client comes, and holds for each of its group's programs.
 *
 * In protocol 3 only, where it is called memacct, and can be turned off.
 */
#ifndef GMUX_CONTROL_CGROUP_H
#define GMUX_CONTROL_CGROUP_H

#include "control/server.h"

#define CTL_CGROUP_ROOT "/sys/fs/cgroup"

struct ctl_conn;

/* Bytes of each device that the control groups of the process that has connected allow; UINT64_MAX:
 * no limit, or it is not known. */
uint64_t ctl_cgroup_memory(struct ctl_daemon *d, const struct ctl_server *s,
                           const struct ctl_conn *conn);

#endif
