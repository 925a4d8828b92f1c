/*
 * The last step of a parse: an entry's linear code gets its final form. Shared memory is laid out,
 * variables whose place is known become numbers, unused registers are removed, labels become
 * blocks.
 */
#include <errno.h>

#include "device/soft/ir/raw.h"

struct ir_finisher {
    struct ir_module *m;
    struct ir_fn *fn;
    uint32_t index;
    struct ir_raw_fn *raw;
    struct ir_problem *why;
};

static bool no_memory(struct ir_finisher *f)
{
    return ir_refuse(f->why, -ENOMEM, 0, 0, "out of memory");
}

/* --- shared memory ---------------------------------------------------------------------------- */

/* Calls `visit` for each reference to a symbol of shared memory. */
static bool each_shared(struct ir_finisher *f,
                        bool (*visit)(struct ir_finisher *, struct ir_symbol *))
{
    for (uint32_t n = 0; n < f->raw->instr_count; n++) {
        const struct ir_instr *i = &f->raw->instrs[n];
        uint32_t symbol = i->address.symbol;
        if (symbol != IR_NONE && f->m->symbols[symbol].space == IR_SPACE_SHARED)
            if (!visit(f, &f->m->symbols[symbol]))
                return false;
        for (unsigned k = 0; k < i->src_count; k++)
            if (i->src[k].kind == IR_SRC_SYMBOL &&
                f->m->symbols[i->src[k].index].space == IR_SPACE_SHARED)
                if (!visit(f, &f->m->symbols[i->src[k].index]))
                    return false;
    }
    return true;
}

#define UNPLACED UINT64_MAX

static bool forget(struct ir_finisher *f, struct ir_symbol *s)
{
    (void)f;
    s->offset = UNPLACED;
    return true;
}

static bool place(struct ir_finisher *f, struct ir_symbol *s)
{
    struct ir_fn *fn = f->fn;
    if (s->flags & IR_SYM_EXTERN) {
        fn->uses_dynamic_shared = true;
        fn->shared_dynamic =
            GM_MAX(fn->shared_dynamic, s->align); /* the largest alignment, for now */
        return true;
    }
    uint64_t offset;
    if (s->offset != UNPLACED)
        return true;
    if (!gm_align_up(fn->shared_static, s->align, &offset) ||
        offset + s->size > IR_MAX_SHARED_BYTES)
        return ir_refuse(f->why, -E2BIG, s->line, 1, "over %u bytes of shared memory",
                         IR_MAX_SHARED_BYTES);
    s->offset = offset;
    fn->shared_static = (uint32_t)(offset + s->size);
    return true;
}

/* Lays out static variables: those of the entry, then others in the order of their first use. Every
 * entry begins at 0, so these offsets hold for this entry only. */
static bool lay_out_shared(struct ir_finisher *f)
{
    const struct ir_raw_fn *raw = f->raw;
    if (!each_shared(f, forget))
        return false;
    /* The entry's own variables come first, whether they are used or not. */
    for (uint32_t n = 0; n < raw->symbol_count; n++) {
        struct ir_symbol *s = &f->m->symbols[raw->symbol_first + n];
        if (s->space != IR_SPACE_SHARED)
            continue;
        s->offset = UNPLACED;
        if (!place(f, s))
            return false;
    }
    if (!each_shared(f, place))
        return false;
    uint64_t align = GM_MAX(f->fn->shared_dynamic, 16u), dynamic;
    if (!gm_align_up(f->fn->shared_static, align, &dynamic))
        return no_memory(f);
    f->fn->shared_dynamic = (uint32_t)dynamic;
    return true;
}

/* --- the hidden parameter --------------------------------------------------------------------- */

static void place_workspace(struct ir_finisher *f)
{
    struct ir_fn *fn = f->fn;
    fn->param_declared = fn->param_bytes;
    for (uint32_t n = 0; n < f->raw->instr_count && !fn->uses_workspace; n++) {
        uint32_t symbol = f->raw->instrs[n].address.symbol;
        fn->uses_workspace = symbol != IR_NONE && (f->m->symbols[symbol].flags & IR_SYM_WORKSPACE);
    }
    if (!fn->uses_workspace)
        return;
    fn->workspace_at = (fn->param_bytes + 7) & ~7u;
    fn->param_bytes = fn->workspace_at + 8;
}

/* Whether the kernel takes memory of the thread's stack by itself (ptx/stack.c). */
static bool takes_stack(const struct ir_finisher *f)
{
    for (uint32_t n = 0; n < f->raw->instr_count; n++) {
        const struct ir_src *src = &f->raw->instrs[n].src[0];
        if (f->raw->instrs[n].src_count == 0 || src->kind != IR_SRC_SYMBOL ||
            (src->index & IR_TEMP))
            continue;
        const struct ir_symbol *s = &f->m->symbols[src->index];
        if (s->space == IR_SPACE_LOCAL && (s->flags & IR_SYM_EXTERN))
            return true;
    }
    return false;
}

