/*
 * Kernels on whatever libcuda.so.1 the loader finds: a genuine one or this project's.
 */
#ifndef GMUX_TESTS_PTX_DRIVER_H
#define GMUX_TESTS_PTX_DRIVER_H

#include "case.h"

struct driver_arg {
    void *data; /* a buffer's content before the launch, and after it what the kernel left */
    size_t bytes;
    bool is_value; /* the parameter itself; else it is the buffer's address */
};

struct driver_launch {
    const char *text, *kernel;
    const uint32_t *grid, *block; /* three each */
    uint32_t shared;              /* dynamic bytes */
    struct driver_arg args[PTX_ARGS_MAX];
    size_t arg_count;
};

/* Once in a process, before the first launch. False: no device, or no driver, which it prints. */
bool driver_open(void);

/* Loads, launches and waits. False: it was not launched; the reason is in `why`. After a fault the
 * device is lost to the process. */
bool driver_run(const struct driver_launch *l, enum ptx_fault *fault, char *why, size_t why_size);

#endif
