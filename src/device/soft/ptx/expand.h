/*
 * Instructions that become several simpler ones while they are parsed, so that neither interpreter
 * nor compiler has to know them: what moves matrices between memory and the lanes of a warp,
 * asynchronous copies (which may be finished at once), barriers in shared memory.
 *
 * A struct ptx_expand is one such instruction: its modifiers, which are taken one by one, and what
 * is common to all that comes of it. Once the parser has failed, everything here does nothing of
 * consequence; one look at the end.
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
    bool own; /* instructions are made with IR_F_OWN */
    struct ptx_token modifiers[PTX_EXPAND_MODIFIERS];
    unsigned count;
    uint32_t taken; /* bit by modifier */
    unsigned next;  /* types are taken in order: the first one not looked at */
};

/* take.c: modifiers */
/* Whether `.word` is there and not taken yet; it is now. */
bool ptx_x_take(struct ptx_expand *x, const char *word);
/* The next of the words that is there; its index, or -1. */
int ptx_x_take_one(struct ptx_expand *x, const char *const *words, unsigned count);
/* Shared memory, of the block or of its cluster, which is the block. */
bool ptx_x_take_shared(struct ptx_expand *x);
/* The first modifier not taken, in order; NULL: none. */
const struct ptx_token *ptx_x_take_next(struct ptx_expand *x);
/* False if modifiers are left that nobody took. */
bool ptx_x_taken_all(struct ptx_expand *x);
bool ptx_x_refuse(struct ptx_expand *x);

/* emit.c */
struct ir_src ptx_x_imm(uint64_t bits);
uint32_t ptx_x_register(struct ptx_expand *x, enum ir_type type);
/* An instruction to fill in, and the same appended. */
struct ir_instr ptx_x_instr(const struct ptx_expand *x, enum ir_op op, enum ir_type type);
void ptx_x_append(struct ptx_expand *x, const struct ir_instr *i);
/* Loops: places to branch to, in the end each placed once. Between begin and what begin returned,
 * placed, the guard is taken care of. */
uint32_t ptx_x_label(struct ptx_expand *x);
void ptx_x_place(struct ptx_expand *x, uint32_t label);
void ptx_x_branch(struct ptx_expand *x, uint32_t label, uint32_t guard, bool guard_not);
uint32_t ptx_x_begin_loops(struct ptx_expand *x);
/* d = op(a, b), d = op(a, b, c): d is new. */
struct ir_src ptx_x_op2(struct ptx_expand *x, enum ir_op op, enum ir_type type, struct ir_src a,
                        struct ir_src b);
struct ir_src ptx_x_op3(struct ptx_expand *x, enum ir_op op, enum ir_type type, struct ir_src a,
                        struct ir_src b, struct ir_src c);
/* a * b + c in U32 or U64. */
struct ir_src ptx_x_mad(struct ptx_expand *x, enum ir_type type, struct ir_src a, struct ir_src b,
                        struct ir_src c);
struct ir_src ptx_x_convert(struct ptx_expand *x, enum ir_type to, enum ir_type from,
                            struct ir_src v);
struct ir_src ptx_x_sreg(struct ptx_expand *x, enum ir_sreg sreg);
/* The value that lane `lane` has; 32 bits. */
struct ir_src ptx_x_shuffle(struct ptx_expand *x, struct ir_src value, struct ir_src lane);
void ptx_x_move(struct ptx_expand *x, enum ir_type type, uint32_t to, struct ir_src from);
/* [at + displacement] of that space. */
void ptx_x_load(struct ptx_expand *x, enum ir_space space, enum ir_type type, uint32_t to,
                struct ir_src at, int64_t displacement);
void ptx_x_store(struct ptx_expand *x, enum ir_space space, enum ir_type type, struct ir_src v,
                 struct ir_src at, int64_t displacement);

/* take.c: operands */
/* The address operand that comes next: its base as a value of type *type (U32 or U64), its space,
 * its displacement. */
struct ir_src ptx_x_address(struct ptx_expand *x, enum ir_space *space, enum ir_type *type,
                            int64_t *displacement);
/* An address operand in shared memory, generic or not: its base as a U32, and its displacement. */
struct ir_src ptx_x_shared_address(struct ptx_expand *x, int64_t *displacement);
/* {a, b ..} or a single one: registers to write, or values. How many there were, 0 if more than
 * `max`. */
unsigned ptx_x_registers(struct ptx_expand *x, enum ir_type type, uint32_t *out, unsigned max);
unsigned ptx_x_values(struct ptx_expand *x, enum ir_type type, struct ir_src *out, unsigned max);
/* The same if it is known how many there must be. Of registers to write, `_` is IR_NONE. */
void ptx_x_destinations(struct ptx_expand *x, enum ir_type type, bool wider, unsigned count,
                        uint32_t *out);
void ptx_x_sources(struct ptx_expand *x, enum ir_type type, bool wider, unsigned count,
                   struct ir_src *out);

/* mbarrier.c: for the barrier there, a thread has arrived; so many bytes have come. */
void ptx_x_arrived(struct ptx_expand *x, struct ir_src at, int64_t displacement);
void ptx_x_complete(struct ptx_expand *x, struct ir_src at, int64_t displacement,
                    struct ir_src bytes);
/* reserved.c: where the block's shared memory that its program does not know of begins, as a U32.
 */
struct ir_src ptx_x_behind_shared(struct ptx_expand *x);

/* Each parses all that follows the opcode, up to the semicolon. */
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
/* The expansion of an opcode that is an ordinary one without the modifiers that follow; NULL: it is
 * ordinary. */
ptx_expansion *ptx_x_newer(const struct ptx_parser *p, uint8_t op);
bool ptx_x_pack(struct ptx_expand *x);  /* packed.c */
bool ptx_x_video(struct ptx_expand *x); /* video.c */
bool ptx_x_vmad(struct ptx_expand *x);
bool ptx_x_tex(struct ptx_expand *x); /* texture.c */
bool ptx_x_tld4(struct ptx_expand *x);
bool ptx_x_query(struct ptx_expand *x);
bool ptx_x_istypep(struct ptx_expand *x);
bool ptx_x_suld(struct ptx_expand *x); /* surface.c */
bool ptx_x_sust(struct ptx_expand *x);
bool ptx_x_sured(struct ptx_expand *x);

#endif
