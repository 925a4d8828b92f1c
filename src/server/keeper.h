/*
 * Keepers: what provides the memory of a heap's ranges. For devices whose memory is the host's it
 * is in the area's memfd. For a GPU it consists of handles of the driver, made in this process
 * without a context, so it outlives every executor.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_KEEPER_H
#define GMUX_SERVER_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct srv_heap;
struct srv_mapping;

struct srv_keeper_ops {
    uint64_t page;    /* the size of a mapped range is a multiple of it */
    uint64_t charged; /* what a program is charged for one is a multiple of it */
    /* Gives the mapping's range its memory, zeroed; sets mapping->fd if the executor needs one. A
     * CUresult. NULL: the memory is there already. */
    int (*take)(struct srv_heap *h, struct srv_mapping *m);
    /* Takes the memory back: the range costs nothing any more. The executor has let go of it. May
     * be NULL. */
    void (*give)(struct srv_heap *h, struct srv_mapping *m);
    bool swept; /* the pages of freed ranges are freed by sweep.h */
};

extern const struct srv_keeper_ops srv_keeper_host; /* the host area of any device */
extern const struct srv_keeper_ops srv_keeper_memfd;
extern const struct srv_keeper_ops srv_keeper_cuda;

/* Makes a GPU's memory for an object: a handle, and a descriptor for executors, which the caller
 * owns. *compressible: in, what is wanted; out, what it became. A CUresult. */
int srv_keeper_cuda_create(uint32_t device, uint64_t size, bool *compressible, uint64_t *handle,
                           int *fd);
void srv_keeper_cuda_release(uint64_t handle);

/* Whether NVIDIA's driver is installed and has a device. */
bool srv_keeper_cuda_present(void);

/* Called before srv_keeper_cuda is used, for each of the executor's devices: finds the one with
 * this uuid. 0, or -errno with a one-line reason in `why`. */
int srv_keeper_cuda_open(uint32_t device, const uint8_t uuid[16], char *why, size_t why_size);

#endif
