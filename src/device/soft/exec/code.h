/*
 * Executable forms of a kernel: the interpreter's and the compiler's, behind one call that runs one
 * thread block. The block scheduler (sched.c) knows nothing else about either.
 *
 * A worker thread runs a block inside its fault guard (fault.c): SIGSEGV, SIGBUS and SIGFPE raised
 * by the block, and the watchdog's signal, leave run_block by siglongjmp. Therefore nothing inside
 * run_block may allocate, lock, or own anything: all memory it uses is in struct soft_block.
 */
#ifndef GMUX_SOFT_EXEC_CODE_H
#define GMUX_SOFT_EXEC_CODE_H

#include <stdatomic.h>

#include "base/attr.h"

#define SOFT_WARP       32
#define SOFT_SAVE_ALIGN 256u /* alignment that code expects of a warp's part of soft_block.save */

/* What run_block returns: SOFT_DONE, or the fault that ended the block. */
enum soft_outcome {
    SOFT_DONE = 0,
    SOFT_FAULT_ADDRESS, /* global access outside the client's window: fault_address says where */
    SOFT_FAULT_MISALIGNED,
    SOFT_FAULT_TRAP, /* trap */
    SOFT_FAULT_UNSUPPORTED,
    SOFT_FAULT_ASSERT,  /* failed assert: its text is in the print buffer */
    SOFT_FAULT_BARRIER, /* threads wait at barriers that can never complete */
    SOFT_FAULT_PC,      /* an indirect call of an address that is no function */
};

/* C functions that kernels call (vprintf and others); one table per client. Compiled code reaches
 * it through the block, so that objects need no relocation against the executor. */
struct soft_helpers;
struct soft_check_block;
struct soft_children;

/* One block being run; each worker thread has one and reuses it. The layout is part of the ABI of
 * compiled code, which takes the offsets from offsetof(): new fields go to the end, any other
 * change needs a new SOFT_ABI_VERSION. */
#define SOFT_ABI_VERSION 9
struct soft_block {
    uint32_t ctaid[3];
    uint32_t nctaid[3];
    uint32_t ntid[3];
    uint32_t threads; /* ir_threads(): the first ones of ntid[0] * ntid[1] * ntid[2] */
    uint32_t warps;   /* threads / 32, rounded up */
    /* Compiled code: linear thread number of lane 0 of the warp that runs. */
    uint32_t first_thread;
    uint32_t alive;        /* compiled code: lanes of that warp that exist and have not exited */
    uint32_t shared_size;  /* static + dynamic, bytes */
    const uint8_t *params; /* packed parameters */
    uint8_t *shared;      /* the block's shared memory, between guard zone and reserve (spaces.h) */
    uint64_t shared_mask; /* soft_shared_reserve() - 1: shared addresses are masked with it */
    uint8_t *local;       /* local memory of the block: soft_local_place() */
    uint64_t local_stride; /* bytes of each thread, a multiple of SOFT_LOCAL_PIECE */
    uint8_t *save;         /* registers across barriers: save_stride bytes per warp */
    uint64_t save_stride;
    uint64_t window_base; /* global accesses must satisfy (address - window_base) <= window_mask */
    uint64_t window_mask; /* window size - 1 */
    const uint64_t *globals; /* address of each module-scope symbol, by ir symbol index */
    const struct soft_helpers *helpers;
    uint64_t fault_address;
    uint32_t fault_thread;   /* linear thread number */
    uint32_t block_linear;   /* number of this block in its grid */
    uint32_t dynamic_shared; /* bytes of shared memory given at launch */
    uint32_t turns;          /* how often give_way was called (helpers.h) */
    uint64_t clock_base;     /* gm_cycles() at the launch, where %clock64 begins */
    /* For tests; else NULL. The interpreter calls it before each load and store that its scalar
     * forms carry out. `value` is what is going to be stored, NULL for a load. A call without an
     * address says that threads have met at a barrier. */
    void (*watch)(void *arg, uint32_t thread, const void *at, uint32_t bytes, const void *value);
    void *watch_arg;
    struct soft_check_block *check; /* NULL: this client is not checked (check/check.h) */
    /* how many blocks to run, starting at ctaid and going on in x: at most soft_code.row; 0: one */
    uint32_t row;
    /* NULL, or the futex by which the supervisor is called: another block of the client could use
     * the multiprocessor, so this one says when it looks in vain for what others have to do. */
    _Atomic(_Atomic uint32_t *) wanted;
    _Atomic bool in_vain; /* it has said so since it last went on */
    /* what its kernel launches is noted here (children.h); NULL: it may launch none */
    struct soft_children *children;
    uint64_t grid_id; /* %gridid: another one for each launch of the client */
};

struct soft_code {
    /* Runs the block that `b` describes, or as many side by side as b->row says. After a fault
     * b->ctaid is the block that faulted. */
    enum soft_outcome (*run_block)(const struct soft_code *code, struct soft_block *b);
    /* Frees the code, once no thread runs it any more. `code` is not NULL. */
    void (*destroy)(struct soft_code *code);
    uint32_t save_bytes;  /* bytes of b->save that run_block needs per warp */
    uint32_t local_bytes; /* per thread */
    uint32_t row;         /* how many blocks one call may run; 0: one */
    const char *tier;     /* "interpreter", "compiled" */
    uint64_t bytes;       /* memory that the code takes, in bytes */
};

#endif
