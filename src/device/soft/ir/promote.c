/*
 * Turns .param variables of calls into registers. After inlining, "st.param [param0], %r1" and
 * "ld.param %r7, [param0]" together mean %r7 = %r1. A variable becomes one register for each
 * (offset, size) that is accessed, if no two accesses overlap without being equal and its address
 * is not taken; else it becomes local memory.
 */
#include <errno.h>

#include "device/soft/ir/raw.h"

/* One element that an access reads or writes. */
struct ir_access {
    uint32_t temp;
    uint32_t offset;
    uint32_t size;
    uint32_t reg; /* the register that replaces it; in the sorted list without duplicates */
};

struct ir_promoter {
    struct ir_raw_fn *raw;
    struct ir_problem *why;
    struct ir_access *slots; /* sorted */
    uint32_t slot_count;
    bool *memory;     /* by temp: it stays in memory */
    uint64_t *offset; /* by temp: where it lies in local memory */
    struct ir_instr *out;
    uint32_t out_count, out_cap;
};

static bool no_memory(struct ir_promoter *p)
{
    return ir_refuse(p->why, -ENOMEM, 0, 0, "out of memory");
}

static bool is_access(const struct ir_instr *i)
{
    return (i->op == IR_OP_LD || i->op == IR_OP_ST) && i->address.symbol != IR_NONE &&
           (i->address.symbol & IR_TEMP);
}

static unsigned elements(const struct ir_instr *i)
{
    return i->op == IR_OP_LD ? i->dst_count : i->src_count;
}

static struct ir_access element(const struct ir_instr *i, unsigned n)
{
    uint32_t size = ir_types[i->type].size;
    return (struct ir_access) { .temp = i->address.symbol & ~IR_TEMP,
                                .offset = (uint32_t)i->address.displacement + n * size,
                                .size = size };
}

static int compare(const void *va, const void *vb)
{
    const struct ir_access *a = va, *b = vb;
    if (a->temp != b->temp)
        return a->temp < b->temp ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->size < b->size ? -1 : a->size > b->size;
}

/* Collects all accesses, sorted. A temp with overlapping ones stays in memory. */
static bool collect(struct ir_promoter *p)
{
    const struct ir_raw_fn *raw = p->raw;
    uint32_t cap = 0;
    for (uint32_t t = 0; t < raw->temp_count; t++)
        p->memory[t] = raw->temps[t].on_stack;
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        const struct ir_instr *i = &raw->instrs[n];
        for (unsigned k = 0; k < i->src_count; k++)
            if (i->src[k].kind == IR_SRC_SYMBOL && (i->src[k].index & IR_TEMP))
                p->memory[i->src[k].index & ~IR_TEMP] = true;
        for (unsigned k = 0; is_access(i) && k < elements(i); k++) {
            struct ir_access *added = IR_PUSH(p->slots, p->slot_count, cap);
            if (!added)
                return no_memory(p);
            *added = element(i, k);
        }
        if (!is_access(i) && i->address.symbol != IR_NONE && (i->address.symbol & IR_TEMP))
            p->memory[i->address.symbol & ~IR_TEMP] = true;
    }
    if (p->slot_count == 0)
        return true;
    qsort(p->slots, p->slot_count, sizeof(*p->slots), compare);
    uint32_t kept = 1;
    for (uint32_t n = 1; n < p->slot_count; n++) {
        const struct ir_access *a = &p->slots[kept - 1], *b = &p->slots[n];
        if (compare(a, b) == 0)
            continue;
        if (a->temp == b->temp && b->offset < a->offset + a->size)
            p->memory[a->temp] = true;
        p->slots[kept++] = *b;
    }
    p->slot_count = kept;
    return true;
}

/* Gives the slots registers, and the other variables places in the frame. */
static bool assign(struct ir_promoter *p)
{
    struct ir_raw_fn *raw = p->raw;
    uint64_t frame = raw->frame_bytes;
    for (uint32_t t = 0; t < raw->temp_count; t++) {
        if (!p->memory[t])
            continue;
        if (raw->temps[t].on_stack) {
            p->offset[t] = raw->temps[t].frame_at;
            continue;
        }
        if (!gm_align_up(frame, raw->temps[t].align, &p->offset[t]) ||
            p->offset[t] + raw->temps[t].size > IR_MAX_LOCAL_BYTES)
            return ir_refuse(p->why, -E2BIG, raw->temps[t].line, 1, "over %u bytes of local memory",
                             IR_MAX_LOCAL_BYTES);
        frame = p->offset[t] + raw->temps[t].size;
    }
    raw->frame_bytes = (uint32_t)frame;
    for (uint32_t n = 0; n < p->slot_count; n++) {
        if (p->memory[p->slots[n].temp])
            continue;
        if (raw->reg_count >= IR_MAX_REGS)
            return ir_refuse(p->why, -E2BIG, 0, 0, "too many registers after inlining");
        struct ir_reg *reg = IR_PUSH(raw->regs, raw->reg_count, raw->reg_cap);
        if (!reg)
            return no_memory(p);
        uint32_t size = p->slots[n].size;
        reg->type = size == 8 ? IR_B64 : size == 4 ? IR_B32 : IR_B16;
        reg->number = IR_NONE;
        p->slots[n].reg = raw->reg_count - 1;
    }
    return true;
}

