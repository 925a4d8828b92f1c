/*
 * Sends and receives one packet with its descriptors. Truncated packets, and descriptors that no
 * message carries, are closed and refused.
 */
#include "transport/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "transport/foreign.h"

#define CONNECT_S  10
#define CROWDED_MS 1

static int make_address(const char *path, struct sockaddr_un *a)
{
    size_t n = strlen(path);
    if (n >= sizeof(a->sun_path))
        return -ENAMETOOLONG;
    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    memcpy(a->sun_path, path, n + 1);
    return 0;
}

/* Makes a socket for the path, whose address goes to *a. `flags` is SOCK_NONBLOCK or 0. Returns a
 * descriptor or -errno. */
static int make_socket(const char *path, int flags, struct sockaddr_un *a)
{
    int r = make_address(path, a);
    if (r < 0)
        return r;
    int fd = gm_not_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
    return fd < 0 ? -errno : fd;
}

int tp_listen(const char *path)
{
    struct sockaddr_un a;
    GM_AUTO_FD int fd = make_socket(path, 0, &a);
    if (fd < 0)
        return fd;
    if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1024) < 0)
        return -errno;
    return gm_take_fd(&fd);
}

int tp_connect(const char *path)
{
    _Atomic int made;
    return tp_connect_noted(path, &made);
}

int tp_connect_noted(const char *path, _Atomic int *made)
{
    struct sockaddr_un a;
    GM_AUTO_FD int fd = make_socket(path, 0, &a);
    if (fd < 0)
        return fd;
    *made = fd + 1;
    /* If a listener is stopped its queue fills up, and connect() would wait for ever. */
    struct timeval limit = { .tv_sec = CONNECT_S }, none = { 0 };
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    while (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0) {
        if (errno == EINTR)
            continue;
        *made = 0;
        return -errno;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
    return gm_take_fd(&fd);
}

int tp_connect_now(const char *path)
{
    struct sockaddr_un a;
    GM_AUTO_FD int fd = make_socket(path, SOCK_NONBLOCK, &a);
    if (fd < 0)
        return fd;
    if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
        return -errno;
    return gm_take_fd(&fd);
}

int tp_pair(int fds[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    fds[0] = gm_not_standard(fds[0]);
    fds[1] = gm_not_standard(fds[1]);
    if (fds[0] >= 0 && fds[1] >= 0)
        return 0;
    gm_close(fds[0]);
    gm_close(fds[1]);
    return -EMFILE;
}

int tp_make_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int tp_peer(int fd, struct tp_peer *out)
{
    struct ucred cred;
    socklen_t n = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
        return -errno;
    *out = (struct tp_peer) { cred.pid, cred.uid, cred.gid };
    return 0;
}

/* Options of Linux 6.5 and 6.13, which Debian 12's C library does not know. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
struct process_info {
    uint64_t mask, cgroup;
    uint32_t pid, group, parent;
    uint32_t uid, gid, effective_uid, effective_gid, saved_uid, saved_gid, file_uid, file_gid;
    int32_t exit_code;
};
_Static_assert(sizeof(struct process_info) == 64, "as in linux/pidfd.h");
#define PROCESS_GET_INFO _IOWR(0xff, 11, struct process_info)

/* Whether the process has this user's ids: these decide who may kill it, whatever program it runs.
 * On an older kernel they are in /proc, which may hide other users' processes. */
static bool runs_as(int process, pid_t pid, uid_t uid)
{
    char path[32], line[256];
    unsigned real, effective, saved;
    struct process_info i = { 0 };
    if (ioctl(process, PROCESS_GET_INFO, &i) == 0)
        return i.uid == uid && i.effective_uid == uid && i.saved_uid == uid;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    GM_AUTO_FILE FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "Uid: %u %u %u", &real, &effective, &saved) == 3)
            return real == uid && effective == uid && saved == uid;
    return false;
}

