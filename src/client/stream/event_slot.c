/*
 * A slot is taken again only after the last stamp for it has been written, so that no old stamp
 * lands in a new event.
 */
#include "client/stream/event_slot.h"

#include <pthread.h>
#include <stdlib.h>

#include "client/session/session.h"

/* A slot that no event has. Its last stamp may not have been written yet. */
struct free_slot {
    uint32_t slot;
    uint32_t number;
    uint64_t seq;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Protected by the lock: a ring with room for all slots; the oldest is at `first`. */
static struct free_slot *slots;
static size_t first, count;
static uint32_t used; /* lock */

/* So many free slots are looked at before one is used for the first time. */
#define LOOKS 4u

/* A stamp that has not been reached is in the ring or in what the executor has read of it. */
_Static_assert(TP_EVENTS >= TP_RING_BYTES / sizeof(struct wire_rec_stamp), "slots");

static struct free_slot pop(void)
{
    const struct free_slot oldest = slots[first];
    first = (first + 1) % rt_session->shared.events_count;
    count--;
    return oldest;
}

static void push(struct free_slot newest)
{
    slots[(first + count++) % rt_session->shared.events_count] = newest;
}

uint32_t rt_event_slot_take(void)
{
    struct rt_session *s = rt_session;
    uint32_t taken = RT_NO_SLOT;
    pthread_mutex_lock(&lock);
    const bool more = used < s->shared.events_count;
    for (size_t looks = more ? GM_MIN(count, LOOKS) : count; looks-- && taken == RT_NO_SLOT;) {
        const struct free_slot oldest = pop();
        if (oldest.seq && !rt_queue_done(s, oldest.number, oldest.seq))
            push(oldest);
        else
            taken = oldest.slot;
    }
    if (taken == RT_NO_SLOT && more)
        taken = used++;
    pthread_mutex_unlock(&lock);
    return taken;
}

void rt_event_slot_give(uint32_t slot, uint32_t number, uint64_t seq)
{
    pthread_mutex_lock(&lock);
    if (!slots)
        slots = calloc(rt_session->shared.events_count, sizeof(*slots));
    if (slots) /* without memory the slot is lost, which is better than a wrong time */
        push((struct free_slot) { slot, number, seq });
    pthread_mutex_unlock(&lock);
}

uint64_t rt_event_slot_time(uint32_t slot)
{
    return atomic_load_explicit(&rt_session->shared.events[slot].time_ns, memory_order_acquire);
}
