/*
 * Order of blocks and places of registers.
 *
 * Both follow from the ir's analysis: blocks keep its order, and registers that are never alive
 * together share a place, found by a linear scan over the instructions in that order. A register
 * counts as alive from the first to the last position where it is alive, including loops. So two
 * registers that are alive at one point never get the same place.
 *
 * Instructions write only the running lanes. So lanes that wait elsewhere lose nothing as long as
 * registers that share a place have the same width; with different widths one lane's bytes would
 * belong to another lane.
 *
 * In a function too large for the analysis blocks keep the order of the text, and each register has
 * a place of its own.
 */
#include <stdlib.h>

#include "device/soft/interp/decode.h"
#include "device/soft/ir/analysis.h"

#define FRAME_LIMIT (16u << 20) /* bytes per warp */

static uint8_t width_of(uint8_t type)
{
    if (type == IR_PRED)
        return INTERP_W1;
    if (ir_types[type].size <= 2)
        return INTERP_W16;
    return ir_types[type].size == 4 ? INTERP_W32 : INTERP_W64;
}

/* Blocks in the order of the text, and a place for each register. */
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

/* First and last point at which a register is alive. Instruction number n of the order reads at
 * point 2n and writes at 2n + 1; or at 2n, if it may write before it has read everything. */
struct life {
    uint32_t first, last, reg;
};

static void live_at(struct life *lives, uint32_t reg, uint32_t point)
{
    if (reg == IR_NONE)
        return;
    lives[reg].first = GM_MIN(lives[reg].first, point);
    lives[reg].last = GM_MAX(lives[reg].last, point);
}

/* Whether every lane of every source is read before its bytes may be written: so for one result
 * that is computed lane by lane from sources of its own width. */
static bool reads_first(const struct interp_layout *l, const struct ir_instr *i)
{
    const uint16_t other =
        IR_P_LOAD | IR_P_STORE | IR_P_EFFECT | IR_P_CROSS_LANE | IR_P_TEXTURE | IR_P_TERMINATOR;
    if (i->dst_count != 1 || i->dst[0] == IR_NONE || (ir_ops[i->op].properties & other))
        return false;
    uint8_t width = l->width[i->dst[0]];
    for (unsigned k = 0; k < i->src_count; k++) {
        if (i->src[k].kind != IR_SRC_REG)
            continue;
        uint8_t w = l->width[i->src[k].index];
        if (w != width && (w == INTERP_W16 || width == INTERP_W16))
            return false;
    }
    return true;
}

static void lives_of_instr(const struct interp_layout *l, struct life *lives,
                           const struct ir_instr *i, uint32_t n)
{
    uint32_t write = reads_first(l, i) ? 2 * n + 1 : 2 * n;
    live_at(lives, i->guard, 2 * n);
    live_at(lives, i->address.base, 2 * n);
    for (unsigned k = 0; k < i->src_count; k++)
        if (i->src[k].kind == IR_SRC_REG)
            live_at(lives, i->src[k].index, 2 * n);
    for (unsigned k = 0; k < i->dst_count; k++)
        live_at(lives, i->dst[k], write);
    live_at(lives, i->dst_pred, write);
}

static void lives_of_border(const struct ir_analysis *a, struct life *lives, const uint64_t *row,
                            uint32_t point)
{
    for (uint32_t w = 0; w < a->live_words; w++)
        for (uint64_t left = row[w]; left; left &= left - 1)
            live_at(lives, 64 * w + (uint32_t)__builtin_ctzll(left), point);
}

static void lives_find(const struct interp_layout *l, const struct ir_fn *f,
                       const struct ir_analysis *a, struct life *lives)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < f->reg_count; r++)
        lives[r] = (struct life) { .first = UINT32_MAX, .reg = r };
    for (uint32_t k = 0; k < a->order_count; k++) {
        const struct ir_block *b = &f->blocks[a->order[k]];
        uint64_t row = (uint64_t)a->order[k] * a->live_words;
        lives_of_border(a, lives, a->live_in + row, 2 * n);
        for (uint32_t i = b->first; i < b->first + b->count; i++)
            lives_of_instr(l, lives, &f->instrs[i], n++);
        lives_of_border(a, lives, a->live_out + row, 2 * n - 1);
    }
}

static int by_first(const void *x, const void *y)
{
    const struct life *a = x, *b = y;
    return a->first < b->first   ? -1
           : a->first > b->first ? 1
           : a->reg < b->reg     ? -1
                                 : a->reg > b->reg;
}

/* Places in use, with the one that becomes free first on top; and free places, with the one freed
 * last on top. */
struct places {
    struct {
        uint32_t last, place;
    } * heap;
    uint32_t *free;
    uint32_t heap_count, free_count, made;
};

static void heap_push(struct places *p, uint32_t last, uint32_t place)
{
    uint32_t at = p->heap_count++;
    for (; at > 0 && p->heap[(at - 1) / 2].last > last; at = (at - 1) / 2)
        p->heap[at] = p->heap[(at - 1) / 2];
    p->heap[at].last = last;
    p->heap[at].place = place;
}

