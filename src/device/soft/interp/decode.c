/*
 * Makes the interpreter's program for an entry: blocks in the order of the layout, their
 * instructions (emit.c), and control flow.
 *
 * Each block of the ir becomes one block of the program. One more begins at each instruction that
 * members of a warp execute together, so that lanes can wait for each other there. A block whose
 * only predecessor stands right before it is entered without a branch: no lane can be waiting
 * there. Behind all others there is a block for each loop that waits for other threads: lanes that
 * come back to the loop go there, and so run last.
 */
#include <stdio.h>
#include <stdlib.h>

#include "device/soft/interp/code.h"
#include "device/soft/interp/decode.h"
#include "device/soft/interp/interp.h"
#include "device/soft/ir/analysis.h"

/* Numbers the program's blocks and counts the edges into each block of the ir. False: no memory. */
static bool number_blocks(struct interp_builder *b)
{
    const struct ir_fn *f = b->f;
    uint32_t next = 0;
    b->number = calloc(f->block_count, sizeof(*b->number));
    b->again = calloc(f->block_count, sizeof(*b->again));
    b->predecessors = calloc(f->block_count, sizeof(*b->predecessors));
    if (!b->number || !b->again || !b->predecessors)
        return false;
    for (uint32_t k = 0; k < f->block_count; k++)
        b->number[k] = b->again[k] = INTERP_NO_BLOCK;
    for (uint32_t k = 0; k < b->layout.order_count; k++) {
        uint32_t block = b->layout.order[k];
        const struct ir_block *ib = &f->blocks[block];
        b->number[block] = next++;
        for (uint32_t n = ib->first; n < ib->first + ib->count; n++)
            next += interp_is_sync(&f->instrs[n]);
        for (uint32_t s = 0; s < ib->succ_count; s++)
            b->predecessors[f->succ[ib->succ_first + s]]++;
    }
    b->p->first_again = next;
    for (uint32_t k = 0; k < b->layout.order_count; k++)
        if (b->layout.polls[b->layout.order[k]])
            b->again[b->layout.order[k]] = next++;
    b->p->block_count = next;
    b->starts = calloc(next, sizeof(*b->starts));
    return b->starts != NULL;
}

/* Where lanes go from the current block to `target`. */
static uint32_t number_of(const struct interp_builder *b, uint32_t target)
{
    bool back = b->number[target] <= b->current;
    return back && b->again[target] != INTERP_NO_BLOCK ? b->again[target] : b->number[target];
}

/* At the end of `block` control goes to `target` without a choice. `after`: the block that comes
 * next in the program. */
static void emit_fall(struct interp_builder *b, uint32_t target, uint32_t after)
{
    if (target != after || b->predecessors[target] != 1)
        interp_insn_add(b, interp_bra)->block = number_of(b, target);
}

static void set_guard(struct interp_builder *b, const struct ir_instr *i, struct interp_insn *n,
                      unsigned k)
{
    n->s[k] = b->layout.at[i->guard];
    n->value |= i->flags & IR_F_GUARD_NOT ? UINT32_MAX : 0;
}

static bool emit_brx(struct interp_builder *b, const struct ir_instr *i, uint32_t block)
{
    struct interp_program *p = b->p;
    uint32_t succ = b->f->blocks[block].succ_count;
    bool guarded = i->guard != IR_NONE;
    uint32_t targets = guarded ? succ - 1 : succ, first = p->target_count;
    uint8_t width;
    b->temps = 0;
    interp_at index = interp_source(b, &i->src[0], INTERP_W32, &width);
    if (width != INTERP_W32 || targets == 0) {
        snprintf(b->why, b->why_size, "line %u: brx.idx with an index that is not 32 bits",
                 i->line);
        return false;
    }
    for (uint32_t k = 0; k < targets; k++) {
        void *bigger =
            interp_grow(b, p->targets, p->target_count, &b->target_room, sizeof(*p->targets));
        if (!bigger)
            return false;
        p->targets = bigger;
        p->targets[p->target_count++] = number_of(b, ir_successor(b->f, block, k));
    }
    struct interp_insn *n = interp_insn_add(b, interp_brx);
    n->s[0] = index;
    n->extra = first;
    n->value = targets;
    if (guarded) {
        n->s[1] = b->layout.at[i->guard];
        n->value |= i->flags & IR_F_GUARD_NOT ? UINT64_C(0xffffffff) << 32 : 0;
        n->other = number_of(b, ir_successor(b->f, block, targets));
    }
    return true;
}

