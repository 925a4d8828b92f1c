/*
 * Range allocator: hands out ranges of numbers (addresses of a window, windows of the address
 * space). Its books are not in the memory that it hands out, since that belongs to a client. Good
 * fit by power-of-two bins; neighbours merge when freed; constant time except for holes made by
 * alignment.
 *
 * Regions are added first, and ranges are handed out of them. A range never crosses a region's
 * edge, so that a region that is free as a whole can be taken out again.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_RANGES_H
#define GMUX_SERVER_RANGES_H

#include "base/index.h"

#define SRV_RANGE_BINS 64u

struct srv_ranges {
    uint64_t granule; /* a power of two; sizes are rounded up to it */
    struct gm_list bins[SRV_RANGE_BINS];
    struct gm_index used; /* blocks in use, by address in granules */
    uint64_t free_size;   /* of all free blocks */
};

struct srv_block {
    uint64_t address;
    uint64_t size;
    void *user; /* for the caller */
    /* private */
    struct gm_list bin; /* while it is free */
    struct gm_index_link used;
    struct srv_block *below; /* neighbours in the region */
    struct srv_block *above;
    bool free;
};

/* srv_ranges_finish() accepts a zeroed one. */
void srv_ranges_init(struct srv_ranges *r, uint64_t granule);
/* Frees every block, in use or not. */
void srv_ranges_finish(struct srv_ranges *r);

/* Adds a region; base and size are multiples of the granule. 0 or -ENOMEM. */
GM_MUST_CHECK int srv_ranges_add(struct srv_ranges *r, uint64_t base, uint64_t size);
/* A range of at least `size` at a multiple of `align` (a power of two); NULL if there is none, or
 * no memory. */
struct srv_block *srv_ranges_alloc(struct srv_ranges *r, uint64_t size, uint64_t align);
/* Takes a range from the other end of what is free. */
struct srv_block *srv_ranges_alloc_high(struct srv_ranges *r, uint64_t size, uint64_t align);
/* The block in use that starts at `address`, or NULL. */
struct srv_block *srv_ranges_find(const struct srv_ranges *r, uint64_t address);
/* Gives `b` back. If its region is now free as a whole, returns the block that spans it, for
 * srv_ranges_remove(); otherwise NULL. */
struct srv_block *srv_ranges_free(struct srv_ranges *r, struct srv_block *b);
/* How much is free, in any number of pieces. */
uint64_t srv_ranges_left(const struct srv_ranges *r);
/* Takes out a region that is free as a whole. */
void srv_ranges_remove(struct srv_ranges *r, struct srv_block *whole);

#endif
