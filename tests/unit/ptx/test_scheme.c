/*
 * The analyses against random control flow. A random kernel is run twice: each lane alone, as CUDA
 * defines it; and as a warp by the execution scheme of analysis.h, with registers kept as the
 * analyses promise they may be: a uniform one is one number, an affine one a base, and writing a
 * varying one without blend destroys the other lanes' values. Both must store the same. On the way
 * every promise about masks, divergence and waiting lanes is checked. Then once more with some
 * loops taken for ones that wait for other threads, and barriers anywhere, so that lanes are
 * parked, or go back in such loops, by chance. In some kernels blocks are taken for ones where
 * lanes meet, too: some of the lanes that come are parked there by chance.
 */
#include <criterion/criterion.h>

#include "common.h"

#define LANES     32
#define MAX_REGS  32
#define MAX_STEPS 600
#define KERNELS   5000

static uint64_t random_state;

static uint32_t draw(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % n;
}

/* --- a random kernel -------------------------------------------------------------------------- */

static size_t put_statement(char *at, size_t room)
{
    uint32_t d = draw(6), a = draw(6), b = draw(6), p = draw(4);
    switch (draw(13)) {
    case 0:
        return (size_t)snprintf(at, room, "mov.b32 %%r%u, %u;\n", d, draw(40));
    case 1:
        return (size_t)snprintf(at, room, "mov.u32 %%r%u, %%tid.x;\n", d);
    case 2:
        return (size_t)snprintf(at, room, "add.s32 %%r%u, %%r%u, %%r%u;\n", d, a, b);
    case 3:
        return (size_t)snprintf(at, room, "sub.s32 %%r%u, %%r%u, %u;\n", d, a, draw(9));
    case 4:
        return (size_t)snprintf(at, room, "mul.lo.s32 %%r%u, %%r%u, %u;\n", d, a, draw(4));
    case 5:
        return (size_t)snprintf(at, room, "and.b32 %%r%u, %%r%u, %u;\n", d, a,
                                draw(3) ? draw(64) : 31);
    case 6:
        return (size_t)snprintf(at, room, "selp.b32 %%r%u, %%r%u, %%r%u, %%p%u;\n", d, a, b, p);
    case 7:
        return (size_t)snprintf(at, room, "@%s%%p%u add.s32 %%r%u, %%r%u, 1;\n", draw(2) ? "!" : "",
                                p, d, a);
    case 8:
        return (size_t)snprintf(at, room, "shl.b32 %%r%u, %%r%u, %u;\n", d, a, draw(3));
    case 9:
        return (size_t)snprintf(at, room, "st.global.u32 [%u], %%r%u;\n", draw(64) * 4, a);
    case 10:
        return (size_t)snprintf(at, room, "setp.lt.u32 %%p%u, %%r%u, %%r%u;\n", p, a, b);
    default:
        return (size_t)snprintf(at, room, "setp.%s.u32 %%p%u, %%r%u, %u;\n", draw(2) ? "lt" : "eq",
                                p, a, draw(32));
    }
}

static char *random_kernel(bool barriers)
{
    static char text[1 << 16];
    uint32_t blocks = 3 + draw(8);
    size_t room = sizeof(text);
    size_t at = (size_t)snprintf(
        text, room, "%s.entry k() {\n.reg .b32 %%r<8>; .reg .pred %%p<4>;\n", PTX_HEADER);
    for (uint32_t r = 0; r < 6; r++)
        at += (size_t)snprintf(text + at, room - at,
                               draw(2) ? "mov.b32 %%r%u, %u;\n" : "mov.u32 %%r%u, %%tid.x;\n", r,
                               draw(20));
    for (uint32_t b = 0; b < blocks; b++) {
        at += (size_t)snprintf(text + at, room - at, "L%u:\n", b);
        for (uint32_t n = draw(5); n > 0; n--)
            at += put_statement(text + at, room - at);
        if (barriers && draw(5) == 0)
            at += (size_t)snprintf(text + at, room - at, "bar.sync 0;\n");
        switch (draw(7)) {
        case 0:
            at += (size_t)snprintf(text + at, room - at, "bra L%u;\n", draw(blocks));
            break;
        case 1:
            at += (size_t)snprintf(text + at, room - at, "@%%p%u ret;\n", draw(4));
            break;
        case 2:
            break;
        default:
            at += (size_t)snprintf(text + at, room - at, "@%s%%p%u bra L%u;\n", draw(2) ? "!" : "",
                                   draw(4), draw(4) ? draw(blocks) : blocks);
            break;
        }
    }
    for (uint32_t r = 0; draw(4) && r < 6; r++)
        at +=
            (size_t)snprintf(text + at, room - at, "st.global.u32 [%u], %%r%u;\n", 400 + 4 * r, r);
    snprintf(text + at, room - at, "L%u: ret;\n}\n", blocks);
    return text;
}

