/*
 * Compiled code as the device runs it. Any thread.
 */
#ifndef GMUX_DEVICE_SOFT_LOADER_CODE_H
#define GMUX_DEVICE_SOFT_LOADER_CODE_H

#include "device/soft/loader/compiler.h"

/* Code from an object that gmux-jit or the cache had; it is the caller's, and ends with
 * code->destroy. NULL: the object is bad, does not fit `options`, or there is no memory; `why` says
 * which. */
struct soft_code *loader_code_create(const void *bytes, size_t size,
                                     const struct soft_job_options *options, char *why,
                                     size_t why_size);

#endif