static bool emit(struct ir_promoter *p, const struct ir_instr *i)
{
    if (p->out_count >= IR_MAX_INSTRS)
        return ir_refuse(p->why, -E2BIG, i->line, i->column,
                         "too many instructions after inlining");
    struct ir_instr *added = IR_PUSH(p->out, p->out_count, p->out_cap);
    if (!added)
        return no_memory(p);
    *added = *i;
    return true;
}

static enum ir_type integer(uint8_t size, bool is_signed)
{
    switch (size) {
    case 1:
        return is_signed ? IR_S8 : IR_U8;
    case 2:
        return is_signed ? IR_S16 : IR_U16;
    case 4:
        return is_signed ? IR_S32 : IR_U32;
    default:
        return is_signed ? IR_S64 : IR_U64;
    }
}

/* to = from, where `from` is read as `type` (its low bits count) and extended to the width of
 * `to`. */
static bool emit_copy(struct ir_promoter *p, const struct ir_instr *at, uint32_t to,
                      struct ir_src from, enum ir_type type)
{
    const struct ir_raw_fn *raw = p->raw;
    struct ir_instr i;
    uint8_t to_size = ir_types[raw->regs[to].type].size, size = ir_types[type].size;
    bool is_signed = ir_type_is_signed(type);
    ir_instr_init(&i, IR_OP_MOV, at->line, at->column);
    i.guard = at->guard;
    i.flags = at->flags & IR_F_GUARD_NOT;
    i.type = raw->regs[to].type;
    if (i.type == IR_B8)
        i.type = IR_U8;
    uint8_t from_size =
        from.kind == IR_SRC_REG ? ir_types[raw->regs[from.index].type].size : to_size;
    if (to_size != size || from_size != to_size) {
        i.op = IR_OP_CVT;
        i.type = (uint8_t)integer(to_size, is_signed);
        i.type2 = (uint8_t)integer(size < from_size ? size : from_size, is_signed);
        /* Only an 8-bit constant in its 16-bit register comes here. */
        if (from.kind == IR_SRC_IMM) {
            i.op = IR_OP_MOV;
            from.bits &= 0xffff;
        }
    }
    i.dst_count = i.src_count = 1;
    i.dst[0] = to;
    i.src[0] = from;
    return emit(p, &i);
}

static bool rewrite_access(struct ir_promoter *p, const struct ir_instr *i)
{
    for (unsigned n = 0; n < elements(i); n++) {
        struct ir_access key = element(i, n);
        const struct ir_access *slot = bsearch(&key, p->slots, p->slot_count, sizeof(key), compare);
        bool right = true;
        if (i->op == IR_OP_ST)
            right = emit_copy(p, i, slot->reg, i->src[n], i->type);
        else if (i->dst[n] != IR_NONE)
            right = emit_copy(p, i, i->dst[n], ir_src_reg(slot->reg), i->type);
        if (!right)
            return false;
    }
    return true;
}

/* Replaces the address of a variable that stays in memory by a number. */
static void rewrite_memory(const struct ir_promoter *p, struct ir_instr *i)
{
    for (unsigned k = 0; k < i->src_count; k++) {
        struct ir_src *src = &i->src[k];
        if (src->kind != IR_SRC_SYMBOL || !(src->index & IR_TEMP))
            continue;
        uint64_t address = src->bits + p->offset[src->index & ~IR_TEMP];
        *src = (struct ir_src) { .kind = IR_SRC_IMM, .bits = address };
    }
    uint32_t symbol = i->address.symbol;
    if (symbol != IR_NONE && (symbol & IR_TEMP)) {
        i->space = IR_SPACE_LOCAL;
        i->address.displacement += (int64_t)p->offset[symbol & ~IR_TEMP];
        i->address.symbol = IR_NONE;
    }
}

static bool rewrite(struct ir_promoter *p)
{
    struct ir_raw_fn *raw = p->raw;
    uint32_t *moved = malloc(((size_t)raw->instr_count + 1) * sizeof(*moved));
    bool right = moved || no_memory(p);
    for (uint32_t n = 0; n < raw->instr_count && right; n++) {
        struct ir_instr *i = &raw->instrs[n];
        moved[n] = p->out_count;
        if (is_access(i) && !p->memory[i->address.symbol & ~IR_TEMP]) {
            right = rewrite_access(p, i);
        } else {
            rewrite_memory(p, i);
            right = emit(p, i);
        }
    }
    if (right) {
        moved[raw->instr_count] = p->out_count;
        for (uint32_t l = 0; l < raw->label_count; l++)
            raw->labels[l] = moved[raw->labels[l]];
        free(raw->instrs);
        raw->instrs = p->out;
        raw->instr_count = p->out_count;
        raw->instr_cap = p->out_cap;
        p->out = NULL;
    }
    free(moved);
    return right;
}

bool ir_promote_temps(struct ir_raw_fn *raw, struct ir_problem *why)
{
    if (raw->temp_count == 0)
        return true;
    struct ir_promoter p = { .raw = raw, .why = why };
    p.memory = calloc(raw->temp_count, sizeof(*p.memory));
    p.offset = calloc(raw->temp_count, sizeof(*p.offset));
    bool right = (p.memory && p.offset) || no_memory(&p);
    right = right && collect(&p) && assign(&p) && rewrite(&p);
    free(p.slots);
    free(p.memory);
    free(p.offset);
    free(p.out);
    return right;
}
