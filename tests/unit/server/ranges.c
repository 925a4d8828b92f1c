/*
 * The range allocator against a map of granules: nothing overlaps, nothing is lost, whole regions
 * are noticed.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/ranges.h"

#define GRANULE 512u
#define BASE    0x400000000000u
#define REGION  (1u << 20)

static uint32_t state;

static uint32_t next(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

Test(ranges, sizes_and_alignment)
{
    struct srv_ranges r;
    srv_ranges_init(&r, GRANULE);
    cr_assert_null(srv_ranges_alloc(&r, 1, 1), "nothing to give");
    cr_assert_eq(srv_ranges_add(&r, BASE, REGION), 0);
    cr_assert_null(srv_ranges_alloc(&r, 0, 1));
    cr_assert_null(srv_ranges_alloc(&r, REGION + 1, 1));
    cr_assert_null(srv_ranges_alloc(&r, UINT64_MAX, 1));
    cr_assert_null(srv_ranges_alloc(&r, 1, 1ull << 63));
    struct srv_block *a = srv_ranges_alloc(&r, 1, 1);
    cr_assert_not_null(a);
    cr_assert_eq(a->size, GRANULE);
    struct srv_block *b = srv_ranges_alloc(&r, GRANULE + 1, 65536);
    cr_assert_not_null(b);
    cr_assert_eq(b->size, 2 * GRANULE);
    cr_assert_eq(b->address % 65536, 0);
    cr_assert_eq(srv_ranges_find(&r, a->address), a);
    cr_assert_eq(srv_ranges_find(&r, b->address), b);
    cr_assert_null(srv_ranges_find(&r, b->address + GRANULE), "not a start");
    cr_assert_null(srv_ranges_find(&r, b->address + 1));
    cr_assert_null(srv_ranges_free(&r, a));
    struct srv_block *whole = srv_ranges_free(&r, b);
    cr_assert_not_null(whole);
    cr_assert_eq(whole->address, BASE);
    cr_assert_eq(whole->size, REGION);
    struct srv_block *all = srv_ranges_alloc(&r, REGION, 1);
    cr_assert_not_null(all);
    cr_assert_null(srv_ranges_alloc(&r, 1, 1));
    srv_ranges_finish(&r);
    srv_ranges_finish(&r);
}

Test(ranges, from_the_other_end)
{
    struct srv_ranges r;
    srv_ranges_init(&r, GRANULE);
    cr_assert_eq(srv_ranges_add(&r, BASE, REGION), 0);
    struct srv_block *last = srv_ranges_alloc_high(&r, 1, 1);
    struct srv_block *first = srv_ranges_alloc(&r, 1, 1);
    struct srv_block *aligned = srv_ranges_alloc_high(&r, 3 * GRANULE, 65536);
    cr_assert(last && first && aligned);
    cr_assert_eq(last->address, BASE + REGION - GRANULE);
    cr_assert_eq(first->address, BASE);
    cr_assert_eq(aligned->address, BASE + REGION - 65536);
    cr_assert_null(srv_ranges_alloc_high(&r, REGION, 1));
    cr_assert_null(srv_ranges_free(&r, last));
    cr_assert_null(srv_ranges_free(&r, first));
    struct srv_block *whole = srv_ranges_free(&r, aligned);
    cr_assert_not_null(whole);
    cr_assert_eq(whole->size, REGION);
    srv_ranges_finish(&r);
}

Test(ranges, regions_do_not_merge)
{
    struct srv_ranges r;
    srv_ranges_init(&r, GRANULE);
    cr_assert_eq(srv_ranges_add(&r, BASE, REGION), 0);
    cr_assert_eq(srv_ranges_add(&r, BASE + REGION, REGION), 0); /* its neighbour by address */
    cr_assert_null(srv_ranges_alloc(&r, REGION + GRANULE, 1));
    struct srv_block *a = srv_ranges_alloc(&r, REGION, 1);
    struct srv_block *b = srv_ranges_alloc(&r, REGION, 1);
    cr_assert(a && b && a->address != b->address);
    struct srv_block *whole = srv_ranges_free(&r, a);
    cr_assert_not_null(whole);
    srv_ranges_remove(&r, whole);
    cr_assert_null(srv_ranges_alloc(&r, GRANULE, 1), "the region is gone");
    whole = srv_ranges_free(&r, b);
    cr_assert_not_null(whole);
    cr_assert_eq(whole->size, REGION);
    srv_ranges_finish(&r);
}

