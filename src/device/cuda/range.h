/*
 * What is mapped in a client's window: one table for device memory and host memory, sorted by
 * address.
 *
 * It says which GPU has to do an operation, and whether memory is the client's at all. If the
 * driver does not know an address, it takes it for ordinary memory of this process, which it reads
 * or writes at once. So it is never asked to copy what is not mapped, or what is just being
 * unmapped (client->memory_lock).
 *
 * Orders add and remove ranges, and change what GPUs may do with them. Ranges are found by address,
 * and callers get a copy.
 */
#ifndef GMUX_DEVICE_CUDA_RANGE_H
#define GMUX_DEVICE_CUDA_RANGE_H

#include "device/cuda/driver.h"
#include "device/device.h"

#define CUDA_HOST UINT32_MAX

/* All GPUs may write to a range of host memory, whose other fields are not used. */
struct cuda_range {
    uint64_t address, end;
    uint32_t device; /* whose memory it is, or CUDA_HOST */
    uint32_t reach;  /* GPUs that may write there, a bit each */
    uint32_t access; /* as in memory_attach */
    uint32_t given;  /* bit for each GPU that may touch it now */
};

/* What is at an address, and whether a piece of memory from there on is the client's. */
struct cuda_memory {
    struct cuda_gpu *gpu; /* whose; NULL: the host's, or nobody's */
    /* GPUs that may write there, a bit each; none, of variables outside the window */
    uint32_t reach;
    bool held; /* all of it is the client's in its window, or inside a variable of one of its
                  modules */
};

/* Adds a range. Until cuda_range_update(), only the GPU whose memory it is may write there.
 * CUresult */
int cuda_range_add(struct dev_client *c, const struct cuda_range *r);
/* Replaces what is known about the range with the same address. */
void cuda_range_update(struct dev_client *c, const struct cuda_range *r);
void cuda_range_remove(struct dev_client *c, uint64_t address);
/* Finds the range with this address and size. */
bool cuda_range_find(struct dev_client *c, uint64_t address, uint64_t size, struct cuda_range *out);
/* The first range that begins at an address or behind it. */
bool cuda_range_next(struct dev_client *c, uint64_t address, struct cuda_range *out);
void cuda_ranges_finish(struct dev_client *c);

/* What is at an address now. Any thread. */
struct cuda_memory cuda_memory_at(struct dev_client *c, uint64_t address, uint64_t size);
/* The whole piece is the client's. Any thread. */
bool cuda_holds(struct dev_client *c, uint64_t address, uint64_t size);

#endif
