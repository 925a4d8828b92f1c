/*
 * The daemon's place in the file system: the pipe directory with its sockets, lock and pid file,
 * and the log directory. Where both are is decided here, for the daemon and for the UI.
 */
#ifndef GMUX_CONTROL_PLACE_H
#define GMUX_CONTROL_PLACE_H

#include <sys/types.h>

#include "base/attr.h"

#define CTL_SOCKET            "control"
#define CTL_PRIVILEGED_SOCKET "control_privileged"
#define CTL_LOCK_FILE         "control_lock"
#define CTL_PID_FILE          "nvidia-cuda-mps-control.pid"

/* Why a daemon does not start where another one has the lock. NVIDIA's words. */
#define CTL_ALREADY_RUNNING "An instance of this daemon is already running"

struct ctl_daemon;

/* CUDA_MPS_PIPE_DIRECTORY, or the default. */
const char *ctl_place_pipe_directory(void);

/* Makes and opens all that a daemon has there. 0, or -1 after one line on standard error. */
GM_MUST_CHECK int ctl_place_open(struct ctl_daemon *d);

/* Makes again what was removed from there. 0: it was all there; 1: made again; -1: not possible,
 * which has been logged: another daemon has the place, or it may not be ours any more. */
GM_MUST_CHECK int ctl_place_restore(struct ctl_daemon *d);

/* A socket in a directory that is open. Descriptor or -errno. */
GM_MUST_CHECK int ctl_place_listen(int directory, const char *name, mode_t mode);

/* Somebody has moved the logs away, or their directory, which is made again then. */
void ctl_place_reopen_logs(struct ctl_daemon *d);

/* At the end: the place is free for the next daemon. */
void ctl_place_leave(struct ctl_daemon *d);

#endif