/* BAR: operands in slow.s: number, count. */
static bool emit_barrier(struct interp_builder *b, const struct ir_instr *i, uint32_t target)
{
    struct interp_slow x = { .ir = *i, .p = INTERP_NOWHERE };
    uint32_t index = 0;
    b->temps = 0;
    for (unsigned k = 0; k < IR_MAX_SRC; k++)
        x.s[k] = INTERP_NOWHERE;
    for (unsigned k = 0; k < i->src_count; k++)
        x.s[k] = interp_source(b, &i->src[k], INTERP_W32, &x.s_width[k]);
    *interp_slow_add(b, i, &index) = x;
    interp_fn *run = target == IR_NONE ? interp_barrier_arrive : interp_barrier_wait;
    struct interp_insn *n = interp_insn_add(b, b->checked ? interp_checked(run) : run);
    n->extra = index;
    if (target != IR_NONE) {
        n->block = b->number[target];
        if (i->guard != IR_NONE)
            set_guard(b, i, n, 0);
    }
    return true;
}

/* bar.arrive does not end a block; its guard is handled like that of any other instruction. */
static bool emit_arrive(struct interp_builder *b, const struct ir_instr *i)
{
    uint32_t guard = b->p->insn_count;
    if (i->guard != IR_NONE)
        set_guard(b, i, interp_insn_add(b, interp_guard), 0);
    emit_barrier(b, i, IR_NONE);
    if (i->guard != IR_NONE) {
        interp_insn_add(b, interp_unguard);
        if (!b->no_memory)
            b->p->insns[guard].extra = b->p->insn_count - guard;
    }
    return true;
}

/* The instruction that ends a block. */
static bool emit_end(struct interp_builder *b, const struct ir_instr *i, uint32_t block,
                     uint32_t after)
{
    const struct ir_fn *f = b->f;
    bool guarded = i->guard != IR_NONE;
    struct interp_insn *n;
    b->p->calls |= i->mode == IR_BRANCH_CALL;
    switch (i->op) {
    case IR_OP_BRA:
        if (!guarded) {
            emit_fall(b, ir_successor(f, block, 0), after);
            return true;
        }
        n = interp_insn_add(b, interp_bra_if);
        n->block = number_of(b, ir_successor(f, block, 0));
        n->other = number_of(b, ir_successor(f, block, 1));
        set_guard(b, i, n, 0);
        return true;
    case IR_OP_BRX:
        return emit_brx(b, i, block);
    case IR_OP_BAR:
        if (!b->checked || !(i->flags & IR_F_SECOND))
            return emit_barrier(b, i, ir_successor(f, block, 0));
        emit_fall(b, ir_successor(f, block, 0), after); /* the program's own barriers are checked */
        return true;
    default: /* RET, EXIT */
        n = interp_insn_add(b, guarded ? interp_exit_if : interp_exit);
        if (guarded) {
            n->other = number_of(b, ir_successor(f, block, 0));
            set_guard(b, i, n, 0);
        }
        return true;
    }
}

static bool emit_block(struct interp_builder *b, uint32_t block, uint32_t after)
{
    const struct ir_block *ib = &b->f->blocks[block];
    b->current = b->number[block];
    b->starts[b->current] = b->p->insn_count;
    for (uint32_t n = ib->first; n < ib->first + ib->count; n++) {
        const struct ir_instr *i = &b->f->instrs[n];
        if (interp_is_sync(i))
            b->starts[++b->current] = b->p->insn_count;
        if ((ir_ops[i->op].properties & IR_P_TERMINATOR) || ir_is_barrier(i))
            return emit_end(b, i, block, after);
        if (i->op == IR_OP_BAR ? !emit_arrive(b, i) : !interp_emit(b, i))
            return false;
    }
    emit_fall(b, ir_successor(b->f, block, 0), after);
    return true;
}

/* Whether the instruction only moves values: compilers put parts of words together to copy
 * structs. */
static bool only_moves(const struct interp_builder *b, const struct ir_instr *i)
{
    if (i->op == IR_OP_ST)
        return true;
    switch (i->op) {
    case IR_OP_MOV:
    case IR_OP_CVT:
    case IR_OP_OR:
    case IR_OP_SHL:
    case IR_OP_PRMT:
    case IR_OP_BFI:
    case IR_OP_PACK:
    case IR_OP_UNPACK:
        break;
    default:
        return false;
    }
    for (unsigned k = 0; k < i->dst_count; k++)
        if (i->dst[k] != IR_NONE && b->computed[i->dst[k]])
            return false;
    return i->dst_pred == IR_NONE;
}

static bool mark_computed(struct interp_builder *b, uint32_t reg)
{
    bool news = reg != IR_NONE && !b->computed[reg];
    if (news)
        b->computed[reg] = true;
    return news;
}

