/*
 * Elements by number: a hash table whose links are embedded in its elements, as a list's are.
 * Several may have the same number.
 */
#ifndef GMUX_BASE_INDEX_H
#define GMUX_BASE_INDEX_H

#include <stdlib.h>

#include "base/list.h"

#define GM_INDEX_FIRST 16u

struct gm_index {
    struct gm_list *buckets; /* NULL: none yet */
    size_t buckets_count;    /* a power of two */
    size_t used;
};

struct gm_index_link {
    struct gm_list bucket;
    uint64_t number;
};

static inline struct gm_list *gm_index_bucket(const struct gm_index *x, uint64_t number)
{
    static struct gm_list none = { &none, &none };
    if (!x->buckets)
        return &none;
    return &x->buckets[(number * 0x9e3779b97f4a7c15u >> 32) & (x->buckets_count - 1)];
}

/* One without buckets is free of elements, too. */
static inline void gm_index_finish(struct gm_index *x)
{
    free(x->buckets);
    *x = (struct gm_index) { 0 };
}

/* Makes room for one more. False: there is no memory for the first; with less than one would like
 * it is slower, and right. */
static inline bool gm_index_room(struct gm_index *x)
{
    struct gm_index more = { .buckets_count =
                                 x->buckets_count ? 2 * x->buckets_count : GM_INDEX_FIRST };
    if (x->used < x->buckets_count)
        return true;
    more.buckets = calloc(more.buckets_count, sizeof(*more.buckets));
    if (!more.buckets)
        return x->buckets != NULL;
    for (size_t i = 0; i < more.buckets_count; i++)
        gm_list_init(&more.buckets[i]);
    for (size_t i = 0; i < x->buckets_count; i++)
        gm_list_for_each_safe (e, &x->buckets[i], struct gm_index_link, bucket) {
            gm_list_remove(&e->bucket);
            gm_list_append(gm_index_bucket(&more, e->number), &e->bucket);
        }
    more.used = x->used;
    free(x->buckets);
    *x = more;
    return true;
}

/* After gm_index_room(). */
static inline void gm_index_add(struct gm_index *x, struct gm_index_link *e, uint64_t number)
{
    e->number = number;
    gm_list_insert(gm_index_bucket(x, number), &e->bucket);
    x->used++;
}

/* The element is in an index, or was zeroed. */
static inline bool gm_index_has(const struct gm_index_link *e)
{
    return e->bucket.next != NULL;
}

/* Harmless on one that is in none, and was zeroed. */
static inline void gm_index_remove(struct gm_index *x, struct gm_index_link *e)
{
    if (!gm_index_has(e))
        return;
    gm_list_remove(&e->bucket);
    *e = (struct gm_index_link) { 0 };
    x->used--;
}

/* `pos` is a `type *` declared by the macro: those with that number. The index must not change.
 */
#define gm_index_for_each(pos, index, wanted, type, member)                                        \
    gm_list_for_each (pos, gm_index_bucket(index, wanted), type, member.bucket)                    \
        if (pos->member.number == (wanted))

#endif
