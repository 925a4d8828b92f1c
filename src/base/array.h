/*
 * Arrays that grow one element at a time and keep only their count: they have room for 8, then
 * double at powers of two.
 */
#ifndef GMUX_BASE_ARRAY_H
#define GMUX_BASE_ARRAY_H

#include <stdlib.h>

#include "base/attr.h"

/* Room for one more element in *(void **)array, which has `count` of `each` bytes and is never to
 * have more than `most`. False, with the array as it was, if there is none. */
static inline bool gm_array_room(void *array, size_t each, uint32_t count, uint32_t most)
{
    void *old = *(void **)array;
    if (count != 0 && !gm_is_pow2(count))
        return true;
    void *more = count < most ? realloc(old, GM_MAX(2 * count, 8u) * each) : NULL;
    if (more)
        *(void **)array = more;
    return more != NULL;
}

#endif
