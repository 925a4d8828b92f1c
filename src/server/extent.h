/*
 * Where bytes lie in a sealed file: an image has a file of its own, or a part of one of the
 * server's.
 */
#ifndef GMUX_SERVER_EXTENT_H
#define GMUX_SERVER_EXTENT_H

#include <stdint.h>

struct srv_extent {
    int fd; /* borrowed */
    uint64_t offset, size;
};

#endif
