/*
 * Images that clients sent, each kept once for a user: his programs load the same libraries. They are found by a hash and
 * then compared byte by byte, because clients of one user do not trust each other either. Users do not share images: how long
 * a load takes would tell one what another runs. Owned by the server's thread.
 */
#ifndef GMUX_SERVER_IMAGE_H
#define GMUX_SERVER_IMAGE_H

#include "base/attr.h"
#include "base/list.h"

struct srv_image {
    struct gm_list link;
    unsigned users;
    uint64_t digest[2];
    uint64_t size;
    int fd; /* sealed memfd */
};

/* The image in the sealed memfd `fd` of `size` bytes, which is now the image's: the one that is in `images` already, or a new one in
 * there. NULL without memory. */
struct srv_image *srv_image_get(struct gm_list *images, int fd, uint64_t size);
/* NULL is accepted. */
void srv_image_put(struct srv_image *i);

#endif
