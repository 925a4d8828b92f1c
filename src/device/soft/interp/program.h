/*
 * The interpreter's program: decode.c makes it from a function, run_block executes it.
 *
 * A warp runs as a whole. One handler carries out an instruction for all lanes, on registers that
 * are arrays of 32 lanes in the warp's frame. interp_run_warp() calls the handlers one after the
 * other; each returns the instruction to run next, or NULL to leave the warp.
 *
 * The frame (one per warp, in soft_block.save) holds, in this order: struct interp_warp, the lanes
 * that wait at each block, predicate registers (one 32-bit word each, one bit per lane), and slots
 * of 128 bytes for the other registers. A slot has the 32 lanes of one register of 16 or 32 bits
 * (8-bit registers are kept in 16); two slots in a row have those of a 64-bit register. Registers
 * that are never alive together share slots.
 *
 * Control flow. A block's number in the program, which follows the analysis, is its priority. Lanes
 * that take different ways wait at the block that they go to, and the lowest block with waiting
 * lanes runs next. So lanes meet again where their ways join. This is correct for any graph; the
 * order only decides how early lanes meet.
 */
#ifndef GMUX_SOFT_INTERP_PROGRAM_H
#define GMUX_SOFT_INTERP_PROGRAM_H

#include "device/soft/exec/code.h"
#include "device/soft/interp/scalar.h"

struct interp_run;
struct interp_insn;
typedef const struct interp_insn *interp_fn(const struct interp_insn *i, struct interp_run *r);

/* Where an operand lies: an offset in the warp's frame, or in the program's constants if the lowest
 * bit is set. */
typedef uint32_t interp_at;
#define INTERP_IN_CONST 1u
#define INTERP_NOWHERE  UINT32_MAX

/* Width of a register's lanes in the frame. */
enum interp_width { INTERP_W1, INTERP_W16, INTERP_W32, INTERP_W64 };

#define INTERP_SLOT 128u /* bytes: 32 lanes of 32 bits */

/* interp_insn.value of interp_pred_logic: the operation on s[0] and s[1], each inverted or not. */
enum {
    INTERP_PRED_AND,
    INTERP_PRED_OR,
    INTERP_PRED_XOR,
    INTERP_PRED_INVERT0 = 4,
    INTERP_PRED_INVERT1 = 8
};

struct interp_insn {
    interp_fn *run;
    interp_at d;    /* destination */
    interp_at s[4]; /* sources */
    uint32_t block; /* branches: the block to go to; sync instructions: the block that they start */
    uint32_t other; /* branches: the block where the other lanes go */
    /* Index in the program's table for this kind of instruction: accesses, slows or targets. */
    uint32_t extra;
    uint64_t value; /* constant of the instruction */
};

/* Details of an instruction that reads or writes memory. */
struct interp_access {
    interp_at base; /* INTERP_NOWHERE: none */
    uint8_t base_width;
    uint8_t space;
    uint8_t size;  /* bytes of one element */
    uint8_t count; /* elements */
    bool is_signed;
    bool is_load;
    uint8_t order; /* enum ir_order */
    uint8_t op;    /* enum ir_mode, atomics */
    uint8_t type;  /* enum ir_type, atomics */
    /* For checked programs, one bit per element: it is only stored elsewhere, and nothing is
     * computed from it. */
    uint8_t copied;
    uint32_t symbol; /* a symbol whose address is known only at run time, or IR_NONE */
    uint32_t line;   /* of the text */
    uint64_t displacement;
    interp_at value[4]; /* registers loaded or stored; INTERP_NOWHERE: the value is dropped */
    uint8_t width[4];   /* their widths */
    interp_at old[2];   /* for 128 bits: where the halves of the old value go */
};

/* Details of an instruction that a scalar form computes lane by lane, and of others that need more
 * operands. */
struct interp_slow {
    interp_scalar *scalar;
    struct ir_instr ir; /* a copy: the module may be gone */
    interp_at s[IR_MAX_SRC];
    uint8_t s_width[IR_MAX_SRC];
    uint8_t s_negated[IR_MAX_SRC];
    interp_at d[IR_MAX_DST];
    uint8_t d_width[IR_MAX_DST];
    interp_at p; /* predicate destination or INTERP_NOWHERE */
};

struct interp_block {
    const struct interp_insn *first;
};

