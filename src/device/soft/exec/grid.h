/*
 * The grid of a launch: what launch.c makes of a client's launch, and grid.c runs.
 */
#ifndef GMUX_SOFT_EXEC_GRID_H
#define GMUX_SOFT_EXEC_GRID_H

#include "device/soft/exec/children.h"
#include "device/soft/exec/launch.h"
#include "device/soft/exec/sched.h"

struct soft_check_log;
struct soft_variant;

/* The op comes first, since the queue knows the launch as an op. That of a child only names its
 * queue. */
struct launch {
    struct dev_op op;
    struct soft_task task;
    struct soft_kernel *kernel;
    struct soft_variant *variant;
    uint32_t grid[3], block[3];
    uint32_t threads;     /* how many of a block run */
    uint32_t stack_bytes; /* per thread, in addition to the kernel's local memory */
    uint32_t shared_bytes, dynamic_bytes;
    uint64_t began; /* gm_cycles() */
    uint64_t id;    /* %gridid */
    /* this launch's bit in module->workspaces_used; 0: it has none */
    uint64_t workspace;
    struct soft_check_log *checked; /* NULL: the client is not checked */
    struct soft_children children;  /* what its grid has launched so far */
    struct launch *root;            /* the launch of the queue that it descends from, or itself */
    /* of a root: its descendants that wait, and the one that runs or NULL; used by the thread that
     * carries out the last grid that has begun */
    struct soft_child *waiting;
    struct launch *child;
    _Atomic bool failed; /* of a root: so has a grid of it, and none begins any more */
    uint8_t params[] GM_ALIGNED(16);
};

/* soft_task_ops.run of a launch's task. */
bool soft_grid_run(struct soft_task *t, struct soft_worker *w, uint64_t first, uint64_t count);
/* When the last block has ended: what the client may see of it before it knows of the end. */
void soft_grid_end(struct launch *l);

/* Gives the launch a workspace. If none is left, or the client has taken its memory away, the
 * kernel gets none, and traps when it uses it. */
void soft_workspace_take(struct launch *l);

#endif