/* --- symbols ---------------------------------------------------------------------------------- */

static bool known_place(const struct ir_finisher *f, uint32_t symbol, uint64_t *at)
{
    if (symbol == IR_NONE || ir_symbol_is_placed(f->m, symbol))
        return false;
    *at = ir_symbol_offset(f->m, f->fn, symbol);
    return true;
}

static bool resolve_symbols(struct ir_finisher *f)
{
    for (uint32_t n = 0; n < f->raw->instr_count; n++) {
        struct ir_instr *i = &f->raw->instrs[n];
        uint64_t at;
        /* Kernel parameters keep their name: it makes listings readable. */
        if (i->space != IR_SPACE_PARAM && known_place(f, i->address.symbol, &at)) {
            i->address.symbol = IR_NONE;
            i->address.displacement += (int64_t)at;
        }
        for (unsigned k = 0; k < i->src_count; k++) {
            struct ir_src *src = &i->src[k];
            if (src->kind != IR_SRC_SYMBOL || !known_place(f, src->index, &at))
                continue;
            uint64_t bits = src->bits + at;
            if (ir_types[i->type].size == 4)
                bits =
                    ir_type_is_signed(i->type) ? (uint64_t)(int64_t)(int32_t)bits : (uint32_t)bits;
            *src = (struct ir_src) { .kind = IR_SRC_IMM, .bits = bits };
        }
    }
    return true;
}

/* --- registers -------------------------------------------------------------------------------- */

static void each_read(struct ir_instr *i, void (*visit)(uint32_t *map, uint32_t *reg),
                      uint32_t *map)
{
    if (i->guard != IR_NONE)
        visit(map, &i->guard);
    if (i->address.base != IR_NONE)
        visit(map, &i->address.base);
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_REG)
            visit(map, &i->src[k].index);
}

static void each_reg(struct ir_instr *i, void (*visit)(uint32_t *map, uint32_t *reg), uint32_t *map)
{
    each_read(i, visit, map);
    if (i->dst_pred != IR_NONE)
        visit(map, &i->dst_pred);
    for (unsigned d = 0; d < i->dst_count; d++)
        if (i->dst[d] != IR_NONE)
            visit(map, &i->dst[d]);
}

static void mark(uint32_t *map, uint32_t *reg)
{
    map[*reg] = 1;
}

static void rename_reg(uint32_t *map, uint32_t *reg)
{
    *reg = map[*reg];
}

/* An atomic operation whose result nobody reads has none: lanes at one place need not take turns
 * then. */
static bool drop_results(struct ir_finisher *f)
{
    struct ir_raw_fn *raw = f->raw;
    uint32_t *read = calloc((size_t)raw->reg_count + 1, sizeof(*read));
    if (!read)
        return no_memory(f);
    for (uint32_t n = 0; n < raw->instr_count; n++)
        each_read(&raw->instrs[n], mark, read);
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        struct ir_instr *i = &raw->instrs[n];
        if (i->op == IR_OP_ATOM && i->dst_count == 1 && !read[i->dst[0]])
            i->dst_count = 0;
    }
    free(read);
    return true;
}

static bool drop_registers(struct ir_finisher *f)
{
    struct ir_raw_fn *raw = f->raw;
    uint32_t *map = calloc((size_t)raw->reg_count + 1, sizeof(*map));
    if (!map)
        return no_memory(f);
    for (uint32_t n = 0; n < raw->instr_count; n++)
        each_reg(&raw->instrs[n], mark, map);
    uint32_t count = 0;
    for (uint32_t r = 0; r < raw->reg_count; r++) {
        bool used = map[r];
        map[r] = count;
        if (used)
            raw->regs[count++] = raw->regs[r];
    }
    raw->reg_count = count;
    for (uint32_t n = 0; n < raw->instr_count; n++)
        each_reg(&raw->instrs[n], rename_reg, map);
    free(map);
    return true;
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* Whether the instruction ends its block. If there are several bar.warp.sync (`syncs`), each does:
 * see order.c. */
static bool ends_block(const struct ir_instr *i, bool syncs)
{
    return (ir_ops[i->op].properties & IR_P_TERMINATOR) || ir_is_barrier(i) ||
           (syncs && i->op == IR_OP_BARWARP);
}

static bool has_syncs(const struct ir_raw_fn *raw)
{
    unsigned count = 0;
    for (uint32_t n = 0; n < raw->instr_count && count < 2; n++)
        count += raw->instrs[n].op == IR_OP_BARWARP;
    return count == 2;
}

static bool add_return(struct ir_finisher *f)
{
    struct ir_raw_fn *raw = f->raw;
    struct ir_instr *i = IR_PUSH(raw->instrs, raw->instr_count, raw->instr_cap);
    if (!i)
        return no_memory(f);
    uint32_t line = raw->instr_count > 1 ? i[-1].line : f->fn->line;
    ir_instr_init(i, IR_OP_RET, line, 1);
    return true;
}

/* leader[n]: instruction n begins a block; 2: something also jumps to it. */
static void mark_leaders(const struct ir_raw_fn *raw, uint8_t *leader)
{
    const bool syncs = has_syncs(raw);
    leader[0] = 1;
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        const struct ir_instr *i = &raw->instrs[n];
        if (ends_block(i, syncs))
            leader[n + 1] |= 1;
        uint32_t count;
        const uint32_t *targets = ir_raw_targets(raw, i, &count);
        for (uint32_t t = 0; t < count; t++)
            leader[raw->labels[targets[t]]] |= 2;
    }
}

