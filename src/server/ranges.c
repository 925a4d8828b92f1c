/*
 * Every block of a region, free or in use, is linked to its neighbours; free ones are also in the
 * bin of their size, used ones in a hash table by address. A bin holds sizes of [2^i, 2^(i+1))
 * granules, so that any block of a higher bin fits a request without alignment; in the request's
 * own bin, and where alignment matters, blocks are tried.
 */
#include "server/ranges.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many blocks of one bin are tried. So a client that fragments its window may be refused a
 * range that exists, but it cannot hold up the loop. */
#define TRIES 256u

static unsigned bin_of(const struct srv_ranges *r, uint64_t size)
{
    return 63u - (unsigned)__builtin_clzll(size / r->granule);
}

void srv_ranges_init(struct srv_ranges *r, uint64_t granule)
{
    assert(gm_is_pow2(granule));
    memset(r, 0, sizeof(*r));
    r->granule = granule;
    for (unsigned i = 0; i < SRV_RANGE_BINS; i++)
        gm_list_init(&r->bins[i]);
}

void srv_ranges_finish(struct srv_ranges *r)
{
    if (!r->granule)
        return;
    for (unsigned i = 0; i < SRV_RANGE_BINS; i++)
        gm_list_for_each_safe (b, &r->bins[i], struct srv_block, bin)
            free(b);
    for (size_t i = 0; i < r->used.buckets_count; i++)
        gm_list_for_each_safe (b, &r->used.buckets[i], struct srv_block, used.bucket)
            free(b);
    gm_index_finish(&r->used);
    memset(r, 0, sizeof(*r));
}

static void set_free(struct srv_ranges *r, struct srv_block *b)
{
    b->free = true;
    b->user = NULL;
    r->free_size += b->size;
    gm_list_insert(&r->bins[bin_of(r, b->size)], &b->bin);
}

/* Takes a free block out of its bin, to hand it out, merge it or give it up. */
static void take_out(struct srv_ranges *r, struct srv_block *b)
{
    gm_list_remove(&b->bin);
    r->free_size -= b->size;
}

uint64_t srv_ranges_left(const struct srv_ranges *r)
{
    return r->free_size;
}

int srv_ranges_add(struct srv_ranges *r, uint64_t base, uint64_t size)
{
    assert(size != 0 && base % r->granule == 0 && size % r->granule == 0);
    struct srv_block *b = calloc(1, sizeof(*b));
    if (!b)
        return -ENOMEM;
    b->address = base;
    b->size = size;
    set_free(r, b);
    return 0;
}

/* Where in the free block `b` an aligned range of `size` starts, as low or as high as can be; false
 * if it does not fit. */
static bool fits(const struct srv_block *b, uint64_t size, uint64_t align, bool at_end,
                 uint64_t *start)
{
    uint64_t at;
    if (!gm_align_up(b->address, align, &at) || at - b->address > b->size ||
        size > b->size - (at - b->address))
        return false;
    *start = at_end ? (b->address + b->size - size) & ~(align - 1) : at;
    return true;
}

static struct srv_block *find_free(struct srv_ranges *r, uint64_t size, uint64_t align, bool at_end,
                                   uint64_t *start)
{
    for (unsigned i = bin_of(r, size); i < SRV_RANGE_BINS; i++) {
        unsigned tries = 0;
        gm_list_for_each (b, &r->bins[i], struct srv_block, bin) {
            if (fits(b, size, align, at_end, start))
                return b;
            if (++tries == TRIES)
                break;
        }
    }
    return NULL;
}

/* Cuts `b` in two at `at`; `upper` becomes the part from there on. Neither is in a bin. */
static void split(struct srv_block *b, uint64_t at, struct srv_block *upper)
{
    *upper = (struct srv_block) {
        .address = at, .size = b->address + b->size - at, .below = b, .above = b->above
    };
    if (b->above)
        b->above->below = upper;
    b->above = upper;
    b->size = at - b->address;
}

static struct srv_block *alloc(struct srv_ranges *r, uint64_t size, uint64_t align, bool at_end)
{
    uint64_t at;
    if (size == 0 || !gm_align_up(size, r->granule, &size))
        return NULL;
    struct srv_block *b = find_free(r, size, GM_MAX(align, r->granule), at_end, &at);
    if (!b || !gm_index_room(&r->used))
        return NULL;
    /* Everything that can fail comes before the first change. */
    struct srv_block *low = NULL;
    struct srv_block *high = NULL;
    bool has_low = at != b->address;
    bool has_high = at + size != b->address + b->size;
    if (has_low)
        low = malloc(sizeof(*low));
    if (has_high)
        high = malloc(sizeof(*high));
    if ((has_low && !low) || (has_high && !high)) {
        free(low);
        free(high);
        return NULL;
    }
    take_out(r, b);
    /* `low` becomes the new descriptor; the upper part is handed out. */
    if (low) {
        split(b, at, low);
        set_free(r, b);
        b = low;
    }
    if (high) {
        split(b, at + size, high);
        set_free(r, high);
    }
    b->free = false;
    gm_index_add(&r->used, &b->used, b->address / r->granule);
    return b;
}

struct srv_block *srv_ranges_alloc(struct srv_ranges *r, uint64_t size, uint64_t align)
{
    return alloc(r, size, align, false);
}

struct srv_block *srv_ranges_alloc_high(struct srv_ranges *r, uint64_t size, uint64_t align)
{
    return alloc(r, size, align, true);
}

struct srv_block *srv_ranges_find(const struct srv_ranges *r, uint64_t address)
{
    if (address % r->granule == 0)
        gm_index_for_each (b, &r->used, address / r->granule, struct srv_block, used)
            return b;
    return NULL;
}

/* Puts `upper` into `b`, which lies right below it. Neither is in a bin. */
static void merge(struct srv_block *b, struct srv_block *upper)
{
    b->size += upper->size;
    b->above = upper->above;
    if (b->above)
        b->above->below = b;
    free(upper);
}

struct srv_block *srv_ranges_free(struct srv_ranges *r, struct srv_block *b)
{
    assert(!b->free);
    gm_index_remove(&r->used, &b->used);
    if (b->above && b->above->free) {
        take_out(r, b->above);
        merge(b, b->above);
    }
    if (b->below && b->below->free) {
        b = b->below;
        take_out(r, b);
        merge(b, b->above);
    }
    set_free(r, b);
    return b->below || b->above ? NULL : b;
}

void srv_ranges_remove(struct srv_ranges *r, struct srv_block *whole)
{
    assert(whole->free && !whole->below && !whole->above);
    take_out(r, whole);
    free(whole);
}
