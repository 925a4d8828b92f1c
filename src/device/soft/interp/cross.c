/*
 * Instructions through which lanes see each other's values. Forms with a member mask wait until the
 * members have arrived (interp_together). A member that never arrives is left out.
 */
#include "device/soft/exec/helpers.h"
#include "device/soft/interp/program.h"
#include "device/soft/texture/texture.h"

static uint64_t source(const struct interp_run *r, const struct interp_slow *x, unsigned k,
                       unsigned lane)
{
    return interp_lane_read(r, x->s[k], x->s_width[k], lane) ^ x->s_negated[k];
}

/* For .sync forms: whether lanes can go on, since all that they name have arrived. */
static bool gather(const struct interp_insn *i, struct interp_run *r, const struct interp_slow *x,
                   unsigned mask_source, const struct interp_insn **next)
{
    struct interp_warp *w = r->warp;
    uint32_t named[SOFT_WARP] = { 0 };
    bool warp_sync = x->ir.op == IR_OP_BARWARP;
    if (!(x->ir.flags & IR_F_SYNC) && !warp_sync)
        return true;
    if (warp_sync && w->low == INTERP_NO_BLOCK)
        w->arrived = w->passing = 0;
    if (!interp_gather(i, r))
        return true;
    for (uint32_t left = r->mask; left; left &= left - 1)
        named[__builtin_ctz(left)] =
            (uint32_t)source(r, x, mask_source, (unsigned)__builtin_ctz(left));
    return warp_sync ? interp_meet(i, r, named, next) : interp_together(i, r, named, next);
}

/* Running lanes that name the same members carry out the instruction together. Tiles of a warp each
 * name their own lanes, and may arrive here at the same time. */
struct group {
    uint32_t left;    /* lanes that have been in no group yet */
    uint32_t lanes;   /* lanes of this group, which get the result */
    uint32_t members; /* lanes that take part */
};

static bool next_group(const struct interp_run *r, const struct interp_slow *x,
                       unsigned mask_source, struct group *g)
{
    g->left &= ~g->lanes;
    if (!g->left)
        return false;
    g->lanes = g->left;
    g->members = r->mask;
    if (!(x->ir.flags & IR_F_SYNC))
        return true;
    uint64_t mask = source(r, x, mask_source, (unsigned)__builtin_ctz(g->left));
    for (uint32_t left = g->left; left; left &= left - 1)
        if (source(r, x, mask_source, (unsigned)__builtin_ctz(left)) != mask)
            g->lanes &= ~(left & -left);
    g->members &= (uint32_t)mask;
    return true;
}

/* The lane that `lane` reads from; *in_range is the instruction's predicate result. */
static unsigned shuffle_source(uint8_t mode, unsigned lane, uint32_t b, uint32_t c, bool *in_range)
{
    uint32_t delta = b & 31, clamp = c & 31, segment = c >> 8 & 31;
    uint32_t lowest = lane & segment, highest = lowest | (clamp & ~segment);
    int from;
    switch (mode) {
    case IR_SHFL_UP:
        from = (int)lane - (int)delta;
        *in_range = from >= (int)highest;
        break;
    case IR_SHFL_DOWN:
        from = (int)(lane + delta);
        *in_range = from <= (int)highest;
        break;
    case IR_SHFL_BFLY:
        from = (int)(lane ^ delta);
        *in_range = from <= (int)highest;
        break;
    default:
        from = (int)(lowest | (delta & ~segment));
        *in_range = from <= (int)highest;
        break;
    }
    return *in_range ? (unsigned)from : lane;
}

