/*
 * Finding races: two threads of a block access a byte, one of them changes it, and no barrier of
 * the block lies between.
 */
#ifndef GMUX_TESTS_PTX_RACES_H
#define GMUX_TESTS_PTX_RACES_H

#include "soft.h"

struct ir_fn;

struct race {
    bool found;
    const void *at; /* the first one */
    uint32_t threads[2];
};

/* Only a kernel whose threads of a block meet at barriers alone: no atomics, fences, or
 * instructions of a warp. */
bool races_can_find(const struct ir_fn *fn);

struct races;
/* Watches the bench's launches until it is destroyed. Aborts without memory. */
struct races *races_create(struct soft_bench *s);
void races_destroy(struct races *r);
struct race races_first(const struct races *r);

#endif
