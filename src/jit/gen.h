/*
 * Code generation: one entry of an ir_module becomes an LLVM module with one function per barrier
 * region and a wrapper that runs a whole thread block. The scheme in short (the analyses of
 * device/soft/ir/analysis.h decide it):
 *
 *   A call runs a warp. Each register is an alloca that LLVM turns into values: a scalar where all
 *   lanes agree (uniform), the scalar of lane 0 where lanes differ by a constant stride (affine),
 *   else a vector of 32 elements. Where control flow diverges, each block has a waiting set of
 *   lanes, an i32; elsewhere branches are plain branches. Barriers end a region: live registers go
 *   to the warp's save area, and the wrapper runs the next region of each warp once all warps came
 *   that far.
 *
 * Files, from the top down:
 *
 *   main, sandbox, compile   the process: jobs, limits
 *   target                LLVM set-up, passes, object
 *   gen                   module, regions
 *   row, jam              how many blocks side by side, warps at once
 *   block                 the function that runs a thread block: the loop over its warps
 *   width                 how many lanes of a warp at once
 *   step                  threads that count on their warp going in step
 *   meet                  whether lanes are together where they have to be
 *   latch                 loops with several ways back, or several entrances
 *   chain                 tests that find the next block, shared by all
 *   flow                  blocks of the kernel, branches; which file emits an instruction
 *   gather, park          lanes that wait for lanes which are parked; threads that wait for others
 *   barrier               barriers
 *   texture, memory, local, index, pieces, pattern, runs   loads and stores
 *   cross                 shuffles and votes
 *   elements              what one lane loads and stores
 *   atomic                atomic operations
 *   apart                 functions for accesses that would be long
 *   rare, lanes           lane by lane: loads and stores; host functions
 *   turn                  the order in which lanes store
 *   wrap                  results that may wrap around
 *   hull, stride          one check for several accesses; elements apart by a constant
 *   agree                 branches on which lanes agree
 *   wait                  sets of lanes that wait
 *   known                 what is known about registers within a block
 *   convert, real, half, approx, fma, bits, integer, called   arithmetic
 *   subnormal             subnormal numbers
 *   space                 addresses
 *   value                 registers, operands, masks
 *   affine, frame         where registers are kept
 *   again                 what is computed again instead of saved
 *   build                 functions, blocks, types, constants
 */
#ifndef GMUX_JIT_GEN_H
#define GMUX_JIT_GEN_H

#include "jit/state.h"

/* --- row.c: blocks side by side in one call --------------------------------------------------- */
void jit_choose_row(struct jit_gen *g);

/* --- width.c ---------------------------------------------------------------------------------- */
#define JIT_LANES_MIN 8u
/* How many lanes a warp of the code has at first. */
unsigned jit_choose_lanes(const struct jit_gen *g);
/* How many it had better have, now that it is known what its loops do. */
unsigned jit_lanes_for_loops(struct jit_gen *g);
/* How many it had better have, now that the module is made: as many, or fewer. Spares LLVM a module
 * of which it is certain that it comes out too long. */
unsigned jit_lanes_for_length(const struct jit_gen *g);
/* How many it had better have, now that the module is optimised or a frame is too large: as many,
 * or fewer. */
unsigned jit_fewer_lanes(const struct jit_gen *g);

/* Head of a warp's save area: see block.c. */
#define JIT_SAVE_ALIVE      4u  /* i32: lanes that have not returned */
#define JIT_SAVE_AT_BARRIER 8u  /* i32: lanes that are parked at a barrier */
#define JIT_SAVE_RELEASE    12u /* i32: not 0: they go on */
#define JIT_SAVE_PATIENCE   16u /* i32: how often lanes go back this turn before they are parked */
#define JIT_SAVE_HEAD       64u

/* --- step.c: threads that count on their warp going in step ----------------------------------- */
bool jit_goes_in_step(const struct ir_fn *fn);

/* --- meet.c ----------------------------------------------------------------------------------- */
/* Refuses kernels whose lanes would look at each other before all of them are there, as the
 * interpreter waits for: some are parked, have yet to call the function, or are in another loop. */
void jit_check_meetings(struct jit_gen *g);
/* The line of a bar.warp.sync that lanes would pass while others of the warp come to one in another
 * loop, which no order of blocks prevents; 0: there is none. */