/* Makes sure that nothing jumps to the first block, so that it is entered once: puts a jump before
 * it if necessary. */
static bool add_entry(struct ir_finisher *f)
{
    struct ir_raw_fn *raw = f->raw;
    uint32_t *label = IR_PUSH(raw->labels, raw->label_count, raw->label_cap);
    struct ir_instr *last = label ? IR_PUSH(raw->instrs, raw->instr_count, raw->instr_cap) : NULL;
    if (!last)
        return no_memory(f);
    *label = 0;
    memmove(raw->instrs + 1, raw->instrs, (raw->instr_count - 1) * sizeof(*last));
    for (uint32_t l = 0; l < raw->label_count; l++)
        raw->labels[l]++;
    ir_instr_init(raw->instrs, IR_OP_BRA, f->fn->line, 1);
    raw->instrs->target = raw->label_count - 1;
    return true;
}

static bool add_successor(struct ir_finisher *f, uint32_t *cap, uint32_t block)
{
    struct ir_fn *fn = f->fn;
    uint32_t *succ = fn->succ_count < (1u << 22) ? IR_PUSH(fn->succ, fn->succ_count, *cap) : NULL;
    if (!succ)
        return fn->succ_count < (1u << 22)
                   ? no_memory(f)
                   : ir_refuse(f->why, -E2BIG, 0, 0, "too many branch targets");
    *succ = block;
    fn->blocks[fn->block_count].succ_count++;
    return true;
}

/* `begin[n]`: number of the block that instruction n begins. */
static bool connect(struct ir_finisher *f, struct ir_instr *last, const uint32_t *begin,
                    uint32_t *cap)
{
    const struct ir_raw_fn *raw = f->raw;
    const uint32_t first = f->fn->succ_count;
    uint32_t count;
    const uint32_t *targets = ir_raw_targets(raw, last, &count);
    f->fn->blocks[f->fn->block_count].succ_first = first;
    for (uint32_t t = 0; t < count; t++)
        if (!add_successor(f, cap, begin[raw->labels[targets[t]]]))
            return false;
    if (last->op == IR_OP_BRA)
        last->target = f->fn->succ[first];
    else if (last->op == IR_OP_BRX)
        last->target = IR_NONE;
    return !ir_falls_through(last) || add_successor(f, cap, f->fn->block_count + 1);
}

/* Makes sure that the code does not run off its end and that its beginning is entered once; then
 * numbers the blocks: begin[n] is the block of instruction n. */
static bool number_blocks(struct ir_finisher *f, uint32_t **begin, uint32_t *blocks)
{
    struct ir_raw_fn *raw = f->raw;
    const struct ir_instr *end = raw->instr_count ? &raw->instrs[raw->instr_count - 1] : NULL;
    bool open = !end || ir_falls_through(end);
    uint8_t *leader = calloc((size_t)raw->instr_count + 3, 1); /* room for two more instructions */
    if (!leader)
        return no_memory(f);
    mark_leaders(raw, leader);
    bool right = (!open && !(leader[raw->instr_count] & 2)) || add_return(f);
    if (right && (leader[0] & 2)) {
        right = add_entry(f);
        memset(leader, 0, (size_t)raw->instr_count + 1);
        mark_leaders(raw, leader);
    }
    uint32_t *numbers = right ? calloc((size_t)raw->instr_count + 1, sizeof(*numbers)) : NULL;
    uint32_t count = 0;
    for (uint32_t n = 0; n < raw->instr_count && numbers; n++) {
        count += leader[n] != 0;
        numbers[n] = count - 1;
    }
    free(leader);
    *begin = numbers;
    *blocks = count;
    return numbers || (right && no_memory(f));
}

