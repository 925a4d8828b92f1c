/*
 * How the two sides sleep. The consumer sleeps on `bell`, which everybody who wakes it increments;
 * the producer sleeps on `head`. Each sets its own flag, looks once more, and then sleeps. The
 * other side publishes, and then looks at the flag. Each side has one full fence between its two
 * steps (tests/model/ring.pml checks the handshake).
 */
#include "transport/ring.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"

void tp_ring_init_producer(struct tp_ring *r, struct tp_ring_shared *shared, void *data,
                           uint32_t size)
{
    *r = (struct tp_ring) { .shared = shared, .data = data, .size = size };
    r->mine = atomic_load_explicit(&shared->tail, memory_order_relaxed);
    r->theirs = atomic_load_explicit(&shared->head, memory_order_acquire);
}

void tp_ring_init_consumer(struct tp_ring *r, struct tp_ring_shared *shared, void *data,
                           uint32_t size)
{
    *r = (struct tp_ring) { .shared = shared, .data = data, .size = size };
    r->mine = atomic_load_explicit(&shared->head, memory_order_relaxed);
    r->theirs = r->mine;
}

static void copy_in(struct tp_ring *r, uint32_t at, const void *src, size_t n)
{
    uint32_t off = at & (r->size - 1);
    size_t first = GM_MIN(n, (size_t)(r->size - off));
    if (n == 0)
        return;
    memcpy(r->data + off, src, first);
    if (n > first)
        memcpy(r->data, (const uint8_t *)src + first, n - first);
}

static void copy_out(const struct tp_ring *r, uint32_t at, void *dst, size_t n)
{
    uint32_t off = at & (r->size - 1);
    size_t first = GM_MIN(n, (size_t)(r->size - off));
    memcpy(dst, r->data + off, first);
    if (n > first)
        memcpy((uint8_t *)dst + first, r->data, n - first);
}

void tp_ring_kick(struct tp_ring_shared *shared)
{
    atomic_fetch_add_explicit(&shared->bell, 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&shared->consumer_sleeps, memory_order_relaxed))
        tp_futex_wake(&shared->bell);
}

void tp_ring_wake(struct tp_ring_shared *shared)
{
    atomic_fetch_add_explicit(&shared->bell, 1, memory_order_seq_cst);
    tp_futex_wake(&shared->bell);
}

/* Waits until `need` bytes are free. */
static int wait_for_room(struct tp_ring *r, uint32_t need, const struct tp_wait_policy *policy)
{
    struct tp_ring_shared *s = r->shared;
    uint64_t spin_end = 0;
    int result = 0;

    for (;;) {
        r->theirs = atomic_load_explicit(&s->head, memory_order_acquire);
        if (r->mine - r->theirs > r->size)
            return -EBADMSG;
        if (r->size - (r->mine - r->theirs) >= need)
            return 0;
        uint64_t now = gm_now_ns();
        if (!spin_end)
            spin_end = now + policy->spin_ns;
        if (now < spin_end) {
            gm_cpu_relax();
            continue;
        }
        atomic_store_explicit(&s->producer_sleeps, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&s->head, memory_order_relaxed) == r->theirs) {
            if (policy->watchdog && (result = policy->watchdog(policy->arg)) != 0)
                break;
            tp_futex_wait(&s->head, r->theirs, policy->slice_ms);
        }
        atomic_store_explicit(&s->producer_sleeps, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&s->producer_sleeps, 0, memory_order_relaxed);
    return result;
}

