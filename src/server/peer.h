/*
 * A socket whose other end is not to be waited for: a client, the control daemon or an executor, as
 * the event loop sees it. Receiving: whole packets, checked for being a message that this end may
 * get, to one function. Sending: at once if the socket takes it, otherwise queued. With much in the
 * queue the peer is dropped: one that is merely not read any more could have its own socket among
 * what it has sent, and be there for ever.
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
    /* One well-formed packet, body not yet read. NULL, or why the peer is to be dropped.
     * Descriptors left in the packet are closed. */
    const char *(*packet)(struct srv_peer *p, struct tp_packet *packet);
    /* As above, for one whose descriptors could not be had: there are too many already. NULL: the
     * peer is dropped. */
    const char *(*bare_packet)(struct srv_peer *p, struct tp_packet *packet);
    /* The connection ended, or the peer broke a rule. Called once; calls srv_peer_close(). `broke`:
     * a rule was broken and `why` says which. */
    void (*gone)(struct srv_peer *p, bool broke, const char *why);
    /* Nothing of the peer is used any more. */
    void (*closed)(struct srv_peer *p);
    /* All that was queued has been sent. NULL: nobody wants to know. */
    void (*drained)(struct srv_peer *p);
};

struct srv_peer {
    const struct srv_peer_ops *ops;
    uv_poll_t poll;
    int fd; /* owned; -1 once closed */
    bool paused;
    bool gone; /* the loop is to drop it: */
    bool slow; /* because it takes no answers, rather than because it hung up */
    /* so many have what one would have of the loop's time; NULL: it is alone */
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

/* Sends or queues; descriptors stay the caller's. Silently does nothing on a closed peer. An
 * overflowing queue makes the peer gone, from the loop. */
void srv_peer_send(struct srv_peer *p, const struct wire_enc *e, const int *fds,
                   unsigned fds_count);
/* True if something is queued: what is sent now will be, too. */
bool srv_peer_is_behind(const struct srv_peer *p);
/* Stops or resumes receiving. A peer that hangs up is noticed either way. */
void srv_peer_pause(struct srv_peer *p, bool pause);

#endif
