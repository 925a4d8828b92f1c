/*
 * Parts of the client's multiprocessors, which green contexts, streams and resources name by their
 * numbers. Numbers are given for good. Any thread.
 */
#ifndef GMUX_CLIENT_STREAM_PART_H
#define GMUX_CLIENT_STREAM_PART_H

#include <stdbool.h>
#include <stdint.h>

/* Some groups of a split: struct tp_part. */
struct rt_part_shape {
    uint64_t groups[2];
    uint32_t of, flags, minimum, wanted;
};

/* The part that is all of the client's multiprocessors: 0, or a static partition. */
uint32_t rt_part_all(void);
/* The number of such a part, a new one perhaps; 0: there are too many. */
uint32_t rt_part_number(const struct rt_part_shape *s);
bool rt_part_exists(uint32_t number);

#endif
