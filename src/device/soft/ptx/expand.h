/*
 * Expansions: some instructions become several simpler ones while they are parsed, so that neither
 * interpreter nor compiler has to know them. Among these are transfers of matrices between memory
 * and the lanes of a warp, asynchronous copies (which may complete at once) and barriers in shared
 * memory.
 *
 * A struct ptx_expand is one such instruction: its modifiers, which are taken one by one, and what
 * its expansion has in common. After an error every function here still may be called and has no
 * effect, so a caller looks for errors once, at the end.
 */
#ifndef GMUX_SOFT_PTX_EXPAND_H
#define GMUX_SOFT_PTX_EXPAND_H

#include "device/soft/ptx/parse.h"

#define PTX_EXPAND_MODIFIERS 20

struct ptx_expand {
    struct ptx_parser *p;
    const struct ptx_token *opcode;
    uint32_t guard;
    bool guard_not;
    bool own; /* the instructions get the flag IR_F_OWN */
    struct ptx_token modifiers[PTX_EXPAND_MODIFIERS];
    unsigned count;
    uint32_t taken; /* one bit per modifier */
    unsigned next;  /* for types, which are taken in order: the first one not looked at yet */
};

/* take.c: modifiers */
/* True, and taken from now on, if the modifier `.word` is there and was not taken before. */
bool ptx_x_take(struct ptx_expand *x, const char *word);
/* Takes the first of these words that is there; its index, or -1. */
int ptx_x_take_one(struct ptx_expand *x, const char *const *words, unsigned count);
/* Takes .shared: the block's memory, or that of its cluster, which is the block alone. */
bool ptx_x_take_shared(struct ptx_expand *x);
/* Takes the first modifier that is left; NULL: none is. */
const struct ptx_token *ptx_x_take_next(struct ptx_expand *x);
/* False, with an error, if modifiers are left. */
bool ptx_x_taken_all(struct ptx_expand *x);
bool ptx_x_refuse(struct ptx_expand *x);

/* emit.c */
struct ir_src ptx_x_imm(uint64_t bits);
uint32_t ptx_x_register(struct ptx_expand *x, enum ir_type type);
/* ptx_x_instr(): an instruction to fill in. ptx_x_append(): appends it. */
struct ir_instr ptx_x_instr(const struct ptx_expand *x, enum ir_op op, enum ir_type type);
void ptx_x_append(struct ptx_expand *x, const struct ir_instr *i);
/* Loops. A label is made, branched to, and placed once. The instruction's guard is evaluated at
 * ptx_x_begin_loops(); the code until the label that this returns is placed runs only where it
 * holds. */
uint32_t ptx_x_label(struct ptx_expand *x);
void ptx_x_place(struct ptx_expand *x, uint32_t label);
void ptx_x_branch(struct ptx_expand *x, uint32_t label, uint32_t guard, bool guard_not);
uint32_t ptx_x_begin_loops(struct ptx_expand *x);
/* d = op(a, b) and d = op(a, b, c), with a new register d. */
struct ir_src ptx_x_op2(struct ptx_expand *x, enum ir_op op, enum ir_type type, struct ir_src a,
                        struct ir_src b);
struct ir_src ptx_x_op3(struct ptx_expand *x, enum ir_op op, enum ir_type type, struct ir_src a,
                        struct ir_src b, struct ir_src c);
/* A new predicate: a cmp b. */
struct ir_src ptx_x_compare(struct ptx_expand *x, enum ir_cmp cmp, enum ir_type type,
                            struct ir_src a, struct ir_src b);
/* a * b + c, in U32 or U64. */
struct ir_src ptx_x_mad(struct ptx_expand *x, enum ir_type type, struct ir_src a, struct ir_src b,
                        struct ir_src c);
struct ir_src ptx_x_convert(struct ptx_expand *x, enum ir_type to, enum ir_type from,
                            struct ir_src v);
struct ir_src ptx_x_sreg(struct ptx_expand *x, enum ir_sreg sreg);
/* The 32-bit value that lane `lane` has. */
struct ir_src ptx_x_shuffle(struct ptx_expand *x, struct ir_src value, struct ir_src lane);
void ptx_x_move(struct ptx_expand *x, enum ir_type type, uint32_t to, struct ir_src from);
/* Accesses [at + displacement] in that space. */
void ptx_x_load(struct ptx_expand *x, enum ir_space space, enum ir_type type, uint32_t to,
                struct ir_src at, int64_t displacement);
