/*
 * How a fat binary lies in memory: its header, and the header of each image. For those who read and
 * who write one.
 */
#ifndef GMUX_FATBIN_LAYOUT_H
#define GMUX_FATBIN_LAYOUT_H

#include <stdint.h>

#include "fatbin/fatbin.h"

struct header {
    uint32_t magic;
    uint16_t version;
    uint16_t header_size;
    uint64_t size; /* of all entries */
};

struct entry {
    uint16_t kind;
    uint16_t version;
    uint32_t header_size;
    uint64_t size; /* of the payload, padded */
    uint32_t packed_size;
    uint32_t options_at; /* of struct options, from the entry's beginning; followed by the driver */
    uint16_t isa_minor;
    uint16_t isa_major;
    uint32_t sm;
    uint32_t name_at;
    uint32_t name_size;
    uint64_t flags;
    uint64_t reserved;
    uint64_t whole_size; /* 0: not compressed */
};

/* Those of the compilation, as text. */
struct options {
    uint32_t text_at; /* from the entry's beginning */
    uint32_t text_size;
    uint64_t reserved;
};
_Static_assert(sizeof(struct header) == FB_HEADER_SIZE && sizeof(struct entry) == 64 &&
                   sizeof(struct options) == 16,
               "layout");

#endif
