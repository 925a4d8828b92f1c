/*
 * Images that clients sent. Small ones are copied to the user's store (store.h). Large ones stay in
 * the files in which they came. Programs of one user load the same libraries, so images with the
 * same bytes are kept once. Nobody waits for that: when the server has nothing else to do it reads
 * an image, a slice at a time, looks for an equal one that was read before, and lets both
 * descriptors refer to one file. Images are found by a hash and then compared byte by byte, because
 * clients of one user do not trust each other. Users do not share images: from the amount of memory
 * left, one user could tell what another one runs. Event loop only.
 */
#ifndef GMUX_SERVER_IMAGE_H
#define GMUX_SERVER_IMAGE_H

#include <uv.h>

#include "base/attr.h"
#include "base/list.h"
#include "server/store.h"

/* Reads the images of all users in turn. */
struct srv_reader {
    uv_idle_t idle;
    struct gm_list turns;         /* srv_images that have unread images */
    struct srv_image *image;      /* the image that is being read; NULL: none */
    const struct srv_image *like; /* what it is compared with; NULL: it is being hashed */
    uint64_t at;                  /* how many bytes are done */
    struct XXH3_state_s *state;
    unsigned files_left; /* for all users' stores */
};

#define SRV_IMAGE_BUCKETS 256u

/* The images of one user. */
struct srv_images {
    struct srv_reader *reader;
    struct gm_list turn; /* reader->turns */
    struct gm_list unread;
    struct gm_list read[SRV_IMAGE_BUCKETS]; /* by digest */
    struct srv_store store;
};

struct srv_image {
    struct gm_list link; /* unread or a bucket */
    struct srv_images *among;
    struct srv_stored *stored; /* NULL: the file is its own */
    uint64_t digest[2];
    /* In a sealed memfd. The descriptor's number stays the same when it comes to refer to another
     * file with the same bytes. */
    struct srv_extent extent;
};

/* 0 or -ENOMEM. */
GM_MUST_CHECK int srv_reader_init(struct srv_reader *r, uv_loop_t *loop);
void srv_reader_close(struct srv_reader *r);

void srv_images_init(struct srv_images *all, struct srv_reader *r);
/* Called when all its images have been removed. */
void srv_images_finish(struct srv_images *all);

/* Adds the sealed memfd `fd` of `size` bytes (at least one), and takes it over. */
void srv_image_add(struct srv_images *all, struct srv_image *i, int fd, uint64_t size);
/* Removes an image. Does nothing for a zeroed one that was never added. */
void srv_image_remove(struct srv_image *i);

#endif
