/*
 * Turns calls into code. A kernel that runs as vectors of lanes has no call stack, so a call of a
 * device function is replaced by a copy of its body, callees first: every body is free of calls
 * when it is copied. Recursion has no such order. Calls that close a circle, and calls by address,
 * remain calls here and become jumps in outline.c. So do calls of a function whose copies would be
 * too much code together (APART_INSTRS): a run-time library with locks and tasks, called from
 * everywhere, would be copied a hundred thousand times. A module in which the copies still grow
 * beyond IR_MAX_INSTRS is refused.
 *
 * Parameters: .param variables of the call become the callee's formal ones (the copy refers to the
 * caller's variable); promote.c then turns them into registers. The callee's frame of .local
 * variables comes after the caller's; successive calls share that room.
 */
#include <errno.h>

#include "device/soft/ir/call.h"

/* How many elements may be copied: as many as one device function called in very many places needs,
 * but a short text must not become a lot of memory. An instruction takes some 200 bytes. */
#define INLINE_LEAST (1ull << 18)
#define INLINE_TIMES 64u /* for each instruction that stands in the text */
/* The most instructions of all copies of one function together, and the least size of a function
 * that is not copied. */
#define APART_INSTRS (1u << 14)
#define APART_LEAST  512u

/* --- passing values --------------------------------------------------------------------------- */

/* to = from. Each is a register or temp of the caller; `from` may also be a constant. */
static bool pass(struct ir_inliner *in, struct ir_site *s, struct ir_src to, struct ir_src from,
                 enum ir_type type)
{
    struct ir_instr i;
    bool load = from.kind == IR_SRC_SYMBOL, store = to.kind == IR_SRC_SYMBOL;
    ir_instr_init(&i,
                  load    ? IR_OP_LD
                  : store ? IR_OP_ST
                          : IR_OP_MOV,
                  s->call->line, s->call->column);
    i.type = (uint8_t)type;
    if (load || store) {
        i.space = IR_SPACE_PARAM;
        i.address.symbol = load ? from.index : to.index;
    }
    if (!store) {
        i.dst_count = 1;
        i.dst[0] = to.index;
    }
    if (!load) {
        i.src_count = 1;
        i.src[0] = from;
    }
    return ir_call_emit(in, s->to, &i);
}

/* Passes a value between a formal and the actual operand, where one of them is a register. If both
 * are temps they become the same variable, and nothing has to be passed. */
static bool pass_formal(struct ir_inliner *in, struct ir_site *s, struct ir_src formal,
                        struct ir_src actual, bool result)
{
    if ((formal.kind == IR_SRC_SYMBOL && actual.kind == IR_SRC_SYMBOL) ||
        actual.kind == IR_SRC_NONE)
        return true;
    enum ir_type type;
    uint64_t size;
    if (formal.kind == IR_SRC_SYMBOL) {
        size = s->from->temps[formal.index & ~IR_TEMP].size;
        type = ir_bits_type(size);
        formal.index = s->temps[formal.index & ~IR_TEMP] | IR_TEMP;
    } else {
        type = s->from->regs[formal.index].type;
        size = ir_types[type].size;
        formal.index += s->reg_base;
    }
    uint64_t have = size;
    if (actual.kind == IR_SRC_REG)
        have = ir_types[s->to->regs[actual.index].type].size;
    else if (actual.kind == IR_SRC_SYMBOL)
        have = s->to->temps[actual.index & ~IR_TEMP].size;
    bool pred = actual.kind == IR_SRC_REG && s->to->regs[actual.index].type == IR_PRED;
    if (type == IR_VOID || have != size || pred != (type == IR_PRED) ||
        (result && actual.kind == IR_SRC_IMM))
        return ir_call_refuse(in, s->call, -EINVAL, "argument does not suit the parameter");
    return result ? pass(in, s, actual, formal, type) : pass(in, s, formal, actual, type);
}