struct interp_program {
    struct interp_insn *insns;
    struct interp_block *blocks;
    struct interp_access *accesses;
    struct interp_slow *slows;
    uint32_t *targets; /* of brx: blocks, insn.value entries from insn.block on */
    uint8_t *consts;   /* aligned to 64 */
    /* Slots that are zeroed when a warp starts: registers that may be read before they are
     * written. */
    interp_at *clear;
    uint32_t first_again; /* from this block on each is an interp_look_again() */
    uint32_t insn_count, block_count, access_count, slow_count, target_count, clear_count;
    uint32_t const_bytes;
    uint32_t waiting_at; /* offset of the waiting sets in the frame; predicates follow */
    uint32_t
        slots_at;   /* offset of the first slot; what lies before it is zeroed at a warp's start */
    bool clear_all; /* the whole frame is zeroed */
    bool calls;     /* it has functions to which lanes come from several places */
    uint32_t frame_bytes; /* multiple of 128 */
    uint32_t param_bytes;
};

/* Lanes of a warp that wait at a barrier. */
struct interp_parked {
    const struct interp_insn *insn;
    uint32_t lanes;
    uint32_t id;
};

/* Head of a warp's frame: its state while other warps run. */
struct interp_warp {
    uint32_t alive; /* lanes that exist and have not exited */
    uint32_t low;   /* first block with lanes waiting, INTERP_NO_BLOCK if none */
    uint32_t last;  /* no block after this one has lanes waiting */
    uint32_t parked_count;
    uint32_t turns;    /* branches taken while lanes waited, since waiting lanes last had a turn */
    uint32_t patience; /* after so many branches waiting lanes get a turn out of order */
    uint32_t sticky;   /* for so many more branches lanes that run out of order go on */
    uint32_t rotor;    /* the block where lanes last got such a turn */
    uint32_t holds;    /* waits for others in a row in which those took no branch */
    uint32_t arrived;  /* lanes that wait at a bar.warp.sync */
    uint32_t passing;  /* lanes that wait there although all have come */
    /* branches taken in this turn when lanes last began to wait for others; UINT32_MAX: they did
     * not */
    uint32_t held;
    uint32_t looks; /* how often lanes may go back in a turn to loops that wait */
    uint32_t reserved[3];
    struct interp_parked parked[SOFT_WARP]; /* lanes waiting at barriers */
};
#define INTERP_NO_BLOCK UINT32_MAX

#define INTERP_BARRIERS 16

/* One of the block's barriers. */
struct interp_barrier {
    uint32_t arrived;  /* threads that arrived; for bar.sync with a count whole warps */
    uint32_t expected; /* 0: all threads that have not exited */
    uint32_t waiting;  /* how many of the arrived threads wait */
};

/* The state of a worker while it runs a block; lies on its stack. */
struct interp_run {
    uint8_t *base[2]; /* the frame of the running warp; the constants */
    uint32_t mask;    /* lanes that run */
    /* no other lane of the warp has anything to lose: results may be written to all 32 */
    uint32_t full;
    uint32_t outer; /* the mask outside of the guarded instruction */
    struct interp_warp *warp;
    struct soft_block *block;
    const struct interp_program *program;
    uint32_t first_thread; /* linear number of lane 0 */
    uint32_t warp_index;
    enum soft_outcome outcome;
    uint32_t alive_threads; /* threads of the block that have not exited */
    uint32_t branches;      /* how many the warp took in this turn */
    uint32_t looks;         /* how often its lanes may still go back to loops that wait */
    /* one bit per barrier: some thread has arrived there */
    uint32_t barriers_used;
    GM_ALIGNED(64) int32_t lanes[SOFT_WARP]; /* mask, one word per lane: 0 or -1 */
    GM_ALIGNED(64) uint64_t scratch[SOFT_WARP];
    struct interp_barrier barriers[INTERP_BARRIERS];
};

static inline void *interp_operand(const struct interp_run *r, interp_at at)
{
    return r->base[at & INTERP_IN_CONST] + (at & ~INTERP_IN_CONST);
}

static inline uint32_t *interp_pred(const struct interp_run *r, interp_at at)
{
    return (uint32_t *)interp_operand(r, at);
}

/* Writes only the bits of `mask`. */
static inline void interp_pred_write(const struct interp_run *r, interp_at at, uint32_t bits)
{
    uint32_t *d = interp_pred(r, at);
    *d = (*d & ~r->mask) | (bits & r->mask);
}

/* Reads one lane of a register. */
static inline uint64_t interp_lane_read(const struct interp_run *r, interp_at at, uint8_t width,
                                        unsigned lane)
{
    switch (width) {
    case INTERP_W1:
        return *interp_pred(r, at) >> lane & 1;
    case INTERP_W16:
        return ((const uint16_t *)interp_operand(r, at))[lane];
    case INTERP_W32:
        return ((const uint32_t *)interp_operand(r, at))[lane];
    default:
        return ((const uint64_t *)interp_operand(r, at))[lane];
    }
}