/* --- values ----------------------------------------------------------------------------------- */

struct machine {
    const struct ir_fn *fn;
    const struct ir_analysis *a; /* NULL: every register is a vector */
    uint32_t vector[MAX_REGS][LANES];
    uint32_t scalar[MAX_REGS]; /* uniform: the value; affine: lane 0's */
    uint64_t trace[LANES];     /* of what each lane stored */
};

static uint32_t get(const struct machine *m, uint32_t reg, uint32_t lane)
{
    if (!m->a || m->a->regs[reg].shape == IR_VARYING)
        return m->vector[reg][lane];
    return m->scalar[reg] + (uint32_t)m->a->regs[reg].stride * lane;
}

static uint32_t source(const struct machine *m, const struct ir_src *s, uint32_t lane)
{
    if (s->kind == IR_SRC_REG)
        return get(m, s->index, lane);
    return s->kind == IR_SRC_SREG ? lane : (uint32_t)s->bits;
}

static bool guard(const struct machine *m, const struct ir_instr *i, uint32_t lane)
{
    return i->guard == IR_NONE || (get(m, i->guard, lane) != 0) == !(i->flags & IR_F_GUARD_NOT);
}

static uint32_t compute(const struct machine *m, const struct ir_instr *i, uint32_t lane)
{
    uint32_t s[3] = { 0 };
    for (unsigned k = 0; k < i->src_count; k++)
        s[k] = source(m, &i->src[k], lane);
    switch (i->op) {
    case IR_OP_MOV:
        return s[0];
    case IR_OP_ADD:
        return s[0] + s[1];
    case IR_OP_SUB:
        return s[0] - s[1];
    case IR_OP_MUL:
        return s[0] * s[1];
    case IR_OP_AND:
        return s[0] & s[1];
    case IR_OP_SHL:
        return s[0] << s[1];
    case IR_OP_SELP:
        return s[2] ? s[0] : s[1];
    case IR_OP_SETP:
        return i->cmp == IR_CMP_LT ? s[0] < s[1] : s[0] == s[1];
    default:
        cr_assert_fail("not generated");
        return 0;
    }
}

static void store(struct machine *m, const struct ir_instr *i, uint32_t lane)
{
    uint64_t event = (uint64_t)i->line << 32 | source(m, &i->src[0], lane);
    m->trace[lane] = (m->trace[lane] ^ event) * 0x9E3779B97F4A7C15ull;
}

/* --- one lane alone --------------------------------------------------------------------------- */

/* False: too long. */
static bool run_lane(struct machine *m, uint32_t lane)
{
    uint32_t block = 0;
    for (unsigned steps = 0; steps < MAX_STEPS; steps++) {
        const struct ir_block *b = &m->fn->blocks[block];
        uint32_t next = b->succ_count ? m->fn->succ[b->succ_first + b->succ_count - 1] : IR_NONE;
        for (uint32_t n = 0; n < b->count; n++) {
            const struct ir_instr *i = &m->fn->instrs[b->first + n];
            if (!guard(m, i, lane))
                continue;
            if (i->op == IR_OP_BRA)
                next = i->target;
            else if (i->op == IR_OP_RET)
                next = IR_NONE;
            else if (i->op == IR_OP_ST)
                store(m, i, lane);
            else if (i->op != IR_OP_BAR)
                m->vector[i->dst[0]][lane] = compute(m, i, lane);
        }
        if (next == IR_NONE)
            return true;
        block = next;
    }
    return false;
}

/* --- the warp --------------------------------------------------------------------------------- */

static void write_back(struct machine *m, const struct ir_instr *i, uint32_t mask, bool blend)
{
    uint32_t value[LANES], d = i->dst[0];
    const struct ir_reg_info *info = &m->a->regs[d];
    uint32_t first = (uint32_t)__builtin_ctz(mask);
    for (uint32_t l = 0; l < LANES; l++)
        value[l] = compute(m, i, l);
    if (info->shape == IR_VARYING) {
        for (uint32_t l = 0; l < LANES; l++) {
            bool runs = mask >> l & 1;
            if (runs && guard(m, i, l))
                m->vector[d][l] = value[l];
            else if (!runs && !blend)
                m->vector[d][l] = 0xDEADBEEF + l;
        }
        return;
    }
    cr_assert(!blend, "line %u: a blended register must vary", i->line);
    bool does = guard(m, i, first);
    uint32_t base = value[first] - (uint32_t)info->stride * first;
    for (uint32_t l = first; l < LANES; l++)
        if (mask >> l & 1)
            cr_assert(guard(m, i, l) == does && value[l] == base + (uint32_t)info->stride * l,
                      "line %u: lanes disagree", i->line);
    cr_assert(!info->is_const || base == (uint32_t)info->value, "line %u: not the constant",
              i->line);
    if (does)
        m->scalar[d] = base;
}