/* Finds the registers whose values matter for more than copying. False: no memory. */
static bool find_computed(struct interp_builder *b)
{
    if (!b->checked)
        return true;
    b->computed = calloc(b->f->reg_count + 1, sizeof(*b->computed));
    for (bool again = b->computed != NULL; again;) {
        again = false;
        for (uint32_t n = b->f->instr_count; n-- > 0;) {
            const struct ir_instr *i = &b->f->instrs[n];
            for (unsigned k = 0; k < i->src_count && !only_moves(b, i); k++)
                if (i->src[k].kind == IR_SRC_REG)
                    again |= mark_computed(b, i->src[k].index);
            again |= mark_computed(b, i->address.base);
            again |= mark_computed(b, i->guard);
        }
    }
    return b->computed != NULL;
}

static bool build(struct interp_builder *b, uint32_t fn)
{
    struct interp_program *p = b->p;
    struct interp_layout *l = &b->layout;
    if (!interp_layout_make(l, b->m, fn) || !number_blocks(b) || !find_computed(b)) {
        b->no_memory = true;
        return false;
    }
    if (!interp_layout_place(l, b->f, p->block_count)) {
        snprintf(b->why, b->why_size, "too many registers for the interpreter: %u",
                 b->f->reg_count);
        return false;
    }
    for (uint32_t k = 0; k < l->order_count; k++) {
        uint32_t after = k + 1 < l->order_count ? l->order[k + 1] : IR_NONE;
        if (!emit_block(b, l->order[k], after) || b->no_memory)
            return false;
    }
    for (uint32_t k = 0; k < l->order_count; k++) {
        if (!l->polls[l->order[k]])
            continue;
        b->starts[b->again[l->order[k]]] = p->insn_count;
        interp_insn_add(b, interp_look_again)->block = b->number[l->order[k]];
    }
    p->blocks = calloc(p->block_count, sizeof(*p->blocks));
    if (!p->blocks)
        return false;
    for (uint32_t k = 0; k < p->block_count; k++)
        p->blocks[k].first = p->insns + b->starts[k];
    p->clear = l->clear;
    l->clear = NULL;
    p->clear_count = l->clear_count;
    p->clear_all = l->clear_all;
    p->waiting_at = l->waiting_at;
    p->slots_at = l->slots_at;
    p->frame_bytes = l->frame_bytes;
    p->param_bytes = b->f->param_bytes;
    return true;
}

static void code_destroy(struct soft_code *base)
{
    struct interp_code *c = GM_CONTAINER_OF(base, struct interp_code, base);
    struct interp_program *p = &c->program;
    free(p->insns);
    free(p->blocks);
    free(p->accesses);
    free(p->slows);
    free(p->targets);
    free(p->consts);
    free(p->clear);
    free(c);
}

static uint64_t program_bytes(const struct interp_program *p)
{
    return (uint64_t)p->insn_count * sizeof(*p->insns) + p->block_count * sizeof(*p->blocks) +
           p->access_count * sizeof(*p->accesses) + p->slow_count * sizeof(*p->slows) +
           p->target_count * sizeof(*p->targets) + p->clear_count * sizeof(*p->clear) +
           p->const_bytes;
}

static struct soft_code *create(const struct ir_module *m, uint32_t fn, bool checked, char *why,
                                size_t why_size)
{
    if (m->fns[fn].lacks) {
        snprintf(why, why_size, "%s", ir_name(m, m->fns[fn].lacks));
        return NULL;
    }
    struct interp_code *c = calloc(1, sizeof(*c));
    if (!c) {
        snprintf(why, why_size, "out of memory");
        return NULL;
    }
    struct interp_builder b = {
        .m = m,
        .f = &m->fns[fn],
        .p = &c->program,
        .checked = checked,
        .why = why,
        .why_size = why_size,
    };
    b.vector = interp_vector_pick(&b.scalar_only);
    bool ok = build(&b, fn) && !b.no_memory;
    if (!ok && b.no_memory)
        snprintf(why, why_size, "out of memory");
    interp_layout_finish(&b.layout);
    free(b.number);
    free(b.again);
    free(b.predecessors);
    free(b.computed);
    free(b.starts);
    c->base = (struct soft_code) {
        .run_block = checked ? interp_run_block_checked : interp_run_block,
        .destroy = code_destroy,
        .save_bytes = c->program.frame_bytes,
        .local_bytes = m->fns[fn].local_bytes,
        .tier = "interpreter",
        .bytes = program_bytes(&c->program) + sizeof(*c),
    };
    if (ok)
        return &c->base;
    code_destroy(&c->base);
    return NULL;
}

struct soft_code *interp_code_create(const struct ir_module *m, uint32_t fn, char *why,
                                     size_t why_size)
{
    return create(m, fn, false, why, why_size);
}

struct soft_code *interp_code_create_checked(const struct ir_module *m, uint32_t fn, char *why,
                                             size_t why_size)
{
    return create(m, fn, true, why, why_size);
}
