/*
 * A client's modules; what it asks about one is in lookup.c.
 */
#ifndef GMUX_DEVICE_CUDA_MODULE_H
#define GMUX_DEVICE_CUDA_MODULE_H

#include "device/cuda/state.h"

struct cuda_function {
    CUkernel handle;
    CUfunction loaded; /* the function in the GPU's primary context, which the driver launches
                          without looking it up; NULL: not loaded */
    uint32_t param_bytes;
    uint32_t registers, shared_bytes; /* of a thread, of a block */
    bool in_clusters;                 /* as it was compiled, whatever a launch says */
    bool non_portable;    /* this client has allowed clusters that not all GPUs can have */
    uint32_t dynamic_max; /* how much dynamic shared memory a launch may have by now */
    uint64_t blocks_max;  /* of the largest grid that it was launched with */
};

/* What a client has of a library. Functions and variables are in the order in which the client has
 * found them; its thread adds them, and holds client->modules_lock to add a variable. */
struct dev_module {
    struct gm_list link; /* client->modules */
    struct dev_client *client;
    struct cuda_gpu *gpu;
    struct cuda_library *library; /* library.h */
    CUlibrary handle;             /* of the library */
    CUkernel *listed;             /* all kernels; NULL: the client has not asked for a list */
    uint32_t listed_count;
    struct cuda_function *functions;
    uint32_t functions_count;
    struct cuda_global { /* variables in the driver's memory, on the module's GPU */
        uint64_t address, size;
    } * globals;
    uint32_t globals_count;
    /* variables that are in the client's window (variables.h); NULL: none */
    struct cuda_variables *variables;
    bool altered; /* attributes of its kernels were set that hold for one context */
    void *info;
};

int cuda_module_load(struct dev_client *c, uint32_t device, const void *image, size_t size,
                     uint32_t kind, struct dev_module **out, struct dev_module_info *info);
int cuda_module_place(struct dev_module *m, uint64_t globals_address, bool initialise);
void cuda_module_unload(struct dev_module *m);

/* Lets launches of a function have so much dynamic shared memory. If that is too much, the launch
 * reports it. */
void cuda_function_dynamic(struct cuda_gpu *g, struct cuda_function *f, uint32_t bytes);

#endif
