/*
 * Opens the daemon's directories, and makes the files in them by descriptor, so that nobody can put
 * something else in their place meanwhile. If the files are removed the daemon makes them again.
 */
#include "control/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/daemon.h"
#include "control/directory.h"
#include "control/log.h"
#include "control/state.h"

#define DEFAULT_PIPE_DIRECTORY "/tmp/nvidia-mps"
#define DEFAULT_LOG_DIRECTORY  "/var/log/nvidia-mps"

/* The length of a line that says what went wrong. */
#define PROBLEM 512
#define TRIES   1000u /* attempts to make the files again: some 50 ms */

/* Writes what went wrong, and why, as one line. */
static int complain(char *problem, const char *path, const char *why)
{
    snprintf(problem, PROBLEM, "gmux-control: %s: %s", path, why);
    return -1;
}

static int complain_of(char *problem, const struct ctl_daemon *d, const char *name, const char *why)
{
    snprintf(problem, PROBLEM, "gmux-control: %s/%s: %s", d->pipe_directory, name, why);
    return -1;
}

const char *ctl_place_pipe_directory(void)
{
    const char *s = getenv("CUDA_MPS_PIPE_DIRECTORY");
    return s && *s ? s : DEFAULT_PIPE_DIRECTORY;
}

/* Opens the directory, which is made if it does not exist, and finds its real path. The caller
 * frees that. */
