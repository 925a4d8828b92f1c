/*
 * Small images of one user, many in one file. Programs that compile their own kernels (CuPy,
 * Triton) have thousands of modules each, and a process may not have that many descriptors. So
 * bytes are copied into files that only this server can write; executors copy their part of one.
 * Equal bytes are kept once. Event loop only.
 */
#ifndef GMUX_SERVER_STORE_H
#define GMUX_SERVER_STORE_H

#include "server/extent.h"
#include "server/ranges.h"

/* The largest image that is copied, which takes some 50 us. */
#define SRV_STORED_MAX (256u << 10)
/* How many files a user's store has at most, and all stores of a server together. The server pays
 * for their memory, where a client pays for the file that it sends. */
#define SRV_STORE_FILES     32u
#define SRV_STORE_FILES_ALL 128u
#define SRV_STORE_FILE      (4u << 20)

#define SRV_STORE_BUCKETS 256u

struct srv_store_file {
    uint8_t *bytes; /* NULL: there is none */
    int fd;
};

struct srv_store {
    struct srv_ranges ranges;
    struct srv_store_file files[SRV_STORE_FILES];
    unsigned *left;                           /* how many files all stores may still make */
    struct gm_list stored[SRV_STORE_BUCKETS]; /* by digest */
};

/* Bytes that at least one image has. */
struct srv_stored {
    struct srv_extent extent;
    /* private */
    struct gm_list link; /* bucket */
    struct srv_block *block;
    uint64_t digest[2];
    unsigned users;
};

/* `left` outlives the store. */
void srv_store_init(struct srv_store *s, unsigned *left);
/* Called when everything in it has been dropped. */
void srv_store_finish(struct srv_store *s);

/* Keeps `size` bytes, of which there are at least one and at most SRV_STORED_MAX. NULL: no room. */
GM_MUST_CHECK struct srv_stored *srv_store_put(struct srv_store *s, const void *bytes, size_t size);
/* One of its users is gone. */
void srv_store_drop(struct srv_store *s, struct srv_stored *i);

#endif
