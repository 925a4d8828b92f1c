/*
 * Slots come in chunks, which are never freed. A slot's generation counts up by one when its object
 * becomes visible (it is odd then) and when that is released (even), so that a handle from an
 * earlier life never matches.
 */
#include "client/session/handle.h"

#include <stdlib.h>
#include <string.h>

/* Makes one more chunk and puts its slots on the free list, the lowest index first. Called with the
 * lock held. */
static bool grow(struct rt_table *t)
{
    uint32_t count = atomic_load_explicit(&t->count, memory_order_relaxed);
    uint32_t chunk = count >> RT_CHUNK_SHIFT;
    if (chunk >= RT_CHUNKS)
        return false;
    uint8_t *memory = calloc(RT_CHUNK_SLOTS, t->object_size);
    if (!memory)
        return false;
    for (uint32_t i = RT_CHUNK_SLOTS; i-- > 0;) {
        struct rt_object *o = (struct rt_object *)(void *)(memory + (size_t)i * t->object_size);
        o->index = count + i;
        o->next_free = t->free;
        t->free = o;
    }
    atomic_store_explicit(&t->chunks[chunk], memory, memory_order_release);
    atomic_store_explicit(&t->count, count + RT_CHUNK_SLOTS, memory_order_release);
    return true;
}

void *rt_object_take(struct rt_table *t)
{
    struct rt_object *o = NULL;
    pthread_mutex_lock(&t->lock);
    if (t->free || grow(t)) {
        o = t->free;
        t->free = o->next_free;
    }
    pthread_mutex_unlock(&t->lock);
    if (o) {
        o->next_free = NULL;
        memset(o + 1, 0, t->object_size - sizeof(*o));
    }
    return o;
}

void rt_object_publish(struct rt_object *o)
{
    atomic_fetch_add_explicit(&o->generation, 1, memory_order_release);
}

void rt_object_release(struct rt_table *t, struct rt_object *o)
{
    pthread_mutex_lock(&t->lock);
    if (rt_object_generation(o) & 1)
        atomic_fetch_add_explicit(&o->generation, 1, memory_order_release);
    o->next_free = t->free;
    t->free = o;
    pthread_mutex_unlock(&t->lock);
}

void rt_table_each(struct rt_table *t, void (*f)(struct rt_object *o, void *arg), void *arg)
{
    uint32_t count = atomic_load_explicit(&t->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct rt_object *o = rt_table_slot(t, i);
        if (rt_object_generation(o) & 1)
            f(o, arg);
    }
}
