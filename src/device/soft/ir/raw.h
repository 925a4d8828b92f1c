/*
 * A module on its way from the parser to its final form: functions as linear code with labels,
 * still with calls and .param variables. Only the parser and the passes that finish a module
 * (inline.c, promote.c, finish.c) see it.
 */
#ifndef GMUX_SOFT_IR_RAW_H
#define GMUX_SOFT_IR_RAW_H

#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/ir.h"

/* Why a module is refused: place (line 0: none), words and -errno. */
struct ir_problem {
    int error;
    uint32_t line, column;
    char text[200];
};
/* Fills `why` unless it is already filled. Always returns false. */
bool ir_refuse(struct ir_problem *why, int error, uint32_t line, uint32_t column, const char *fmt,
               ...) GM_PRINTF(5, 6);

/* Limits over all functions of a module together. */
#define IR_MAX_MODULE_INSTRS (1u << 22)
#define IR_MAX_MODULE_REGS   (1u << 23)

/* In ir_src.index and ir_address.symbol of raw code: not a symbol of the module but a .param
 * variable of the function, raw->temps[index & ~IR_TEMP]. */
#define IR_TEMP 0x80000000u

#define IR_OPEN_BYTES 512
struct ir_temp {
    uint64_t size;
    uint32_t align;
    uint32_t line;
    /* A formal that is as large as what is passed, at most IR_OPEN_BYTES: the rest of a call with a
     * variable number of parameters. */
    bool open;
    /* If it stays in memory, it lies at frame_at in the frame to which raw->stack points. */
    bool on_stack;
    uint32_t frame_at;
};

/* A CALL's `target` is an index of these. Its operands are in raw->args, results first: REG, IMM,
 * or SYMBOL with IR_TEMP. */
struct ir_raw_call {
    uint32_t callee; /* function; IR_NONE: the one whose address is in register `pointer` */
    uint32_t pointer;
    uint64_t signature; /* the signature, for a call by address */
    uint32_t arg_first, ret_count, arg_count;
    uint32_t line, column;
};

struct ir_raw_list {
    uint32_t first, count;
};

/* Labels are numbers; labels[number] is an instruction index (instr_count: the end). BRA: target is
 * a label; BRX: target is an index of lists, a run of `targets`, which are labels. Arrays grow by
 * IR_PUSH. */
struct ir_raw_fn {
    struct ir_instr *instrs;
    uint32_t instr_count, instr_cap;
    struct ir_reg *regs;
    uint32_t reg_count, reg_cap;
    uint32_t *labels;
    uint32_t label_count, label_cap;
    struct ir_raw_list *lists;
    uint32_t list_count, list_cap;
    uint32_t *targets;
    uint32_t target_count, target_cap;
    struct ir_temp *temps;
    uint32_t temp_count, temp_cap;
    struct ir_raw_call *calls;
    uint32_t call_count, call_cap;
    struct ir_src *args;
    uint32_t arg_count, arg_cap;
    uint64_t *prototypes; /* signatures; 0: the call's operands decide */
    uint32_t prototype_count, prototype_cap;
    /* Formal results, then formal parameters (device functions): REG or SYMBOL with IR_TEMP. */
    struct ir_src *formals;
    uint32_t formal_count, formal_cap, formal_rets;
    uint32_t local_bytes; /* its own .local variables */
    /* including those of the functions that it calls; set by inlining */
    uint32_t frame_bytes;
    uint32_t symbol_first, symbol_count; /* declared inside of it */
    uint32_t carry;                      /* register of .cc, or IR_NONE */
    bool uses_stack; /* the first instruction sets register `stack` (outline.c) */
    uint32_t stack;
    uint32_t unit;   /* of the text, from 1; 0: it has none (ptx/link.c) */
    uint8_t linkage; /* IR_SYM_EXTERN, IR_SYM_VISIBLE, IR_SYM_WEAK */
    /* error -ENOTSUP: a feature that it needs and this device does not have */
    struct ir_problem lacks;
};

void ir_raw_finish(struct ir_raw_fn *raw);

/* Whether the next instruction may come after it. */
static inline bool ir_falls_through(const struct ir_instr *i)
{
    return !(ir_ops[i->op].properties & IR_P_TERMINATOR) || i->guard != IR_NONE;
}

