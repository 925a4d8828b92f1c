/*
 * Control flow of a warp: branches, masks, exits. program.h explains the scheme.
 *
 * The lowest block runs first, which keeps lanes in a loop until all have left it. A lane that
 * spins until another lane of its warp does something behind the loop (releases a lock, say) would
 * then wait for ever. Therefore lanes that run while others wait do so for a limited number of
 * branches; then the waiting lanes get a turn, in rotation. For the same reason a warp that has
 * taken many branches lets the other warps of its block run.
 *
 * Where a loop may wait for others (ir/poll.c) that goes faster: after a number of ways back in the
 * warp's turn its lanes run behind all others, and then end the turn. The number is halved from
 * turn to turn as long as it is used up. It is not 0 at first, because a loop that looks as if it
 * waited may do work which lanes behind it count on (jit/park.c does the same).
 */
#include "device/soft/exec/helpers.h"
#include "device/soft/interp/program.h"
#include "device/soft/ir/analysis.h"

#define PATIENCE_FIRST (1u << 16)
#define PATIENCE_LEAST (1u << 10)
#define STICKY         4096u
#define HOLDS_MAX      64u
#define WARP_TURN      2048u /* branches */

uint32_t *interp_waiting(const struct interp_program *p, uint8_t *frame)
{
    return (uint32_t *)(void *)(frame + p->waiting_at);
}

void interp_mask_set(struct interp_run *r, uint32_t mask)
{
    r->mask = mask;
    r->full = mask == r->warp->alive;
    for (unsigned l = 0; l < SOFT_WARP; l++)
        r->lanes[l] = -(int32_t)(mask >> l & 1);
}

void interp_wait_at(struct interp_run *r, uint32_t block, uint32_t lanes)
{
    struct interp_warp *w = r->warp;
    if (!lanes)
        return;
    interp_waiting(r->program, r->base[0])[block] |= lanes;
    if (w->low == INTERP_NO_BLOCK)
        w->low = w->last = block;
    w->low = GM_MIN(w->low, block);
    w->last = GM_MAX(w->last, block);
}

/* Takes out the lanes that wait at `block`. */
static uint32_t waiting_take(struct interp_run *r, uint32_t block)
{
    struct interp_warp *w = r->warp;
    uint32_t *waiting = interp_waiting(r->program, r->base[0]);
    uint32_t lanes = waiting[block];
    waiting[block] = 0;
    if (block != w->low)
        return lanes;
    uint32_t b = block + 1;
    while (b <= w->last && !waiting[b])
        b++;
    w->low = b <= w->last ? b : INTERP_NO_BLOCK;
    return lanes;
}

static const struct interp_insn *run_at(struct interp_run *r, uint32_t block, uint32_t lanes)
{
    interp_mask_set(r, lanes);
    return r->program->blocks[block].first;
}

const struct interp_insn *interp_next_waiting(struct interp_run *r)
{
    struct interp_warp *w = r->warp;
    w->sticky = 0;
    if (w->low == INTERP_NO_BLOCK) {
        interp_mask_set(r, 0);
        return NULL;
    }
    uint32_t block = w->low;
    return run_at(r, block, waiting_take(r, block));
}

/* The first block from `from` on, wrapping at the end, where lanes wait; there is one. */
static uint32_t waiting_from(struct interp_run *r, uint32_t from)
{
    const uint32_t *waiting = interp_waiting(r->program, r->base[0]);
    for (uint32_t b = from; b <= r->warp->last; b++)
        if (waiting[b])
            return b;
    return r->warp->low;
}

/* The running lanes start to wait at `block`, and others get a turn. */
static const struct interp_insn *rotate(struct interp_run *r, uint32_t block)
{
    struct interp_warp *w = r->warp;
    w->rotor = waiting_from(r, w->rotor + 1);
    uint32_t lanes = waiting_take(r, w->rotor);
    interp_wait_at(r, block, r->mask);
    w->turns = 0;
    w->sticky = STICKY;
    w->patience = GM_MAX(w->patience / 2, PATIENCE_LEAST);
    return run_at(r, w->rotor, lanes);
}

