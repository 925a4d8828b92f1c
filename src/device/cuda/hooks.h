/*
 * What goes up in the cuda device: files call only those below them (state.h has the order), and
 * what happens below is told to those above by way of this table, which hooks.c fills in.
 */
#ifndef GMUX_DEVICE_CUDA_HOOKS_H
#define GMUX_DEVICE_CUDA_HOOKS_H

#include <stdint.h>

struct cuda_gpu;
struct dev_client;

struct cuda_hooks {
    /* The client's thread is about to wait: what it has taken goes to the driver, so that others
     * see what the client has running. */
    void (*client_waits)(struct dev_client *c);
    /* The client's thread waits for a safe point of this context, and there is none: the client may
     * go to the GPU's other context. */
    void (*client_held_up)(struct dev_client *c, struct cuda_gpu *from);
    /* The client's place with this number goes, and graphs that were made in it go before.
     * places_lock is held. */
    void (*place_goes)(struct dev_client *c, uint64_t number);
};

extern const struct cuda_hooks cuda_hooks;

#endif