uint32_t jit_find_two_loops(const struct ir_fn *fn, const struct ir_analysis *a);

/* --- latch.c: loops with several ways back ---------------------------------------------------- */
/* Joins the ways back of loops in which lanes would run ahead of others, for the next analysis. How
 * many loops there were, or -ENOMEM. */
GM_MUST_CHECK int jit_join_ways_back(struct ir_fn *fn, const struct ir_analysis *a);
/* Whether the block is in a loop with several entrances. */
bool jit_in_tangle(const struct ir_fn *fn, const struct ir_analysis *a, uint32_t block);

/* --- gather.c: lanes that wait for lanes of their warp which are parked ----------------------- */
/* Whether there is an instruction for which lanes meet while others are parked. */
bool jit_gathers(const struct ir_fn *fn, const struct ir_analysis *a);
/* Cuts the blocks so that each such instruction begins one, and makes `meets`, for the next
 * analysis; `polls` is made anew. If there are too many, all stays as it is. 0 or -ENOMEM. */
GM_MUST_CHECK int jit_cut_at_gatherings(struct ir_fn *fn, bool **polls, bool **meets);
/* Whether the analysis knows of such blocks. Their many ways in make LLVM slow, which such a kernel
 * spares it as a large one. */
bool jit_has_gatherings(const struct jit_gen *g);
/* At the beginning of such a block, for its first instruction: of the lanes that come and those
 * that are parked here, the ones that go on now. The others are parked. */
LLVMValueRef jit_gather(struct jit_gen *g, LLVMValueRef here);

/* --- park.c: warps that are left in the middle, because their threads wait for others --------- */
/* Gives the parked lanes their places in the save area, from `at` on; returns the end. */
uint32_t jit_lay_out_parked(struct jit_gen *g, uint32_t at);
/* Nobody is parked, and no register has a value: before the warp with that save area begins. */
void jit_clear_parked(struct jit_gen *g, LLVMValueRef save);
/* Where the lanes are kept that are parked at the current block, and those of them that wait for
 * the others of their warp no longer. */
LLVMValueRef jit_parked_here(struct jit_gen *g);
LLVMValueRef jit_freed_here(struct jit_gen *g);
/* All lanes that are parked at a bar.warp.sync; lets those of them go on that are among `lanes`. */
LLVMValueRef jit_parked_at_syncs(struct jit_gen *g);
void jit_free_at_syncs(struct jit_gen *g, LLVMValueRef lanes);
/* Lanes of the current block go to that one. `first`: the branch has sent none there yet. */
void jit_add_waiting(struct jit_gen *g, uint32_t block, LLVMValueRef lanes, bool first);
/* Lanes that go from the current block to that one, a loop's header, wait there or are parked, as
 * it turns out. */
bool jit_is_patient(const struct jit_gen *g, uint32_t block);
/* Emits the beginning of a warp's turn, which is entered at `begin`, and its end, at g->done. */
void jit_emit_turn(struct jit_gen *g, LLVMBasicBlockRef begin);

/* --- block.c ---------------------------------------------------------------------------------- */
/* True if the region's function always returns the same, *result, unless it faults. */
bool jit_has_one_result(const struct jit_gen *g, uint32_t r, int64_t *result);
/* Emits the function that runs a thread block; the regions' functions are there. */
void jit_emit_block(struct jit_gen *g);

/* --- gen.c ------------------------------------------------------------------------------------ */
/* Fills g->module. 0; -ENOTSUP with g->reason; -ENOMEM. */
GM_MUST_CHECK int jit_generate(struct jit_gen *g);

/* --- chain.c ---------------------------------------------------------------------------------- */
/* Emits the region's chain, and sets g->chain. */
void jit_emit_chain(struct jit_gen *g);

/* --- flow.c ----------------------------------------------------------------------------------- */
/* Where lanes that wait at the block go on. */
LLVMBasicBlockRef jit_waiting_entry(struct jit_gen *g, uint32_t block);
void jit_emit_blocks(struct jit_gen *g);
/* Goes to the block with all living lanes. */
void jit_enter(struct jit_gen *g, uint32_t block);
void jit_emit_instr(struct jit_gen *g);

/* --- known.c ---------------------------------------------------------------------------------- */
/* Nothing is known any more about the registers that the block's instructions name. */
void jit_forget(struct jit_gen *g, const struct ir_block *block);