static const struct interp_insn *go_among_waiting(struct interp_run *r, uint32_t block)
{
    struct interp_warp *w = r->warp;
    if (w->patience == 0)
        w->patience = PATIENCE_FIRST;
    if (++w->turns > w->patience)
        return rotate(r, block);
    if (w->sticky == 0 && block > w->low) {
        uint32_t first = w->low, lanes = waiting_take(r, first);
        interp_wait_at(r, block, r->mask);
        return run_at(r, first, lanes);
    }
    if (w->sticky)
        w->sticky--;
    if (interp_waiting(r->program, r->base[0])[block])
        interp_mask_set(r, r->mask | waiting_take(r, block));
    return r->program->blocks[block].first;
}

/* The warp goes on at `block` after the block's other warps have had a turn. */
static const struct interp_insn *yield(struct interp_run *r, uint32_t block)
{
    interp_wait_at(r, block, r->mask);
    interp_mask_set(r, 0);
    return NULL;
}

void interp_turn_begin(struct interp_run *r)
{
    r->branches = 0;
    r->warp->held = UINT32_MAX; /* others have run: who is waited for may come now */
    r->looks = r->warp->looks;
}

void interp_turn_end(struct interp_run *r)
{
    struct interp_warp *w = r->warp;
    w->looks = r->looks ? IR_PATIENCE : w->looks - w->looks / 2;
}

/* Where lanes go that a branch sends to `block`: back to a loop that may wait for others, if they
 * have done that less often in this turn than they may. */
static uint32_t arrive(struct interp_run *r, uint32_t block)
{
    if (GM_LIKELY(block < r->program->first_again) || r->looks == 0)
        return block;
    r->looks--;
    return r->program->blocks[block].first->block;
}

/* Lanes that have come back to such a loop too often. The others cannot run either, or do not get
 * on: the other warps have a turn, and then all look again. */
const struct interp_insn *interp_look_again(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_program *p = r->program;
    uint32_t *waiting = interp_waiting(p, r->base[0]);
    for (uint32_t b = p->first_again; r->warp->low != INTERP_NO_BLOCK && b <= r->warp->last; b++)
        if (waiting[b])
            interp_wait_at(r, p->blocks[b].first->block, waiting_take(r, b));
    soft_helper_give_way(r->block);
    return yield(r, i->block);
}

const struct interp_insn *interp_go(struct interp_run *r, uint32_t block)
{
    if (GM_UNLIKELY(++r->branches > WARP_TURN))
        return yield(r, block);
    if (GM_LIKELY(r->warp->low == INTERP_NO_BLOCK))
        return r->program->blocks[block].first;
    return go_among_waiting(r, block);
}

/* Sends the lanes `taken` to `block` and the other running lanes to `other`. */
static const struct interp_insn *part(struct interp_run *r, uint32_t taken, uint32_t block,
                                      uint32_t other)
{
    if (taken == r->mask)
        return interp_go(r, arrive(r, block));
    if (taken == 0)
        return interp_go(r, arrive(r, other));
    block = arrive(r, block);
    other = arrive(r, other);
    /* Lanes that run out of order: go on with the first lane's way. */
    if (r->warp->sticky) {
        bool first = taken >> __builtin_ctz(r->mask) & 1;
        interp_wait_at(r, first ? other : block, first ? r->mask & ~taken : taken);
        interp_mask_set(r, first ? taken : r->mask & ~taken);
        return interp_go(r, first ? block : other);
    }
    interp_wait_at(r, block, taken);
    interp_wait_at(r, other, r->mask & ~taken);
    if (++r->warp->turns > r->warp->patience && r->warp->patience != 0) {
        interp_mask_set(r, waiting_take(r, GM_MIN(block, other)));
        return rotate(r, GM_MIN(block, other));
    }
    return interp_next_waiting(r);
}

