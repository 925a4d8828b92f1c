/*
 * The daemon's place in the file system: the pipe directory with its sockets, lock and pid file,
 * and the log directory. For the daemon and for the UI this file decides where they are.
 */
#ifndef GMUX_CONTROL_PLACE_H
#define GMUX_CONTROL_PLACE_H

#include <sys/types.h>

#include "base/attr.h"

#define CTL_SOCKET            "control"
#define CTL_PRIVILEGED_SOCKET "control_privileged"
#define CTL_LOCK_FILE         "control_lock"
#define CTL_PID_FILE          "nvidia-cuda-mps-control.pid"

/* why a daemon does not start if another one has the lock, in NVIDIA's words */
#define CTL_ALREADY_RUNNING "An instance of this daemon is already running"

struct ctl_daemon;

/* CUDA_MPS_PIPE_DIRECTORY, or the default. */
const char *ctl_place_pipe_directory(void);

/* Makes and opens everything that a daemon has there. 0, or -1 after one line on standard error. */
GM_MUST_CHECK int ctl_place_open(struct ctl_daemon *d);

/* Makes again what was removed. 0: nothing was missing; 1: made again; -1: that is not possible,
 * and was logged: another daemon has the place, or it may not belong to us any more. */
GM_MUST_CHECK int ctl_place_restore(struct ctl_daemon *d);

/* Makes a listening socket in an open directory. Descriptor or -errno. */
GM_MUST_CHECK int ctl_place_listen(int directory, const char *name, mode_t mode);

/* The logs, or their directory, were moved away: opens them again, and makes the directory. */
void ctl_place_reopen_logs(struct ctl_daemon *d);

/* At the end: frees the place for the next daemon. */
void ctl_place_leave(struct ctl_daemon *d);

#endif