static bool copy_function(struct ir_inliner *in, struct ir_site *s)
{
    const struct ir_raw_fn *from = s->from;
    const struct ir_raw_call *call = s->call;
    if (call->ret_count != from->formal_rets ||
        call->arg_count != from->formal_count - from->formal_rets)
        return ir_call_refuse(in, call, -EINVAL, "wrong number of arguments or results");
    uint32_t end = IR_NONE;
    if (!ir_call_map(in, s))
        return false;
    for (uint32_t f = from->formal_rets; f < from->formal_count; f++)
        if (!pass_formal(in, s, from->formals[f], s->args[f - from->formal_rets], false))
            return false;
    if (!ir_call_label(in, s->to, &end) || !ir_call_copy(in, s, end))
        return false;
    for (uint32_t f = 0; f < from->formal_rets; f++)
        if (!pass_formal(in, s, from->formals[f], s->rets[f], true))
            return false;
    return true;
}

/* --- host functions --------------------------------------------------------------------------- */

struct ir_helper_info {
    uint8_t result; /* enum ir_type */
    uint8_t count;
    uint8_t args[IR_MAX_SRC];
};

static const struct ir_helper_info helpers[IR_HELPER_COUNT] = {
    [IR_HELPER_VPRINTF] = { IR_B32, 2, { IR_B64, IR_B64 } },
    [IR_HELPER_ASSERTFAIL] = { IR_VOID, 5, { IR_B64, IR_B64, IR_B32, IR_B64, IR_B64 } },
    [IR_HELPER_CHILD_BYTES] = { IR_B32, 2, { IR_B64, IR_B64 } },
    [IR_HELPER_CHILD_LAUNCH] = { IR_B32, 2, { IR_B64, IR_B64 } },
};

static bool helper_value(struct ir_inliner *in, struct ir_site *s, struct ir_src actual,
                         enum ir_type type, bool result, struct ir_src *value)
{
    uint8_t size = ir_types[type].size;
    bool right = actual.kind == IR_SRC_IMM && !result;
    if (actual.kind == IR_SRC_REG)
        right = ir_types[s->to->regs[actual.index].type].size == size &&
                s->to->regs[actual.index].type != IR_PRED;
    else if (actual.kind == IR_SRC_SYMBOL)
        right = s->to->temps[actual.index & ~IR_TEMP].size == size;
    if (!right)
        return ir_call_refuse(in, s->call, -EINVAL, "argument does not suit the parameter");
    *value = actual;
    if (actual.kind != IR_SRC_SYMBOL)
        return true;
    *value = (struct ir_src) { .kind = IR_SRC_REG };
    return ir_call_register(in, s->to, s->call, type, &value->index) &&
           (result || pass(in, s, *value, actual, type));
}

static bool call_helper(struct ir_inliner *in, struct ir_site *s)
{
    const struct ir_raw_call *call = s->call;
    const char *name = ir_name(in->m, in->m->fns[call->callee].name);
    unsigned h = ir_find_helper(name);
    if (h == IR_HELPER_COUNT)
        return ir_call_refuse(in, call, -ENOTSUP, "the function has no body");
    const struct ir_helper_info *info = &helpers[h];
    if (call->arg_count != info->count || call->ret_count > (info->result != IR_VOID))
        return ir_call_refuse(in, call, -EINVAL, "wrong number of arguments or results");
    struct ir_instr i;
    ir_instr_init(&i, IR_OP_HELPER, call->line, call->column);
    i.target = h;
    i.src_count = info->count;
    for (unsigned k = 0; k < info->count; k++)
        if (!helper_value(in, s, s->args[k], info->args[k], false, &i.src[k]))
            return false;
    struct ir_src value = { 0 };
    bool wanted = call->ret_count && s->rets[0].kind != IR_SRC_NONE;
    if (wanted) {
        if (!helper_value(in, s, s->rets[0], info->result, true, &value))
            return false;
        i.type = info->result;
        i.dst_count = 1;
        i.dst[0] = value.index;
    }
    if (!ir_call_emit(in, s->to, &i))
        return false;
    bool store = wanted && s->rets[0].kind == IR_SRC_SYMBOL;
    return !store || pass(in, s, s->rets[0], value, info->result);
}

