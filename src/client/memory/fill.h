/*
 * Fills: what cuMemset* and memset nodes share.
 */
#ifndef GMUX_CLIENT_MEMORY_FILL_H
#define GMUX_CLIENT_MEMORY_FILL_H

#include "client/memory/memory.h"

struct rt_fill {
    CUdeviceptr dst;
    uint64_t pitch; /* bytes; ignored if there is one row */
    uint32_t value;
    uint32_t element; /* bytes: 1, 2, 4 */
    uint64_t width;   /* elements */
    uint64_t height;
};

/* Makes the record, with the program's address; its width is 0 if there is nothing to fill.
 * CUresult. */
int rt_fill_prepare(const struct rt_fill *f, struct wire_rec_fill *out);
/* Replaces the program's address by the one that the device uses; *range is that memory.
 * CUDA_ERROR_INVALID_VALUE: no device reaches it. */
int rt_fill_place(struct wire_rec_fill *record, struct rt_range *range);

#endif
