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
static struct free_slot *slots; /* protected by the lock; has room for all slots */
static size_t count;            /* lock */
static uint32_t used;           /* lock */

uint32_t rt_event_slot_take(void)
{
    struct rt_session *s = rt_session;
    uint32_t taken = RT_NO_SLOT;
    pthread_mutex_lock(&lock);
    for (size_t i = count; i-- > 0 && taken == RT_NO_SLOT;) {
        if (slots[i].seq && !rt_queue_done(s, slots[i].number, slots[i].seq))
            continue;
        taken = slots[i].slot;
        slots[i] = slots[--count];
    }
    if (taken == RT_NO_SLOT && used < s->shared.events_count)
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
        slots[count++] = (struct free_slot) { slot, number, seq };
    pthread_mutex_unlock(&lock);
}

uint64_t rt_event_slot_time(uint32_t slot)
{
    return atomic_load_explicit(&rt_session->shared.events[slot].time_ns, memory_order_acquire);
}
