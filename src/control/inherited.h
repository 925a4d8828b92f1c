/*
 * Descriptors with names that a daemon begins with: from itself, when it was started anew
 * (restart.h), or from a service manager (service.h). A socket's or file's name is its path below
 * the pipe directory.
 */
#ifndef GMUX_CONTROL_INHERITED_H
#define GMUX_CONTROL_INHERITED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

struct ctl_inherited {
    struct ctl_inherited_fd *fds;
    size_t count;
};

/* 0 or -errno: the descriptor stays the caller's. From now on programs do not inherit it. */
GM_MUST_CHECK int ctl_inherited_add(struct ctl_inherited *in, int fd, const char *name);
bool ctl_inherited_has(const struct ctl_inherited *in, const char *name);
/* The descriptor of that name, which is the caller's now; -1: there is none. */
int ctl_inherited_take(struct ctl_inherited *in, const char *name);
/* Closes those that nobody has taken. */
void ctl_inherited_finish(struct ctl_inherited *in);

#endif
