/*
 * How much memory the control groups of this process allow it.
 */
#ifndef GMUX_DEVICE_CGROUP_H
#define GMUX_DEVICE_CGROUP_H

#include "base/attr.h"

/* The least of the limits of the process's group and those above it, version 1 or 2 (`membership`
 * is /proc/self/cgroup, `root` /sys/fs/cgroup); UINT64_MAX: there is none that can be read. */
uint64_t dev_cgroup_memory(const char *membership, const char *root);

#endif
