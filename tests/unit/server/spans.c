/*
 * Spans against a map of bytes, and the index that names and tokens are found by against an array:
 * what was added is found, at its edges, too, and what was removed is not.
 */
#include <criterion/criterion.h>

#include "base/index.h"
#include "server/spans.h"

#define PLACES   512u
#define STEPS    20000u
#define ELEMENTS 300u

static uint32_t state = 1;

static uint32_t next(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static struct srv_span *place_of[PLACES];

static struct srv_span *first_in(uint64_t address, uint64_t size)
{
    for (uint64_t i = address; i < PLACES && i - address < size; i++)
        if (place_of[i])
            return place_of[i];
    return NULL;
}

static void mark(const struct srv_span *x, struct srv_span *as)
{
    for (uint64_t i = 0; i < x->size; i++)
        place_of[x->address + i] = as;
}

Test(spans, any_order)
{
    struct srv_spans s = { 0 };
    for (unsigned n = 0; n < STEPS; n++) {
        const uint64_t address = next() % PLACES, size = 1 + next() % 16;
        struct srv_span *found = srv_spans_find(&s, address, size);
        cr_assert_eq(found, first_in(address, size));
        if (!found && address + size <= PLACES) {
            struct srv_span *x = malloc(sizeof(*x));
            *x = (struct srv_span) { address, size };
            cr_assert(srv_spans_add(&s, x));
            mark(x, x);
        } else if (found && next() % 2) {
            mark(found, NULL);
            srv_spans_remove(&s, found);
            free(found);
        }
    }
    cr_assert_gt(s.count, 10);
    while (s.count) {
        struct srv_span *x = s.all[next() % s.count];
        srv_spans_remove(&s, x);
        free(x);
    }
    srv_spans_finish(&s);
    srv_spans_finish(&s);
}

Test(spans, ends_of_the_address_space)
{
    struct srv_spans s = { 0 };
    struct srv_span low = { 0, 4096 }, high = { UINT64_MAX - 4095, 4096 };
    cr_assert_null(srv_spans_find(&s, 0, UINT64_MAX));
    cr_assert(srv_spans_add(&s, &high) && srv_spans_add(&s, &low));
    cr_assert_eq(srv_spans_find(&s, 4095, 1), &low);
    cr_assert_null(srv_spans_find(&s, 4096, UINT64_MAX - 2 * 4096 + 1));
    cr_assert_eq(srv_spans_find(&s, 4096, UINT64_MAX - 2 * 4096 + 2), &high);
    cr_assert_eq(srv_spans_find(&s, UINT64_MAX, UINT64_MAX), &high);
    cr_assert_eq(srv_spans_find(&s, 1, UINT64_MAX), &low);
    srv_spans_finish(&s);
}

struct element {
    struct gm_index_link link;
    bool in;
};

/* Every number twice. */
Test(index, any_order)
{
    static struct element elements[ELEMENTS];
    struct gm_index x = { 0 };
    for (unsigned n = 0; n < STEPS; n++) {
        const unsigned i = next() % ELEMENTS;
        struct element *e = &elements[i];
        unsigned found = 0, wanted = elements[i].in + elements[i ^ 1].in;
        gm_index_for_each (o, &x, i / 2, struct element, link) {
            cr_assert(o->in && (unsigned)(o - elements) / 2 == i / 2);
            found++;
        }
        cr_assert_eq(found, wanted);
        if (e->in) {
            gm_index_remove(&x, &e->link);
            gm_index_remove(&x, &e->link);
        } else {
            cr_assert(gm_index_room(&x));
            gm_index_add(&x, &e->link, i / 2);
        }
        e->in = !e->in;
    }
    gm_index_finish(&x);
}