/* --- frame.c ---------------------------------------------------------------------------------- */
/* The region's operands of phis. */
uint64_t jit_count_operands(const struct jit_gen *g, const struct ir_region *region);
/* The kernel has more of them than can be left to LLVM. */
bool jit_is_large(const struct jit_gen *g, uint64_t operands);
/* It has so many variables and blocks that LLVM takes too long to find the phis. */
bool jit_promotes_long(const struct jit_gen *g);
/* Begins a piece of a block of so many instructions, if it is long, at every 64th place. */
void jit_go_on_in_pieces(struct jit_gen *g, uint32_t instrs, uint32_t at);
/* Finds out which registers live in one block only (g->crosses), and counts those of each block. */
void jit_find_locals(struct jit_gen *g);
/* The function's frame is a piece of the warp's save area, which lasts from turn to turn. */
bool jit_keeps_frame(const struct jit_gen *g);
/* Before a function's first slot is made, and after the last one. */
void jit_begin_frame(struct jit_gen *g);
void jit_finish_frame(struct jit_gen *g);
/* Where a register, or a set of lanes, is kept as this type. A register is 0 at first, so a program
 * that reads it before it writes it gets 0, and never one of LLVM's undefined values. */
LLVMValueRef jit_register_slot(struct jit_gen *g, uint32_t reg, LLVMTypeRef type);
LLVMValueRef jit_lanes_slot(struct jit_gen *g);
/* The offset in the frame of `count` pieces of so many bytes, aligned to that. */
uint32_t jit_place_array(struct jit_gen *g, uint32_t size, uint32_t count);
/* What is at that offset is 0 when the function begins, of a frame that is kept: for the first
 * time. */
void jit_clear_at_first(struct jit_gen *g, LLVMTypeRef type, uint32_t at);

/* --- wait.c ----------------------------------------------------------------------------------- */
/* The block takes its lanes from its waiting set; others run with all that live. */
static inline bool jit_has_mask(const struct jit_gen *g, uint32_t block)
{
    return g->a->blocks[block].frontier.count != 0;
}
/* Decides whether the current region has chains; before its first slot is made. */
void jit_choose_chains(struct jit_gen *g);
/* Makes the region's sets of lanes that wait at blocks; they are empty at first. */
void jit_begin_waiting(struct jit_gen *g);
/* Sets that lie in an array (g->place) are read in pieces of so many. */
#define JIT_PIECE       16u
#define JIT_PIECE_BYTES (JIT_PIECE * (uint32_t)sizeof(uint32_t))
uint32_t jit_pieces(const struct jit_gen *g);
LLVMValueRef jit_waiting_piece(struct jit_gen *g, LLVMBuilderRef b, uint32_t piece);
LLVMValueRef jit_load_waiting(struct jit_gen *g, uint32_t block);
void jit_store_waiting(struct jit_gen *g, uint32_t block, LLVMValueRef lanes);
/* The candidates, one of which runs next, find no lanes where none can wait. */
void jit_say_empty(struct jit_gen *g, const uint32_t *candidates, uint32_t count);

/* --- barrier.c -------------------------------------------------------------------------------- */
void jit_emit_barrier(struct jit_gen *g);
/* Finds out which registers the current region's instructions name and write. */
void jit_look_at_region(struct jit_gen *g);
bool jit_is_named(const struct jit_gen *g, uint32_t reg);
/* Stores a register to its place in the save area. */
void jit_save_register(struct jit_gen *g, uint32_t reg);

/* --- build.c ---------------------------------------------------------------------------------- */
/* Says why the kernel cannot be compiled; the first one counts. */
void jit_unsupported(struct jit_gen *g, const char *fmt, ...) GM_PRINTF(2, 3);
LLVMValueRef jit_at_offset(struct jit_gen *g, LLVMBuilderRef b, LLVMValueRef base, uint64_t offset);
void jit_set_attribute(struct jit_gen *g, LLVMValueRef f, const char *name);
LLVMValueRef jit_add_function(struct jit_gen *g, const char *name, LLVMTypeRef type, bool external);
LLVMBasicBlockRef jit_new_block(struct jit_gen *g, const char *name);
void jit_position(struct jit_gen *g, LLVMBasicBlockRef at);
/* Goes on in a new block unless `bad` (i1): then in `to`, which is rarely so. */
void jit_branch_unlikely(struct jit_gen *g, LLVMValueRef bad, LLVMBasicBlockRef to);
LLVMTypeRef jit_type(const struct jit_gen *g,
                     enum ir_type type); /* element type of values of that PTX type */
