/*
 * The configuration file of protocol 3 (-a, --apply), in TOML: servers with their limits and static
 * partitions. It becomes commands, which the daemon executes when it starts. What this daemon does
 * not have is a mistake, as is whatever the file's format does not know.
 */
#ifndef GMUX_CONTROL_APPLY_H
#define GMUX_CONTROL_APPLY_H

#include "control/config.h"

/* Reads it as a whole first. 0, or -1 with one line in `why`, and nothing has been added. */
GM_MUST_CHECK int ctl_apply_read(struct ctl_config *c, const char *path, char *why,
                                 unsigned why_size);

#endif
