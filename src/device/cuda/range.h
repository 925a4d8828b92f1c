/*
 * What is mapped in a client's window: one table for device memory and host memory, sorted by
 * address.
 *
 * It says which GPU has to do an operation, and whether memory is the client's at all. The driver
 * takes an address that it does not know for ordinary memory of this process, and reads or writes
 * it there and then; so it is not asked to copy what is not mapped, nor while it is being unmapped
 * (client->memory_lock).
 *
 * Orders add and remove ranges, and change what GPUs may do with them. The table is only looked at
 * by address, and what is found is a copy.
 */
#ifndef GMUX_DEVICE_CUDA_RANGE_H
#define GMUX_DEVICE_CUDA_RANGE_H

#include "device/cuda/driver.h"
#include "device/device.h"

#define CUDA_HOST UINT32_MAX

/* The host's have nothing but their addresses, and all GPUs may write there. */
struct cuda_range {
    uint64_t address, end;
    uint32_t device; /* whose memory it is, or CUDA_HOST */
    uint32_t reach;  /* GPUs that may write there, a bit each */
    uint32_t access; /* as in memory_attach */
    uint32_t given;  /* bit for each GPU that may touch it now */
};

/* A piece of memory: what is true where it begins, and whether it is one. */
struct cuda_memory {
    struct cuda_gpu *gpu; /* whose; NULL: the host's, or nobody's */
    uint32_t
        reach; /* GPUs that may write there, a bit each; none, of variables outside the window */
    bool held; /* all of it is the client's in its window, or inside a variable of one of its
                  modules */
};

/* Until something else is said, the GPU whose memory it is may write there. CUresult */
int cuda_range_add(struct dev_client *c, const struct cuda_range *r);
/* What is known of one that is there is this from now on. */
void cuda_range_update(struct dev_client *c, const struct cuda_range *r);
void cuda_range_remove(struct dev_client *c, uint64_t address);
/* The range that is just this. */
bool cuda_range_find(struct dev_client *c, uint64_t address, uint64_t size, struct cuda_range *out);
/* The first range that begins at an address or behind it. */
bool cuda_range_next(struct dev_client *c, uint64_t address, struct cuda_range *out);
void cuda_ranges_finish(struct dev_client *c);

/* Any thread: what is at an address, now. */
struct cuda_memory cuda_memory_at(struct dev_client *c, uint64_t address, uint64_t size);
/* As above: it is held. */
bool cuda_holds(struct dev_client *c, uint64_t address, uint64_t size);

#endif
