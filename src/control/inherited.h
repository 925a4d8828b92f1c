/*
 * Named descriptors that a daemon begins with: from itself after a restart (restart.h), or from a
 * service manager (service.h). The name of a socket or file is its path below the pipe directory.
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

/* Adds a descriptor, which stays the caller's on failure; programs do not inherit it from now on. 0
 * or -errno. */
GM_MUST_CHECK int ctl_inherited_add(struct ctl_inherited *in, int fd, const char *name);
bool ctl_inherited_has(const struct ctl_inherited *in, const char *name);
/* Takes the descriptor of that name, which then belongs to the caller; -1: there is none. */
int ctl_inherited_take(struct ctl_inherited *in, const char *name);
/* Closes the descriptors that were not taken. */
void ctl_inherited_finish(struct ctl_inherited *in);

#endif