/* --- one function ----------------------------------------------------------------------------- */

static bool replace_call(struct ir_inliner *in, struct ir_raw_fn *to, const struct ir_instr *at,
                         uint32_t frame_base)
{
    const struct ir_raw_call call = to->calls[at->target];
    uint32_t count = call.ret_count + call.arg_count, over = IR_NONE;
    struct ir_src *operands =
        calloc((size_t)count + 1, sizeof(*operands)); /* the callee's calls move to->args */
    if (!operands)
        return ir_call_no_memory(in);
    struct ir_site s = { .to = to,
                         .from = &in->raws[call.callee],
                         .call = &call,
                         .rets = operands,
                         .args = operands + call.ret_count,
                         .frame_base = frame_base };
    if (count)
        memcpy(operands, to->args + call.arg_first, count * sizeof(*operands));
    bool right = ir_call_guard(in, to, at, &over);
    right =
        right && (in->m->fns[call.callee].is_defined ? copy_function(in, &s) : call_helper(in, &s));
    free(s.temps);
    free(operands);
    if (right && over != IR_NONE)
        to->labels[over] = to->instr_count;
    return right;
}

bool ir_has_calls(const struct ir_raw_fn *raw)
{
    for (uint32_t n = 0; n < raw->instr_count; n++)
        if (raw->instrs[n].op == IR_OP_CALL)
            return true;
    return false;
}

/* Whether the call is left to outline.c. */
static bool stays(const struct ir_inliner *in, const struct ir_raw_fn *raw,
                  const struct ir_instr *i)
{
    uint32_t callee = i->op == IR_OP_CALL ? raw->calls[i->target].callee : 0;
    return i->op != IR_OP_CALL || callee == IR_NONE || in->apart[callee];
}

/* If the error is that this device lacks a feature, it becomes a problem of the function, not of
 * the module. */
static bool set_aside(struct ir_inliner *in, struct ir_raw_fn *raw)
{
    if (in->why->error != -ENOTSUP)
        return false;
    if (!raw->lacks.error)
        raw->lacks = *in->why;
    in->why->error = 0;
    return true;
}

static bool expand(struct ir_inliner *in, uint32_t f)
{
    struct ir_raw_fn *raw = &in->raws[f];
    raw->frame_bytes = raw->local_bytes;
    if (raw->call_count == 0)
        return true;
    uint32_t frame_base = (raw->local_bytes + 15) & ~15u;
    struct ir_instr *old = raw->instrs;
    uint32_t count = raw->instr_count, labels = raw->label_count;
    uint32_t *moved = malloc(((size_t)count + 1) * sizeof(*moved));
    raw->instrs = NULL;
    raw->instr_count = raw->instr_cap = 0;
    bool right = moved || ir_call_no_memory(in);
    for (uint32_t n = 0; n < count && right && !raw->lacks.error; n++) {
        moved[n] = raw->instr_count;
        if (stays(in, raw, &old[n])) {
            right = ir_call_emit(in, raw, &old[n]);
            continue;
        }
        uint32_t callee = raw->calls[old[n].target].callee;
        uint64_t frame = (uint64_t)frame_base + in->raws[callee].frame_bytes;
        if (frame > IR_MAX_LOCAL_BYTES)
            right = ir_call_refuse(in, &raw->calls[old[n].target], -E2BIG, "too much local memory");
        else
            raw->frame_bytes = GM_MAX(raw->frame_bytes, (uint32_t)frame);
        if (in->raws[callee].lacks.error) {
            *in->why = in->raws[callee].lacks;
            right = false;
        }
        right = right && replace_call(in, raw, &old[n], frame_base);
    }
    if (right && !raw->lacks.error) {
        moved[count] = raw->instr_count;
        for (uint32_t l = 0; l < labels; l++)
            raw->labels[l] = moved[raw->labels[l]];
    }
    free(moved);
    free(old);
    return right || set_aside(in, raw);
}