int tp_peer_process(int fd)
{
    struct tp_peer peer = { 0 };
    int r = tp_peer(fd, &peer);
    if (r < 0 || peer.pid <= 0)
        return r < 0 ? r : -ESRCH;
    GM_AUTO_FD int process = -1;
    socklen_t n = sizeof(process);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &n) < 0) {
        process = errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, peer.pid, 0) : -1;
        if (process < 0)
            return -errno;
    }
    /* If the process still runs now, the number was its own all the time. */
    struct pollfd ended = { .fd = process, .events = POLLIN };
    return runs_as(process, peer.pid, peer.uid) && poll(&ended, 1, 0) == 0 ? gm_take_fd(&process)
                                                                           : -ESRCH;
}

/* Whether to try again a message that was not sent because of too many descriptors on their way.
 * The socket can be written to as far as poll() knows, so this waits a little if it may. */
static bool wait_for_descriptors(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK))
        return false;
    (void)poll(NULL, 0, CROWDED_MS);
    return true;
}

int tp_send(int fd, const struct wire_enc *e, const int *fds, unsigned fds_count)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * TP_FDS_MAX)];
    } control;
    struct iovec iov = { .iov_base = e->data, .iov_len = e->size };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (e->fatal || fds_count > TP_FDS_MAX)
        return -EMSGSIZE;
    if (fds_count) {
        memset(&control, 0, sizeof(control));
        m.msg_control = control.space;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * fds_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fds_count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fds_count);
    }
    for (;;) {
        ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);
        if (n >= 0)
            return (size_t)n == e->size ? 0 : -EMSGSIZE;
        if (errno == EINTR)
            continue;
        if (errno != ETOOMANYREFS)
            return -errno;
        if (!wait_for_descriptors(fd))
            return -EAGAIN;
    }
}

/* Takes the next packet out of the socket. The kernel closes its descriptors; that ends no file
 * that is also open here. */
static void take_out(int fd)
{
    struct msghdr nothing = { 0 };
    while (recvmsg(fd, &nothing, MSG_DONTWAIT) < 0 && errno == EINTR)
        ;
}

static void take_fds(struct tp_packet *p, struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && p->fds_count < TP_FDS_MAX; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            p->fds[p->fds_count++] = gm_not_standard(fd);
        }
    }
}

/* Receives a packet. It is looked at before it is taken. One with too many descriptors stays in the
 * socket: the kernel would close those that are not wanted, in this thread, and their maker can
 * make that last. */
static int receive(int fd, struct tp_packet *p, unsigned fds_max)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * TP_FDS_MAX)];
    } control;
    struct iovec iov = { .iov_base = p->data, .iov_len = sizeof(p->data) };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = fds_max ? control.space : NULL,
                        .msg_controllen = fds_max ? sizeof(control.space) : 0 };
    ssize_t n;

    p->fds_count = 0;
    do
        n = recvmsg(fd, &m, MSG_PEEK | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    take_fds(p, &m);
    const bool more = m.msg_flags & MSG_CTRUNC, too_many = more && p->fds_count == fds_max;
    if (n == 0 && p->fds_count == 0 && !more)
        return 0;
    p->size = (size_t)n;
    p->header = wire_dec_begin(&p->body, p->data, p->size);
    const bool bad = p->body.fatal || (m.msg_flags & MSG_TRUNC) || too_many;
    if (!more)
        take_out(fd);
    if (bad || more)
        tp_packet_discard(p);
    return bad ? -EBADMSG : more ? -EMFILE : 1;
}

int tp_recv(int fd, struct tp_packet *p)
{
    return receive(fd, p, TP_FDS_MAX);
}

int tp_recv_plain(int fd, struct tp_packet *p)
{
    return receive(fd, p, 0);
}

void tp_recv_skip(int fd)
{
    take_out(fd);
}

int tp_packet_take_fd(struct tp_packet *p, unsigned i)
{
    return i < p->fds_count ? gm_take_fd(&p->fds[i]) : -1;
}

void tp_packet_finish(struct tp_packet *p)
{
    for (unsigned i = 0; i < p->fds_count; i++)
        p->fds[i] = gm_close(p->fds[i]);
    p->fds_count = 0;
}
