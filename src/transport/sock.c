#include "transport/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "transport/foreign.h"

#define CONNECT_S   10
#define SCM_FDS_MAX 253 /* the kernel's SCM_MAX_FD */

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

int tp_listen(const char *path)
{
    struct sockaddr_un a;
    int r = make_address(path, &a);
    if (r < 0)
        return r;
    GM_AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1024) < 0)
        return -errno;
    return gm_take_fd(&fd);
}

int tp_connect(const char *path)
{
    struct sockaddr_un a;
    int r = make_address(path, &a);
    if (r < 0)
        return r;
    GM_AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* The queue of a listener that is stopped fills up, and connect() would wait for ever. */
    struct timeval limit = { .tv_sec = CONNECT_S }, none = { 0 };
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    while (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
        if (errno != EINTR)
            return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
    return gm_take_fd(&fd);
}

int tp_connect_now(const char *path)
{
    struct sockaddr_un a;
    int r = make_address(path, &a);
    if (r < 0)
        return r;
    GM_AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
        return -errno;
    return gm_take_fd(&fd);
}

int tp_pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0 ? -errno : 0;
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
        if (errno != EINTR)
            return -errno;
    }
}

int tp_recv(int fd, struct tp_packet *p)
{
    /* Room for all that a packet can bring: the kernel would close the others, which is not to be
     * waited for. */
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * SCM_FDS_MAX)];
    } control;
    struct iovec iov = { .iov_base = p->data, .iov_len = sizeof(p->data) };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.space,
                        .msg_controllen = sizeof(control.space) };
    ssize_t n;
    bool bad = false;

    p->fds_count = 0;
    do
        n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int received;
            memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (p->fds_count < TP_FDS_MAX) {
                p->fds[p->fds_count++] = received;
            } else {
                tp_close_foreign(received);
                bad = true;
            }
        }
    }
    if (n == 0 && p->fds_count == 0)
        return 0;
    p->size = (size_t)n;
    p->header = wire_dec_begin(&p->body, p->data, p->size);
    bad |= p->body.fatal || (m.msg_flags & MSG_TRUNC);
    bool is_short = m.msg_flags & MSG_CTRUNC; /* there is room for all: no more could be opened */
    if (bad || is_short)
        tp_packet_discard(p);
    return bad ? -EBADMSG : is_short ? -EMFILE : 1;
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
