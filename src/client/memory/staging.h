/*
 * Copies between the program's ordinary memory and device memory that no process can access:
 * through pinned memory, in chunks that overlap.
 */
#ifndef GMUX_CLIENT_MEMORY_STAGING_H
#define GMUX_CLIENT_MEMORY_STAGING_H

#include "client/memory/copy.h"

/* One side of the box is the program's own memory, the other lies in the window at `device`, or in
 * an array. When it returns the program's memory has been read, or written. CUresult. */
int rt_staging_copy(struct rt_stream *st, const struct rt_box *box, uint64_t device,
                    bool to_device);

#endif
