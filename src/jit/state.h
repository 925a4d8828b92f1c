/*
 * What the code generator knows while it makes a kernel's code: of the kernel, of the region that
 * it is in, and of each register. gen.h has the functions that work with it.
 */
#ifndef GMUX_JIT_STATE_H
#define GMUX_JIT_STATE_H

#include <llvm-c/Core.h>

#include "device/soft/exec/code.h"
#include "device/soft/ir/analysis.h"
#include "device/soft/loader/job.h"

#define JIT_LANES_MAX  32
#define JIT_COPIES_MAX 8

/* Results of region functions: the next region, or one of these. */
#define JIT_DONE           (-1)
#define JIT_FAULT(outcome) (-2 - (int)(outcome))

struct jit_target;

/* What is known about a register's value in one warp. */
struct jit_register {
    LLVMValueRef slot; /* alloca, NULL: not used yet */
    bool again;        /* it was computed again at the beginning of this region (again.c) */
    struct jit_wrapped {
        LLVMValueRef is, lanes; /* allocas: i1, vector */
    } wrapped;                  /* affine on condition: affine.c */
    /* In the current block: */
    struct jit_agree {
        LLVMValueRef all,
            none; /* i1: the predicate holds for all lanes, for none; may be false either way */
    } agree;      /* NULL: not known: agree.c */
    struct jit_hull {
        uint32_t
            end; /* no access through the register needs a check in instructions before this one */
        uint8_t space; /* in that space */
    } hull;            /* hull.c */
    uint32_t checked;  /* the register is known to be a multiple of this number plus one */
    struct jit_run {
        uint32_t end; /* for instructions before this one, the elements at the displacements [low,
                         low + 16) are loaded */
        int64_t low;
        LLVMValueRef value[4];
    } run; /* runs.c */
};

/* One of the warps that a call of a region's function runs. */
struct jit_warp {
    LLVMValueRef first /* thread of lane 0 */, save;
    LLVMValueRef tid[3]; /* prelude: scalar of lane 0 or vector */
    struct jit_register *regs;
};

struct jit_gen {
    const struct ir_module *m;
    const struct ir_fn *fn;
    const struct ir_analysis *a;
    const struct soft_job_options *options;
    const struct jit_target *target;
    uint32_t ntid[3]; /* block size the code is for; 0: any */
    uint32_t threads; /* how many threads of such a block run (ir_threads()); 0: not known */
    bool full_warps;  /* all lanes of each warp have a thread */
    unsigned lanes; /* of a warp of the code: 32, or 16 or 8 if no instruction can tell: width.c */
    struct jit_row {
        uint32_t blocks; /* how many blocks one call runs side by side at most; 0: one */
        unsigned lines; /* how many lines of threads a block has, in which blocks take turns; 1: one
                           block after the other */
    } row;              /* row.c */
    bool large;         /* LLVM keeps no registers over blocks: frame.c */
    bool apart;         /* accesses at generic addresses are calls: apart.c */
    bool in_pieces;     /* some blocks are in pieces until there are no allocas: frame.c */
    bool flushes; /* the processor flushes subnormal numbers while the kernel runs: subnormal.c */
    uint32_t frame_max; /* bytes of stack for a function; a larger frame sets `frame_over` */
    bool frame_over;
    bool failed; /* `reason` says what is unsupported; code made from here on is never used */
    char reason[SOFT_JOB_REASON_MAX];

    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b;       /* at the end of what was emitted last */
    LLVMBuilderRef prelude; /* before the terminator of the current function's entry block */
    LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, nothing;
    LLVMValueRef unlikely, invariant; /* metadata: branch weights, invariant load */
    unsigned prof_kind, invariant_kind;

    uint32_t *live_count; /* by block: how many registers it begins with */
    /* per register of the entry */
    uint64_t *crosses;         /* a bit: some block begins with the register live */
    uint64_t *named, *written; /* bits: the current region names the register, or writes it */
    uint32_t *save_offset;     /* in the warp's save area, IR_NONE: never live over a barrier */
    uint32_t save_bytes;
    LLVMValueRef *regions; /* functions, by region */
    struct jit_full {
        bool begins, stays; /* no lane has left before the region, nor in it */
        unsigned copies;    /* warps that one call runs: jam.c */
    } * full;               /* by region */
    bool jams;              /* some region has several of them */
    LLVMTypeRef region_type;
    LLVMValueRef fault_scalar, fault_vector;
    LLVMTypeRef fault_scalar_type, fault_vector_type;

