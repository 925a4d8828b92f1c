/*
 * Starting a server process: as the user whose clients it will serve, with the link to the daemon
 * as descriptor 3 and everything it writes to its standard output and error on a pipe, because the
 * last line a program wrote before it died is the best explanation there is. What goes wrong
 * between fork and exec is said on that pipe, too.
 */
#ifndef GMUX_CONTROL_SPAWN_H
#define GMUX_CONTROL_SPAWN_H

#include <sys/types.h>

#include "base/attr.h"

struct ctl_spawn {
    const char *path;            /* of the program */
    const char *name;            /* argv[0] */
    const char *visible_devices; /* CUDA_VISIBLE_DEVICES for it; NULL: as the daemon's */
    bool change_user;            /* become `uid`: the caller is root */
    uid_t uid;
    gid_t gid; /* where the user data base does not know the user */
};

/* Descriptors are CLOEXEC and the caller's. The process id, or -errno. */
GM_MUST_CHECK pid_t ctl_spawn_server(const struct ctl_spawn *how, int *link_fd, int *output_fd);

/* Where gmux-server is: in the directory that GMUX_LIBEXECDIR names, beside the running program in
 * a build tree or in an installed one (wherever that was moved to), or where it was to be
 * installed. The first that can be executed; the installed place if none can, so that the error
 * names it. The caller frees; NULL without memory. */
char *ctl_spawn_find_server(void);

#endif