struct warp {
    struct machine *m;
    uint32_t alive;
    uint32_t waiting[64];
    uint32_t parked[64], at_barrier[64];
    unsigned turns;
};

static void add_waiting(struct warp *w, uint32_t from, uint32_t to, uint32_t lanes)
{
    const struct ir_analysis *a = w->m->a;
    bool patient = !a->blocks[from].barrier && draw(2) == 0;
    cr_assert(!ir_parks(a, from, to) || a->blocks[to].parks);
    if (!ir_parks(a, from, to) || patient) {
        w->waiting[to] |= lanes;
        return;
    }
    uint32_t *places = a->blocks[from].barrier ? w->at_barrier : w->parked;
    places[to] |= lanes;
}

/* Where the lanes of `mask` go after block b. */
static void leave(struct warp *w, uint32_t b, uint32_t mask)
{
    const struct ir_fn *fn = w->m->fn;
    const struct ir_block_info *info = &w->m->a->blocks[b];
    const struct ir_instr *last = &fn->instrs[fn->blocks[b].first + fn->blocks[b].count - 1];
    const uint32_t *succ = fn->succ ? fn->succ + fn->blocks[b].succ_first : NULL;
    uint32_t taken = 0;
    bool jumps = last->op == IR_OP_BRA || last->op == IR_OP_RET;
    for (uint32_t l = 0; l < LANES && jumps; l++)
        if ((mask >> l & 1) && guard(w->m, last, l))
            taken |= 1u << l;
    uint32_t others = mask & ~taken, leaves = 0;
    if (info->early_exit) {
        leaves = info->exit_taken ? taken : others;
        if (last->op == IR_OP_BRA)
            cr_assert(w->m->a->blocks[succ[info->exit_taken ? 0 : 1]].only_returns);
    } else if (last->op == IR_OP_RET) {
        leaves = mask;
    } else if (taken && others) {
        cr_assert(info->divergent, "block %u: lanes go both ways", b);
    }
    w->alive &= ~leaves;
    if (last->op == IR_OP_BRA && (taken & ~leaves))
        add_waiting(w, b, succ[0], taken & ~leaves);
    if (others & ~leaves)
        add_waiting(w, b, succ[fn->blocks[b].succ_count - 1], others & ~leaves);
}

/* The first block with waiting lanes; it must be among those that the analysis lets code look at.
 * `left`: lanes have gone from block `b` to its successors. */
static uint32_t choose(const struct warp *w, uint32_t b, bool left)
{
    const struct ir_analysis *a = w->m->a;
    for (uint32_t n = 0; n < a->order_count; n++) {
        uint32_t next = a->order[n];
        if (!w->waiting[next])
            continue;
        bool candidate = false;
        const struct ir_block *block = &w->m->fn->blocks[b];
        for (uint32_t s = 0; s < block->succ_count && left; s++)
            candidate |= w->m->fn->succ[block->succ_first + s] == next;
        struct ir_list f = a->blocks[b].frontier;
        for (uint32_t k = 0; k < f.count; k++)
            candidate |= a->pool[f.first + k] == next;
        cr_assert(candidate, "after block %u lanes wait in block %u unseen", b, next);
        return next;
    }
    return IR_NONE;
}

/* No lane can run: the parked ones have their turn. The block that begins it, IR_NONE: all are
 * done. */
static uint32_t next_turn(struct warp *w)
{
    const struct ir_analysis *a = w->m->a;
    uint32_t there = 0;
    for (uint32_t b = 0; b < a->block_count; b++)
        there |= w->at_barrier[b];
    bool release = there == w->alive;
    w->turns++;
    for (uint32_t b = 0; b < a->block_count; b++) {
        w->waiting[b] = w->parked[b] | (release ? w->at_barrier[b] : 0);
        w->parked[b] = 0;
        w->at_barrier[b] = release ? 0 : w->at_barrier[b];
    }
    for (uint32_t n = 0; n < a->order_count; n++)
        if (w->waiting[a->order[n]])
            return a->order[n];
    return IR_NONE;
}

static void check_waiting(const struct warp *w, uint32_t b)
{
    struct ir_list f = w->m->a->blocks[b].frontier;
    for (uint32_t other = 0; other < w->m->fn->block_count; other++) {
        bool known = false;
        for (uint32_t k = 0; k < f.count; k++)
            known |= w->m->a->pool[f.first + k] == other;
        cr_assert(!(w->waiting[other] | w->parked[other] | w->at_barrier[other]) || known,
                  "lanes wait in block %u while %u runs", other, b);
    }
}

/* Lanes have come to a block where they wait for others. Returns those that need not. Lanes that
 * are parked at other such blocks may go on now. */
