/*
 * Order of blocks and places of registers.
 */
#include <stdlib.h>

#include "device/soft/interp/decode.h"

#define FRAME_LIMIT (16u << 20) /* bytes per warp */

static uint8_t width_of(uint8_t type)
{
    if (type == IR_PRED)
        return INTERP_W1;
    if (ir_types[type].size <= 2)
        return INTERP_W16;
    return ir_types[type].size == 4 ? INTERP_W32 : INTERP_W64;
}

/* Text order; a place of its own for each register. */
static void layout_plain(struct interp_layout *l, const struct ir_fn *f)
{
    uint32_t preds = 0, slots = 0;
    l->order_count = f->block_count;
    for (uint32_t b = 0; b < f->block_count; b++)
        l->order[b] = b;
    for (uint32_t r = 0; r < f->reg_count; r++) {
        if (l->width[r] == INTERP_W1) {
            l->at[r] = preds++;
        } else {
            l->at[r] = slots;
            slots += l->width[r] == INTERP_W64 ? 2 : 1;
        }
    }
    l->pred_count = preds;
    l->slot_count = slots;
    l->clear_all = true;
}

bool interp_layout_make(struct interp_layout *l, const struct ir_module *m, uint32_t fn)
{
    const struct ir_fn *f = &m->fns[fn];
    *l = (struct interp_layout) { 0 };
    l->order = calloc(f->block_count, sizeof(*l->order));
    l->at = calloc(f->reg_count + 1u, sizeof(*l->at));
    l->width = calloc(f->reg_count + 1u, sizeof(*l->width));
    if (!l->order || !l->at || !l->width)
        return false;
    for (uint32_t r = 0; r < f->reg_count; r++)
        l->width[r] = width_of(f->regs[r].type);
    layout_plain(l, f);
    return true;
}

bool interp_layout_place(struct interp_layout *l, const struct ir_fn *f, uint32_t blocks)
{
    uint64_t waiting_at = sizeof(struct interp_warp);
    uint64_t preds_at = waiting_at + (uint64_t)blocks * sizeof(uint32_t);
    uint64_t slots_at =
        (preds_at + (uint64_t)l->pred_count * sizeof(uint32_t) + INTERP_SLOT - 1) & ~(INTERP_SLOT - 1ull);
    uint64_t temps_at = slots_at + (uint64_t)l->slot_count * INTERP_SLOT;
    uint64_t end = temps_at + INTERP_TEMPS * 2ull * INTERP_SLOT;
    if (end > FRAME_LIMIT)
        return false;
    l->waiting_at = (uint32_t)waiting_at;
    l->slots_at = (uint32_t)slots_at;
    l->temps_at = (uint32_t)temps_at;
    l->frame_bytes = (uint32_t)end;
    for (uint32_t r = 0; r < f->reg_count; r++) {
        if (l->at[r] == INTERP_NOWHERE)
            continue;
        if (l->width[r] == INTERP_W1)
            l->at[r] = (uint32_t)preds_at + l->at[r] * (uint32_t)sizeof(uint32_t);
        else
            l->at[r] = (uint32_t)slots_at + l->at[r] * INTERP_SLOT;
    }
    for (uint32_t k = 0; k < l->clear_count; k++)
        l->clear[k] = (uint32_t)slots_at + l->clear[k] * INTERP_SLOT;
    return true;
}

void interp_layout_finish(struct interp_layout *l)
{
    free(l->order);
    free(l->at);
    free(l->width);
    free(l->clear);
    *l = (struct interp_layout) { 0 };
}
