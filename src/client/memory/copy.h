/*
 * Copies. Every cuMemcpy* comes down to one box with two sides.
 */
#ifndef GMUX_CLIENT_MEMORY_COPY_H
#define GMUX_CLIENT_MEMORY_COPY_H

#include "client/stream/context.h"

enum rt_side_kind {
    RT_SIDE_DEVICE,  /* must be memory the map knows */
    RT_SIDE_HOST,    /* any pointer of the program's; pinned if the map knows it */
    RT_SIDE_UNIFIED, /* whichever it turns out to be */
    RT_SIDE_ARRAY,
};

struct rt_array;

struct rt_side {
    enum rt_side_kind kind;
    uint64_t address;
    uint64_t pitch; /* bytes between rows */
    uint64_t slice; /* bytes between planes */
    /* NULL: memory; otherwise, instead of all that, or beside it where it is memory: */
    const struct rt_array *array;
    uint64_t x, y, z; /* x in bytes */
};

struct rt_box {
    struct rt_side dst, src;
    uint64_t width; /* bytes */
    uint64_t height;
    uint64_t depth;
};

/* A copy as cuMemcpy3D has it. CUresult. */
int rt_copy_describe(const CUDA_MEMCPY3D *p, struct rt_box *out);
/* The other way round, for a box that is not empty. */
void rt_copy_redescribe(const struct rt_box *box, CUDA_MEMCPY3D *out);

/* A side that is memory. */
struct rt_place {
    bool in_window;
    bool host;  /* the program may look at it without asking us */
    bool apart; /* nobody but the device can */
    bool sync;  /* the program wants synchronous calls to wait */
    uint64_t window;
};
/* CUresult. */
int rt_copy_locate(const struct rt_box *box, const struct rt_side *side, struct rt_place *out);

/* Which sides the device can reach, and where it sees them. An array is reached, and nowhere. */
struct rt_copy_plan {
    bool dst_in_window, src_in_window;
    uint64_t dst, src;
};
/* CUresult; CUDA_ERROR_INVALID_VALUE, too, if it leaves an array. An empty box is fine and reaches
 * nothing. */
int rt_copy_plan(const struct rt_box *box, struct rt_copy_plan *out);
/* The record of a copy between two places in the window, with pitches and slices as the box has
 * them. */
void rt_copy_record(const struct rt_box *box, uint64_t dst, uint64_t src,
                    struct wire_rec_copy *out);

/* Fills in the memory of a side that is an array, where arrays are memory. */
void rt_copy_place_array(struct rt_side *side);
/* True for an array of the device's own. */
bool rt_copy_is_apart(const struct rt_side *side);
/* CUDA_ERROR_INVALID_VALUE if the box leaves the array that the side is. */
int rt_copy_check_array(const struct rt_box *box, const struct rt_side *side);
/* As above, for a copy with an array, whose number and place in it are the box's. */
void rt_copy_array_record(const struct rt_box *box, uint64_t dst, uint64_t src,
                          struct wire_rec_copy_array *out);

/* `synchronous`: as the cuMemcpy* without Async; then `st` is the default stream. CUresult. */
int rt_copy(struct rt_stream *st, const struct rt_box *box, bool synchronous);

#endif
