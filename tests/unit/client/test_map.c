/* The map of memory, beside an array of what should be in it. */
#include <criterion/criterion.h>
#include <cuda.h>

#include "client/session/map.h"

#define PLACES 512u
#define PLACE  0x1000u
#define BASE   0x10000000u
#define ALIAS  0x90000000u

static struct rt_range there[PLACES]; /* size 0: nothing */
static uint32_t state = 7;

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

static void put(unsigned i)
{
    const uint64_t offset = i * PLACE + random_below(PLACE / 4);
    const uint64_t window = (PLACES - i) * PLACE + random_below(PLACE / 4); /* another order */
    struct rt_range r = { .base = BASE + offset,
                          .size = 1 + random_below(PLACE / 2),
                          .window = ALIAS + window,
                          .kind = i % 3 ? RT_MEMORY_DEVICE : RT_MEMORY_REGISTERED };
    cr_assert_eq(rt_memory_insert(&r), CUDA_SUCCESS);
    there[i] = r;
}

static void take(unsigned i)
{
    struct rt_range r;
    const unsigned kind = there[i].kind;
    cr_assert(!rt_memory_remove(there[i].base, ~(1u << kind), &r), "another kind");
    cr_assert(!rt_memory_remove(there[i].base + 1, 1u << kind, &r), "not its start");
    cr_assert(rt_memory_remove(there[i].base, 1u << kind, &r));
    cr_assert_eq(r.id, there[i].id);
    there[i].size = 0;
}

static void check(unsigned i)
{
    struct rt_range r;
    const uint64_t at = BASE + i * PLACE + random_below(PLACE);
    const struct rt_range *t = &there[i];
    const bool in = t->size && at >= t->base && at - t->base < t->size;
    cr_assert_eq(rt_memory_find(at, &r), in);
    cr_assert(!in || r.id == t->id);
    cr_assert_eq(rt_memory_overlaps(BASE + i * PLACE, PLACE), t->size != 0);
    if (!t->size)
        return;
    const bool alias = t->kind == RT_MEMORY_REGISTERED;
    cr_assert_eq(rt_memory_find_alias(t->window + t->size - 1, &r), alias);
    cr_assert(!alias || r.id == t->id);
    cr_assert(!rt_memory_find_alias(t->window + t->size, &r));
}

Test(map, is_what_was_put_there)
{
    struct rt_range r;
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i = random_below(PLACES);
        if (there[i].size)
            take(i);
        else
            put(i);
        check(random_below(PLACES));
    }
    while (rt_memory_remove_any(NULL, &r))
        there[(r.base - BASE) / PLACE].size = 0;
    for (unsigned i = 0; i < PLACES; i++)
        cr_assert_eq(there[i].size, 0);
}
