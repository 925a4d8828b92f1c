/*
 * Tells the checker about barriers of a block.
 */
#include "device/soft/check/check.h"
#include "device/soft/interp/program.h"

void interp_barrier_found(struct interp_run *r, const struct interp_insn *i, uint8_t kind,
                          uint32_t thread)
{
    const struct soft_check_finding f = { .kind = kind,
                                          .line = r->program->slows[i->extra].ir.line,
                                          .thread = thread };
    soft_check_found(r->block, &f);
}

void interp_barrier_checked(struct interp_run *r, uint32_t id)
{
    for (uint32_t w = 0; w < r->block->warps; w++) {
        const struct interp_warp *warp = (const void *)(r->block->save + w * r->block->save_stride);
        const struct interp_insn *at = NULL;
        for (uint32_t k = 0; k < warp->parked_count; k++) {
            const struct interp_parked *p = &warp->parked[k];
            if (p->id != id)
                continue;
            if (!at)
                soft_check_leave(r->block, w, id);
            else if (at != p->insn)
                interp_barrier_found(r, p->insn, SOFT_CHECK_BARRIER_SPLIT,
                                     w * SOFT_WARP + (uint32_t)__builtin_ctz(p->lanes));
            at = p->insn;
        }
    }
    soft_check_barrier_done(r->block, id);
}