Test(ranges, random_use_against_a_map, .timeout = 30)
{
    enum { GRANULES = REGION / GRANULE, HELD = 400 };
    static uint8_t map[GRANULES];
    static struct srv_block *held[HELD];
    struct srv_ranges r;
    state = 7;
    srv_ranges_init(&r, GRANULE);
    cr_assert_eq(srv_ranges_add(&r, BASE, REGION), 0);
    unsigned used = 0;
    for (unsigned round = 0; round < 200000; round++) {
        unsigned i = next() % HELD;
        if (held[i]) {
            uint64_t first = (held[i]->address - BASE) / GRANULE;
            uint64_t count = held[i]->size / GRANULE;
            cr_assert_eq(held[i]->user, &held[i]);
            for (uint64_t g = first; g < first + count; g++)
                cr_assert_eq(map[g]--, 1);
            used--;
            struct srv_block *whole = srv_ranges_free(&r, held[i]);
            cr_assert_eq(whole != NULL, used == 0);
            held[i] = NULL;
            continue;
        }
        uint64_t size = 1 + next() % (next() % 8 == 0 ? 65536 : 4096);
        uint64_t align = 1ull << (next() % 14);
        struct srv_block *b = next() % 4 == 0 ? srv_ranges_alloc_high(&r, size, align)
                                              : srv_ranges_alloc(&r, size, align);
        if (!b)
            continue;
        cr_assert_geq(b->size, size);
        cr_assert_lt(b->size, size + GRANULE);
        cr_assert_eq(b->address % align, 0);
        cr_assert(b->address >= BASE && b->address + b->size <= BASE + REGION);
        uint64_t first = (b->address - BASE) / GRANULE;
        for (uint64_t g = first; g < first + b->size / GRANULE; g++)
            cr_assert_eq(map[g]++, 0);
        cr_assert_eq(srv_ranges_find(&r, b->address), b);
        b->user = &held[i];
        held[i] = b;
        used++;
    }
    for (unsigned i = 0; i < HELD; i++)
        if (held[i] && srv_ranges_free(&r, held[i]))
            held[0] = NULL;
    struct srv_block *all = srv_ranges_alloc(&r, REGION, 1);
    cr_assert_not_null(all, "everything merged again");
    srv_ranges_finish(&r);
}

Test(ranges, a_full_window_of_small_blocks, .timeout = 20)
{
    enum { COUNT = 65536 };
    static struct srv_block *blocks[COUNT];
    struct srv_ranges r;
    srv_ranges_init(&r, GRANULE);
    cr_assert_eq(srv_ranges_add(&r, BASE, (uint64_t)COUNT * GRANULE), 0);
    for (unsigned i = 0; i < COUNT; i++)
        cr_assert_not_null(blocks[i] = srv_ranges_alloc(&r, GRANULE, 1));
    cr_assert_null(srv_ranges_alloc(&r, GRANULE, 1));
    for (unsigned i = 0; i < COUNT; i += 2)
        cr_assert_null(srv_ranges_free(&r, blocks[i]));
    cr_assert_null(srv_ranges_alloc(&r, 2 * GRANULE, 1), "only holes of one granule");
    for (unsigned i = 1; i < COUNT; i += 2)
        cr_assert_eq(srv_ranges_free(&r, blocks[i]) != NULL, i == COUNT - 1);
    srv_ranges_finish(&r);
}
