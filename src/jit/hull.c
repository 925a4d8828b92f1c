/*
 * One check for all accesses of a block through one base register.
 *
 * Unrolled loops and stencils access [base + 0], [base + 4] .. The first of them checks the whole
 * range that they touch, the hull. Where that is good, the rest of the block needs no check for
 * them; where it is not (an edge, of which the other lanes do not run), control goes to a second
 * version of the rest of the block, in which each access is checked lane by lane. So it does where
 * an index wraps (affine.c).
 */
#include "jit/gen.h"

#define SHARED_MIN                                                                                 \
    2 /* accesses of shared memory: a single one is masked, which costs less than a check */
#define WIDTH_MAX (1 << 20) /* bytes between the first and the last displacement */

static bool has_space(const struct ir_instr *i, bool uniform)
{
    return i->space == IR_SPACE_GLOBAL || i->space == IR_SPACE_CONST ||
           i->space == IR_SPACE_SHARED || (i->space == IR_SPACE_GENERIC && !uniform);
}

static unsigned access_size(const struct ir_instr *i)
{
    return (i->op == IR_OP_ST ? i->src_count : i->dst_count) * (unsigned)ir_types[i->type].size;
}

/* Instruction `at` is an access that a hull may cover. */
static bool is_coverable(const struct jit_gen *g, uint32_t at)
{
    const struct ir_instr *i = &g->fn->instrs[at];
    const struct ir_instr_info *info = &g->a->instrs[at];
    if ((i->op != IR_OP_LD && i->op != IR_OP_ST) || i->order != IR_ORDER_WEAK ||
        i->address.base == IR_NONE || i->address.symbol != IR_NONE)
        return false;
    unsigned size = access_size(i);
    bool uniform = info->address == IR_UNIFORM;
    bool contiguous = info->address == IR_AFFINE && info->address_stride == (int64_t)size;
    bool apart = i->op == IR_OP_LD && i->space == IR_SPACE_SHARED && jit_is_strided(g, at);
    return (uniform || contiguous || apart) && has_space(i, uniform) && gm_is_pow2(size) &&
           i->address.displacement % (int64_t)size == 0;
}

static bool writes(const struct ir_instr *i, uint32_t reg)
{
    for (unsigned d = 0; d < i->dst_count; d++)
        if (i->dst[d] == reg)
            return true;
    return i->dst_pred == reg;
}

struct extent {
    int64_t low, high; /* displacements of the first and the last access */
    unsigned size, count;
    uint32_t end; /* of the instructions that it covers */
};

/* What the current block accesses from here on through the current instruction's base, until the
 * base changes. */
static struct extent extent_of(const struct jit_gen *g)
{
    const struct ir_block *block = &g->fn->blocks[g->at_block];
    uint32_t base = g->i->address.base;
    struct extent e = { .low = g->i->address.displacement, .high = g->i->address.displacement };
    for (e.end = g->at_instr; e.end < block->first + block->count; e.end++) {
        const struct ir_instr *i = &g->fn->instrs[e.end];
        if (is_coverable(g, e.end) && i->address.base == base && i->space == g->i->space) {
            e.low = GM_MIN(e.low, i->address.displacement);
            e.high = GM_MAX(e.high, i->address.displacement);
            e.size = GM_MAX(e.size, access_size(i));
            e.count++;
        }
        if (writes(i, base)) {
            e.end++;
            break;
        }
    }
    return e;
}

/* i1: all of the extent is in place, for all lanes. */
static LLVMValueRef is_good(struct jit_gen *g, const struct extent *e)
{
    int64_t lanes = 0, from = e->low - g->i->address.displacement, width = e->high - e->low;
    if (g->a->instrs[g->at_instr].address == IR_AFFINE)
        lanes = g->a->instrs[g->at_instr].address_stride * (int64_t)(g->lanes - 1);
    from += GM_MIN(lanes, 0);
    width += GM_MAX(lanes, -lanes);
    LLVMValueRef here = jit_address(g, false), low = LLVMConstInt(g->i64, (uint64_t)from, 1);
    LLVMValueRef good =
        jit_span_is_good(g, LLVMBuildAdd(g->b, here, low, ""), (uint64_t)width, e->size);
    if (g->i->space == IR_SPACE_SHARED) /* 32 bits of an address count */
        return good;
    LLVMValueRef wraps = jit_wraps(g, g->i->address.base);
    return LLVMBuildAnd(g->b, good, LLVMBuildNot(g->b, wraps, ""), "");
}

void jit_go_other(struct jit_gen *g, LLVMValueRef bad)
{
    uint32_t n = g->at_instr - g->fn->blocks[g->at_block].first;
    LLVMBasicBlockRef *other = &g->other[n * jit_copies(g) + (unsigned)(g->w - g->warps)];
    if (!*other)
        *other = jit_new_block(g, "other");
    jit_branch_unlikely(g, bad, *other);
}

bool jit_is_covered(struct jit_gen *g)
{
    if (g->checks_all || !is_coverable(g, g->at_instr))
        return false;
    struct jit_hull *h = &g->w->regs[g->i->address.base].hull;
    if (g->at_instr < h->end)
        return h->space == g->i->space;
    if (g->i->guard != IR_NONE) /* a guarded instruction is no place to check for others */
        return false;
    struct extent e = extent_of(g);
    if (g->i->space == IR_SPACE_SHARED && e.count < SHARED_MIN)
        return false;
    if (e.high - e.low > WIDTH_MAX)
        return false;
    jit_go_other(g, LLVMBuildNot(g->b, is_good(g, &e), ""));
    *h = (struct jit_hull) { .end = e.end, .space = g->i->space };
    return true;
}
