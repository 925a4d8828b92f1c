/*
 * Handlers of programs that are checked (device/soft/check/check.h). They run before the ordinary
 * handlers. An access that is not allowed is left out, lane by lane, and a load that is left out
 * reads zero. Programs that are not checked do not contain these handlers.
 *
 * Stores are checked and made lane by lane, so that each is compared with what the lane before it
 * stored. Where lanes store to one place, they store again, so that the right one's value stays.
 */
#include "device/soft/check/check.h"

#include <string.h>

#include "device/soft/interp/code.h"
#include "device/soft/interp/interp.h"
#include "device/soft/ir/spaces.h"

static uint32_t access_line(const void *program, uint32_t index)
{
    const struct interp_program *p = program;
    return index < p->access_count ? p->accesses[index].line : 0;
}

/* The space that a lane accesses, and the address there. Accesses to parameters are left to the
 * ordinary handlers. */
static uint8_t resolve(const struct interp_access *a, uint64_t *at)
{
    uint8_t space = a->space;
    if (space == IR_SPACE_GENERIC)
        space = soft_address_is_shared(*at)  ? IR_SPACE_SHARED
                : soft_address_is_local(*at) ? IR_SPACE_LOCAL
                : soft_address_is_param(*at) ? IR_SPACE_PARAM
                                             : IR_SPACE_GLOBAL;
    if (space == IR_SPACE_SHARED || space == IR_SPACE_LOCAL)
        *at = (uint32_t)*at;
    return space;
}

static bool examine(const struct interp_insn *i, struct interp_run *r, unsigned lane,
                    struct soft_check_access *x)
{
    const struct interp_access *a = &r->program->accesses[i->extra];
    x->at = interp_lane_address(r, a, lane);
    x->space = resolve(a, &x->at);
    if (x->space == IR_SPACE_PARAM)
        return true;
    x->index = i->extra;
    x->thread = r->first_thread + lane;
    return soft_check_access(r->block, x);
}

static struct soft_check_access access_of(const struct interp_access *a)
{
    return (struct soft_check_access) {
        .size = a->size,
        .count = a->count,
        .wanted = 0xff,
        .copied = a->copied,
        .strong = a->order != IR_ORDER_WEAK,
        .acquires =
            a->order == IR_ORDER_ACQUIRE || a->order == IR_ORDER_ACQ_REL || a->order == IR_ORDER_SC,
        .releases =
            a->order == IR_ORDER_RELEASE || a->order == IR_ORDER_ACQ_REL || a->order == IR_ORDER_SC,
    };
}

/* Ends a kernel about which so much was found that it may never end by itself. */
static const struct interp_insn *next(const struct interp_insn *i, struct interp_run *r)
{
    if (GM_LIKELY(!soft_check_is_over(r->block)))
        return i + 1;
    return interp_fault(r, SOFT_FAULT_ADDRESS, 0, (unsigned)__builtin_ctz(r->mask));
}

static const struct interp_insn *load(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_access *a = &r->program->accesses[i->extra];
    struct soft_check_access x = access_of(a);
    uint32_t good = 0;
    x.reads = true;
    for (unsigned k = 0; k < a->count; k++)
        if (a->value[k] == INTERP_NOWHERE)
            x.wanted &= (uint8_t) ~(1u << k);
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (GM_LIKELY(examine(i, r, l, &x))) {
            good |= 1u << l;
            continue;
        }
        for (unsigned k = 0; k < a->count; k++)
            if (a->value[k] != INTERP_NOWHERE)
                interp_lane_write(r, a->value[k], a->width[k], l, 0);
    }
    if (good && !interp_load_lanes(i, r, good))
        return NULL;
    return good == r->mask ? i + 1 : next(i, r);
}

/* Those of `lanes` whose address another one of them has, too. */
static uint32_t meeting_lanes(const struct interp_run *r, const struct interp_access *a,
                              uint32_t lanes)
{
    uint64_t at[SOFT_WARP], last = 0;
    uint32_t meeting = 0;
    bool rising = true; /* as mostly, and then all are different */
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        at[l] = interp_lane_address(r, a, l);
        rising = rising && (left == lanes || at[l] > last);
        last = at[l];
    }
    for (uint32_t left = rising ? 0 : lanes; left; left &= left - 1)
        for (uint32_t others = left & (left - 1); others; others &= others - 1)
            if (at[__builtin_ctz(left)] == at[__builtin_ctz(others)])
                meeting |= (left & -left) | (others & -others);
    return meeting;
}

