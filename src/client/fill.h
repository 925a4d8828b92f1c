/*
 * Fills: what cuMemset* and memset nodes have in common.
 */
#ifndef GMUX_CLIENT_FILL_H
#define GMUX_CLIENT_FILL_H

#include "client/memory.h"

struct rt_fill {
    CUdeviceptr dst;
    uint64_t pitch; /* bytes; of no account with one row */
    uint32_t value;
    uint32_t element; /* bytes: 1, 2, 4 */
    uint64_t width;   /* elements */
    uint64_t height;
};

/* Makes the record; of width 0 if there is nothing to fill. *range (unless NULL): what is filled. CUresult. */
int rt_fill_prepare(const struct rt_fill *f, struct wire_rec_fill *out, struct rt_range *range);

#endif
