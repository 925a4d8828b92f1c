/*
 * What programs share with each other: allocations and events. A handle of 64 bytes, which the program carries to the
 * other process by itself, holds a token that the server knows.
 *
 * CUresult values as int. Any thread.
 */
#ifndef GMUX_CLIENT_MEMORY_IPC_H
#define GMUX_CLIENT_MEMORY_IPC_H

#include "client/stream/context.h"
#include "transport/signal.h"

enum rt_ipc_kind {
    RT_IPC_MEMORY = 1,
    RT_IPC_EVENT = 3, /* 2: with another page */
};

struct rt_ipc_handle {
    char magic[8]; /* "gmux ipc" */
    uint8_t token[RT_TOKEN_BYTES];
    uint32_t kind;
    uint32_t slot; /* of an event: which of the page's signals */
    uint8_t reserved[16];
};
_Static_assert(sizeof(struct rt_ipc_handle) == CU_IPC_HANDLE_SIZE, "layout");

/* Fills in all but slot. */
void rt_ipc_handle_init(struct rt_ipc_handle *h, enum rt_ipc_kind kind, const uint8_t token[RT_TOKEN_BYTES]);
bool rt_ipc_handle_is(const struct rt_ipc_handle *h, enum rt_ipc_kind kind);

/* --- signal.c: events that other processes can wait for --------------------------------------------------------------- */

struct rt_signal_page;

/* Where an event shared with others keeps how far it has come. */
struct rt_signal {
    struct rt_signal_page *page; /* NULL: no signal */
    struct tp_signal *words;
    uint64_t device; /* address of `words` for the device */
    uint32_t slot;
    uint32_t last, lane, run; /* ring lock: our last record, and how many before it were ours in the same lane */
};

/* A new one of this process; given back when the event goes. */
int rt_signal_create(struct rt_signal *out);
/* That of another process. CUDA_ERROR_INVALID_CONTEXT if it is our own. */
int rt_signal_open(const struct rt_ipc_handle *h, struct rt_signal *out);
/* Another user of the same one. */
void rt_signal_ref(const struct rt_signal *s);
/* One of another process may be unmapped by this: records of ours are done. */
void rt_signal_release(const struct rt_signal *s);
bool rt_signal_is_own(const struct rt_signal *s);
int rt_signal_handle(const struct rt_signal *s, struct rt_ipc_handle *out);

/* Between rt_queue_begin() and rt_queue_end(): the next record, done when `st` has come so far. -EAGAIN: too many are
 * under way, .. */
int rt_signal_record(struct rt_signal *s, struct rt_stream *st, uint64_t *seq);
/* .. so that one has to wait for this first, outside. CUDA_SUCCESS or the session's error. */
int rt_signal_wait_for_room(const struct rt_signal *s);
/* The last record's number, and whether this process made it. */
uint32_t rt_signal_last(const struct rt_signal *s, bool *own);
/* True if nobody has to wait for that record any more. */
bool rt_signal_reached(const struct rt_signal *s, uint32_t number);
/* Waits for it. CUDA_SUCCESS or the session's error. */
int rt_signal_wait(const struct rt_signal *s, uint32_t number);
/* Makes `st` wait for it. */
int rt_signal_wait_in(const struct rt_signal *s, uint32_t number, struct rt_stream *st);

#endif
