/*
 * Dynamic parallelism: kernels that kernels launch, child grids of a parent grid.
 *
 * A kernel writes down a launch in its client's memory (ptx/runtime/children.ptx) and calls a
 * helper, which checks it and keeps a copy until the parent's grid has ended. Then its children run
 * one after the other, in the order in which they were launched, each with its own children before
 * the next one; those for the tail stream come last. The launch in the client's queue is done when
 * all of them are. So whatever streams the kernel has named, their order holds.
 *
 * Helpers neither allocate nor lock (helpers.h): copies lie in a store of fixed size, which each
 * client has that needs one.
 */
#ifndef GMUX_SOFT_EXEC_CHILDREN_H
#define GMUX_SOFT_EXEC_CHILDREN_H

#include "device/soft/exec/helpers.h"

struct dev_module;
struct soft_kernel;

struct soft_child {
    struct soft_child *next;
    struct soft_kernel *kernel; /* of the parent's module */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* dynamic */
    bool tail;             /* only after all other children of the parent */
    uint8_t params[] GM_ALIGNED(8);
};

/* What the kernels of one grid have launched. Any number of its blocks add to it at once. */
struct soft_children {
    struct dev_module *module;
    _Atomic(struct soft_child *) last;
};

/* Sets the entries of the table. */
void soft_children_serve(struct soft_helpers *h);

/* NULL: no memory. */
struct soft_child_store *soft_child_store_create(void);
/* Frees all that is in it, too. NULL is accepted. */
void soft_child_store_destroy(struct soft_child_store *s);

/* Takes all out, in the order in which they are to run, in front of `before`. No block of the grid
 * runs any more. */
struct soft_child *soft_children_take(struct soft_children *c, struct soft_child *before);
/* Gives one back that was taken out. */
void soft_child_release(struct soft_child_store *s);

#endif