void ptx_x_store(struct ptx_expand *x, enum ir_space space, enum ir_type type, struct ir_src v,
                 struct ir_src at, int64_t displacement);

/* take.c: operands */
/* Takes the next operand, an address: its base as a value of type *type (U32 or U64), its space,
 * its displacement. */
struct ir_src ptx_x_address(struct ptx_expand *x, enum ir_space *space, enum ir_type *type,
                            int64_t *displacement);
/* Takes an address in shared memory, generic or not: its base as a U32, and its displacement. */
struct ir_src ptx_x_shared_address(struct ptx_expand *x, int64_t *displacement);
/* Takes a comma and a value that nothing reads. False after an error. */
bool ptx_x_skip_source(struct ptx_expand *x, enum ir_type type);
/* Take {a, b ...} or a single operand: registers to write (for `_` a new one that nothing reads),
 * or values. Return how many there were; 0: more than `max`. */
unsigned ptx_x_registers(struct ptx_expand *x, enum ir_type type, uint32_t *out, unsigned max);
unsigned ptx_x_values(struct ptx_expand *x, enum ir_type type, struct ir_src *out, unsigned max);
/* Take a list of exactly `count`. For a register to write, `_` becomes IR_NONE. */
void ptx_x_destinations(struct ptx_expand *x, enum ir_type type, bool wider, unsigned count,
                        uint32_t *out);
void ptx_x_sources(struct ptx_expand *x, enum ir_type type, bool wider, unsigned count,
                   struct ir_src *out);

/* mbarrier.c. At the barrier a thread has arrived, or that many bytes have. */
void ptx_x_arrived(struct ptx_expand *x, struct ir_src at, int64_t displacement);
void ptx_x_complete(struct ptx_expand *x, struct ir_src at, int64_t displacement,
                    struct ir_src bytes);
/* reserved.c. Where the block's shared memory begins that its program does not know of, as a
 * U32. */
struct ir_src ptx_x_behind_shared(struct ptx_expand *x);

/* Each of these parses what follows the opcode, up to the semicolon. */
bool ptx_x_matrix(struct ptx_expand *x);   /* matrix.c: ldmatrix stmatrix movmatrix */
bool ptx_x_mma(struct ptx_expand *x);      /* mma.c */
bool ptx_x_wmma(struct ptx_expand *x);     /* wmma.c */
bool ptx_x_cp(struct ptx_expand *x);       /* async.c */
bool ptx_x_mbarrier(struct ptx_expand *x); /* mbarrier.c */
bool ptx_x_bulk(struct ptx_expand *x);     /* bulk.c: cp.async.bulk */
bool ptx_x_cp_reduce(struct ptx_expand *x);
bool ptx_x_st_async(struct ptx_expand *x);
bool ptx_x_red_async(struct ptx_expand *x);
bool ptx_x_policy(struct ptx_expand *x); /* newer.c */
bool ptx_x_hint(struct ptx_expand *x);
bool ptx_x_mapa(struct ptx_expand *x);
bool ptx_x_rank(struct ptx_expand *x);
/* The expansion of an opcode that is expanded only with some of the modifiers that follow it; NULL:
 * it is an ordinary instruction. */
ptx_expansion *ptx_x_newer(const struct ptx_parser *p, uint8_t op);
bool ptx_x_move_vector(struct ptx_expand *x); /* move.c */
bool ptx_x_move_128(struct ptx_expand *x);
bool ptx_x_vector_atom(struct ptx_expand *x); /* vector.c */
bool ptx_x_vector_red(struct ptx_expand *x);
bool ptx_x_wide_load(struct ptx_expand *x);
bool ptx_x_wide_store(struct ptx_expand *x);
bool ptx_x_pack(struct ptx_expand *x); /* packed.c */
bool ptx_x_mixed(struct ptx_expand *x);
bool ptx_x_video(struct ptx_expand *x); /* video.c */
bool ptx_x_vmad(struct ptx_expand *x);
bool ptx_x_tex(struct ptx_expand *x); /* texture.c */
bool ptx_x_tld4(struct ptx_expand *x);
bool ptx_x_query(struct ptx_expand *x);
bool ptx_x_istypep(struct ptx_expand *x);
bool ptx_x_suld(struct ptx_expand *x); /* surface.c */
bool ptx_x_sust(struct ptx_expand *x);
bool ptx_x_sured(struct ptx_expand *x);
bool ptx_x_alloca(struct ptx_expand *x); /* stack.c */
bool ptx_x_stacksave(struct ptx_expand *x);
bool ptx_x_stackrestore(struct ptx_expand *x);

#endif
