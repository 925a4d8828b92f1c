/*
 * The command ring: bytes in shared memory, one producer (a client), one consumer (the executor's
 * thread for that client). Records start with struct wire_record and are padded to 8 bytes. Neither
 * side trusts the other: indices are read once and checked, geometry is kept in private memory, a
 * record is copied out before it is looked at.
 *
 * The twelve rules of CONTRIBUTING.md ("Rings") are all kept in this file and its .c.
 */
#ifndef GMUX_TRANSPORT_RING_H
#define GMUX_TRANSPORT_RING_H

#include "transport/wait.h"
#include "wire/messages.h"

/* The shared part. Free-running indices. What one side writes all the time lies on a line of its
 * own, and so do the flags, which are read all the time and seldom written: in the steady state
 * only the indices' lines travel between processors. Zero is a valid empty ring. */
struct tp_ring_shared {
    _Atomic uint32_t tail GM_ALIGNED(GM_CACHELINE); /* producer writes */
    _Atomic uint32_t head
        GM_ALIGNED(GM_CACHELINE); /* consumer writes; a producer without room sleeps on it */
    _Atomic uint32_t consumer_sleeps
        GM_ALIGNED(GM_CACHELINE); /* consumer sets, who wakes it takes it down */
    /* a producer that wakes the consumer adds one; the consumer sleeps on it */
    _Atomic uint32_t bell;
    _Atomic uint32_t producer_sleeps GM_ALIGNED(GM_CACHELINE); /* producer writes */
    uint8_t pad[GM_CACHELINE - sizeof(uint32_t)];
};
_Static_assert(sizeof(struct tp_ring_shared) == 4 * GM_CACHELINE, "layout");

/* One side's private view. Not thread-safe: producers of one client share a lock. */
struct tp_ring {
    struct tp_ring_shared *shared;
    uint8_t *data;
    uint32_t size;   /* of data, a power of two */
    uint32_t mine;   /* own index */
    uint32_t theirs; /* last seen of the other side */
    uint32_t peeked; /* consumer: bytes that tp_ring_advance() gives back */
};

/* `data` and `size` come from a validated session. Both take over where the shared indices stand.
 */
void tp_ring_init_producer(struct tp_ring *r, struct tp_ring_shared *shared, void *data,
                           uint32_t size);
void tp_ring_init_consumer(struct tp_ring *r, struct tp_ring_shared *shared, void *data,
                           uint32_t size);

/* Producer: appends a record of two parts (the second may be empty), publishes it and wakes the
 * consumer if it sleeps. head->size must be set to the sum; or the first part is several whole
 * records, padded, and no longer than half the ring. Waits for room by `policy`. 0, or what the
 * watchdog returned; -EBADMSG if the consumer's index is impossible. */
GM_MUST_CHECK int tp_ring_write(struct tp_ring *r, const struct wire_record *head, size_t head_size,
                                const void *tail, size_t tail_size,
                                const struct tp_wait_policy *policy);

/* Consumer: copies the next record to `out` without consuming it. 1: one is there and
 * wire_record_check() holds; 0: empty; -EBADMSG: the producer broke the ring. */
GM_MUST_CHECK int tp_ring_peek(struct tp_ring *r, void *out, size_t out_size);
/* Consumer: the record last peeked is done with. */
void tp_ring_advance(struct tp_ring *r);
/* Consumer: another record stands behind the one last peeked. */
bool tp_ring_more(struct tp_ring *r);
/* Consumer: true if something is there. */
bool tp_ring_pending(struct tp_ring *r);
/* Consumer: where the bell stands. Read it, then look at whatever a kick announces (gates, orders
 * to stop), then pass it to tp_ring_wait(): a kick in between is not lost. */
uint32_t tp_ring_bell(const struct tp_ring *r);
/* Consumer: looks for up to `spin_ns`; true once a record is there or the bell has moved on from
 * `bell`. */
bool tp_ring_spin(struct tp_ring *r, uint32_t bell, uint32_t spin_ns);
/* Consumer: sleeps until then. Returns after at most one slice. */
void tp_ring_wait(struct tp_ring *r, uint32_t bell, uint32_t slice_ms);
/* Consumer: sleeps until the bell moves on, records or not: for one that cannot take more now. */
void tp_ring_nap(struct tp_ring *r, uint32_t bell, uint64_t slice_ns);
/* Anybody: makes the consumer return from tp_ring_wait(). */
void tp_ring_kick(struct tp_ring_shared *shared);
/* Like tp_ring_kick(), without trusting the shared flag that says whether the consumer sleeps: for
 * orders that must arrive. */
void tp_ring_wake(struct tp_ring_shared *shared);

#endif