static const struct interp_insn *store(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_access *a = &r->program->accesses[i->extra];
    struct soft_check_access x = access_of(a);
    uint8_t bytes[4 * sizeof(uint64_t)];
    uint32_t good = 0, meeting;
    x.writes = true;
    x.bytes = bytes;
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        for (unsigned k = 0; k < a->count; k++) {
            uint64_t v = interp_lane_read(r, a->value[k], a->width[k], l);
            memcpy(bytes + (size_t)k * a->size, &v, a->size);
        }
        if (GM_UNLIKELY(!examine(i, r, l, &x)))
            continue;
        good |= 1u << l;
        if (!interp_store_lanes(i, r, 1u << l))
            return NULL;
    }
    meeting = a->space == IR_SPACE_LOCAL ? 0 : meeting_lanes(r, a, good);
    if (meeting && !interp_store_lanes(i, r, meeting))
        return NULL;
    return GM_LIKELY(good == r->mask) ? i + 1 : next(i, r);
}

static const struct interp_insn *atom(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_access *a = &r->program->accesses[i->extra];
    struct soft_check_access x = access_of(a);
    uint32_t mask = r->mask, good = 0;
    x.reads = x.writes = x.strong = true;
    x.count = 1;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (GM_LIKELY(examine(i, r, l, &x)))
            good |= 1u << l;
        else if (i->d != INTERP_NOWHERE)
            interp_lane_write(r, i->d, a->width[2], l, 0);
    }
    if (good == mask)
        return interp_atom(i, r);
    if (good) {
        interp_mask_set(r, good);
        const struct interp_insn *after = interp_atom(i, r);
        if (!after)
            return NULL;
        interp_mask_set(r, mask);
    }
    return next(i, r);
}

static const struct interp_insn *fence(const struct interp_insn *i, struct interp_run *r)
{
    soft_check_fence(r->block, r->warp_index);
    return interp_fence(i, r);
}

static const struct interp_insn *warp_sync(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_insn *after = interp_warp_sync(i, r);
    if (after != i + 1)
        return after;
    const struct interp_slow *x = &r->program->slows[i->extra];
    uint32_t members = 0;
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint32_t mask = (uint32_t)interp_lane_read(r, x->s[0], x->s_width[0], l);
        if (!(mask >> l & 1))
            interp_barrier_found(r, i, SOFT_CHECK_BARRIER_MASK, r->first_thread + l);
        /* Groups of lanes may arrive here together, each with a mask of its own. */
        if (!(members >> l & 1)) {
            soft_check_warp_sync(r->block, r->warp_index, mask & r->mask);
            members |= mask;
        }
    }
    return after;
}

static const struct interp_insn *barrier_arrive(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    uint32_t id =
        (uint32_t)interp_lane_read(r, x->s[0], x->s_width[0], (unsigned)__builtin_ctz(r->mask));
    if (id < SOFT_CHECK_BARRIERS)
        soft_check_arrive(r->block, r->warp_index, id);
    return interp_barrier_arrive(i, r);
}

/* Tells the checker at which barriers lanes are parked. */
static const struct interp_insn *barrier_wait(const struct interp_insn *i, struct interp_run *r)
{
    uint32_t before = r->warp->parked_count;
    const struct interp_insn *after = interp_barrier_wait(i, r);
    for (uint32_t k = before; k < r->warp->parked_count; k++)
        soft_check_arrive(r->block, r->warp_index, r->warp->parked[k].id);
    return after;
}

interp_fn *interp_checked(interp_fn *run)
{
    static const struct {
        interp_fn *plain, *checked;
    } handlers[] = {
        { interp_load_slow, load },
        { interp_store_slow, store },
        { interp_atom, atom },
        { interp_fence, fence },
        { interp_warp_sync, warp_sync },
        { interp_barrier_arrive, barrier_arrive },
        { interp_barrier_wait, barrier_wait },
    };
    for (unsigned k = 0; k < GM_ARRAY_LEN(handlers); k++)
        if (handlers[k].plain == run)
            return handlers[k].checked;
    return run;
}

enum soft_outcome interp_run_block_checked(const struct soft_code *code, struct soft_block *b)
{
    const struct interp_program *p = &((const struct interp_code *)code)->program;
    soft_check_begin(b, p, access_line);
    enum soft_outcome outcome = interp_run_block(code, b);
    if (outcome != SOFT_FAULT_BARRIER)
        return outcome;
    const struct interp_warp *w =
        (const void *)(b->save + b->fault_thread / SOFT_WARP * b->save_stride);
    const struct interp_slow *x = &p->slows[w->parked[0].insn->extra];
    const struct soft_check_finding f = { .kind = SOFT_CHECK_BARRIER_ENDLESS,
                                          .line = x->ir.line,
                                          .thread = b->fault_thread };
    soft_check_found(b, &f);
    return outcome;
}