int tp_ring_write(struct tp_ring *r, const struct wire_record *head, size_t head_size,
                  const void *tail, size_t tail_size, const struct tp_wait_policy *policy)
{
    struct tp_ring_shared *s = r->shared;
    uint32_t need = (uint32_t)gm_padded(head_size + tail_size);

    if (GM_UNLIKELY(r->size - (r->mine - r->theirs) < need)) {
        int result = wait_for_room(r, need, policy);
        if (result != 0)
            return result;
    }
    copy_in(r, r->mine, head, head_size);
    copy_in(r, r->mine + (uint32_t)head_size, tail, tail_size);
    r->mine += need;
    atomic_store_explicit(&s->tail, r->mine, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    /* The flag is cleared before the bell moves. So a consumer that was woken but does not run yet
     * costs one system call, and not one for each record. The other order loses a wake-up, as the
     * model shows. */
    if (atomic_load_explicit(&s->consumer_sleeps, memory_order_relaxed) &&
        atomic_exchange_explicit(&s->consumer_sleeps, 0, memory_order_seq_cst))
        tp_ring_wake(s);
    return 0;
}

bool tp_ring_pending(struct tp_ring *r)
{
    if (r->theirs == r->mine)
        r->theirs = atomic_load_explicit(&r->shared->tail, memory_order_acquire);
    return r->theirs != r->mine;
}

int tp_ring_peek(struct tp_ring *r, void *out, size_t out_size)
{
    struct wire_record head;
    if (!tp_ring_pending(r))
        return 0;
    uint32_t used = r->theirs - r->mine;
    if (used > r->size || used < sizeof(head))
        return -EBADMSG;
    copy_out(r, r->mine, &head, sizeof(head));
    if (head.size > out_size || !wire_record_check(&head) || gm_padded(head.size) > used)
        return -EBADMSG;
    copy_out(r, r->mine, out, head.size);
    memcpy(out, &head, sizeof(head)); /* the copy that was checked is the one that is used */
    r->peeked = (uint32_t)gm_padded(head.size);
    return 1;
}

bool tp_ring_more(struct tp_ring *r)
{
    if (r->theirs == r->mine + r->peeked)
        r->theirs = atomic_load_explicit(&r->shared->tail, memory_order_acquire);
    return r->theirs != r->mine + r->peeked;
}

void tp_ring_advance(struct tp_ring *r)
{
    struct tp_ring_shared *s = r->shared;
    r->mine += r->peeked;
    r->peeked = 0;
    atomic_store_explicit(&s->head, r->mine, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    /* A producer that waits for room is woken when half of the ring is free, and not for each
     * record. That moment always comes: when the producer begins to wait, more than half of the
     * ring is still to be read. */
    if (GM_UNLIKELY(atomic_load_explicit(&s->producer_sleeps, memory_order_relaxed)) &&
        r->theirs - r->mine <= r->size / 2)
        tp_futex_wake(&s->head);
}

uint32_t tp_ring_bell(const struct tp_ring *r)
{
    return atomic_load_explicit(&r->shared->bell, memory_order_acquire);
}

/* Sets the flag, looks once more, and sleeps. The futex compares the bell by itself, so that only
 * records need the second look. */
static void sleep_on_bell(struct tp_ring *r, uint32_t bell, uint64_t slice_ns, bool for_records)
{
    struct tp_ring_shared *s = r->shared;
    atomic_store_explicit(&s->consumer_sleeps, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (!for_records || !tp_ring_pending(r))
        tp_futex_wait_ns(&s->bell, bell, slice_ns);
    atomic_store_explicit(&s->consumer_sleeps, 0, memory_order_relaxed);
}

#define SPIN_ALONE_NS (5 * GM_NS_PER_US)

bool tp_ring_spin(struct tp_ring *r, uint32_t bell, uint32_t spin_ns)
{
    uint64_t start = gm_now_ns(), now = start;
    do {
        for (int i = 0; i < 16; i++) {
            if (tp_ring_pending(r) || tp_ring_bell(r) != bell)
                return true;
            gm_cpu_relax();
        }
        if (now - start > SPIN_ALONE_NS) /* others may want the processor by now */
            sched_yield();
        now = gm_now_ns();
    } while (now - start < spin_ns);
    return false;
}

void tp_ring_wait(struct tp_ring *r, uint32_t bell, uint32_t slice_ms)
{
    sleep_on_bell(r, bell, slice_ms * GM_NS_PER_MS, true);
}

void tp_ring_nap(struct tp_ring *r, uint32_t bell, uint64_t slice_ns)
{
    sleep_on_bell(r, bell, slice_ns, false);
}