static uint32_t heap_pop(struct places *p)
{
    uint32_t place = p->heap[0].place, at = 0, child;
    uint32_t last = p->heap[--p->heap_count].last, moved = p->heap[p->heap_count].place;
    while ((child = 2 * at + 1) < p->heap_count) {
        if (child + 1 < p->heap_count && p->heap[child + 1].last < p->heap[child].last)
            child++;
        if (p->heap[child].last >= last)
            break;
        p->heap[at] = p->heap[child];
        at = child;
    }
    p->heap[at].last = last;
    p->heap[at].place = moved;
    return place;
}

/* Gives places to the registers of one width; returns how many places there are. */
static uint32_t scan(struct interp_layout *l, const struct life *lives, uint32_t count,
                     uint8_t width, struct places *p)
{
    p->heap_count = p->free_count = p->made = 0;
    for (uint32_t k = 0; k < count && lives[k].first != UINT32_MAX; k++) {
        if (l->width[lives[k].reg] != width)
            continue;
        while (p->heap_count && p->heap[0].last < lives[k].first)
            p->free[p->free_count++] = heap_pop(p);
        uint32_t place = p->free_count ? p->free[--p->free_count] : p->made++;
        l->at[lives[k].reg] = place;
        heap_push(p, lives[k].last, place);
    }
    return p->made;
}

/* Finds the slots of registers that may be read before they are written. */
static bool clear_find(struct interp_layout *l, const struct ir_fn *f, const struct ir_analysis *a)
{
    l->clear = calloc(2u * f->reg_count + 1u, sizeof(*l->clear));
    for (uint32_t r = 0; l->clear && r < f->reg_count; r++) {
        if (l->width[r] == INTERP_W1 || !ir_live_in(a, a->order[0], r))
            continue;
        l->clear[l->clear_count++] = l->at[r];
        if (l->width[r] == INTERP_W64)
            l->clear[l->clear_count++] = l->at[r] + 1;
    }
    return l->clear != NULL;
}

/* Lets registers share places. False: no memory. */
static bool layout_shared(struct interp_layout *l, const struct ir_fn *f,
                          const struct ir_analysis *a)
{
    uint32_t regs = f->reg_count;
    struct life *lives = calloc(regs + 1u, sizeof(*lives));
    struct places p = { .heap = calloc(regs + 1u, sizeof(*p.heap)),
                        .free = calloc(regs + 1u, sizeof(*p.free)) };
    bool ok = lives && p.heap && p.free;
    if (ok) {
        l->order_count = a->order_count;
        for (uint32_t k = 0; k < a->order_count; k++)
            l->order[k] = a->order[k];
        for (uint32_t r = 0; r < regs; r++)
            l->at[r] = INTERP_NOWHERE;
        lives_find(l, f, a, lives);
        qsort(lives, regs, sizeof(*lives), by_first);
        l->pred_count = scan(l, lives, regs, INTERP_W1, &p);
        uint32_t words = scan(l, lives, regs, INTERP_W32, &p);
        uint32_t halves = scan(l, lives, regs, INTERP_W16, &p);
        uint32_t wide = scan(l, lives, regs, INTERP_W64, &p);
        for (uint32_t r = 0; r < regs; r++) {
            if (l->at[r] == INTERP_NOWHERE)
                continue;
            if (l->width[r] == INTERP_W16)
                l->at[r] += words;
            if (l->width[r] == INTERP_W64)
                l->at[r] = words + halves + 2 * l->at[r];
        }
        l->slot_count = words + halves + 2 * wide;
        ok = clear_find(l, f, a);
    }
    free(lives);
    free(p.heap);
    free(p.free);
    return ok;
}

bool interp_layout_make(struct interp_layout *l, const struct ir_module *m, uint32_t fn)
{
    const struct ir_fn *f = &m->fns[fn];
    *l = (struct interp_layout) { 0 };
    l->order = calloc(f->block_count, sizeof(*l->order));
    l->at = calloc(f->reg_count + 1u, sizeof(*l->at));
    l->width = calloc(f->reg_count + 1u, sizeof(*l->width));
    l->polls = calloc(f->block_count + 1u, sizeof(*l->polls));
    if (!l->order || !l->at || !l->width || !l->polls)
        return false;
    for (uint32_t r = 0; r < f->reg_count; r++)
        l->width[r] = width_of(f->regs[r].type);
    static const struct ir_analyse_options nothing_known;
    struct ir_analysis *a = NULL;
    bool ok = true;
    if (ir_analyse(m, fn, &nothing_known, &a) == 0 && a->order_count > 0)
        ok = layout_shared(l, f, a) && ir_find_polls(f, a, l->polls) >= 0;
    else
        layout_plain(l, f);
    ir_analysis_destroy(a);
    return ok;
}

bool interp_layout_place(struct interp_layout *l, const struct ir_fn *f, uint32_t blocks)
{
    uint64_t waiting_at = sizeof(struct interp_warp);
    uint64_t preds_at = waiting_at + (uint64_t)blocks * sizeof(uint32_t);
    uint64_t slots_at = (preds_at + (uint64_t)l->pred_count * sizeof(uint32_t) + INTERP_SLOT - 1) &
                        ~(INTERP_SLOT - 1ull);
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
    free(l->polls);
    free(l->clear);
    *l = (struct interp_layout) { 0 };
}