/* Called after expand(): the calls that the function keeps bring their own copies. */
static bool is_too_much(const struct ir_inliner *in, uint32_t f)
{
    uint64_t count = in->raws[f].instr_count;
    return count >= APART_LEAST && in->sites[f] > 1 && count * in->sites[f] > APART_INSTRS;
}

/* Depth first over the calls, without recursion: state 0 not seen, 1 on the path, 2 done. */
struct ir_walk {
    struct ir_path {
        uint32_t fn, next;
    } * path;
    uint8_t *state;
};

static bool walk_from(struct ir_inliner *in, struct ir_walk *w, uint32_t root)
{
    uint32_t depth = 0;
    bool right = true;
    w->path[depth++] = (struct ir_path) { .fn = root };
    w->state[root] = 1;
    while (depth > 0 && right) {
        struct ir_path *top = &w->path[depth - 1];
        const struct ir_raw_fn *raw = &in->raws[top->fn];
        if (top->next == raw->call_count) {
            right = expand(in, top->fn);
            in->apart[top->fn] |= is_too_much(in, top->fn);
            w->state[top->fn] = 2;
            depth--;
            continue;
        }
        uint32_t callee = raw->calls[top->next++].callee;
        if (callee == IR_NONE)
            continue;
        if (w->state[callee] == 1)
            in->apart[callee] = true;
        else if (w->state[callee] == 0) {
            w->state[callee] = 1;
            w->path[depth++] = (struct ir_path) { .fn = callee };
        }
    }
    return right;
}

/* Functions that no entry reaches are not looked at. */
static bool walk(struct ir_inliner *in, struct ir_walk *w)
{
    for (uint32_t root = 0; root < in->m->fn_count; root++)
        if (w->state[root] == 0 && (in->m->fns[root].is_entry || in->functions.wanted[root]) &&
            !walk_from(in, w, root))
            return false;
    for (uint32_t f = 0; f < in->m->fn_count; f++) {
        struct ir_raw_fn *raw = &in->raws[f];
        if (in->m->fns[f].is_entry && !raw->lacks.error && ir_has_calls(raw) &&
            !ir_outline_calls(in, raw) && !set_aside(in, raw))
            return false;
    }
    return true;
}

bool ir_inline_calls(struct ir_module *m, struct ir_raw_fn *raws, uint32_t most,
                     struct ir_problem *why)
{
    struct ir_inliner in = { .m = m, .raws = raws, .why = why };
    if (m->fn_count == 0)
        return true;
    in.most = INLINE_LEAST;
    for (uint32_t i = 0; i < m->fn_count; i++)
        in.most += (uint64_t)raws[i].instr_count * INLINE_TIMES;
    in.most = GM_MIN(in.most, (uint64_t)most);
    struct ir_walk w = { .path = calloc(m->fn_count, sizeof(*w.path)),
                         .state = calloc(m->fn_count, 1) };
    in.apart = calloc(m->fn_count, sizeof(*in.apart));
    in.sites = calloc(m->fn_count, sizeof(*in.sites));
    bool right = (w.path && w.state && in.apart && in.sites) || ir_call_no_memory(&in);
    for (uint32_t f = 0; right && f < m->fn_count; f++)
        for (uint32_t k = 0; k < raws[f].call_count; k++)
            if (raws[f].calls[k].callee != IR_NONE)
                in.sites[raws[f].calls[k].callee]++;
    right = right && ir_number_functions(m, raws, why, &in.functions) && walk(&in, &w);
    ir_functions_finish(&in.functions);
    free(in.apart);
    free(in.sites);
    free(w.path);
    free(w.state);
    return right;
}
