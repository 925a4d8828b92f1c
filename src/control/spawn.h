/*
 * Starts a server process: as the user whose clients it will serve, with the link to the daemon as
 * descriptor 3, and with standard output and error on a pipe, because the last line that a program
 * wrote before it died explains its death best. Errors between fork and exec are written to that
 * pipe, too.
 */
#ifndef GMUX_CONTROL_SPAWN_H
#define GMUX_CONTROL_SPAWN_H

#include <sys/types.h>

#include "base/attr.h"

struct ctl_spawn {
    const char *path;            /* of the program */
    const char *name;            /* argv[0] */
    const char *visible_devices; /* its CUDA_VISIBLE_DEVICES; NULL: the daemon's */
    bool change_user;            /* become `uid`: the caller is root */
    uid_t uid;
    gid_t gid; /* used if the user data base does not know the user */
};

/* Descriptors are CLOEXEC and the caller's. The process id, or -errno. */
GM_MUST_CHECK pid_t ctl_spawn_server(const struct ctl_spawn *how, int *link_fd, int *output_fd);

/* Finds gmux-server: in GMUX_LIBEXECDIR, beside the running program in a build tree or an
 * installation (wherever that was moved to), or where it was to be installed. Returns the first one
 * that can be executed; if none can, the installed place, so that the error names it. The caller
 * frees the path. NULL: no memory. */
char *ctl_spawn_find_server(void);

#endif
