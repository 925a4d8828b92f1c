/*
 * Removes calls from a module. From the top down: inline.c replaces most of them by copies of the
 * callees; outline.c, with keep.c, move.c and frame.c below it, handles the rest (outline.h);
 * call.c makes the copies.
 */
#ifndef GMUX_SOFT_IR_CALL_H
#define GMUX_SOFT_IR_CALL_H

#include "device/soft/ir/raw.h"

/* The functions whose address is in some variable or register, by rank. Functions with the same
 * signature are next to each other. A function that cannot be called has signature 0. */
struct ir_functions {
    struct ir_ranked {
        uint64_t signature;
        uint32_t fn;
    } * ranked;
    uint32_t count;
    bool *wanted; /* by function: some call by address may mean it */
};

/* Gives functions their addresses, in code and in initial values. */
bool ir_number_functions(struct ir_module *m, struct ir_raw_fn *raws, struct ir_problem *why,
                         struct ir_functions *out);
void ir_functions_finish(struct ir_functions *f);
/* Returns how many functions have that signature (which is not 0); *first is the first rank. */
uint32_t ir_functions_find(const struct ir_functions *f, uint64_t signature, uint32_t *first);

struct ir_inliner {
    struct ir_module *m;
    struct ir_raw_fn *raws;
    struct ir_problem *why;
    struct ir_functions functions;
    bool *apart;     /* by function: its calls remain calls until outline.c handles them */
    uint32_t *sites; /* by function: how many calls of it the text has */
    uint64_t work;   /* how many elements have been copied so far */
    uint64_t most;
};

/* A copy of a function that is being made. */
struct ir_site {
    struct ir_raw_fn *to; /* the caller, which contains the copy */
    const struct ir_raw_fn *from;
    const struct ir_raw_call *call;
    const struct ir_src *rets,
        /* The actual operands; both NULL: the copy has variables of its own for its formals. */
        *args;
    uint32_t reg_base, label_base, list_base, frame_base;
    uint32_t *temps; /* callee's temp -> caller's temp; freed by the function that made it */
};

/* --- call.c: on failure these fill in `why` and return false ---------------------------------- */
bool ir_call_refuse(struct ir_inliner *in, const struct ir_raw_call *call, int error,
                    const char *what);
bool ir_call_no_memory(struct ir_inliner *in);
bool ir_call_charge(struct ir_inliner *in, const struct ir_raw_call *call, uint64_t elements);
bool ir_call_emit(struct ir_inliner *in, struct ir_raw_fn *to, const struct ir_instr *i);
bool ir_call_label(struct ir_inliner *in, struct ir_raw_fn *to, uint32_t *out);
bool ir_call_register(struct ir_inliner *in, struct ir_raw_fn *to, const struct ir_raw_call *call,
                      enum ir_type type, uint32_t *out);
/* ir_call_map() prepares places and tables for the code of s->from; ir_call_copy() copies the code,
 * which returns to label `end`, behind the copy. */
bool ir_call_map(struct ir_inliner *in, struct ir_site *s);
bool ir_call_copy(struct ir_inliner *in, struct ir_site *s, uint32_t end);
/* A guarded call is jumped over. *over: the label behind it, which the caller places, or
 * IR_NONE. */
bool ir_call_guard(struct ir_inliner *in, struct ir_raw_fn *to, const struct ir_instr *at,
                   uint32_t *over);

/* ir_has_calls(): whether calls are left that outline.c has to handle. ir_outline_calls(): handles
 * them. */
bool ir_has_calls(const struct ir_raw_fn *raw);
bool ir_outline_calls(struct ir_inliner *in, struct ir_raw_fn *entry);

/* For each call of the function, in order, a row of bits: for the registers, and then for the
 * .param variables, whose values are needed after it. NULL: no memory, or the function is too
 * large. */
uint64_t *ir_live_over_calls(const struct ir_raw_fn *raw, uint32_t *words);

static inline enum ir_type ir_bits_type(uint64_t size)
{
    return size == 1   ? IR_B8
           : size == 2 ? IR_B16
           : size == 4 ? IR_B32
           : size == 8 ? IR_B64
                       : IR_VOID;
}

#endif
