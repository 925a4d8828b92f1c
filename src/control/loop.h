/*
 * Wraps libuv for what the daemon uses: packets on a socket, lines on a pipe, one-shot timers. Each
 * object is created, used and closed by its owner. For the owner closing is immediate (no callback
 * comes after it); the memory is freed when libuv is done with the handle. An object may be closed
 * inside its own callback.
 *
 * Loop thread only.
 */
#ifndef GMUX_CONTROL_LOOP_H
#define GMUX_CONTROL_LOOP_H

#include <uv.h>

#include "transport/sock.h"

struct ctl_channel;
struct ctl_lines;
struct ctl_timer;

/* --- packets ---------------------------------------------------------------------------------- */

struct ctl_channel_ops {
    /* One packet. Its strings are gone after the call; descriptors that were not taken are
     * closed. */
    void (*packet)(void *owner, struct tp_packet *p);
    /* The peer hung up (error = 0) or cannot be talked to any more (-EBADMSG: malformed, other
     * -errno). Called once; the owner closes the channel. */
    void (*gone)(void *owner, int error);
};

/* Takes `fd` (also on failure). NULL with errno set. */
struct ctl_channel *ctl_channel_create(uv_loop_t *loop, int fd, const struct ctl_channel_ops *ops,
                                       void *owner);

/* Sends a packet and at most one descriptor (-1: none), which it takes in any case. What the socket
 * does not accept at once is queued, up to a limit. 0, or -errno; -ENOBUFS: too much is queued,
 * because the peer does not read. */
GM_MUST_CHECK int ctl_channel_send(struct ctl_channel *c, const struct wire_enc *e, int fd);

/* Sends a packet over `c` with the socket of `given` as its descriptor, in blocking mode as it was
 * accepted, and closes `given`. On failure `given` stays open. 0 or -errno. */
GM_MUST_CHECK int ctl_channel_hand_over(struct ctl_channel *c, const struct wire_enc *e,
                                        struct ctl_channel *given);
/* Gives the channel to another owner, whose functions are called from now on. */
void ctl_channel_give(struct ctl_channel *c, const struct ctl_channel_ops *ops, void *owner);
/* The process at the other end, as tp_peer_process() has it. */
GM_MUST_CHECK int ctl_channel_process(const struct ctl_channel *c);
/* How many bytes the peer has not read; and since when it has read nothing. */
size_t ctl_channel_unread(const struct ctl_channel *c);
uint64_t ctl_channel_unread_ms(const struct ctl_channel *c);
/* Handles packets that have arrived already, as if the loop had reported them. */
void ctl_channel_drain(struct ctl_channel *c);
/* Closes a channel. NULL is accepted. */
void ctl_channel_close(struct ctl_channel *c);

/* --- lines ------------------------------------------------------------------------------------ */

/* One line without its newline; control characters have been replaced, long lines cut. */
typedef void (*ctl_line_fn)(void *owner, const char *line);

/* Takes `fd` (also on failure). NULL with errno set. */
struct ctl_lines *ctl_lines_create(uv_loop_t *loop, int fd, ctl_line_fn line, void *owner);
void ctl_lines_drain(struct ctl_lines *l);
void ctl_lines_close(struct ctl_lines *l);

/* --- timers ----------------------------------------------------------------------------------- */

struct ctl_timer *ctl_timer_create(uv_loop_t *loop, void (*fire)(void *owner), void *owner);
/* (Re)starts it; one shot. */
void ctl_timer_start(struct ctl_timer *t, uint64_t ms);
void ctl_timer_stop(struct ctl_timer *t);
void ctl_timer_close(struct ctl_timer *t);

#endif
