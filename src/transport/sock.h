/*
 * SOCK_SEQPACKET sockets between gmux processes: one packet is one message, descriptors travel with
 * it, and who the peer is comes from the kernel. Descriptors received are CLOEXEC and owned by the
 * packet until taken.
 */
#ifndef GMUX_TRANSPORT_SOCK_H
#define GMUX_TRANSPORT_SOCK_H

#include <sys/types.h>

#include "wire/codec.h"

#define TP_FDS_MAX 4

/* A received packet. tp_packet_finish() closes the descriptors nobody took. Big (64 KiB): keep one
 * per connection or thread, not many on the stack. */
struct tp_packet {
    struct wire_header header;
    struct wire_dec body; /* positioned behind the header */
    int fds[TP_FDS_MAX];
    unsigned fds_count;
    size_t size;
    uint8_t data[WIRE_PACKET_MAX] GM_ALIGNED(8);
};

struct tp_peer {
    pid_t pid; /* in the caller's PID namespace; 0 if the peer is not visible there */
    uid_t uid;
    gid_t gid;
};

/* Longest directory that leaves room for "/control_privileged" in sun_path. */
#define TP_DIRECTORY_MAX 87u

/* Bound and listening, mode 0666 set by the caller. Descriptor, or -errno (-ENAMETOOLONG,
 * -EADDRINUSE ..). */
GM_MUST_CHECK int tp_listen(const char *path);
/* Connects; the socket is blocking. Descriptor, or -errno; -EAGAIN: in 10 s nobody has accepted the
 * connections before this one. */
GM_MUST_CHECK int tp_connect(const char *path);
/* Like tp_connect(). *made is the descriptor + 1 as soon as there is one, even before it is
 * connected, and 0 if there is none in the end. */
GM_MUST_CHECK int tp_connect_noted(const char *path, _Atomic int *made);
/* Connects without waiting; the socket does not block. Descriptor, or -errno; -EAGAIN: it would
 * have to wait. */
GM_MUST_CHECK int tp_connect_now(const char *path);
/* A connected pair, both CLOEXEC. 0 or -errno. */
GM_MUST_CHECK int tp_pair(int fds[2]);

/* 0 or -errno. */
GM_MUST_CHECK int tp_make_nonblocking(int fd);

/* Finds out who connected, by SO_PEERCRED. 0 or -errno. */
GM_MUST_CHECK int tp_peer(int fd, struct tp_peer *out);
/* The process that connected, if it runs as who connected: a pidfd. Before Linux 6.5 it may be
 * another one of that user's which has got its number since. -ESRCH if there is none (who connected
 * may have left the socket to somebody), other -errno. */
GM_MUST_CHECK int tp_peer_process(int fd);

/* Sends what was encoded, with up to TP_FDS_MAX descriptors (which stay the caller's). Blocks if
 * the socket does; never raises SIGPIPE. 0, -EPIPE/-ECONNRESET when the peer is gone, -EMSGSIZE if
 * the encoder overflowed, -EAGAIN. A user without privileges can have only so many descriptors on
 * their way (RLIMIT_NOFILE); then it is as if the socket were full. */
GM_MUST_CHECK int tp_send(int fd, const struct wire_enc *e, const int *fds, unsigned fds_count);

/* Receives one packet. 1: got one; 0: peer closed; -EAGAIN on an empty non-blocking socket;
 * -EBADMSG: the packet or its header is malformed, or it has more descriptors than fit, and then
 * the connection is of no more use; -EMFILE: it is well-formed, and here without its descriptors,
 * since this process has as many as it may: it comes again, unless it is skipped; other -errno. */
GM_MUST_CHECK int tp_recv(int fd, struct tp_packet *p);
/* Like tp_recv(), from a peer that has no descriptors to send: none is opened. */
GM_MUST_CHECK int tp_recv_plain(int fd, struct tp_packet *p);
/* Drops the packet that comes next. */
void tp_recv_skip(int fd);

/* Takes descriptor `i` out of the packet; -1 if there is none. */
int tp_packet_take_fd(struct tp_packet *p, unsigned i);
void tp_packet_finish(struct tp_packet *p);

#endif
