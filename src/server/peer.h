/*
 * A socket whose other end must not be waited for: a client, the control daemon or an executor, as
 * the event loop sees it. Receiving: whole packets, checked for being a message that this end may
 * get, are given to one function. Sending: at once if the socket takes it, else queued. A peer with
 * too much in its queue is dropped: it may not be reading at all, and might have its own socket
 * among what it has sent, and so never hang up.
 *
 * Event loop only. Embedded in its owner, which may be freed once `closed` was called.
 */
#ifndef GMUX_SERVER_PEER_H
#define GMUX_SERVER_PEER_H

#include <uv.h>

#include "base/list.h"
#include "transport/sock.h"
#include "wire/messages.h"

struct srv_peer;

struct srv_peer_ops {
    enum wire_party sender; /* whose messages are accepted */
    size_t queue_bytes_max; /* with more to send than this, the peer is dropped */
    /* One well-formed packet whose body has not been read. NULL, or why the peer is to be dropped.
     * Descriptors left in the packet are closed. */
    const char *(*packet)(struct srv_peer *p, struct tp_packet *packet);
    /* A packet whose descriptors could not be received, because there are too many already. May be
     * NULL: then the peer is dropped. */
    const char *(*bare_packet)(struct srv_peer *p, struct tp_packet *packet);
    /* The connection ended, or the peer broke a rule (`broke`; `why` says which). Called once;
     * calls srv_peer_close(). */
    void (*gone)(struct srv_peer *p, bool broke, const char *why);
    /* Nothing of the peer is used any more. */
    void (*closed)(struct srv_peer *p);
    /* Everything that was queued has been sent. May be NULL. */
    void (*drained)(struct srv_peer *p);
};

struct srv_peer {
    const struct srv_peer_ops *ops;
    uv_poll_t poll;
    int fd; /* owned; -1 once closed */
    bool paused;
    bool gone; /* the loop is to drop it */
    bool slow; /* because it does not read answers, rather than because it hung up */
    /* how many share what one peer would have of the loop's time; NULL: it is alone */
    const unsigned *sharers;
    struct gm_list queue;
    size_t queue_bytes;
};

/* Takes `fd` and makes it non-blocking. 0 or -errno; on error `fd` is closed and `closed` is not
 * called. */
GM_MUST_CHECK int srv_peer_open(struct srv_peer *p, uv_loop_t *loop, int fd,
                                const struct srv_peer_ops *ops);
/* Closes the socket at once; `closed` is called later, from the loop. */
void srv_peer_close(struct srv_peer *p);
bool srv_peer_is_open(const struct srv_peer *p);

/* Sends or queues a packet; descriptors stay the caller's. Does nothing on a closed peer. If the
 * queue overflows, the loop drops the peer later. */
void srv_peer_send(struct srv_peer *p, const struct wire_enc *e, const int *fds,
                   unsigned fds_count);
/* Whether something is queued, so that what is sent now will be queued, too. */
bool srv_peer_is_behind(const struct srv_peer *p);
/* Stops or resumes receiving. A peer that hangs up is noticed either way. */
void srv_peer_pause(struct srv_peer *p, bool pause);

#endif
