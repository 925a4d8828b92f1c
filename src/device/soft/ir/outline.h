/*
 * What outline.c and, from the top down, keep.c, move.c and frame.c share.
 */
#ifndef GMUX_SOFT_IR_OUTLINE_H
#define GMUX_SOFT_IR_OUTLINE_H

#include "device/soft/ir/call.h"

/* Functions that the same calls may mean. Arguments and results of all pass through the same
 * variables. */
struct ir_class {
    uint32_t model;             /* one of the functions: its formals say what passes */
    uint32_t first_rank, ranks; /* 0: it has no address */
    uint32_t mail;              /* temps through which results, then parameters pass */
    uint32_t link, pointer;     /* registers: the number of the call; the address that is called */
    uint32_t dispatch;          /* label; IR_NONE: no call by address */
    uint32_t list;              /* the list of labels to which the functions return */
    uint32_t *returns;          /* labels behind the calls */
    uint32_t return_count, return_cap;
};

/* The one copy of a function in the entry's code. */
struct ir_outlined {
    uint32_t fn, class;
    uint32_t label;
    uint32_t first, end;     /* instructions */
    uint32_t *temps;         /* its variables' numbers in the entry */
    uint32_t reg_base, link; /* `link`: register with the number of the call */
    bool again;              /* it may be called while it runs, so it has frames on the stack */
    uint32_t call;           /* how many of its calls have been lowered */
    uint64_t *live;          /* rows of ir_live_over_calls() */
    uint32_t words;
    uint64_t save_at; /* offset of the saved values, behind everything else in its frame */
};

struct ir_outliner {
    struct ir_inliner *in;
    struct ir_raw_fn *to;
    struct ir_class *classes;
    uint32_t class_count, class_cap;
    struct ir_outlined *bodies;
    uint32_t body_count, body_cap;
    uint32_t *body_of;       /* by function: index of its copy */
    struct ir_raw_call here; /* the call or function in question, for messages */
};

static inline struct ir_src ir_src_imm(uint64_t bits)
{
    return (struct ir_src) { .kind = IR_SRC_IMM, .bits = bits };
}

/* --- keep.c ----------------------------------------------------------------------------------- */
/* Saves what the function still needs to its frame before a call, or restores it behind the
 * call. */
bool ir_keep(struct ir_outliner *o, struct ir_outlined *b, uint64_t *frame);
bool ir_take_back(struct ir_outliner *o, struct ir_outlined *b, uint64_t frame);

/* --- move.c ----------------------------------------------------------------------------------- */
/* to = from, for registers, constants or variables of `size` bytes. */
bool ir_outline_move(struct ir_outliner *o, struct ir_src to, struct ir_src from, uint64_t size);

/* --- frame.c ---------------------------------------------------------------------------------- */
/* Finds the functions that may be called again, and what their frames contain. */
bool ir_find_frames(struct ir_outliner *o);
/* Gives the copy's variables their places. */
bool ir_place_in_frame(struct ir_outliner *o, struct ir_outlined *b);
/* Emits an instruction of a function that has frames: its variables lie on the stack. */
bool ir_emit_in_frame(struct ir_outliner *o, const struct ir_instr *i);
/* dst = op(a, b), or op(a) where `b` is nothing. */
bool ir_outline_emit(struct ir_outliner *o, enum ir_op op, enum ir_type type, uint32_t dst,
                     struct ir_src a, struct ir_src b);

#endif
