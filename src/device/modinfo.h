/*
 * What a loaded module tells the client about itself, collected function by function and encoded
 * once as a struct wire_module_info.
 */
#ifndef GMUX_DEVICE_MODINFO_H
#define GMUX_DEVICE_MODINFO_H

#include "device/device.h"

struct dev_param {
    uint32_t offset;
    uint32_t size;
};

/* Grows as it is filled; `failed` is sticky: one look at the end. */
struct dev_modinfo {
    struct wire_enc functions;
    struct wire_enc globals;
    uint32_t function_count;
    bool by_name; /* set by the caller: nothing is listed, `call` finds what the client asks for */
    bool managed_apart; /* set by the caller: managed variables that the client has to find a place
                           for */
    bool failed;
};

/* After init the object must be finished or dropped. */
void dev_modinfo_init(struct dev_modinfo *m);
void dev_modinfo_function(struct dev_modinfo *m, const struct wire_function_info *info,
                          const struct dev_param *params, uint32_t param_count);
void dev_modinfo_global(struct dev_modinfo *m, const struct wire_global_info *info);
/* Encodes all into out->info (malloc, the caller's) and sets the globals' size and alignment.
 * GM_CUDA_SUCCESS or GM_CUDA_OUT_OF_MEMORY. The object is gone afterwards. */
int dev_modinfo_finish(struct dev_modinfo *m, uint32_t ptx_version, uint32_t target,
                       uint64_t globals_size, uint64_t globals_align, struct dev_module_info *out);
void dev_modinfo_drop(struct dev_modinfo *m);

#endif