LLVMTypeRef jit_int(const struct jit_gen *g, unsigned bytes);
unsigned jit_bit_width(LLVMTypeRef t); /* of a scalar; pointers are 64 wide */
LLVMTypeRef jit_vec(const struct jit_gen *g, LLVMTypeRef element);
bool jit_is_vec(LLVMValueRef v);
LLVMTypeRef jit_like(LLVMValueRef shape,
                     LLVMTypeRef element); /* element, or the vector of it if `shape` is one */
LLVMValueRef jit_splat(struct jit_gen *g, LLVMValueRef scalar);
LLVMValueRef jit_ramp(struct jit_gen *g, LLVMTypeRef element, int64_t stride);
LLVMValueRef jit_const(struct jit_gen *g, LLVMValueRef like,
                       uint64_t bits); /* integer constant of like's type */
LLVMValueRef jit_real(struct jit_gen *g, LLVMValueRef like, double value);
/* Changes size (zero- or sign-extending), and between integer and floating point by bits. */
LLVMValueRef jit_resize(struct jit_gen *g, LLVMValueRef v, LLVMTypeRef element, bool sign);
LLVMValueRef jit_as_int(struct jit_gen *g, LLVMValueRef v);
/* f32 or f64 to integers of the type `t`: what follows the point is cut off, what is too large for
 * the type becomes its largest or smallest integer, NaN becomes 0. */
LLVMValueRef jit_to_int(struct jit_gen *g, LLVMValueRef v, LLVMTypeRef t, bool sign);
LLVMValueRef jit_as_vec(struct jit_gen *g, LLVMValueRef v);
LLVMValueRef jit_immediate(struct jit_gen *g, uint64_t bits, enum ir_type type);
LLVMValueRef jit_all_lanes(const struct jit_gen *g); /* i32: a bit for each lane of a warp */
LLVMValueRef jit_alloca(struct jit_gen *g, LLVMTypeRef type, const char *name);
/* Calls an intrinsic overloaded on `types`. */
LLVMValueRef jit_intrinsic(struct jit_gen *g, const char *name, LLVMTypeRef *types,
                           unsigned type_count, LLVMValueRef *args, unsigned arg_count);
/* Calls an intrinsic that is overloaded on the type of its first argument. */
LLVMValueRef jit_call1(struct jit_gen *g, const char *name, LLVMValueRef a);
LLVMValueRef jit_call2(struct jit_gen *g, const char *name, LLVMValueRef a, LLVMValueRef c);
LLVMValueRef jit_call3(struct jit_gen *g, const char *name, LLVMValueRef a, LLVMValueRef c,
                       LLVMValueRef d);
LLVMValueRef jit_select(struct jit_gen *g, LLVMValueRef cond, LLVMValueRef yes, LLVMValueRef no);
LLVMValueRef jit_shuffle(struct jit_gen *g, LLVMValueRef a, LLVMValueRef c, const int *lanes,
                         unsigned count);
/* One element of a vector, lane number known only at run time. */
LLVMValueRef jit_pick(struct jit_gen *g, LLVMValueRef v, LLVMValueRef lane);
/* Calls an intrinsic, overloaded on `types`, on `chunk` elements for all lanes of the vectors
 * `args`; `more` is the same for each call. */
LLVMValueRef jit_chunks(struct jit_gen *g, const char *name, LLVMTypeRef *types,
                        unsigned type_count, unsigned chunk, LLVMValueRef *args, unsigned arg_count,
                        LLVMValueRef *more, unsigned more_count);

/* --- value.c ---------------------------------------------------------------------------------- */
static inline enum ir_shape jit_shape(const struct jit_gen *g, uint32_t reg)
{
    return (enum ir_shape)g->a->regs[reg].shape;
}
/* Constants of 32 and of 64 bits. */
static inline LLVMValueRef jit_c32(const struct jit_gen *g, uint64_t v)
{
    return LLVMConstInt(g->i32, v, 0);
}
static inline LLVMValueRef jit_c64(const struct jit_gen *g, uint64_t v)
{
    return LLVMConstInt(g->i64, v, 0);
}
LLVMValueRef jit_cached(struct jit_gen *g, enum jit_cached what);
LLVMValueRef jit_field(struct jit_gen *g, size_t offset,
                       LLVMTypeRef type); /* of struct soft_block, read in prelude */
