/*
 * The configuration file of protocol 3 (-a, --apply), in TOML: servers with their limits and static
 * partitions. It is turned into commands, which the daemon executes when it starts. Anything that
 * the format does not have, or this daemon does not, is an error.
 */
#ifndef GMUX_CONTROL_APPLY_H
#define GMUX_CONTROL_APPLY_H

#include "control/config.h"

/* Reads the whole file first. 0; or -1 with one line in `why`, and then nothing has been added. */
GM_MUST_CHECK int ctl_apply_read(struct ctl_config *c, const char *path, char *why,
                                 unsigned why_size);

#endif