static uint32_t gather(struct warp *w, uint32_t b, uint32_t mask)
{
    const struct ir_analysis *a = w->m->a;
    uint32_t here = mask | w->parked[b], ready = draw(2)   ? here
                                                 : draw(3) ? here & draw(1u << 31)
                                                           : 0;
    w->parked[b] = here & ~ready;
    for (uint32_t k = 0; k < a->block_count; k++)
        if (a->blocks[k].meets && k != b && draw(4) == 0) {
            w->waiting[k] |= w->parked[k];
            w->parked[k] = 0;
        }
    return ready;
}

static unsigned run_warp(struct machine *m)
{
    struct warp w = { .m = m, .alive = ~0u };
    uint32_t b = 0;
    w.waiting[0] = ~0u;
    while (b != IR_NONE) {
        const struct ir_block *block = &m->fn->blocks[b];
        uint32_t mask = w.waiting[b];
        w.waiting[b] = 0;
        check_waiting(&w, b);
        cr_assert(m->a->blocks[b].masked || mask == w.alive, "block %u runs without a mask", b);
        if (m->a->blocks[b].masked && m->a->blocks[b].meets)
            mask = gather(&w, b, mask);
        check_waiting(&w, b);
        for (uint32_t n = 0; n < block->count && mask; n++) {
            const struct ir_instr *i = &m->fn->instrs[block->first + n];
            if (i->op == IR_OP_BRA || i->op == IR_OP_RET || i->op == IR_OP_BAR)
                continue;
            if (i->op != IR_OP_ST) {
                write_back(m, i, mask, m->a->instrs[block->first + n].blend);
                continue;
            }
            for (uint32_t l = 0; l < LANES; l++)
                if ((mask >> l & 1) && guard(m, i, l))
                    store(m, i, l);
        }
        if (mask)
            leave(&w, b, mask);
        b = choose(&w, b, mask != 0);
        if (b == IR_NONE && m->a->parking)
            b = next_turn(&w);
    }
    cr_assert(w.alive == 0);
    return w.turns;
}

/* The kernel as a warp; returns how many turns it took. */
static unsigned try_warp(const struct ir_module *module, const struct machine *alone,
                         const bool *polls, const bool *meets, unsigned counts[4], const char *text)
{
    const struct ir_analyse_options opt = { .rows = true, .polls = polls, .meets = meets };
    struct ir_analysis *a;
    cr_assert(ir_analyse(module, 0, &opt, &a) == 0);
    if (a->divergent_barrier || (!polls && a->has_barrier)) {
        ir_analysis_destroy(a);
        return 0;
    }
    struct machine warp = { .fn = alone->fn, .a = a };
    unsigned turns = run_warp(&warp);
    cr_assert(memcmp(warp.trace, alone->trace, sizeof(warp.trace)) == 0, "results differ:\n%s",
              text);
    for (uint32_t r = 0; r < a->reg_count; r++)
        counts[a->regs[r].shape]++;
    for (uint32_t b = 0; b < a->block_count; b++)
        counts[3] += a->blocks[b].masked;
    ir_analysis_destroy(a);
    return turns;
}

static bool try_kernel(const char *text, unsigned counts[4], unsigned *turns)
{
    struct ptx_error err;
    struct ir_module *module = ptx_try(text, &err);
    cr_assert(module != NULL, "%u:%u %s\n%s", err.line, err.column, err.text, text);
    struct machine alone = { .fn = &module->fns[0] };
    cr_assert(alone.fn->reg_count <= MAX_REGS && alone.fn->block_count <= 64);
    bool ends = true;
    for (uint32_t l = 0; l < LANES && ends; l++)
        ends = run_lane(&alone, l);
    if (ends) {
        bool polls[64], meets[64];
        for (uint32_t b = 0; b < GM_ARRAY_LEN(polls); b++) {
            polls[b] = draw(3) == 0;
            meets[b] = draw(4) == 0;
        }
        try_warp(module, &alone, NULL, NULL, counts, text);
        *turns += try_warp(module, &alone, polls, NULL, counts, text);
        *turns += try_warp(module, &alone, polls, meets, counts, text);
    }
    ir_module_destroy(module);
    return ends;
}

Test(ir_scheme, random_kernels, .timeout = 60)
{
    unsigned ran = 0, turns = 0, counts[4] = { 0 };
    for (uint64_t seed = 1; seed <= KERNELS; seed++) {
        random_state = seed * 0x9E3779B97F4A7C15ull;
        ran += try_kernel(random_kernel(seed % 4 == 0), counts, &turns);
    }
    /* The generator must not degenerate into kernels that test nothing. */
    cr_expect(ran > KERNELS / 4, "%u ran", ran);
    cr_expect(turns > ran, "%u turns", turns);
    for (unsigned k = 0; k < 4; k++)
        cr_expect(counts[k] > ran / 2, "kind %u: %u in %u kernels", k, counts[k], ran);
}
