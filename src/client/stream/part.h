/*
 * Parts of the client's multiprocessors, which green contexts, streams and resources name by
 * number. A number is never given to another part. Any thread.
 */
#ifndef GMUX_CLIENT_STREAM_PART_H
#define GMUX_CLIENT_STREAM_PART_H

#include <stdbool.h>
#include <stdint.h>

/* The groups of a split that make a part; see struct tp_part. */
struct rt_part_shape {
    uint64_t groups[2];
    uint32_t of, flags, minimum, wanted;
};

/* The number of the part that is all of the client's multiprocessors: 0, or its static
 * partition. */
uint32_t rt_part_all(void);
/* The number of a part of that shape, which may be new; 0: there are too many. */
uint32_t rt_part_number(const struct rt_part_shape *s);
bool rt_part_exists(uint32_t number);

#endif