static int open_directory(const char *path, char **real, char *problem)
{
    char why[PROBLEM / 2];
    struct stat ours, named;
    *real = NULL;
    GM_AUTO_FD int fd = ctl_directory_open(path, why, sizeof(why));
    if (fd < 0)
        return complain(problem, path, why);
    GM_AUTO_FREE char *name = realpath(path, NULL);
    if (!name || stat(name, &named) < 0 || fstat(fd, &ours) < 0)
        return complain(problem, path, strerror(errno));
    if (ours.st_ino != named.st_ino || ours.st_dev != named.st_dev)
        return complain(problem, path, "was exchanged while it was opened");
    *real = gm_take_ptr(name);
    return gm_take_fd(&fd);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Whether the name in the pipe directory still leads to the file that we hold. */
static bool is_ours(const struct ctl_daemon *d, const char *name, const struct stat *held)
{
    struct stat st;
    return fstatat(d->pipe_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && same_file(&st, held);
}

static int take_lock(struct ctl_daemon *d, char *problem)
{
    struct stat st;
    if (d->lock_fd < 0)
        d->lock_fd = ctl_inherited_take(&d->options.inherited, CTL_LOCK_FILE);
    if (d->lock_fd >= 0 && fstat(d->lock_fd, &st) == 0 && is_ours(d, CTL_LOCK_FILE, &st))
        return 0;
    /* Only we may open the lock: anybody else who can open it can hold it, and keep every daemon
     * out. */
    GM_AUTO_FD int fd = openat(d->pipe_fd, CTL_LOCK_FILE,
                               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return complain_of(problem, d, CTL_LOCK_FILE, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_nlink > 1 || (d->uid == 0 && st.st_uid != 0))
        return complain_of(problem, d, CTL_LOCK_FILE, "is in the way: it is not a daemon's lock");
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return complain_of(problem, d, CTL_LOCK_FILE, strerror(errno));
        snprintf(problem, PROBLEM, CTL_ALREADY_RUNNING);
        return -1;
    }
    gm_close(d->lock_fd);
    d->lock_fd = gm_take_fd(&fd);
    return 0;
}

/* Binds to a name relative to the open directory, wherever the directory's path leads by now. The
 * umask sets the mode: chmod() after bind() could change a file that somebody put there instead. */
int ctl_place_listen(int directory, const char *name, mode_t mode)
{
    GM_AUTO_FD int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (here < 0 || fchdir(directory) < 0)
        return -errno;
    mode_t old = umask(0777 & ~mode);
    int fd = tp_listen(name);
    umask(old);
    if (fchdir(here) == 0 || fd < 0)
        return fd;
    int r = -errno;
    gm_close(fd);
    return r;
}

/* Whether the socket lies outside of the pipe directory. A socket that a service manager made has
 * its whole path as its address, ours only its name. */
static bool is_elsewhere(const struct ctl_listener *l)
{
    struct sockaddr_un a = { 0 };
    socklen_t size = sizeof(a) - 1; /* a path of that length has no zero at its end */
    struct stat st;
    return getsockname(l->fd, (struct sockaddr *)&a, &size) == 0 && a.sun_path[0] == '/' &&
           (lstat(a.sun_path, &st) < 0 || !same_file(&st, &l->file));
}

/* Takes over a socket that the name leads to and that was inherited from a service manager or from
 * the program that ran in this process before. */
static int take_over(struct ctl_daemon *d, struct ctl_listener *l, const char *name, char *problem)
{
    if (fcntl(l->fd, F_SETFL, O_NONBLOCK) < 0 ||
        fstatat(d->pipe_fd, name, &l->file, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISSOCK(l->file.st_mode))
        return complain_of(problem, d, name, "is gone");
    return is_elsewhere(l)
               ? complain_of(problem, d, name, "is not the socket that the service manager made")
               : 0;
}

/* Makes a socket in place of one that a dead daemon left. A file of any other kind belongs to
 * somebody and stays. We hold the lock, so that no living daemon's socket is removed. */
static int make_socket(struct ctl_daemon *d, struct ctl_listener *l, const char *name, mode_t mode,
                       char *problem)
{
    struct stat st;
    if (l->fd < 0 && (l->fd = ctl_inherited_take(&d->options.inherited, name)) >= 0)
        return take_over(d, l, name, problem);
    if (l->fd >= 0 && is_ours(d, name, &l->file))
        return 0;
    if (fstatat(d->pipe_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return complain_of(problem, d, name, "is in the way: it is not a socket");
        if (unlinkat(d->pipe_fd, name, 0) < 0)
            return complain_of(problem, d, name, strerror(errno));
    } else if (errno != ENOENT) {
        return complain_of(problem, d, name, strerror(errno));
    }
    GM_AUTO_FD int fd = ctl_place_listen(d->pipe_fd, name, mode);
    if (fd < 0)
        return complain_of(problem, d, name, strerror(-fd));
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        fstatat(d->pipe_fd, name, &l->file, AT_SYMLINK_NOFOLLOW) < 0)
        return complain_of(problem, d, name, strerror(errno));
    if (l->fd < 0) {
        l->fd = gm_take_fd(&fd);
        return 0;
    }
    uv_poll_stop(&l->poll); /* libuv remembers the descriptor's number, which stays */
    return dup3(fd, l->fd, O_CLOEXEC) < 0 ? complain_of(problem, d, name, strerror(errno)) : 0;
}

static int write_pid(struct ctl_daemon *d, char *problem)
{
    unlinkat(d->pipe_fd, CTL_PID_FILE, 0); /* an old file may be another user's */
    GM_AUTO_FD int fd = openat(d->pipe_fd, CTL_PID_FILE,
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 || fchmod(fd, 0644) < 0 || fstat(fd, &d->pid_file) < 0 ||
        dprintf(fd, "%d", (int)d->pid) < 0)
        return complain_of(problem, d, CTL_PID_FILE, strerror(errno));
    return 0;
}

/* Opens the logs. Logs in a place that the administrator named have to work. At the default place
 * they may fail, because only root could write there. */
static int open_logs(struct ctl_daemon *d, char *problem)
{
    const char *asked = getenv("CUDA_MPS_LOG_DIRECTORY");
    const char *directory = asked && *asked ? asked : DEFAULT_LOG_DIRECTORY;
    GM_AUTO_FREE char *real = NULL;
    GM_AUTO_FD int fd = open_directory(directory, &real, problem);
    if (fd >= 0) {
        int r = ctl_logfile_open(&d->control_log, fd, "control.log");
        if (r == 0)
            r = ctl_logfile_open(&d->server_log, fd, "server.log");
        if (r == 0) {
            d->log_directory = gm_take_ptr(real);
            return 0;
        }
        complain(problem, directory, strerror(-r));
    }
    if (directory == asked)
        return -1;
    fprintf(stderr, "%s: going on without log files (CUDA_MPS_LOG_DIRECTORY)\n", problem);
    return 0;
}

void ctl_place_reopen_logs(struct ctl_daemon *d)
{
    char why[PROBLEM];
    GM_AUTO_FD int fd =
        d->log_directory ? ctl_directory_open(d->log_directory, why, sizeof(why)) : -1;
    ctl_logfile_reopen(&d->control_log, fd);
    ctl_logfile_reopen(&d->server_log, fd);
}

/* Whether the names of all sockets fit behind the directory's path. */
static bool fits(const char *directory, char *problem)
{
    char text[96];
    if (strlen(directory) <= TP_DIRECTORY_MAX)
        return true;
    snprintf(text, sizeof(text), "is too long for a pipe directory: %zu bytes, %u are possible",
             strlen(directory), TP_DIRECTORY_MAX);
    complain(problem, directory, text);
    return false;
}

/* Checks the owner of the pipe directory for a daemon that is not root, which is less strict
 * (directory.h). A directory that was named on purpose may be anybody's. Anybody can have made the
 * default one in /tmp. */
static int check_owner(struct ctl_daemon *d, char *problem)
{
    struct stat st;
    char text[96];
    if (fstat(d->pipe_fd, &st) < 0)
        return complain(problem, d->pipe_directory, strerror(errno));
    if (st.st_uid == 0 || st.st_uid == d->uid)
        return 0;
    snprintf(text, sizeof(text), "belongs to user %u, who could take our place",
             (unsigned)st.st_uid);
    complain(problem, d->pipe_directory, text);
    if (!getenv("CUDA_MPS_PIPE_DIRECTORY"))
        return -1;
    fprintf(stderr, "gmux-control: warning: %s: %s\n", d->pipe_directory, text);
    return 0;
}

/* Makes the sockets that are not ours yet. */
static int make_sockets(struct ctl_daemon *d, char *problem)
{
    return make_socket(d, &d->listeners[0], CTL_SOCKET, 0666, problem) < 0 ||
                   make_socket(d, &d->listeners[1], CTL_PRIVILEGED_SOCKET, 0755, problem) < 0
               ? -1
               : write_pid(d, problem);
}

static int open_place(struct ctl_daemon *d, char *problem)
{
    const char *directory = ctl_place_pipe_directory();
    if (!fits(directory, problem))
        return -1;
    d->pipe_fd = open_directory(directory, &d->pipe_directory, problem);
    if (d->pipe_fd < 0 || !fits(d->pipe_directory, problem) || check_owner(d, problem) < 0 ||
        take_lock(d, problem) < 0 || open_logs(d, problem) < 0)
        return -1;
    return make_sockets(d, problem);
}

int ctl_place_open(struct ctl_daemon *d)
{
    char problem[PROBLEM];
    int r = open_place(d, problem);
    if (r < 0)
        fprintf(stderr, "%s\n", problem);
    return r;
}

static bool is_whole(const struct ctl_daemon *d)
{
    struct stat ours, named, lock;
    return fstat(d->pipe_fd, &ours) == 0 && stat(d->pipe_directory, &named) == 0 &&
           same_file(&ours, &named) && fstat(d->lock_fd, &lock) == 0 &&
           is_ours(d, CTL_LOCK_FILE, &lock) && is_ours(d, CTL_SOCKET, &d->listeners[0].file) &&
           is_ours(d, CTL_PRIVILEGED_SOCKET, &d->listeners[1].file) &&
           is_ours(d, CTL_PID_FILE, &d->pid_file);
}

static int make_again(struct ctl_daemon *d, char *problem)
{
    char why[PROBLEM / 2];
    int fd = ctl_directory_open(d->pipe_directory, why, sizeof(why));
    if (fd < 0)
        return complain(problem, d->pipe_directory, why);
    gm_close(d->pipe_fd);
    d->pipe_fd = fd;
    return take_lock(d, problem) < 0 ? -1 : make_sockets(d, problem);
}

int ctl_place_restore(struct ctl_daemon *d)
{
    char problem[PROBLEM];
    if (is_whole(d))
        return 0;
    /* Whatever is removing our files may still be at it, and may remove what was just made. */
    int r = make_again(d, problem);
    for (unsigned tries = 0; r < 0 && tries < TRIES; tries++) {
        sched_yield();
        r = make_again(d, problem);
    }
    if (r < 0) {
        ctl_log(d, "The pipe directory was taken away and cannot be made again: %s", problem);
        return -1;
    }
    ctl_log_stranger(d, "Something was removed from the pipe directory: made again");
    return 1;
}

void ctl_place_leave(struct ctl_daemon *d)
{
    struct stat st;
    if (d->lock_fd >= 0 && fstat(d->lock_fd, &st) == 0 && is_ours(d, CTL_LOCK_FILE, &st)) {
        ctl_state_remove(d);
        unlinkat(d->pipe_fd, CTL_PID_FILE, 0);
    }
    d->lock_fd = gm_close(d->lock_fd);
    d->pipe_fd = gm_close(d->pipe_fd);
}
