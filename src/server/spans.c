/*
 * An ordered array: it is searched much more often than it changes.
 */
#include "server/spans.h"

#include <string.h>

#include "base/array.h"

void srv_spans_finish(struct srv_spans *s)
{
    free(s->all);
    *s = (struct srv_spans) { 0 };
}

/* The index of the first span that does not end before `address`. */
static uint32_t place_of(const struct srv_spans *s, uint64_t address)
{
    uint32_t low = 0, high = s->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct srv_span *x = s->all[middle];
        if (x->address <= address && address - x->address >= x->size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool srv_spans_add(struct srv_spans *s, struct srv_span *x)
{
    if (!gm_array_room(&s->all, sizeof(*s->all), s->count, UINT32_MAX))
        return false;
    const uint32_t at = place_of(s, x->address);
    memmove(s->all + at + 1, s->all + at, (s->count - at) * sizeof(*s->all));
    s->all[at] = x;
    s->count++;
    return true;
}

void srv_spans_remove(struct srv_spans *s, struct srv_span *x)
{
    const uint32_t at = place_of(s, x->address);
    s->count--;
    memmove(s->all + at, s->all + at + 1, (s->count - at) * sizeof(*s->all));
}

struct srv_span *srv_spans_find(const struct srv_spans *s, uint64_t address, uint64_t size)
{
    const uint32_t at = place_of(s, address);
    if (at == s->count)
        return NULL;
    struct srv_span *x = s->all[at];
    return x->address <= address || x->address - address < size ? x : NULL;
}
