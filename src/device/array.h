/*
 * Arrays by their numbers: which there can be, how large their levels are, what they are charged
 * with. The client asks before it asks the device, and the device does not believe it.
 */
#ifndef GMUX_DEVICE_ARRAY_H
#define GMUX_DEVICE_ARRAY_H

#include "base/attr.h"

/* CUDA_ARRAY3D_DESCRIPTOR, in the driver's terms. */
struct dev_array_shape {
    uint64_t width, height,
        depth; /* in elements; height and depth may be 0, depth counts layers where there are any */
    uint32_t format, channels, flags;
    uint32_t levels; /* 0: no mipmapped array */
};

/* What a copy may touch of one level. */
struct dev_array_extent {
    uint64_t width; /* bytes */
    uint64_t rows;
    uint64_t planes;
};

/* Bytes of an element; 0 for formats that are not supported. */
uint32_t dev_array_element(uint32_t format, uint32_t channels);
/* CUresult: no array looks like this, or it is of a kind that is not supported. The device's own
 * limits are not looked at. */
GM_MUST_CHECK int dev_array_check(const struct dev_array_shape *s);
/* How many levels a mipmapped array of this shape can have. The shape was checked, here and below.
 */
uint32_t dev_array_levels(const struct dev_array_shape *s);
void dev_array_extent(const struct dev_array_shape *s, uint32_t level,
                      struct dev_array_extent *out);
/* What a client is charged. A device says nothing about the memory that an array takes: this is its
 * contents, in whole tiles and pages. */
uint64_t dev_array_bytes(const struct dev_array_shape *s);
/* Where a level lies in an array that is dev_array_bytes() of ordinary memory: one after the other,
 * planes of rows. */
struct dev_array_place {
    uint64_t offset;
    uint64_t pitch, slice; /* bytes between rows, between planes */
};
void dev_array_place(const struct dev_array_shape *s, uint32_t level, struct dev_array_place *out);
/* A box of a copy lies within the level; in bytes, as the driver has it. All three of its sizes are
 * at least 1. */
bool dev_array_holds(const struct dev_array_shape *s, uint32_t level, uint64_t x, uint64_t y,
                     uint64_t z, uint64_t width, uint64_t height, uint64_t depth);

#endif