/* bra without a guard, and every fall-through into a block that has other predecessors. */
const struct interp_insn *interp_bra(const struct interp_insn *i, struct interp_run *r)
{
    return interp_go(r, arrive(r, i->block));
}

/* @p bra; `value` inverts the predicate. */
const struct interp_insn *interp_bra_if(const struct interp_insn *i, struct interp_run *r)
{
    return part(r, (*interp_pred(r, i->s[0]) ^ (uint32_t)i->value) & r->mask, i->block, i->other);
}

/* brx.idx. s[0]: the index into `value` targets, from targets[extra] on; an index beyond them takes
 * the last one. s[1]: the guard; lanes for which it does not hold go to `other`. */
const struct interp_insn *interp_brx(const struct interp_insn *i, struct interp_run *r)
{
    const uint32_t *index = interp_operand(r, i->s[0]);
    const uint32_t *targets = r->program->targets + i->extra;
    uint32_t last = (uint32_t)i->value - 1, inverted = (uint32_t)(i->value >> 32), left = r->mask;
    if (i->s[1] != INTERP_NOWHERE) {
        left &= *interp_pred(r, i->s[1]) ^ inverted;
        if (left != r->mask)
            interp_wait_at(r, arrive(r, i->other), r->mask & ~left);
    }
    for (; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        interp_wait_at(r, arrive(r, targets[GM_MIN(index[l], last)]), 1u << l);
    }
    return interp_next_waiting(r);
}

static void lanes_exit(struct interp_run *r, uint32_t lanes)
{
    r->warp->alive &= ~lanes;
    r->alive_threads -= (uint32_t)__builtin_popcount(lanes);
}

const struct interp_insn *interp_exit(const struct interp_insn *i, struct interp_run *r)
{
    lanes_exit(r, r->mask);
    return interp_next_waiting(r);
}

/* @p exit; lanes for which the predicate does not hold go to `other`. */
const struct interp_insn *interp_exit_if(const struct interp_insn *i, struct interp_run *r)
{
    uint32_t leaving = (*interp_pred(r, i->s[0]) ^ (uint32_t)i->value) & r->mask;
    uint32_t staying = r->mask & ~leaving;
    lanes_exit(r, leaving);
    if (!staying)
        return interp_next_waiting(r);
    interp_mask_set(r, staying);
    return interp_go(r, arrive(r, i->other));
}

/* Before a guarded instruction: only the lanes whose predicate holds go on. `extra`: how many
 * instructions to skip to get behind the matching unguard. */
const struct interp_insn *interp_guard(const struct interp_insn *i, struct interp_run *r)
{
    uint32_t lanes = (*interp_pred(r, i->s[0]) ^ (uint32_t)i->value) & r->mask;
    if (!lanes)
        return i + i->extra;
    r->outer = r->mask;
    if (lanes != r->mask)
        interp_mask_set(r, lanes);
    return i + 1;
}

const struct interp_insn *interp_unguard(const struct interp_insn *i, struct interp_run *r)
{
    if (r->outer != r->mask)
        interp_mask_set(r, r->outer);
    return i + 1;
}

const struct interp_insn *interp_fault(struct interp_run *r, enum soft_outcome outcome,
                                       uint64_t address, unsigned lane)
{
    r->outcome = outcome;
    r->block->fault_address = address;
    r->block->fault_thread = r->first_thread + lane;
    return NULL;
}

const struct interp_insn *interp_trap(const struct interp_insn *i, struct interp_run *r)
{
    return interp_fault(r, (enum soft_outcome)i->value, 0, (unsigned)__builtin_ctz(r->mask));
}

const struct interp_insn *interp_fence(const struct interp_insn *i, struct interp_run *r)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return i + 1;
}

/* Members that are not here and may still come: lanes at a barrier will not. */
static uint32_t missing(const struct interp_warp *w, uint32_t members, uint32_t here)
{
    uint32_t lanes = members & w->alive & ~here;
    for (uint32_t k = 0; k < w->parked_count; k++)
        lanes &= ~w->parked[k].lanes;
    return lanes;
}

