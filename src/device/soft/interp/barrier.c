/*
 * Barriers of a block. Lanes that wait are parked in their warp, with the instruction that they
 * wait at. When a barrier is complete they return to the waiting sets, at the block behind the
 * instruction.
 *
 * A barrier without a count is complete when every thread of the block that has not exited waits at
 * it. One with a count is complete when that many threads have arrived; there each warp counts as a
 * whole.
 */
#include "device/soft/interp/program.h"

/* Operands of a barrier: slow.s[0] number, s[1] count where given. */
static uint32_t operand_lane(const struct interp_run *r, const struct interp_slow *x, unsigned k,
                             unsigned lane)
{
    return (uint32_t)interp_lane_read(r, x->s[k], x->s_width[k], lane);
}

/* Some of `lanes` arrive at a barrier: those that name the same one as the first of them. Returns
 * them, and the barrier in *id. */
static uint32_t arrive(const struct interp_slow *x, struct interp_run *r, uint32_t lanes, bool wait,
                       uint32_t *id)
{
    unsigned first = (unsigned)__builtin_ctz(lanes);
    uint32_t here = 0;
    *id = operand_lane(r, x, 0, first);
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (operand_lane(r, x, 0, l) != *id)
            continue;
        here |= 1u << l;
    }
    if (*id >= INTERP_BARRIERS)
        return 0;
    struct interp_barrier *b = &r->barriers[*id];
    uint32_t threads = (uint32_t)__builtin_popcount(here);
    r->barriers_used |= 1u << *id;
    b->arrived += here == r->warp->alive ? SOFT_WARP : threads;
    b->waiting += wait ? threads : 0;
    if (x->s[1] != INTERP_NOWHERE)
        b->expected = operand_lane(r, x, 1, first);
    return here;
}

static bool complete(const struct interp_run *r, const struct interp_barrier *b)
{
    return b->expected ? b->arrived >= b->expected
                       : b->waiting > 0 && b->waiting == r->alive_threads;
}

/* bar.sync. `block`: where lanes go on. s[0]: the guard, inverted by `value`; lanes for which it
 * does not hold go on at once. */
const struct interp_insn *interp_barrier_wait(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    struct interp_warp *w = r->warp;
    uint32_t left = r->mask;
    if (i->s[0] != INTERP_NOWHERE) {
        left &= *interp_pred(r, i->s[0]) ^ (uint32_t)i->value;
        interp_wait_at(r, i->block, r->mask & ~left);
    }
    while (left) {
        uint32_t id, here = arrive(x, r, left, true, &id);
        if (!here)
            return interp_fault(r, SOFT_FAULT_UNSUPPORTED, id, (unsigned)__builtin_ctz(left));
        w->parked[w->parked_count++] =
            (struct interp_parked) { .insn = i, .lanes = here, .id = id };
        left &= ~here;
    }
    return interp_next_waiting(r);
}

const struct interp_insn *interp_barrier_arrive(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    for (uint32_t left = r->mask; left;) {
        uint32_t id, here = arrive(x, r, left, false, &id);
        if (!here)
            return interp_fault(r, SOFT_FAULT_UNSUPPORTED, id, (unsigned)__builtin_ctz(left));
        left &= ~here;
    }
    return i + 1;
}

static void warp_release(struct interp_run *r, uint32_t id)
{
    struct interp_warp *w = r->warp;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < w->parked_count; k++) {
        struct interp_parked *p = &w->parked[k];
        if (p->id == id) {
            interp_wait_at(r, p->insn->block, p->lanes);
        } else {
            w->parked[kept++] = *p;
        }
    }
    w->parked_count = kept;
}

bool interp_barriers_release(struct interp_run *r)
{
    bool released = false;
    for (uint32_t left = r->barriers_used; left; left &= left - 1) {
        uint32_t id = (uint32_t)__builtin_ctz(left);
        struct interp_barrier *b = &r->barriers[id];
        if (!complete(r, b))
            continue;
        if (GM_UNLIKELY(r->block->check != NULL))
            interp_barrier_checked(r, id);
        struct interp_warp *warp = r->warp;
        uint8_t *frame = r->base[0];
        for (uint32_t k = 0; k < r->block->warps; k++) {
            r->base[0] = r->block->save + k * r->block->save_stride;
            r->warp = (struct interp_warp *)(void *)r->base[0];
            warp_release(r, id);
        }
        r->warp = warp;
        r->base[0] = frame;
        *b = (struct interp_barrier) { 0 };
        r->barriers_used &= ~(1u << id);
        released = true;
        if (GM_UNLIKELY(r->block->watch))
            r->block->watch(r->block->watch_arg, 0, NULL, 0, NULL);
    }
    return released;
}
