/*
 * Values that streams wait for, as CUstreamWaitValue_flags has them.
 */
#ifndef GMUX_DEVICE_VALUE_H
#define GMUX_DEVICE_VALUE_H

#include "device/device.h"

enum { DEV_VALUE_AT_LEAST, DEV_VALUE_EQUAL, DEV_VALUE_AND, DEV_VALUE_NOR };

/* The record makes sense, wherever its word is. */
static inline bool dev_value_is_sound(const struct wire_rec_wait_value *r)
{
    return (r->width == 4 || r->width == 8) && r->address % r->width == 0 &&
           r->compare <= DEV_VALUE_NOR;
}

/* The word, of which `now` has r->width bytes, is what the record waits for. */
static inline bool dev_value_reached(const struct wire_rec_wait_value *r, uint64_t now)
{
    const unsigned unused =
        r->width == 8 ? 0 : 32; /* of narrow words all that counts stands above */
    const uint64_t is = now << unused, wanted = r->value << unused, ones = UINT64_MAX << unused;
    switch (r->compare) {
    case DEV_VALUE_AT_LEAST:
        return (int64_t)(is - wanted) >= 0;
    case DEV_VALUE_EQUAL:
        return is == wanted;
    case DEV_VALUE_AND:
        return (is & wanted) != 0;
    default:
        return (~(is | wanted) & ones) != 0;
    }
}

#endif
