/*
 * Handles. What a program holds as CUstream, CUevent, CUmodule and so on is never a pointer to our
 * memory. It names a kind, a slot and the slot's generation, and is looked up at every use. So a
 * stale, foreign or invented handle is detected instead of followed. Slots are never given back to
 * the system, so even a use that races with a destroy reads valid memory.
 *
 * Look-up takes no lock. Creation and release take the table's own lock. Any thread.
 */
#ifndef GMUX_CLIENT_SESSION_HANDLE_H
#define GMUX_CLIENT_SESSION_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/attr.h"

enum rt_kind {
    RT_KIND_CONTEXT = 0x11,
    RT_KIND_STREAM = 0x12,
    RT_KIND_EVENT = 0x13,
    RT_KIND_MODULE = 0x14,
    RT_KIND_FUNCTION = 0x15,
    RT_KIND_LIBRARY = 0x16,
    RT_KIND_POOL = 0x21,
    RT_KIND_PHYSICAL = 0x22,
    RT_KIND_GRAPH = 0x31,
    RT_KIND_NODE = 0x32,
    RT_KIND_EXEC = 0x33,
    RT_KIND_USER_OBJECT = 0x34,
    RT_KIND_ARRAY = 0x41,
    RT_KIND_MIPMAP = 0x42,
    RT_KIND_REFERENCE = 0x43,
    RT_KIND_CALLBACK = 0x51,
    RT_KIND_LINK = 0x52,
    RT_KIND_RESOURCE = 0x53,
};

#define RT_CHUNK_SHIFT 7u
#define RT_CHUNK_SLOTS (1u << RT_CHUNK_SHIFT)
#define RT_CHUNKS      8192u /* about a million objects of a kind */

/* First member of every object in a table. */
struct rt_object {
    _Atomic uint32_t generation; /* odd: alive */
    uint32_t index;
    struct rt_object *next_free; /* table's lock */
};

struct rt_table {
    enum rt_kind kind;
    size_t object_size;
    pthread_mutex_t lock;
    struct rt_object *free; /* lock */
    _Atomic uint32_t count; /* slots made so far */
    _Atomic(uint8_t *) chunks[RT_CHUNKS];
};

#define RT_TABLE(kind_, type)                                                                      \
    {                                                                                              \
        .kind = (kind_), .object_size = sizeof(type), .lock = PTHREAD_MUTEX_INITIALIZER            \
    }

/* Takes a slot: a zeroed object that no handle finds yet. NULL: no memory. rt_object_publish()
 * makes it visible. */
void *rt_object_take(struct rt_table *t);
/* From now on its handle is valid. */
void rt_object_publish(struct rt_object *o);
/* Its handle is no longer valid, and the slot will be used again. Also for objects that were never
 * published. */
void rt_object_release(struct rt_table *t, struct rt_object *o);

static inline uint32_t rt_object_generation(const struct rt_object *o)
{
    return atomic_load_explicit(&o->generation, memory_order_acquire);
}

static inline void *rt_object_handle(const struct rt_table *t, const struct rt_object *o)
{
    uint64_t h =
        (uint64_t)t->kind << 56 | (uint64_t)(rt_object_generation(o) & 0xffffffu) << 32 | o->index;
    return (void *)(uintptr_t)h; /* a number in the form of a pointer, which is never followed */
}

/* The object's slot, alive or not. `index` < count. */
static inline struct rt_object *rt_table_slot(struct rt_table *t, uint32_t index)
{
    uint8_t *chunk =
        atomic_load_explicit(&t->chunks[index >> RT_CHUNK_SHIFT], memory_order_acquire);
    return (struct rt_object *)(void *)(chunk +
                                        (size_t)(index & (RT_CHUNK_SLOTS - 1)) * t->object_size);
}

/* NULL if the handle is not one of this table's living objects. */
static inline void *rt_object_find(struct rt_table *t, const void *handle)
{
    uint64_t h = (uintptr_t)handle;
    uint32_t index = (uint32_t)h;
    if (h >> 56 != (uint64_t)t->kind ||
        index >= atomic_load_explicit(&t->count, memory_order_acquire))
        return NULL;
    struct rt_object *o = rt_table_slot(t, index);
    uint32_t generation = rt_object_generation(o);
    return (generation & 1) && (generation & 0xffffffu) == (uint32_t)(h >> 32 & 0xffffffu) ? o
                                                                                           : NULL;
}

/* Calls `f` for each living object; `f` may release it. Other objects may be made and released
 * meanwhile. */
void rt_table_each(struct rt_table *t, void (*f)(struct rt_object *o, void *arg), void *arg);

#endif
