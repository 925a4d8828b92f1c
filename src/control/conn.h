/*
 * Connections: from when they are accepted until they are closed, or handed to a server.
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
    struct gm_list link;    /* daemon's conns */
    struct gm_list waiting; /* a server's pending, the daemon's queue, or his user's late ones */
    struct ctl_daemon *daemon;
    struct ctl_caller *caller;
    struct ctl_channel *channel;
    enum ctl_conn_phase phase;
    bool privileged; /* came through control_privileged */
    bool trusted;    /* the daemon's own user, or root */
    struct tp_peer peer;
    uint64_t deadline_ns;
    struct ctl_request *request; /* a command whose answer is not complete */
    unsigned attempts;           /* servers that died before they could take it */
    /* from the hello */
    struct ctl_wish wish;
    /* of protocol 3: in whose directory it connected, or its user's; NULL */
    struct ctl_space *space;
    char partition[129];
    char command[1025];
};

/* Watches the listening sockets, or stops doing so. */
void ctl_conn_listen(struct ctl_daemon *d, bool on);
/* Closes and frees. */
void ctl_conn_close(struct ctl_conn *c);
/* Closes and frees, with a log line: the peer did something it must not. */
void ctl_conn_drop(struct ctl_conn *c, const char *reason);
/* Answers a hello in the negative, and closes. */
void ctl_conn_refuse(struct ctl_conn *c, int result, const char *reason);
/* Sends a packet over `link` with its socket, and frees it. On failure it lives on. 0 or -errno. */
GM_MUST_CHECK int ctl_conn_hand_over(struct ctl_conn *c, struct ctl_channel *link,
                                     const struct wire_enc *e);
/* Bytes that wait for a user's connections to be read. */
size_t ctl_conn_unread(const struct ctl_daemon *d, uid_t uid);
/* Drops connections that have been silent, or have not read, too long; restarts its timer. */
void ctl_conn_sweep(void *daemon);

#endif