static bool cut_blocks(struct ir_finisher *f)
{
    uint32_t blocks = 0, cap = 0, *begin = NULL;
    if (!number_blocks(f, &begin, &blocks))
        return false;
    struct ir_raw_fn *raw = f->raw;
    uint32_t count = raw->instr_count;
    bool right = blocks <= IR_MAX_BLOCKS ||
                 ir_refuse(f->why, -E2BIG, f->fn->line, 1, "over %u blocks", IR_MAX_BLOCKS);
    if (right)
        f->fn->blocks = calloc(blocks, sizeof(*f->fn->blocks));
    right = right && (f->fn->blocks || no_memory(f));
    for (uint32_t first = 0, n = 0; n < count && right; n++) {
        if (n + 1 < count && begin[n + 1] == begin[n])
            continue;
        struct ir_block *b = &f->fn->blocks[f->fn->block_count];
        b->first = first;
        b->count = n + 1 - first;
        right = connect(f, &raw->instrs[n], begin, &cap);
        f->fn->block_count++;
        first = n + 1;
    }
    free(begin);
    return right;
}

/* --- returns ---------------------------------------------------------------------------------- */

static const struct ir_instr *last_of(const struct ir_finisher *f, uint32_t block)
{
    const struct ir_block *b = &f->fn->blocks[block];
    return &f->raw->instrs[b->first + b->count - 1];
}

static void visit(bool *seen, uint32_t *stack, uint32_t *top, uint32_t block)
{
    if (!seen[block]) {
        seen[block] = true;
        stack[(*top)++] = block;
    }
}

/* Marks the blocks that can be reached. A call is taken to return to the block behind it. */
static void find_reached(const struct ir_finisher *f, bool *seen, uint32_t *stack)
{
    const struct ir_fn *fn = f->fn;
    uint32_t top = 0;
    visit(seen, stack, &top, 0);
    while (top > 0) {
        const uint32_t b = stack[--top];
        const struct ir_instr *last = last_of(f, b);
        if (last->mode == IR_BRANCH_RETURN)
            continue;
        if (last->mode == IR_BRANCH_CALL && last->op == IR_OP_BRA)
            visit(seen, stack, &top, b + 1);
        for (uint32_t s = 0; s < fn->blocks[b].succ_count; s++)
            visit(seen, stack, &top, fn->succ[fn->blocks[b].succ_first + s]);
    }
}

/* A return lists what is behind each call (outline.c), also behind one that is never reached. The
 * analyses know reached blocks only, so such a place becomes another one of the list: nobody goes
 * there. */
static bool drop_dead_returns(struct ir_finisher *f)
{
    struct ir_fn *fn = f->fn;
    bool *seen = calloc(fn->block_count, sizeof(*seen));
    uint32_t *stack = malloc(fn->block_count * sizeof(*stack));
    const bool right = seen && stack;
    if (right)
        find_reached(f, seen, stack);
    for (uint32_t b = 0; right && b < fn->block_count; b++) {
        const struct ir_block *block = &fn->blocks[b];
        uint32_t reached = IR_NONE;
        if (last_of(f, b)->mode != IR_BRANCH_RETURN || !block->succ_count)
            continue;
        uint32_t *to = fn->succ + block->succ_first;
        for (uint32_t s = 0; s < block->succ_count && reached == IR_NONE; s++)
            reached = seen[to[s]] ? to[s] : IR_NONE;
        for (uint32_t s = 0; s < block->succ_count && reached != IR_NONE; s++)
            to[s] = seen[to[s]] ? to[s] : reached;
    }
    free(seen);
    free(stack);
    return right || no_memory(f);
}

bool ir_finish_fn(struct ir_module *m, uint32_t fn, struct ir_raw_fn *raw, struct ir_problem *why)
{
    struct ir_finisher f = { .m = m, .fn = &m->fns[fn], .index = fn, .raw = raw, .why = why };
    place_workspace(&f);
    f.fn->local_bytes = (raw->frame_bytes + 15) & ~15u;
    if (raw->uses_stack) {
        raw->instrs[0].src[0].bits = f.fn->local_bytes;
        f.fn->uses_stack = true;
    }
    if (takes_stack(&f)) {
        if (raw->uses_stack)
            return ir_refuse(why, -ENOTSUP, f.fn->line, 1,
                             "'alloca' beside recursive functions is not supported");
        f.fn->uses_stack = true;
    }
    if (!lay_out_shared(&f) || !resolve_symbols(&f) || !drop_results(&f) || !drop_registers(&f))
        return false;
    if (!ir_separate_hazards(raw))
        return no_memory(&f);
    if (!cut_blocks(&f) || !drop_dead_returns(&f))
        return false;
    f.fn->instrs = raw->instrs;
    f.fn->instr_count = raw->instr_count;
    f.fn->regs = raw->regs;
    f.fn->reg_count = raw->reg_count;
    raw->instrs = NULL;
    raw->regs = NULL;
    raw->instr_count = raw->reg_count = 0;
    return true;
}
