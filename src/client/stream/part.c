/*
 * Parts of the client's multiprocessors, by number. The executor reads from session memory which
 * multiprocessors they are when a stream names one (device/cuda/part.c).
 */
#include "client/stream/part.h"

#include <string.h>

#include "client/session/session.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Protected by the lock. Index 0 is not used. The executor sees a copy. */
static struct rt_part_shape shapes[TP_PARTS];
static uint32_t shapes_count = 1; /* lock */
static bool has_static;           /* lock; the first part is a static partition */

static void show(const struct rt_part_shape *s, struct tp_part *out)
{
    for (unsigned i = 0; i < GM_ARRAY_LEN(out->groups); i++)
        atomic_store_explicit(&out->groups[i], s->groups[i], memory_order_relaxed);
    atomic_store_explicit(&out->of, s->of, memory_order_relaxed);
    atomic_store_explicit(&out->flags, s->flags, memory_order_relaxed);
    atomic_store_explicit(&out->minimum, s->minimum, memory_order_relaxed);
    atomic_store_explicit(&out->wanted, s->wanted,
                          memory_order_relaxed); /* the ring publishes it */
}

/* The server wrote this part before the client came. */
uint32_t rt_part_all(void)
{
    struct tp_part *part = &rt_session->shared.parts[TP_PART_STATIC];
    pthread_mutex_lock(&lock);
    if (shapes_count <= TP_PART_STATIC &&
        atomic_load_explicit(&part->minimum, memory_order_acquire)) {
        has_static = true;
        shapes_count = TP_PART_STATIC + 1;
    }
    const bool is_static = has_static;
    pthread_mutex_unlock(&lock);
    return is_static ? TP_PART_STATIC : 0;
}

uint32_t rt_part_number(const struct rt_part_shape *s)
{
    pthread_mutex_lock(&lock);
    uint32_t n = has_static ? TP_PART_STATIC + 1 : 1;
    while (n < shapes_count && memcmp(&shapes[n], s, sizeof(*s)) != 0)
        n++;
    if (n == TP_PARTS) {
        n = 0;
    } else if (n == shapes_count) {
        shapes[shapes_count++] = *s;
        show(s, &rt_session->shared.parts[n]);
    }
    pthread_mutex_unlock(&lock);
    return n;
}

bool rt_part_exists(uint32_t n)
{
    pthread_mutex_lock(&lock);
    bool is = n < shapes_count;
    pthread_mutex_unlock(&lock);
    return is;
}