/* A function of struct soft_helpers. */
LLVMValueRef jit_helper_function(struct jit_gen *g, size_t offset);
/* Value of a register as it is kept: scalar (of lane 0) or vector. */
LLVMValueRef jit_get(struct jit_gen *g, uint32_t reg);
/* Source as `type`; a vector if `vec`, else the scalar of lane 0. */
LLVMValueRef jit_src(struct jit_gen *g, const struct ir_src *s, enum ir_type type, bool vec);
LLVMValueRef jit_reg(struct jit_gen *g, uint32_t reg, enum ir_type type, bool vec);
/* True if the source may differ between lanes. */
bool jit_src_varies(const struct jit_gen *g, const struct ir_src *s);
/* Writes the current instruction's destination: `which` 0 .. 3, or 4 for dst_pred; guard, blend and
 * shape are seen to. A signed result is sign-extended into a wider register. */
void jit_set(struct jit_gen *g, unsigned which, LLVMValueRef v);
LLVMValueRef jit_bits(struct jit_gen *g, LLVMValueRef lanes); /* a bit for each lane to i32 */
LLVMValueRef jit_is_full(struct jit_gen *g,
                         LLVMValueRef bits); /* i1: all lanes of a warp are set in an i32 */
LLVMValueRef jit_lanes(struct jit_gen *g, LLVMValueRef bits); /* i32 to a bit for each lane */
/* Lanes that run the current instruction: block mask and guard. */
LLVMValueRef jit_active(struct jit_gen *g);
/* What the active lanes' integers come to by an operation IR_ATOM_*; signed or not matters to MIN
 * and MAX. NULL: an operation for which the order of the lanes matters. */
LLVMValueRef jit_reduce(struct jit_gen *g, LLVMValueRef v, LLVMValueRef active, unsigned mode,
                        bool sign);

/* --- instructions ----------------------------------------------------------------------------- */
void jit_emit_load(struct jit_gen *g);
void jit_emit_store(struct jit_gen *g);
void jit_emit_atomic(struct jit_gen *g);
void jit_emit_helper(struct jit_gen *g);
void jit_emit_texture(struct jit_gen *g);
void jit_emit_trap(struct jit_gen *g);
/* True if the current instruction is to be computed on vectors: some source differs between lanes
 * and the result is kept as a vector. */
