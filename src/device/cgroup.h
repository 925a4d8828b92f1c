/*
 * How much memory the control groups of a process allow it.
 */
#ifndef GMUX_DEVICE_CGROUP_H
#define GMUX_DEVICE_CGROUP_H

#include "base/attr.h"

/* The least of the limits of the process's group and those above it, version 1 or 2 (`membership`
 * is /proc/PID/cgroup, `root` /sys/fs/cgroup); UINT64_MAX: there is none that can be read. */
uint64_t dev_cgroup_memory(const char *membership, const char *root);
/* The least limit of a device's memory, by a part of the device's name (version 2, dmem.max). */
uint64_t dev_cgroup_device_memory(const char *membership, const char *root, const char *device);
/* Whether the kernel accounts for devices' memory (dmem). */
bool dev_cgroup_has_device_memory(const char *root);

#endif
