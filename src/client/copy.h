/*
 * Copies. Every cuMemcpy* comes down to one box with two sides.
 */
#ifndef GMUX_CLIENT_COPY_H
#define GMUX_CLIENT_COPY_H

#include "client/context.h"

enum rt_side_kind {
    RT_SIDE_DEVICE,  /* must be memory the map knows */
    RT_SIDE_HOST,    /* any pointer of the program's; pinned if the map knows it */
    RT_SIDE_UNIFIED, /* whichever it turns out to be */
};

struct rt_side {
    enum rt_side_kind kind;
    uint64_t address;
    uint64_t pitch; /* bytes between rows */
    uint64_t slice; /* bytes between planes */
};

struct rt_box {
    struct rt_side dst, src;
    uint64_t width; /* bytes */
    uint64_t height;
    uint64_t depth;
};

/* `synchronous`: as the cuMemcpy* without Async; then `st` is the default stream. CUresult. */
int rt_copy(struct rt_stream *st, const struct rt_box *box, bool synchronous);

#endif
