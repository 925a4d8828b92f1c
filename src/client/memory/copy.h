/*
 * Copies. Every cuMemcpy* becomes one box with two sides.
 */
#ifndef GMUX_CLIENT_MEMORY_COPY_H
#define GMUX_CLIENT_MEMORY_COPY_H

#include "client/stream/context.h"

enum rt_side_kind {
    RT_SIDE_DEVICE,  /* memory that the map knows */
    RT_SIDE_HOST,    /* any pointer of the program; pinned if the map knows it */
    RT_SIDE_UNIFIED, /* either of these; the map decides */
    RT_SIDE_ARRAY,
};

struct rt_array;

struct rt_side {
    enum rt_side_kind kind;
    uint64_t address;
    uint64_t pitch; /* bytes between rows */
    uint64_t slice; /* bytes between planes */
    /* NULL: the side is memory. Else an array, which replaces the fields above (or, where arrays
     * are memory, determines them). */
    const struct rt_array *array;
    uint64_t x, y, z; /* x in bytes */
};

struct rt_box {
    struct rt_side dst, src;
    uint64_t width; /* bytes */
    uint64_t height;
    uint64_t depth;
};

/* What a program says of a side. */
struct rt_side_spec {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z; /* x in bytes */
    size_t pitch;   /* 0: up to the end of the box's rows */
    size_t height;  /* rows of a plane; 0: up to the last of the box's */
};
/* Fills a side in, with its offsets added to its address. The width, height and depth of the box
 * are known. CUresult. */
int rt_copy_side(const struct rt_side_spec *spec, const struct rt_box *box, struct rt_side *out);
/* Turns the struct of cuMemcpy3D into a box. CUresult. */
int rt_copy_describe(const CUDA_MEMCPY3D *p, struct rt_box *out);
/* The reverse, for a box that is not empty. */
void rt_copy_redescribe(const struct rt_box *box, CUDA_MEMCPY3D *out);

/* One side, if it is memory. */
struct rt_place {
    bool in_window;
    bool host;  /* the program can access it without our knowledge */
    bool apart; /* only the device can access it */
    bool sync;  /* synchronous calls have to wait for it */
    uint64_t window;
};
/* Finds the place of a side. CUresult. */
int rt_copy_locate(const struct rt_box *box, const struct rt_side *side, struct rt_place *out);

/* Which sides the device can reach, and at which addresses. It reaches arrays, too, but they have
 * no address. */
struct rt_copy_plan {
    bool dst_in_window, src_in_window;
    uint64_t dst, src;
};
/* Makes the plan for a copy. CUresult; CUDA_ERROR_INVALID_VALUE also if it leaves an array. An
 * empty box is allowed, and reaches nothing. */
int rt_copy_plan(const struct rt_box *box, struct rt_copy_plan *out);
/* The record of a copy between two places in the window, with pitches and slices as the box has
 * them. */
void rt_copy_record(const struct rt_box *box, uint64_t dst, uint64_t src,
                    struct wire_rec_copy *out);

/* If the side is an array, and arrays are memory, fills in that memory. */
void rt_copy_place_array(struct rt_side *side);
/* Whether the side is an array of the device's driver. */
bool rt_copy_is_apart(const struct rt_side *side);
/* CUDA_ERROR_INVALID_VALUE: the box leaves the array of that side. */
int rt_copy_check_array(const struct rt_box *box, const struct rt_side *side);
/* The record of a copy with an array; number and position of the array come from the box. */
void rt_copy_array_record(const struct rt_box *box, uint64_t dst, uint64_t src,
                          struct wire_rec_copy_array *out);

/* Copies. `synchronous`: like the cuMemcpy* without Async; then `st` is the default stream, which
 * the caller has found not to capture. CUresult. */
int rt_copy(struct rt_stream *st, const struct rt_box *box, bool synchronous);

#endif
