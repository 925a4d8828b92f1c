#include "control/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/daemon.h"

#define DEFAULT_PIPE_DIRECTORY "/tmp/nvidia-mps"
#define DEFAULT_LOG_DIRECTORY  "/var/log/nvidia-mps"

/* One line: what, and why. */
static int complain(const char *path, const char *why)
{
    fprintf(stderr, "gmux-control: %s: %s\n", path, why);
    return -1;
}

const char *ctl_place_pipe_directory(void)
{
    const char *s = getenv("CUDA_MPS_PIPE_DIRECTORY");
    return s && *s ? s : DEFAULT_PIPE_DIRECTORY;
}

/* The directory's real name, made if it is not there yet. The caller frees; NULL with errno set. */
static char *make_directory(const char *path)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return NULL;
    char *real = realpath(path, NULL);
    struct stat st;
    if (real && stat(real, &st) == 0 && !S_ISDIR(st.st_mode)) {
        free(real);
        errno = ENOTDIR;
        return NULL;
    }
    return real;
}

static void join(char out[PATH_MAX], const char *directory, const char *name)
{
    snprintf(out, PATH_MAX, "%s/%s", directory, name);
}

static int take_lock(struct ctl_daemon *d)
{
    char path[PATH_MAX];
    join(path, d->pipe_directory, CTL_LOCK_FILE);
    /* Ours alone: whoever can open it can lock it, and keep every daemon out. */
    GM_AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return complain(path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return complain(path, strerror(errno));
        fprintf(stderr, "An instance of this daemon is already running\n");
        return -1;
    }
    d->lock_fd = gm_take_fd(&fd);
    return 0;
}

/* A socket that a dead daemon left is replaced; anything else at its place is somebody's and stays. The lock is held,
 * so that no living daemon's socket is removed. */
static int make_socket(struct ctl_daemon *d, const char *name, mode_t mode, int *out)
{
    char path[PATH_MAX];
    struct stat st;
    join(path, d->pipe_directory, name);
    if (lstat(path, &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return complain(path, "is in the way: it is not a socket");
        if (unlink(path) < 0)
            return complain(path, strerror(errno));
    } else if (errno != ENOENT) {
        return complain(path, strerror(errno));
    }
    mode_t old = umask(0777);
    int fd = tp_listen(path);
    umask(old);
    if (fd < 0)
        return complain(path, strerror(-fd));
    *out = fd;
    return chmod(path, mode) < 0 ? complain(path, strerror(errno)) : 0;
}

static int write_pid(struct ctl_daemon *d)
{
    char path[PATH_MAX];
    join(path, d->pipe_directory, CTL_PID_FILE);
    unlink(path); /* a stale one may be somebody else's */
    GM_AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 || fchmod(fd, 0644) < 0 || dprintf(fd, "%d", (int)d->pid) < 0)
        return complain(path, strerror(errno));
    return 0;
}

/* Logs that were asked for must be possible; at the default place they need not, or only root could do without. */
static int open_logs(struct ctl_daemon *d)
{
    const char *asked = getenv("CUDA_MPS_LOG_DIRECTORY");
    const char *directory = asked && *asked ? asked : DEFAULT_LOG_DIRECTORY;
    GM_AUTO_FREE char *real = make_directory(directory);
    int r = real ? ctl_logfile_open(&d->control_log, real, "control.log") : -errno;
    if (r == 0)
        r = ctl_logfile_open(&d->server_log, real, "server.log");
    if (r == 0)
        return 0;
    if (directory == asked)
        return complain(directory, strerror(-r));
    fprintf(stderr, "gmux-control: %s: %s: going on without log files (CUDA_MPS_LOG_DIRECTORY)\n", directory,
            strerror(-r));
    return 0;
}

/* Every socket's name has to fit behind it. */
static bool fits(const char *directory)
{
    char text[96];
    if (strlen(directory) <= TP_DIRECTORY_MAX)
        return true;
    snprintf(text, sizeof(text), "is too long for a pipe directory: %zu bytes, %u are possible", strlen(directory),
             TP_DIRECTORY_MAX);
    complain(directory, text);
    return false;
}

/* Whoever owns the directory can put sockets of their own at our places, and get everybody's clients. Where the
 * directory was chosen by somebody that is their business; the default in /tmp anybody can have made. */
static int check_owner(struct ctl_daemon *d)
{
    struct stat st;
    char text[96];
    if (stat(d->pipe_directory, &st) < 0)
        return complain(d->pipe_directory, strerror(errno));
    if (st.st_uid == 0 || st.st_uid == d->uid)
        return 0;
    snprintf(text, sizeof(text), "belongs to user %u, who could take our place", (unsigned)st.st_uid);
    if (!getenv("CUDA_MPS_PIPE_DIRECTORY"))
        return complain(d->pipe_directory, text);
    fprintf(stderr, "gmux-control: warning: %s: %s\n", d->pipe_directory, text);
    return 0;
}

int ctl_place_open(struct ctl_daemon *d)
{
    const char *directory = ctl_place_pipe_directory();
    if (!fits(directory))
        return -1;
    d->pipe_directory = make_directory(directory);
    if (!d->pipe_directory)
        return complain(directory, strerror(errno));
    if (!fits(d->pipe_directory) || check_owner(d) < 0 || take_lock(d) < 0 || open_logs(d) < 0 ||
        make_socket(d, CTL_SOCKET, 0666, &d->listener_fds[0]) < 0 ||
        make_socket(d, CTL_PRIVILEGED_SOCKET, 0755, &d->listener_fds[1]) < 0 || write_pid(d) < 0)
        return -1;
    return 0;
}
