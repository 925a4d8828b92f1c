/*
 * Opening a directory whose name leads through places where other users may write. A daemon that is
 * root takes no directory that somebody else could swap for one of his own: every part of the path
 * belongs to root, nobody else may rename in it, and the directory itself is not a link. What
 * follows uses the descriptor, never the path.
 */
#ifndef GMUX_CONTROL_DIRECTORY_H
#define GMUX_CONTROL_DIRECTORY_H

#include <stddef.h>

#include "base/attr.h"

/* Opens `path` (O_PATH), made with mode 0755 if only its last part is missing. The descriptor, or
 * -1 with the reason in `why`: what is wrong, without the path. */
GM_MUST_CHECK int ctl_directory_open(const char *path, char *why, size_t why_size);

#endif
