/*
 * What a host compiler makes of device code: objects, and archives of objects, with fat binaries in
 * a section of theirs. As in fatbin.h everything may be hostile, and nothing is kept but pointers
 * into the file.
 */
#ifndef GMUX_FATBIN_OBJECT_H
#define GMUX_FATBIN_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct fb_objects {
    const uint8_t *data;
    size_t size;
    size_t next; /* member of an archive; 0: the file is an object */
    const uint8_t *object;
    size_t object_size;
    uint64_t section;
    const uint8_t *at, *end; /* of the section being read */
};

/* Starts reading an object or archive. 0, or -EBADMSG: it is neither. */
GM_MUST_CHECK int fb_objects_open(struct fb_objects *o, const void *data, size_t size);
/* The next fat binary (fatbin.h), which lies within what was given: 1, 0 at the end, -EBADMSG. */
GM_MUST_CHECK int fb_objects_next(struct fb_objects *o, const void **fatbin);

#endif
