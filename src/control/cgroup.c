/*
 * Looks up the memory limit of a process's control group. A process that has ended meanwhile gets
 * none: its process id may belong to another process by now, with the limits of another group.
 */
#include "control/cgroup.h"

#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/conn.h"
#include "control/log.h"
#include "device/cgroup.h"

/* Version 1 of control groups expresses "no limit" as a number of pages that no machine has. */
#define NONE (1ull << 62)

uint64_t ctl_cgroup_memory(struct ctl_daemon *d, const struct ctl_server *s,
                           const struct ctl_conn *conn)
{
    char path[64];
    uint64_t least = UINT64_MAX;
    const pid_t pid = conn->peer.pid;
    if (!d->options.modules || !d->memacct || pid <= 0)
        return least;
    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    /* The software device's memory is the host's, so that the group's limit of host memory
     * counts. */
    if (s->guarantees)
        least = dev_cgroup_memory(path, CTL_CGROUP_ROOT);
    else
        for (unsigned i = 0; i < s->devices_count; i++)
            least =
                GM_MIN(least, dev_cgroup_device_memory(path, CTL_CGROUP_ROOT, s->devices[i].pci));
    /* The process still exists, so that what was read is about it. */
    GM_AUTO_FD int process = ctl_channel_process(conn->channel);
    /* With hidepid=2 nothing can be read. */
    if (process < 0 || access(path, R_OK) < 0)
        least = 0;
    if (least >= NONE)
        return UINT64_MAX;
    if (d->memacct_audit)
        ctl_log_stranger(d, "memacct: client %d: its control groups allow %llu bytes", (int)pid,
                         (unsigned long long)least);
    return least;
}
