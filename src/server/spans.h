/*
 * Ranges of addresses that do not overlap, in order: finds the one that contains an address.
 */
#ifndef GMUX_SERVER_SPANS_H
#define GMUX_SERVER_SPANS_H

#include "base/attr.h"

/* Embedded in the object that lies there. */
struct srv_span {
    uint64_t address, size;
};

struct srv_spans {
    struct srv_span **all; /* by address */
    uint32_t count;
};

void srv_spans_finish(struct srv_spans *s);
/* Adds a span, which overlaps none of the others. False: no memory. */
GM_MUST_CHECK bool srv_spans_add(struct srv_spans *s, struct srv_span *x);
void srv_spans_remove(struct srv_spans *s, struct srv_span *x);
/* The first span that has an address in [address, address + size); NULL: there is none. */
struct srv_span *srv_spans_find(const struct srv_spans *s, uint64_t address, uint64_t size);

#endif
