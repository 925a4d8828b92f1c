/*
 * Session memory: one sealed memfd per client, made by the server, mapped by client and executor.
 *
 *   0            struct tp_session_header   facts, written by the server before others see it
 *   4096         struct tp_session_control  flags and words that move
 *   streams_at   struct tp_stream_slot[TP_STREAMS]
 *   events_at    struct tp_event_slot[TP_EVENTS]
 *   ring_at      the command ring's bytes
 *   reply_at     struct tp_reply: the answer to the last `call`
 *   output_at    what kernels print (output.h)
 *   parts_at     struct tp_part[TP_PARTS]: the client's green contexts
 *   names_at     which functions the client has found, for an executor that takes over (names.h)
 *
 * Who writes what is said at each field. Everything here may be changed at any time by a hostile
 * client: the executor keeps private copies of what its own decisions rest on, and the client of
 * what its own rest on.
 *
 * Streams and completion. The client numbers the operations of each stream 1, 2, 3 .. (struct
 * wire_record.seq). The executor stores in `accepted` the last one handed to the device and the
 * device publishes in `completed` the last one finished; operations of a stream finish in order.
 * "Stream idle" is completed == what the client last issued. A number used again after `retire`, on
 * the same device, goes on counting where it stood, so that completion words only grow and an old
 * (stream, seq) pair stays answerable: a client that waits for a stream that is not there waits for
 * something already done.
 *
 * A client with a sticky error has no thread reading its ring any more. All its streams then stand
 * at TP_SEQ_FAILED, so that a thread that waits returns and sees the error.
 *
 * An executor that was replaced: the server compares the two words. Where they are equal nothing
 * was in flight, and the next executor goes on reading the ring where it stands; elsewhere the
 * client gets a sticky error.
 */
#ifndef GMUX_TRANSPORT_SESSION_H
#define GMUX_TRANSPORT_SESSION_H

#include "transport/ring.h"

#define TP_SESSION_MAGIC   0x78756d67u /* "gmux" */
#define TP_SESSION_VERSION 4u
#define TP_DEVICES         16u /* of one server, at most */
#define TP_STREAMS         4096u
#define TP_EVENTS          65536u
#define TP_PARTS           1024u
#define TP_PART_GROUPS     127u /* of a split, at most */
#define TP_PART_STATIC     1u   /* the server's, if it is there: what the client has at all */
#define TP_RING_BYTES      (1u << 20)
#define TP_REPLY_BYTES     (64u << 10)
#define TP_NAMES_BYTES     (4u << 20) /* most of it is never touched */
#define TP_OUTPUT_BYTES    (1u << 20) /* as much as CUDA keeps of device printf */
#define TP_SEQ_FAILED      UINT64_MAX /* in `completed`: nothing of this stream will run any more */

struct tp_session_header {
    uint32_t magic;
    uint32_t version;
    uint64_t size;
    uint32_t streams_at;
    uint32_t streams;
    uint32_t events_at;
    uint32_t events;
    uint32_t ring_at;
    uint32_t ring_size;
    uint32_t reply_at;
    uint32_t reply_size;
    uint32_t output_at;
    uint32_t output_size; /* TP_OUTPUT_BYTES */
    uint32_t parts_at;
    uint32_t parts; /* TP_PARTS */
    uint32_t names_at;
    uint32_t names_size; /* TP_NAMES_BYTES */
};

/* Free-running indices of the output's bytes. */
struct tp_output_shared {
    _Atomic uint32_t written GM_ALIGNED(GM_CACHELINE); /* executor */
    _Atomic uint32_t read;                             /* client */
    uint8_t pad[GM_CACHELINE - 2 * sizeof(uint32_t)];
};

struct tp_session_control {
    /* executor and server write, client reads */
    _Atomic uint32_t error GM_ALIGNED(GM_CACHELINE); /* sticky CUresult, 0 = none; first one wins */
    _Atomic uint32_t generation;     /* executors so far; changes when one is replaced */
    _Atomic uint64_t fault_address;  /* of the error, 0 = not known */
    _Atomic uint32_t share_permille; /* granted share, live */
    /* what it comes to on each device, live; 0: not said */
    _Atomic uint32_t multiprocessors[TP_DEVICES];
    struct tp_word arrivals
        GM_ALIGNED(GM_CACHELINE); /* counts gates reached: client's host-function thread waits */
    struct tp_word replied
        GM_ALIGNED(GM_CACHELINE); /* number of the last call that is answered; executor writes */
    struct tp_ring_shared ring;
    struct tp_output_shared output;
    /* client writes, an executor that takes over reads */
    _Atomic uint32_t names_used GM_ALIGNED(GM_CACHELINE); /* bytes of the names */
    /* things of the client that the last executor has taken along: it cannot go on */
    _Atomic uint32_t mortal;
};

