/*
 * Links: their inputs, and their result.
 */
#ifndef GMUX_CLIENT_MODULE_LINK_H
#define GMUX_CLIENT_MODULE_LINK_H

#include "client/module/module.h"

#define RT_LINK_INPUT_BYTES (64u << 20)
#define RT_LINK_OPTIONS     16u

struct rt_link_options {
    uint32_t count;
    uint32_t pair[RT_LINK_OPTIONS][2];
};

struct rt_link_input {
    char *data; /* followed by a zero */
    size_t size;
    CUjitInputType type;
    uint32_t kind; /* its kind when it goes to a GPU's driver */
    struct rt_link_options options;
    char name[256];
};
struct rt_linking {
    struct rt_jit_log log;
    struct rt_link_options options;
    struct rt_link_input *inputs;
    unsigned count;
    uint8_t *cubin; /* allocated; NULL: not yet */
    size_t cubin_size;
};

/* Lets a GPU's driver link the inputs. CUresult. */
int rt_link_on_device(struct rt_linking *l);
/* Lets a GPU's driver compile PTX; *cubin is the caller's. CUresult. */
int rt_link_text(const void *text, size_t size, uint8_t **cubin, size_t *cubin_size);

#endif
