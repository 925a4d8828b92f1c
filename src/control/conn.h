/*
 * Connections, from the time when they are accepted until they are closed, or handed to a server.
 */
#ifndef GMUX_CONTROL_CONN_H
#define GMUX_CONTROL_CONN_H

#include "control/daemon.h"
#include "transport/sock.h"

enum ctl_conn_phase {
    CTL_CONN_NEW,     /* has said nothing yet */
    CTL_CONN_UI,      /* sends commands */
    CTL_CONN_WAITING, /* said hello; waits for its server */
};

struct ctl_conn {
    struct gm_list link; /* daemon's conns */
    /* in a server's `pending`, the daemon's `queue`, or its user's `late` */
    struct gm_list waiting;
    struct ctl_daemon *daemon;
    struct ctl_caller *caller;
    struct ctl_channel *channel;
    enum ctl_conn_phase phase;
    bool privileged; /* it came through control_privileged */
    bool trusted;    /* it is of the daemon's own user or of root */
    struct tp_peer peer;
    uint64_t deadline_ns;
    struct ctl_request *request; /* a command that has not been answered completely */
    unsigned attempts;           /* how many servers died before they could take it */
    /* from the hello */
    struct ctl_wish wish;
    /* With protocol 3, the namespace in whose directory it connected, or its user's; NULL: none. */
    struct ctl_space *space;
    char partition[129];
    char command[1025];
};

/* Begins or stops to accept connections. */
void ctl_conn_listen(struct ctl_daemon *d, bool on);
/* Closes the connection and frees it. */
void ctl_conn_close(struct ctl_conn *c);
/* Closes the connection and frees it, with a log line: the peer did something it must not. */
void ctl_conn_drop(struct ctl_conn *c, const char *reason);
/* Refuses the client that said hello, and closes. */
void ctl_conn_refuse(struct ctl_conn *c, int result, const char *reason);
/* Sends a packet with the connection's socket over `link`, and frees the connection. On failure it
 * is not freed. 0 or -errno. */
GM_MUST_CHECK int ctl_conn_hand_over(struct ctl_conn *c, struct ctl_channel *link,
                                     const struct wire_enc *e);
/* How many bytes of answers a user's connections have not read. */
size_t ctl_conn_unread(const struct ctl_daemon *d, uid_t uid);
/* Drops connections that have been silent, or have not read, for too long; restarts its timer. */
void ctl_conn_sweep(void *daemon);

#endif