struct tp_stream_slot {
    /* device writes */
    struct tp_word completed GM_ALIGNED(GM_CACHELINE);
    _Atomic uint64_t accepted; /* executor writes */
    /* seq of the gate that the stream stands at or last passed; device writes */
    _Atomic uint64_t arrived;
    /* what a word that the stream waits for was, last; device writes and reads */
    _Atomic uint64_t looked;
    /* client writes, at its gates; the device, where the stream has waited for a value */
    _Atomic uint64_t gate
        GM_ALIGNED(GM_CACHELINE); /* gates up to this seq are open; kick the ring after storing */
    /* read when the first record of the stream arrives, as are the next two */
    _Atomic int32_t priority;
    _Atomic uint32_t device; /* holds for all streams of the number */
    _Atomic uint32_t part;   /* which part of the client's multiprocessors; 0: all of them */
};
_Static_assert(sizeof(struct tp_stream_slot) == 2 * GM_CACHELINE, "layout");

/* Some of the client's multiprocessors on a device, by its number: groups that a split made of all
 * of them, or of another part. The client writes it before a stream names it, and never again.
 * There is no number 0: that is all of them. */
struct tp_part {
    _Atomic uint64_t
        groups[2];       /* bit for each; the last one, TP_PART_GROUPS: what the split left over */
    _Atomic uint32_t of; /* what was split: a smaller number, or 0 */
    _Atomic uint32_t flags;   /* how it was split: CUdevSmResourceSplit_flags, */
    _Atomic uint32_t minimum; /* multiprocessors of each group, at least, */
    _Atomic uint32_t wanted;  /* and how many groups. */
};
_Static_assert(sizeof(struct tp_part) == 32, "layout");

/* Written by the device at a stamp record: time first, then the sequence number of that record. */
struct tp_event_slot {
    _Atomic uint64_t time_ns;
    _Atomic uint64_t seq;
};
_Static_assert(sizeof(struct tp_event_slot) == 16, "layout");

/* The executor writes, the client reads when `replied` says so. */
struct tp_reply {
    int32_t result; /* CUresult */
    uint32_t size;  /* bytes of the answer */
    uint8_t bytes[TP_REPLY_BYTES - 8];
};
_Static_assert(sizeof(struct tp_reply) == TP_REPLY_BYTES, "layout");

#define TP_CONTROL_AT   4096u
#define TP_STREAMS_AT   8192u
#define TP_EVENTS_AT    (TP_STREAMS_AT + TP_STREAMS * (uint32_t)sizeof(struct tp_stream_slot))
#define TP_RING_AT      (TP_EVENTS_AT + TP_EVENTS * (uint32_t)sizeof(struct tp_event_slot))
#define TP_REPLY_AT     (TP_RING_AT + TP_RING_BYTES)
#define TP_OUTPUT_AT    (TP_REPLY_AT + TP_REPLY_BYTES)
#define TP_PARTS_AT     (TP_OUTPUT_AT + TP_OUTPUT_BYTES)
#define TP_NAMES_AT     (TP_PARTS_AT + TP_PARTS * (uint32_t)sizeof(struct tp_part))
#define TP_SESSION_SIZE (TP_NAMES_AT + TP_NAMES_BYTES)
_Static_assert(sizeof(struct tp_session_control) <= 4096, "layout");
_Static_assert(TP_RING_AT % 4096 == 0, "layout");

/* A process's view of a mapped session: geometry checked once, then only this private copy is used.
 */
struct tp_session {
    void *base;
    size_t size;
    struct tp_session_control *control;
    struct tp_stream_slot *streams;
    struct tp_event_slot *events;
    void *ring_data;
    uint32_t ring_size;
    struct tp_reply *reply;
    uint8_t *output;
    struct tp_part *parts;
    uint8_t *names;
    uint32_t streams_count;
    uint32_t events_count;
};

/* Server: a new session's memfd with its header written. Descriptor, or -errno. */
GM_MUST_CHECK int tp_session_create(void);

/* Maps and checks a session. 0; -EBADMSG if memory or header is not a session of this version;
 * -errno. */
GM_MUST_CHECK int tp_session_attach(struct tp_session *s, int fd, uint64_t size);
void tp_session_detach(struct tp_session *s);

/* Sets the sticky error unless there is one. True if this call set it. */
bool tp_session_fail(struct tp_session *s, uint32_t result, uint64_t fault_address);

/* Moves every stream to TP_SEQ_FAILED and wakes everybody who waits. After tp_session_fail(), when
 * no device works for the client any more. */
void tp_session_release_waiters(struct tp_session *s);

#endif
