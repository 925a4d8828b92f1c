/*
 * Opens a directory whose path leads through places where other users may write. A daemon that runs
 * as root uses no directory that another user could exchange for one of their own: every part of
 * the path belongs to root, nobody else may rename in it, and the directory itself is no link.
 * Everything after that uses the descriptor, never the path.
 */
#ifndef GMUX_CONTROL_DIRECTORY_H
#define GMUX_CONTROL_DIRECTORY_H

#include <stddef.h>

#include "base/attr.h"

/* Opens `path` (O_PATH); makes it with mode 0755 if only its last part is missing. The descriptor;
 * or -1, with the reason in `why`, without the path. */
GM_MUST_CHECK int ctl_directory_open(const char *path, char *why, size_t why_size);

#endif