static inline void interp_lane_write(const struct interp_run *r, interp_at at, uint8_t width,
                                     unsigned lane, uint64_t value)
{
    switch (width) {
    case INTERP_W1: {
        uint32_t *d = interp_pred(r, at), bit = 1u << lane;
        *d = value & 1 ? *d | bit : *d & ~bit;
        break;
    }
    case INTERP_W16:
        ((uint16_t *)interp_operand(r, at))[lane] = (uint16_t)value;
        break;
    case INTERP_W32:
        ((uint32_t *)interp_operand(r, at))[lane] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)interp_operand(r, at))[lane] = value;
        break;
    }
}

/* --- control.c -------------------------------------------------------------------------------- */
void interp_mask_set(struct interp_run *r, uint32_t mask);
/* The running lanes go to `block`. They go on there at once, or wait while others run first. */
const struct interp_insn *interp_go(struct interp_run *r, uint32_t block);
/* Lets lanes run that wait somewhere; NULL: none do. */
const struct interp_insn *interp_next_waiting(struct interp_run *r);
void interp_wait_at(struct interp_run *r, uint32_t block, uint32_t lanes);
/* Ends the block with this outcome, and reports address and lane. */
const struct interp_insn *interp_fault(struct interp_run *r, enum soft_outcome outcome,
                                       uint64_t address, unsigned lane);
/* Lanes that wait at instruction `i`, which starts block i->block, join the running ones. False: no
 * lanes of the warp wait anywhere, so the running ones are all there are. In programs with
 * functions that does not say enough: lanes may have come here through different calls. */
bool interp_gather(const struct interp_insn *i, struct interp_run *r);
/* Called after interp_gather() before instruction `i`, which the lanes named[l] are to execute
 * together with each lane l. True: for the lanes that run now all have arrived; others wait. False:
 * *next is what to run first. */
bool interp_together(const struct interp_insn *i, struct interp_run *r, const uint32_t *named,
                     const struct interp_insn **next);
/* Does what interp_together() does for bar.warp.sync, which its members may reach at different
 * places. */
bool interp_meet(const struct interp_insn *i, struct interp_run *r, const uint32_t *named,
                 const struct interp_insn **next);
/* Around a warp's turn. */
void interp_turn_begin(struct interp_run *r);
void interp_turn_end(struct interp_run *r);
interp_fn interp_bra, interp_bra_if, interp_look_again, interp_brx, interp_exit, interp_exit_if,
    interp_guard, interp_unguard, interp_trap, interp_fence;

/* --- barrier.c -------------------------------------------------------------------------------- */
interp_fn interp_barrier_wait, interp_barrier_arrive;
/* Lets the warps go on whose barriers are complete. False: no barrier was. */
bool interp_barriers_release(struct interp_run *r);
uint32_t *interp_waiting(const struct interp_program *p, uint8_t *frame);

/* --- lanes.c ---------------------------------------------------------------------------------- */
interp_fn interp_lanes_scalar, interp_lanes_unpack, interp_sreg, interp_symbol, interp_pred_logic,
    interp_helper;
interp_scalar interp_scalar_isspacep;
/* soft_helpers.compute */
void interp_compute(const struct ir_instr *i, const uint64_t (*in)[SOFT_WARP],
                    uint64_t (*out)[SOFT_WARP]);

/* --- cross.c ---------------------------------------------------------------------------------- */
interp_fn interp_shfl, interp_vote, interp_match, interp_redux, interp_activemask, interp_elect,
    interp_mma, interp_texture, interp_warp_sync;

/* --- memory.c --------------------------------------------------------------------------------- */
interp_fn interp_load_slow, interp_store_slow, interp_atom;
/* Loads or stores for some of the running lanes. */
const struct interp_insn *interp_load_lanes(const struct interp_insn *i, struct interp_run *r,
                                            uint32_t lanes);
const struct interp_insn *interp_store_lanes(const struct interp_insn *i, struct interp_run *r,
                                             uint32_t lanes);

uint64_t interp_lane_address(const struct interp_run *r, const struct interp_access *a,
                             unsigned lane);

/* --- check.c ---------------------------------------------------------------------------------- */
/* The handler that checks and then does what `run` does; `run` itself where there is nothing to
 * check. */
interp_fn *interp_checked(interp_fn *run);
/* check_barrier.c. Tells the checker that the threads waiting at barrier `id` go on. */
void interp_barrier_checked(struct interp_run *r, uint32_t id);
/* Reports a finding (enum soft_check_kind) at barrier instruction `i`. */
void interp_barrier_found(struct interp_run *r, const struct interp_insn *i, uint8_t kind,
                          uint32_t thread);

/* Runs the program from `i` on until a handler returns NULL. */
static inline void interp_run_insns(const struct interp_insn *i, struct interp_run *r)
{
    while (i)
        i = i->run(i, r);
}

#endif