/* The labels to which the instruction jumps: *count of them. */
static inline const uint32_t *ir_raw_targets(const struct ir_raw_fn *raw, const struct ir_instr *i,
                                             uint32_t *count)
{
    *count = i->op == IR_OP_BRX ? raw->lists[i->target].count : i->op == IR_OP_BRA;
    return i->op == IR_OP_BRX ? raw->targets + raw->lists[i->target].first : &i->target;
}

bool ir_grow_(void **array, uint32_t *cap, uint32_t count, size_t size);

/* A new zeroed element at the end of a growing array; NULL: no memory. */
#define IR_PUSH(array, count, cap)                                                                 \
    ((count) < (cap) || ir_grow_((void **)&(array), &(cap), (count), sizeof(*(array)))             \
         ? &(array)[(count)++]                                                                     \
         : NULL)

static inline void ir_instr_init(struct ir_instr *i, enum ir_op op, uint32_t line, uint32_t column)
{
    memset(i, 0, sizeof(*i));
    i->op = (uint8_t)op;
    i->guard = IR_NONE;
    i->dst[0] = i->dst[1] = i->dst[2] = i->dst[3] = IR_NONE;
    i->dst_pred = IR_NONE;
    i->target = IR_NONE;
    i->address.base = IR_NONE;
    i->address.symbol = IR_NONE;
    i->line = line;
    i->column = column;
}

static inline struct ir_src ir_src_reg(uint32_t reg)
{
    return (struct ir_src) { .kind = IR_SRC_REG, .index = reg };
}

/* What a caller and a callee have to agree on: the sizes of results and parameters, folded into a
 * number that is never 0. */
#define IR_SIGNATURE_BEGIN   UINT64_C(0xcbf29ce484222325)
#define IR_SIGNATURE_RESULTS UINT64_C(1 << 20) /* behind the last result */
#define IR_SIGNATURE_PRED    UINT64_C(2 << 20)
static inline uint64_t ir_signature_add(uint64_t signature, uint64_t part)
{
    signature = (signature ^ part) * UINT64_C(0x100000001b3);
    return signature ? signature : 1;
}
/* What one operand or formal contributes to a signature. */
static inline uint64_t ir_signature_part(const struct ir_raw_fn *raw, const struct ir_src *src)
{
    if (src->kind == IR_SRC_SYMBOL)
        return raw->temps[src->index & ~IR_TEMP].open ? 0 : raw->temps[src->index & ~IR_TEMP].size;
    enum ir_type type = raw->regs[src->index].type;
    return type == IR_PRED ? IR_SIGNATURE_PRED : ir_types[type].size;
}
/* The signature of `count` operands or formals, of which the first `results` are results. */
static inline uint64_t ir_signature(const struct ir_raw_fn *raw, const struct ir_src *all,
                                    uint32_t results, uint32_t count)
{
    uint64_t signature = IR_SIGNATURE_BEGIN;
    for (uint32_t k = 0; k < count; k++) {
        signature = k == results ? ir_signature_add(signature, IR_SIGNATURE_RESULTS) : signature;
        signature = ir_signature_add(signature, ir_signature_part(raw, &all[k]));
    }
    return results == count ? ir_signature_add(signature, IR_SIGNATURE_RESULTS) : signature;
}

/* Replaces every call by the callee's code, callees first. raws[f] belongs to m->fns[f]. A caller
 * lacks the features that its callees lack, including those that they call. */
bool ir_inline_calls(struct ir_module *m, struct ir_raw_fn *raws, uint32_t most,
                     struct ir_problem *why);

/* Turns .param variables into registers, or into local memory if they are used as memory. */
bool ir_promote_temps(struct ir_raw_fn *raw, struct ir_problem *why);

/* Adds barriers where a warp might overwrite what another one has not read yet (hazard.c). False:
 * no memory. */
bool ir_separate_hazards(struct ir_raw_fn *raw);

/* Makes the entry's final form: lays out shared memory, replaces symbols whose place is known,
 * drops unused registers, cuts blocks. Takes the arrays it keeps out of `raw`. */
bool ir_finish_fn(struct ir_module *m, uint32_t fn, struct ir_raw_fn *raw, struct ir_problem *why);

#endif
