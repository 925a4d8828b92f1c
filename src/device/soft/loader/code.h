/*
 * Compiled code as the device runs it. Any thread may call this.
 */
#ifndef GMUX_DEVICE_SOFT_LOADER_CODE_H
#define GMUX_DEVICE_SOFT_LOADER_CODE_H

#include "device/soft/loader/compiler.h"

/* Loads an object from gmux-jit or from the cache. The code is the caller's, and is freed by
 * code->destroy. NULL: the object is bad, does not fit `options`, or there is no memory; `why` says
 * which. */
struct soft_code *loader_code_create(const void *bytes, size_t size,
                                     const struct soft_job_options *options, char *why,
                                     size_t why_size);

#endif