/* Lets the running lanes wait at the instruction while others run. False: they have waited often
 * enough. As long as the others take branches they may still come, however long that takes. */
static bool hold(const struct interp_insn *i, struct interp_run *r, const struct interp_insn **next)
{
    struct interp_warp *w = r->warp;
    if (w->low == INTERP_NO_BLOCK || w->holds >= HOLDS_MAX) {
        w->holds = 0;
        return false;
    }
    w->holds = r->branches == w->held ? w->holds + 1 : 0;
    w->held = r->branches;
    w->sticky = 0;
    uint32_t block = waiting_from(r, i->block + 1), lanes = waiting_take(r, block);
    interp_wait_at(r, i->block, r->mask);
    *next = run_at(r, block, lanes);
    return true;
}

bool interp_gather(const struct interp_insn *i, struct interp_run *r)
{
    bool alone = r->warp->low == INTERP_NO_BLOCK && !r->program->calls;
    if (GM_LIKELY(alone) || i->block == INTERP_NO_BLOCK)
        return false;
    if (interp_waiting(r->program, r->base[0])[i->block])
        interp_mask_set(r, r->mask | waiting_take(r, i->block));
    return true;
}

/* The lanes of `left` that name the same lanes as the first. */
static uint32_t namesakes(const uint32_t *named, uint32_t left)
{
    uint32_t lanes = 0, first = named[__builtin_ctz(left)];
    for (; left; left &= left - 1)
        if (named[__builtin_ctz(left)] == first)
            lanes |= left & -left;
    return lanes;
}

/* The running lanes that go on: those that name lanes which are all here, naming the same, or wait
 * `elsewhere`. A lane that is here but names others comes again for those that name it: it is in a
 * call that they did not make, say. Where lanes do not name themselves, which PTX leaves open, all
 * go on together. *members: whom the lanes that go on name. */
static uint32_t complete(const struct interp_run *r, const uint32_t *named, uint32_t elsewhere,
                         uint32_t *members)
{
    uint32_t ready = 0, all = 0, strangers = 0;
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        all |= named[l];
        strangers |= ~named[l] & 1u << l;
    }
    *members = all;
    if (strangers)
        return missing(r->warp, all, r->mask | elsewhere) ? 0 : r->mask;
    *members = 0;
    for (uint32_t left = r->mask, lanes; left; left &= ~lanes) {
        lanes = namesakes(named, left);
        uint32_t mask = named[__builtin_ctz(lanes)];
        if (missing(r->warp, mask, lanes | elsewhere))
            continue;
        ready |= lanes;
        *members |= mask;
    }
    return ready;
}

bool interp_together(const struct interp_insn *i, struct interp_run *r, const uint32_t *named,
                     const struct interp_insn **next)
{
    uint32_t members, ready = complete(r, named, 0, &members);
    if (!ready && hold(i, r, next))
        return false;
    r->warp->holds = 0;
    if (ready && ready != r->mask) {
        interp_wait_at(r, i->block, r->mask & ~ready);
        interp_mask_set(r, ready);
    }
    return true;
}

bool interp_meet(const struct interp_insn *i, struct interp_run *r, const uint32_t *named,
                 const struct interp_insn **next)
{
    struct interp_warp *w = r->warp;
    uint32_t go = w->passing & r->mask, here = r->mask, members = 0;
    if (go) { /* lanes that have come since then wait */
        w->passing &= ~go;
    } else {
        w->arrived |= here;
        go = complete(r, named, w->arrived & ~here, &members);
        if (!go && hold(i, r, next))
            return false;
        for (uint32_t left = go ? 0 : here; left; left &= left - 1)
            members |= named[__builtin_ctz(left)];
        go = go ? go : here;
        w->holds = 0;
        w->passing |= w->arrived & members & ~here;
        w->arrived = (w->arrived & ~(members | here)) | (here & ~go);
    }
    if (go != here) {
        interp_wait_at(r, i->block, here & ~go);
        interp_mask_set(r, go);
    }
    return true;
}