bool jit_wants_vec(const struct jit_gen *g);
/* These return false if the instruction is none of theirs. */
bool jit_emit_integer(struct jit_gen *g);
bool jit_emit_bits(struct jit_gen *g);
bool jit_emit_real(struct jit_gen *g);
void jit_emit_compare(struct jit_gen *g);
LLVMIntPredicate jit_int_predicate(uint8_t cmp, bool sign);
void jit_emit_convert(struct jit_gen *g);
bool jit_emit_cross(struct jit_gen *g);
LLVMValueRef jit_saturate(struct jit_gen *g, LLVMValueRef v);
LLVMValueRef jit_rounding(struct jit_gen *g);
/* fma.c: a * b + c, rounded once. */
LLVMValueRef jit_fma(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
/* On f32, scalars or vectors. */
LLVMValueRef jit_rsqrt(struct jit_gen *g, LLVMValueRef x);
LLVMValueRef jit_ex2(struct jit_gen *g, LLVMValueRef x);
LLVMValueRef jit_lg2(struct jit_gen *g, LLVMValueRef x);
LLVMValueRef jit_sin_cos(struct jit_gen *g, LLVMValueRef x, bool cosine);
LLVMValueRef jit_tanh(struct jit_gen *g, LLVMValueRef x);

/* --- half.c: 16-bit floating-point numbers, as integers; `brain`: bf16 ------------------------ */
/* Arithmetic on them and on pairs. */
void jit_emit_half(struct jit_gen *g, bool vec);
/* To f32. Of f16 only where jit_target.half is true, as jit_narrow_half(). */
LLVMValueRef jit_widen_half(struct jit_gen *g, LLVMValueRef v, bool brain);
/* From f32, to the nearest; what is no number becomes the one NaN that the hardware gives. */
LLVMValueRef jit_narrow_half(struct jit_gen *g, LLVMValueRef v, bool brain);
/* The sum of two numbers, or of two pairs, of the current instruction's type (i16, i32); only where
 * jit_target.half is true. */
LLVMValueRef jit_add_halves(struct jit_gen *g, LLVMValueRef a, LLVMValueRef b);
/* With subnormal numbers replaced by zeroes of the same sign. */
LLVMValueRef jit_flush_half(struct jit_gen *g, LLVMValueRef v, bool brain);

/* --- subnormal.c ------------------------------------------------------------------------------ */
/* Whether the kernel may run with a processor that flushes subnormal numbers. */
bool jit_kernel_flushes(const struct ir_fn *fn);
/* Has the thread's processor flush, or not, from here on. */
void jit_set_flushing(struct jit_gen *g, bool on);
/* f32 with subnormal numbers replaced by zeroes of the same sign, whatever the processor does. */
LLVMValueRef jit_flush(struct jit_gen *g, LLVMValueRef v);

/* --- lanes.c: one lane after the other -------------------------------------------------------- */
/* A loop over the lanes set in `bits`; between begin and end, `lane` (i32) is the current one. */
struct jit_lane_loop {
    LLVMBasicBlockRef head, body, exit;
    LLVMValueRef left; /* alloca: lanes still to come */
    LLVMValueRef lane;
};
void jit_lanes_begin(struct jit_gen *g, struct jit_lane_loop *l, LLVMValueRef bits);
/* Lane n ^ turn comes as the nth. */
void jit_lanes_begin_turned(struct jit_gen *g, struct jit_lane_loop *l, LLVMValueRef bits,
                            unsigned turn);
void jit_lanes_end(struct jit_gen *g, struct jit_lane_loop *l);

/* --- turn.c: lanes that store to one place ---------------------------------------------------- */
/* `turn` of the order in which lanes store that is right for the current instruction, by which each
 * stores `size` bytes. 0: they are known to store to different places. */
unsigned jit_store_turn(const struct jit_gen *g, unsigned size);
/* A vector of all lanes in that order. */
LLVMValueRef jit_turned(struct jit_gen *g, LLVMValueRef v, unsigned turn);
/* i32: the lane whose value stays if all in `active` (i32) store to one place. */
LLVMValueRef jit_store_lane(struct jit_gen *g, LLVMValueRef active, unsigned size);

/* --- rare.c: lane by lane, in short code ------------------------------------------------------ */
/* The current load or store. */
struct jit_access {
    unsigned count, esize, size; /* elements; bytes of one, of all */
    enum ir_type type;
    LLVMTypeRef element;
    LLVMValueRef value[IR_MAX_DST]; /* load: alloca of a vector; store: the vector */
    LLVMValueRef active;
    LLVMValueRef address; /* NULL: the current instruction's */
    bool same;            /* the address is a scalar, which all lanes share */
    bool store;
};
/* Bytes of a row of memory, which has a number for each lane. */
#define JIT_ROW (JIT_LANES_MAX * sizeof(uint64_t))
/* Row k of the function's; row 0 has the addresses. */
LLVMValueRef jit_row_place(struct jit_gen *g, unsigned k);
void jit_access_by_lane(struct jit_gen *g, struct jit_access *x);

/* --- apart.c ---------------------------------------------------------------------------------- */
/* Decides whether the kernel has such functions. */
void jit_choose_apart(struct jit_gen *g);
/* The access is made by a function of its own. */
bool jit_is_apart(const struct jit_gen *g, const struct jit_access *x);
/* Calls it. `emit` makes the access to x->address, where that function is not there yet. */
void jit_access_apart(struct jit_gen *g, struct jit_access *x,
                      void (*emit)(struct jit_gen *g, struct jit_access *x));

/* --- local.c ---------------------------------------------------------------------------------- */
/* Accesses elements of 4 or 8 bytes of local memory, at an address that all lanes share. */
void jit_access_local(struct jit_gen *g, struct jit_access *x);

/* --- index.c ---------------------------------------------------------------------------------- */
/* Makes a load from an array at an index. False: it is none. */
bool jit_load_indexed(struct jit_gen *g, struct jit_access *x);

/* --- stride.c --------------------------------------------------------------------------------- */
/* The lanes' elements of this access, apart by a constant, are better accessed one by one. */
bool jit_is_strided(const struct jit_gen *g, uint32_t instr);
/* i1: they may be, from lane 0's address on. covered: they are in place. */
LLVMValueRef jit_stride_is_good(struct jit_gen *g, const struct jit_access *x, LLVMValueRef address,
                                bool covered);
void jit_access_strided(struct jit_gen *g, struct jit_access *x, LLVMValueRef p);

/* --- pieces.c --------------------------------------------------------------------------------- */
/* Stores what the active lanes have, from `p` on side by side, with AVX2. */
void jit_store_pieces(struct jit_gen *g, struct jit_access *x, LLVMValueRef p);
/* Accesses consecutive elements of all lanes, from `p` on: element k of lane i is number
 * i * count + k. */
void jit_access_contiguous(struct jit_gen *g, struct jit_access *x, LLVMValueRef p);

/* --- again.c ---------------------------------------------------------------------------------- */
/* The register is computed again in each region that needs it. */
bool jit_is_again(const struct jit_gen *g, uint32_t reg);

/* --- jam.c ------------------------------------------------------------------------------------ */
/* Decides for each region how many warps a call of its function runs. */
void jit_choose_copies(struct jit_gen *g);
/* How many warps a call runs in the current region. */
static inline unsigned jit_copies(const struct jit_gen *g)
{
    return g->full[g->region].copies;
}

/* --- agree.c ---------------------------------------------------------------------------------- */
/* Notes what scalars tell of the predicate that the current instruction has computed. */
void jit_note_agreement(struct jit_gen *g);

/* --- hull.c ----------------------------------------------------------------------------------- */
/* The current access needs no check of its own, for any lane. May emit one check for several
 * accesses. */
bool jit_is_covered(struct jit_gen *g);
/* Goes on with the current instruction in the block's second version if `bad` (i1), which is hardly
 * ever so. */
void jit_go_other(struct jit_gen *g, LLVMValueRef bad);

/* --- runs.c ----------------------------------------------------------------------------------- */
/* The current load is part of a run of elements, which is loaded as a whole. False: it is not. */
bool jit_emit_run(struct jit_gen *g);

/* --- called.c --------------------------------------------------------------------------------- */
/* The current instruction, which is about values only, is not compiled but called. What is emitted
 * for it otherwise is of no consequence: jit_set does nothing until then. */
void jit_leave(struct jit_gen *g);
void jit_emit_called(struct jit_gen *g);

/* --- pattern.c: lanes that differ by constants ------------------------------------------------ */
/* The register's pattern; NULL: it has none. */
static inline const struct ir_pattern *jit_pattern_of(const struct jit_gen *g, uint32_t reg)
{
    uint32_t n = g->a->regs[reg].pattern;
    return n ? &g->a->patterns[n - 1] : NULL;
}
/* Whether the current instruction, a load or store of one element of `size` bytes, is made as one
 * of vectors that are loaded or stored whole. */
bool jit_has_pattern(const struct jit_gen *g, bool store, unsigned size);
LLVMValueRef jit_load_pattern(struct jit_gen *g, LLVMTypeRef element, unsigned size,
                              LLVMValueRef active);
void jit_store_pattern(struct jit_gen *g, LLVMValueRef value, unsigned size, LLVMValueRef active);

/* --- affine.c --------------------------------------------------------------------------------- */
/* The register is affine on condition. */
static inline bool jit_may_wrap(const struct jit_gen *g, uint32_t reg)
{
    return g->a->regs[reg].shape == IR_AFFINE && g->a->regs[reg].may_wrap;
}
/* i1: the condition does not hold now. Constant for all other registers. */
LLVMValueRef jit_wraps(struct jit_gen *g, uint32_t reg);
/* Each lane's value of an affine register, or of one with a pattern: `first` is lane 0's. */
LLVMValueRef jit_affine_lanes(struct jit_gen *g, uint32_t reg, LLVMValueRef first);
/* Where the bit and the lanes of a register are kept. */
struct jit_wrapped *jit_wrapped(struct jit_gen *g, uint32_t reg);
void jit_store_lanes(struct jit_gen *g, uint32_t reg, LLVMValueRef v);
void jit_forget_lanes(struct jit_gen *g, uint32_t reg);
/* The lanes' values, while wrap.c emits an instruction for them. */
void jit_set_wrapped(struct jit_gen *g, uint32_t reg, LLVMValueRef v);
/* How many bytes of the save area the register needs over a barrier. */
uint32_t jit_wrapped_bytes(const struct jit_gen *g, uint32_t reg);
void jit_save_wrapped(struct jit_gen *g, uint32_t reg);
void jit_restore_wrapped(struct jit_gen *g, uint32_t reg);
/* In that save area its lanes are in line. */
void jit_clear_wrapped(struct jit_gen *g, LLVMValueRef save, uint32_t reg);

/* --- wrap.c ----------------------------------------------------------------------------------- */
/* Emits the current instruction, whose result is affine on condition, by way of `emit`: once for
 * lane 0, once for all lanes in a branch of its own. */
void jit_emit_affine(struct jit_gen *g, void (*emit)(struct jit_gen *g));

/* --- space.c ---------------------------------------------------------------------------------- */
/* Address of the current instruction: i64, scalar of lane 0 or (vec) of each lane. */
LLVMValueRef jit_address(struct jit_gen *g, bool vec);
/* The current instruction's place in shared memory: i32, a vector unless all lanes share it;
 * checked and masked. */
LLVMValueRef jit_shared_offset(struct jit_gen *g, LLVMValueRef active, unsigned size);
/* Lane 0's own copy of what lies at an address of local memory that all share; those of the others
 * follow, SOFT_LOCAL_PIECE bytes apart. It is checked when the kernel is compiled, if it is known
 * then. */
LLVMValueRef jit_local_row(struct jit_gen *g, LLVMValueRef active, unsigned size);
/* Whether lanes that do not run access what one that does accesses. Leaving them out costs a branch
 * for each lane where a processor has no sets of lanes. */
bool jit_has_followers(const struct jit_gen *g);
/* Gives lanes that do not run, if they are followers, what the first one that does has: its
 * address, or index. */
LLVMValueRef jit_followed(struct jit_gen *g, LLVMValueRef v, LLVMValueRef active);
/* Ends the call: the first one of these lanes has a bad address, which is the lane's or (scalar)
 * all lanes'. */
void jit_emit_fault(struct jit_gen *g, LLVMValueRef address, LLVMValueRef lanes, unsigned size);
/* Where the current block goes to end the call with the result `r` (i32) of a fault. */
LLVMBasicBlockRef jit_faulted(struct jit_gen *g, LLVMValueRef r);
/* Host address of each lane in `active` (i32), checked: `address` is <32 x i64>. Of every lane, if
 * the others are followers. */
LLVMValueRef jit_host_vector(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active,
                             unsigned size);
/* Host address, checked, if all active lanes share one address. */
LLVMValueRef jit_host_scalar(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active,
                             unsigned size);
/* i1: not a global address at which `size` bytes may be accessed. */
LLVMValueRef jit_outside_window(struct jit_gen *g, LLVMValueRef address, unsigned size);
/* i64: bits that no good global address of `size` bytes has, relative to the window's base. */
LLVMValueRef jit_window_bad(struct jit_gen *g, unsigned size);
/* i1: accesses of `size` bytes at `address` and at `width` bytes behind it are both in place, in
 * the current space. */
LLVMValueRef jit_span_is_good(struct jit_gen *g, LLVMValueRef address, uint64_t width,
                              unsigned size);
/* Host address of one that is in place. */
LLVMValueRef jit_placed_pointer(struct jit_gen *g, LLVMValueRef address);
LLVMValueRef jit_byte_pointer(struct jit_gen *g, LLVMValueRef base, LLVMValueRef offset);
LLVMValueRef jit_low32(struct jit_gen *g, LLVMValueRef address);
/* Where an offset (i32) in shared memory is, after masking. */
LLVMValueRef jit_shared_pointer(struct jit_gen *g, LLVMValueRef offset, unsigned size);
/* Where the accesses of all lanes begin, from lane 0's offset; they are `size` bytes apart,
 * SOFT_SHARED_GUARD / 32 at most. The result may lie in the guard zone. Whatever the offset is,
 * lanes reach only what belongs to the block. */
LLVMValueRef jit_shared_span(struct jit_gen *g, LLVMValueRef offset, unsigned size);
/* Faults if a shared address, of lane 0 or of all, is misaligned: tested once for all accesses of a
 * block through one base register. */
void jit_check_shared_alignment(struct jit_gen *g, LLVMValueRef address, LLVMValueRef active,
                                unsigned size);

#endif