const struct interp_insn *interp_shfl(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    const struct interp_insn *next;
    if (!gather(i, r, x, 3, &next))
        return next;
    uint32_t value[SOFT_WARP], ok = 0;
    const uint32_t *from = interp_operand(r, x->s[0]);
    for (unsigned l = 0; l < SOFT_WARP; l++)
        value[l] = from[l];
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        bool in_range;
        unsigned j = shuffle_source(x->ir.mode, l, (uint32_t)source(r, x, 1, l),
                                    (uint32_t)source(r, x, 2, l), &in_range);
        /* As on an H200; PTX leaves open what a lane gives that is not here. */
        r->scratch[l] = r->mask >> j & 1 ? value[j] : 0;
        ok |= (uint32_t)in_range << l;
    }
    if (x->d[0] != INTERP_NOWHERE) {
        uint32_t *d = interp_operand(r, x->d[0]);
        for (uint32_t left = r->mask; left; left &= left - 1)
            d[__builtin_ctz(left)] = (uint32_t)r->scratch[__builtin_ctz(left)];
    }
    if (x->p != INTERP_NOWHERE)
        interp_pred_write(r, x->p, ok);
    return i + 1;
}

/* The running lanes whose source 0, a predicate, holds. */
static uint32_t holding(const struct interp_run *r, const struct interp_slow *x)
{
    uint32_t bits = 0;
    for (uint32_t left = r->mask; left; left &= left - 1)
        bits |= (uint32_t)source(r, x, 0, (unsigned)__builtin_ctz(left)) << __builtin_ctz(left);
    return bits;
}

static void give(const struct interp_run *r, uint32_t lanes, interp_at at, uint8_t width,
                 uint64_t v)
{
    if (at == INTERP_NOWHERE)
        return;
    for (uint32_t left = lanes; left; left &= left - 1)
        interp_lane_write(r, at, width, (unsigned)__builtin_ctz(left), v);
}

const struct interp_insn *interp_vote(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    const struct interp_insn *next;
    if (!gather(i, r, x, 1, &next))
        return next;
    uint32_t all = holding(r, x);
    for (struct group g = { .left = r->mask }; next_group(r, x, 1, &g);) {
        uint32_t bits = all & g.members;
        uint64_t v;
        switch (x->ir.mode) {
        case IR_VOTE_ALL:
            v = bits == g.members;
            break;
        case IR_VOTE_ANY:
            v = bits != 0;
            break;
        case IR_VOTE_UNI:
            v = bits == g.members || bits == 0;
            break;
        default:
            v = bits;
            break;
        }
        give(r, g.lanes, x->d[0], x->d_width[0], v);
    }
    return i + 1;
}

/* The lanes of `members` that have the same value as `lane`. */
static uint32_t equal(const struct interp_run *r, const struct interp_slow *x, uint32_t members,
                      unsigned lane)
{
    uint32_t lanes = 0;
    for (uint32_t left = members; left; left &= left - 1)
        if (source(r, x, 0, lane) == source(r, x, 0, (unsigned)__builtin_ctz(left)))
            lanes |= left & -left;
    return lanes;
}

const struct interp_insn *interp_match(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    const struct interp_insn *next;
    if (!gather(i, r, x, 1, &next))
        return next;
    uint32_t found[SOFT_WARP] = { 0 }, agreed = 0;
    for (struct group g = { .left = r->mask }; next_group(r, x, 1, &g);) {
        for (uint32_t left = g.lanes & g.members; left; left &= left - 1)
            found[__builtin_ctz(left)] = equal(r, x, g.members, (unsigned)__builtin_ctz(left));
        if (x->ir.mode != IR_VOTE_ALL)
            continue;
        bool all =
            g.members && equal(r, x, g.members, (unsigned)__builtin_ctz(g.members)) == g.members;
        for (uint32_t left = g.lanes; left; left &= left - 1)
            found[__builtin_ctz(left)] = all ? g.members : 0;
        agreed |= all ? g.lanes : 0;
    }
    for (uint32_t left = r->mask; left; left &= left - 1)
        give(r, left & -left, x->d[0], x->d_width[0], found[__builtin_ctz(left)]);
    if (x->p != INTERP_NOWHERE)
        interp_pred_write(r, x->p, agreed);
    return i + 1;
}

