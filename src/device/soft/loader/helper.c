/*
 * Finds gmux-jit, starts it with one end of a socket pair, and exchanges packets with it (job.h).
 */
#include "device/soft/loader/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "transport/memfd.h"

static int try_path(char *path, size_t size, const char *directory, const char *name)
{
    int n = snprintf(path, size, "%s%s", directory, name);
    if (n < 0 || (size_t)n >= size)
        return -ENAMETOOLONG;
    return access(path, X_OK) < 0 ? -ENOENT : 0;
}

int loader_helper_find(const char *configured, char *path, size_t size)
{
    char self[PATH_MAX];
    const char *own = configured ? configured : secure_getenv("GMUX_JIT");
    const char *libexec = secure_getenv("GMUX_LIBEXECDIR");

    if (own)
        return own[0] ? try_path(path, size, own, "") : -ENOENT;
    if (libexec && try_path(path, size, libexec, "/gmux-jit") == 0)
        return 0;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = 0;
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = 0;
        if (try_path(path, size, self, "/gmux-jit") == 0 ||
            try_path(path, size, self, "/../jit/gmux-jit") == 0)
            return 0;
    }
    return try_path(path, size, GMUX_LIBEXECDIR, "/gmux-jit");
}

void loader_helper_init(struct loader_helper *h)
{
    *h = (struct loader_helper) { .pid = -1, .socket = -1 };
}

static int spawn(const char *path, int socket, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char *const argv[] = { (char[]) { "gmux-jit" }, (char[]) { "--socket" }, NULL };
    char *const environment[] = { NULL };

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, socket, SOFT_JOB_SOCKET);
    if (r == 0)
        r = posix_spawnattr_setsigmask(&attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(&attributes, &all);
    if (r == 0)
        r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (r == 0)
        r = posix_spawn(pid, path, &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

int loader_helper_start(struct loader_helper *h, const char *path)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    int r = spawn(path, pair[1], &h->pid);
    gm_close(pair[1]);
    if (r < 0) {
        gm_close(pair[0]);
        h->pid = -1;
        return r;
    }
    h->socket = pair[0];
    h->serial = 0;
    return 0;
}

bool loader_helper_stop(struct loader_helper *h)
{
    int status = -1;
    if (h->pid >= 0) {
        kill(h->pid, SIGKILL); /* a process that is already leaving keeps its status */
        while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    h->pid = -1;
    h->socket = gm_close(h->socket);
    return status == 0;
}

uint64_t loader_helper_processor_ns(const struct loader_helper *h)
{
    clockid_t id;
    struct timespec ts;
    if (h->pid < 0 || clock_getcpuclockid(h->pid, &id) != 0 || clock_gettime(id, &ts) < 0)
        return 0;
    return (uint64_t)ts.tv_sec * GM_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Receives one packet with at most one descriptor. */
static int receive(int socket, void *data, size_t size, int *fd)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * 8)];
    } control;
    struct iovec iov = { data, size };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.space,
                        .msg_controllen = sizeof(control.space) };
    bool bad = false;
    ssize_t n;

    *fd = -1;
    do
        n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; CMSG_LEN(sizeof(int) * (i + 1)) <= c->cmsg_len; i++) {
            int got;
            memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (*fd < 0) {
                *fd = got;
            } else {
                gm_close(got);
                bad = true;
            }
        }
    }
    if (!bad && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && (size_t)n == size)
        return 0;
    *fd = gm_close(*fd);
    return n == 0 ? -EPIPE : -EBADMSG;
}

int loader_helper_receive(struct loader_helper *h, uint64_t deadline_ns, int cancel,
                          struct soft_job_answer *answer, int *fd)
{
    struct pollfd fds[] = { { h->socket, POLLIN, 0 }, { cancel, POLLIN, 0 } };
    for (;;) {
        uint64_t now = gm_now_ns();
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        uint64_t left_ms = (deadline_ns - now) / GM_NS_PER_MS + 1;
        int n = poll(fds, GM_ARRAY_LEN(fds), (int)GM_MIN(left_ms, 60000u));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && (fds[1].revents & POLLIN))
            return -ECANCELED;
        if (n > 0 && fds[0].revents)
            break;
    }
    int r = receive(h->socket, answer, sizeof(*answer), fd);
    if (r < 0)
        return r;
    answer->reason[sizeof(answer->reason) - 1] = 0;
    for (char *p = answer->reason; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = ' ';
    if (answer->magic == SOFT_JOB_MAGIC && answer->serial == h->serial &&
        answer->status <= SOFT_JOB_FAILED)
        return 0;
    *fd = gm_close(*fd);
    return -EBADMSG;
}

int loader_helper_send(struct loader_helper *h, const char *text, size_t text_size,
                       const char *entry, const struct soft_job_options *options)
{
    struct soft_job_request request;
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { &request, sizeof(request) };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.space,
                        .msg_controllen = sizeof(control.space) };

    if (strlen(entry) >= sizeof(request.entry) || text_size > SOFT_JOB_TEXT_MAX)
        return -E2BIG;
    GM_AUTO_FD int fd = tp_memfd_from_bytes("gmux-ptx", text, text_size);
    if (fd < 0)
        return fd;
    memset(&request, 0, sizeof(request));
    request.magic = SOFT_JOB_MAGIC;
    request.serial = ++h->serial;
    request.text_size = text_size;
    request.options = *options;
    strcpy(request.entry, entry);
    memset(&control, 0, sizeof(control));
    control.align = (struct cmsghdr) { .cmsg_len = CMSG_LEN(sizeof(int)),
                                       .cmsg_level = SOL_SOCKET,
                                       .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.align), &fd, sizeof(int));
    ssize_t n;
    do
        n = sendmsg(h->socket, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}