    /* current function */
    uint32_t region;
    LLVMValueRef function, block; /* struct soft_block */
    LLVMValueRef ctaid_x;         /* parameter of a region's function */
    LLVMValueRef alive;           /* alloca i32 */
    struct jit_warp *w;           /* the warp that instructions are emitted for */
    struct jit_warp warps[JIT_COPIES_MAX];
    struct jit_frame {
        LLVMValueRef base;  /* on the stack, or in the save area */
        LLVMValueRef first; /* of one that is kept: what ends the block that clears it */
        uint32_t bytes;
    } frame;                  /* of large kernels: frame.c */
    LLVMValueRef operands;    /* alloca: for calls of called.c; NULL: none yet */
    LLVMValueRef places;      /* alloca: addresses and values of rare.c; NULL: none yet */
    LLVMValueRef matrices;    /* alloca: operands and results of MMA; NULL: none yet */
    LLVMValueRef samples;     /* alloca: the same of TEX */
    bool by_lane;             /* the instruction is emitted for such a register's lanes */
    LLVMValueRef *waiting;    /* i32 by block: alloca, or in the array at waiting_at */
    LLVMValueRef patience;    /* alloca i32: how often lanes go back before they are parked */
    LLVMBasicBlockRef *entry; /* by block, NULL: not in this region */
    bool has_whole; /* blocks have a second version, for when all lanes of the warp run: flow.c */
    LLVMBasicBlockRef *whole_entry; /* by block: of that version */
    LLVMBasicBlockRef
        *join;       /* by block: chooses between the two for the lanes that wait; NULL: not yet */
    bool chains;     /* of the region's blocks: wait.c */
    bool *waits;     /* by block, where there are chains: lanes may wait there */
    uint32_t *place; /* by block whose sets lie in arrays: where. With chains those where lanes may
                        wait, else those where lanes may be parked (park.c) */
    uint32_t place_count;
    uint32_t parked_at;       /* offset of the sets of parked lanes in the save area */
    uint32_t waiting_at;      /* offset of the array in the frame, where there are chains */
    LLVMBasicBlockRef *chain; /* by block, where there are chains: runs it if lanes wait there, or
                                 goes on with the next; NULL: there never are any */
    LLVMBasicBlockRef done;   /* returns JIT_DONE */
    LLVMValueRef faulted;     /* phi: what the function returns of a fault; NULL: none yet */
    LLVMValueRef cached[16];  /* prelude values by enum jit_cached */
    LLVMValueRef *symbol;     /* prelude: address of placed symbol, by symbol */

    /* current block and instruction */
    uint32_t at_block, at_instr;
    const struct ir_instr *i;
    LLVMValueRef mask;        /* i32: lanes that run the block */
    LLVMValueRef guard;       /* of the instruction: i1 or <32 x i1>, NULL: none */
    bool called;              /* the instruction is left to a C function (called.c) */
    bool masked;              /* the block runs with a part of the living lanes */
    bool whole;               /* the version for all lanes of the warp is emitted */
    LLVMBasicBlockRef *other; /* by instruction of the block and warp: where its second version goes
                                 on, NULL: not needed */
    bool checks_all;          /* that version is being emitted */
};

/* Fields of struct soft_block that are read once, at the start of a function. */
enum jit_cached {
    JIT_WINDOW_BASE,
    JIT_WINDOW_BAD, /* ~window_mask */
    JIT_SHARED,
    JIT_SHARED_GUARD, /* where the guard zone in front of it begins */
    JIT_SHARED_MASK,  /* i32 */
    JIT_LOCAL,
    JIT_LOCAL_STRIDE,
    JIT_PARAMS,
    JIT_GLOBALS,
    JIT_HELPERS,
    JIT_NTID_X,
    JIT_NTID_Y,
    JIT_NTID_Z,
    JIT_CACHED_COUNT,
};

#endif