static uint64_t reduce(const struct ir_instr *i, uint64_t a, uint64_t b)
{
    bool less = ir_type_is_signed(i->type) ? (int64_t)a < (int64_t)b : a < b;
    switch (i->mode) {
    case IR_ATOM_MIN:
        return less ? a : b;
    case IR_ATOM_MAX:
        return less ? b : a;
    case IR_ATOM_AND:
        return a & b;
    case IR_ATOM_OR:
        return a | b;
    case IR_ATOM_XOR:
        return a ^ b;
    default:
        return a + b;
    }
}

const struct interp_insn *interp_redux(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    const struct interp_insn *next;
    if (!gather(i, r, x, 1, &next))
        return next;
    for (struct group g = { .left = r->mask }; next_group(r, x, 1, &g);) {
        uint64_t v = 0;
        for (uint32_t left = g.members; left; left &= left - 1) {
            uint64_t a = interp_extend(x->ir.type, source(r, x, 0, (unsigned)__builtin_ctz(left)));
            v = left == g.members ? a : reduce(&x->ir, v, a);
        }
        give(r, g.lanes, x->d[0], x->d_width[0], v);
    }
    return i + 1;
}

const struct interp_insn *interp_activemask(const struct interp_insn *i, struct interp_run *r)
{
    give(r, r->mask, i->d, INTERP_W32, r->mask);
    return i + 1;
}

const struct interp_insn *interp_elect(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    const struct interp_insn *next;
    if (!gather(i, r, x, 0, &next))
        return next;
    uint32_t elected = 0;
    for (struct group g = { .left = r->mask }; next_group(r, x, 0, &g);) {
        uint32_t leader = g.members ? (uint32_t)__builtin_ctz(g.members) : 0;
        give(r, g.lanes, x->d[0], x->d_width[0], leader);
        elected |= g.members & -g.members;
    }
    if (x->p != INTERP_NOWHERE)
        interp_pred_write(r, x->p, elected);
    return i + 1;
}

const struct interp_insn *interp_mma(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    const struct interp_insn *next;
    uint32_t in[7][SOFT_WARP], out[4][SOFT_WARP];
    if (!gather(i, r, x, 7, &next))
        return next;
    for (unsigned k = 0; k < 7; k++)
        for (unsigned l = 0; l < SOFT_WARP; l++)
            in[k][l] = (uint32_t)source(r, x, k, l);
    soft_helper_mma(x->ir.mode, x->ir.mode2, in, out);
    for (unsigned k = 0; k < x->ir.dst_count; k++)
        for (uint32_t left = r->mask; left; left &= left - 1) {
            unsigned l = (unsigned)__builtin_ctz(left);
            interp_lane_write(r, x->d[k], x->d_width[k], l, out[k][l]);
        }
    return i + 1;
}

const struct interp_insn *interp_texture(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    struct soft_texture_lanes lanes;
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        lanes.texture[l] = source(r, x, 0, l);
        lanes.sampler[l] = source(r, x, 1, l);
        for (unsigned k = 0; k < GM_ARRAY_LEN(lanes.in); k++)
            lanes.in[k][l] = (uint32_t)source(r, x, 2 + k, l);
    }
    r->outcome =
        soft_texture_run(r->block, soft_texture_form(&x->ir), r->first_thread, r->mask, &lanes);
    if (r->outcome != SOFT_DONE)
        return NULL;
    for (unsigned k = 0; k < x->ir.dst_count; k++)
        for (uint32_t left = r->mask; left && x->d[k] != INTERP_NOWHERE; left &= left - 1) {
            unsigned l = (unsigned)__builtin_ctz(left);
            interp_lane_write(r, x->d[k], x->d_width[k], l, lanes.out[k][l]);
        }
    return i + 1;
}

/* bar.warp.sync */
const struct interp_insn *interp_warp_sync(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_insn *next;
    if (!gather(i, r, &r->program->slows[i->extra], 0, &next))
        return next;
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    return i + 1;
}
