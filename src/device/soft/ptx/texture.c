/*
 * Instructions on textures and surfaces. A handle is the address of a descriptor
 * (device/texture.h). tex and tld4 become one instruction of the ir, TEX. The others become loads
 * from the descriptor and arithmetic on what it contains, so surfaces cost what other memory costs,
 * and are checked like it.
 */
#include "device/soft/ptx/texture.h"

#include <stddef.h>

static const struct ptx_geometry geometries[] = {
    { "1d", IR_GEO_1D, 1, false },      { "2d", IR_GEO_2D, 2, false },
    { "3d", IR_GEO_3D, 3, false },      { "a1d", IR_GEO_A1D, 1, true },
    { "a2d", IR_GEO_A2D, 2, true },     { "cube", IR_GEO_CUBE, 3, false },
    { "acube", IR_GEO_ACUBE, 3, true },
};

const struct ptx_geometry *ptx_x_take_geometry(struct ptx_expand *x)
{
    for (size_t k = 0; k < GM_ARRAY_LEN(geometries); k++)
        if (ptx_x_take(x, geometries[k].word))
            return &geometries[k];
    return NULL;
}

/* --- operands --------------------------------------------------------------------------------- */

struct ir_src ptx_x_handle(struct ptx_expand *x)
{
    struct ir_src v;
    if (!ptx_parse_source(x->p, IR_U64, PTX_O_SYMBOL, &v) || v.kind != IR_SRC_SYMBOL)
        return v;
    uint32_t reg = ptx_x_register(x, IR_U64);
    bool placed = !(v.index & IR_TEMP) && ir_symbol_is_placed(x->p->m, v.index);
    if (placed) {
        ptx_x_move(x, IR_U64, reg, v);
        return ir_src_reg(reg);
    }
    /* A parameter that is a handle. */
    struct ir_instr i = ptx_x_instr(x, IR_OP_LD, IR_U64);
    i.space = IR_SPACE_PARAM;
    i.dst_count = 1;
    i.dst[0] = reg;
    i.address.symbol = v.index;
    ptx_x_append(x, &i);
    return ir_src_reg(reg);
}

/* Takes one coordinate. For layered geometries the first one is the layer. */
static struct ir_src coordinate(struct ptx_expand *x, enum ir_type type)
{
    struct ir_src v = { 0 };
    ptx_parse_source(x->p, type, 0, &v);
    return v;
}

void ptx_x_coordinates(struct ptx_expand *x, const struct ptx_geometry *g, enum ir_type type,
                       struct ir_src out[4])
{
    unsigned n = 0, wanted = g->dimensions + (g->layered ? 1u : 0u);
    struct ptx_name vector = { 0 };
    bool whole = ptx_accept_vector(x->p, &vector), braces = ptx_accept(x->p, '{');
    for (unsigned k = 0; k < 4; k++)
        out[k] = ptx_x_imm(0);
    do {
        bool layer = g->layered && n == 0;
        struct ir_src v = whole ? ir_src_reg(vector.index + n)
                                : coordinate(x, layer || n >= wanted ? IR_B32 : type);
        if (layer)
            out[3] = v;
        else if (n < wanted)
            out[g->layered ? n - 1 : n] = v;
        n++;
    } while (whole ? n < vector.width : braces && n < 4 && ptx_accept(x->p, ','));
    if (braces)
        ptx_expect(x->p, '}');
    if (n < wanted || (whole && ir_types[x->p->raw->regs[vector.index].type].size != 4))
        ptx_fail(x->p, -EINVAL, x->opcode, "'%.*s' with too few coordinates", PTX_TEXT(x->opcode));
}

/* Takes {x, y, z}, offsets in whole elements: one signed byte for each. */
static struct ir_src offsets(struct ptx_expand *x)
{
    struct ir_src v[4], packed = ptx_x_imm(0);
    unsigned n = ptx_x_values(x, IR_S32, v, 4);
    for (unsigned k = 0; k < n && k < 3; k++) {
        if (v[k].kind == IR_SRC_IMM && packed.kind == IR_SRC_IMM) {
            packed.bits |= (v[k].bits & 255) << 8 * k;
            continue;
        }
        struct ir_src byte = ptx_x_op2(x, IR_OP_AND, IR_B32, v[k], ptx_x_imm(255));
        packed = ptx_x_op2(x, IR_OP_OR, IR_B32, packed,
                           ptx_x_op2(x, IR_OP_SHL, IR_B32, byte, ptx_x_imm(8 * k)));
    }
    return packed;
}

/* --- tex, tld4 -------------------------------------------------------------------------------- */

/* Takes {d, d, d, d} or {d, d}, with `_` for a channel that is not wanted; and |p, which says
 * whether the memory was resident: always. */
static void results(struct ptx_expand *x, enum ir_type type, unsigned count, uint32_t *out,
                    uint32_t *present)
{
    ptx_x_destinations(x, type, false, count, out);
    *present = IR_NONE;
    if (ptx_accept(x->p, '|'))
        ptx_parse_register(x->p, IR_PRED, false, present);
}

static struct ir_instr texture_instr(struct ptx_expand *x, unsigned what,
                                     const struct ptx_geometry *g, enum ir_type type,
                                     enum ir_type coordinates)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_TEX, type);
    i.type2 = (uint8_t)coordinates;
    i.mode = g->geometry;
    i.mode2 = (uint8_t)what;
    i.src_count = 8;
    for (unsigned k = 2; k < 8; k++)
        i.src[k] = ptx_x_imm(0);
    return i;
}

/* The level that the derivatives along x and y ask for. */
static struct ir_src level_of_gradient(struct ptx_expand *x, const struct ir_instr *sample,
                                       const struct ptx_geometry *g)
{
    struct ir_src by[2][4];
    for (unsigned k = 0; k < 2; k++) {
        ptx_expect(x->p, ',');
        if (ptx_x_values(x, IR_F32, by[k], 4) < g->dimensions)
            ptx_fail(x->p, -EINVAL, x->opcode, "'%.*s' with too few derivatives",
                     PTX_TEXT(x->opcode));
    }
    struct ir_instr i = texture_instr(x, IR_TEXTURE_LOD, g, IR_F32, IR_F32);
    i.src[0] = sample->src[0];
    i.src[1] = sample->src[1];
    for (unsigned k = 0; k < g->dimensions && !x->p->why.error; k++) {
        i.src[2 + k] = by[0][k];
        i.src[5 + k] = by[1][k];
    }
    i.dst_count = 1;
    i.dst[0] = ptx_x_register(x, IR_F32);
    ptx_x_append(x, &i);
    return ir_src_reg(i.dst[0]);
}

/* The element type that the text has; the instruction gives 32 bits for each element. */
static bool result_type(const struct ptx_token *t, enum ir_type *type)
{
    static const uint8_t types[] = { IR_F32, IR_U32, IR_S32, IR_F16, IR_F16X2 };
    for (size_t k = 0; t && k < GM_ARRAY_LEN(types); k++)
        if (ptx_text_is(t, ir_types[types[k]].text)) {
            *type = types[k];
            return true;
        }
    return false;
}

/* Appends the instruction with its results where the text wants them; packs pairs of halves. */
static void finish(struct ptx_expand *x, struct ir_instr *i, enum ir_type type, const uint32_t *d,
                   uint32_t present)
{
    bool halves = type == IR_F16 || type == IR_F16X2;
    i->dst_count = 4;
    for (unsigned k = 0; k < 4; k++)
        i->dst[k] = halves ? ptx_x_register(x, IR_B32) : d[k];
    ptx_x_append(x, i);
    for (unsigned k = 0; k < 4 && type == IR_F16; k++)
        if (d[k] != IR_NONE)
            ptx_x_move(x, IR_B16, d[k], ptx_x_convert(x, IR_U16, IR_U32, ir_src_reg(i->dst[k])));
    for (unsigned k = 0; k < 2 && type == IR_F16X2; k++) {
        struct ir_src high =
            ptx_x_op2(x, IR_OP_SHL, IR_B32, ir_src_reg(i->dst[2 * k + 1]), ptx_x_imm(16));
        struct ir_src pair = ptx_x_op2(x, IR_OP_OR, IR_B32, ir_src_reg(i->dst[2 * k]), high);
        if (d[k] != IR_NONE)
            ptx_x_move(x, IR_B32, d[k], pair);
    }
    if (present != IR_NONE)
        ptx_x_move(x, IR_PRED, present, ptx_x_imm(1));
}

/* "[texture, {sampler,} coordinates]" */
static void source(struct ptx_expand *x, const struct ptx_geometry *g, struct ir_instr *i)
{
    enum ir_type type = (enum ir_type)i->type2;
    ptx_expect(x->p, '[');
    i->src[0] = i->src[1] = ptx_x_handle(x);
    ptx_expect(x->p, ',');
    struct ptx_name name;
    const struct ptx_token *t = &x->p->token;
    bool wide = t->kind == PTX_IDENT && ptx_lookup(x->p, t, &name) &&
                (name.kind != PTX_NAME_REG || ir_types[x->p->raw->regs[name.index].type].size == 8);
    if (wide) {
        i->src[1] = ptx_x_handle(x);
        ptx_expect(x->p, ',');
    }
    ptx_x_coordinates(x, g, type, i->src + 2);
    ptx_expect(x->p, ']');
}

/* Takes what may follow: {, offsets} {, depth to compare with}. */
static void offsets_at_end(struct ptx_expand *x, struct ir_instr *i)
{
    if (!ptx_token_is(&x->p->token, ','))
        return;
    ptx_advance(x->p);
    if (!ptx_token_is(&x->p->token, '{')) {
        struct ptx_name name;
        bool real = x->p->token.kind == PTX_F32 ||
                    (x->p->token.kind == PTX_IDENT && ptx_lookup(x->p, &x->p->token, &name) &&
                     name.kind == PTX_NAME_REG && x->p->raw->regs[name.index].type == IR_F32);
        if (real) {
            ptx_fail(x->p, -ENOTSUP, x->opcode, "comparison of depth by '%.*s' is not supported",
                     PTX_TEXT(x->opcode));
            return;
        }
    }
    i->src[7] = offsets(x);
    if (ptx_token_is(&x->p->token, ','))
        ptx_fail(x->p, -ENOTSUP, x->opcode, "comparison of depth by '%.*s' is not supported",
                 PTX_TEXT(x->opcode));
}

bool ptx_x_tex(struct ptx_expand *x)
{
    uint32_t d[4], present;
    enum ir_type type = IR_F32, coordinates = IR_F32;
    bool level = ptx_x_take(x, "level"), grad = !level && ptx_x_take(x, "grad");
    ptx_x_take(x, "base");
    const struct ptx_geometry *g = ptx_x_take_geometry(x);
    bool two = !ptx_x_take(x, "v4") && ptx_x_take(x, "v2");
    if (!g || !result_type(ptx_x_take_next(x), &type) ||
        !result_type(ptx_x_take_next(x), &coordinates) ||
        (coordinates != IR_F32 && coordinates != IR_S32) || two != (type == IR_F16X2))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    results(x, type == IR_F16X2 ? IR_B32 : type, two ? 2 : 4, d, &present);
    ptx_expect(x->p, ',');
    struct ir_instr i = texture_instr(x, IR_TEXTURE_LEVEL, g, type, coordinates);
    source(x, g, &i);
    if (level) {
        ptx_expect(x->p, ',');
        ptx_parse_source(x->p, coordinates, 0, &i.src[6]);
    } else if (grad) {
        i.src[6] = level_of_gradient(x, &i, g);
        /* The base level, whatever bias the sampler has. */
    } else {
        i.mode2 = IR_TEXTURE_BASE;
    }
    offsets_at_end(x, &i);
    finish(x, &i, type, d, present);
    return true;
}

bool ptx_x_tld4(struct ptx_expand *x)
{
    static const char *const channels[] = { "r", "g", "b", "a" };
    uint32_t d[4], present;
    enum ir_type type = IR_F32;
    int channel = ptx_x_take_one(x, channels, 4);
    const struct ptx_geometry *g = ptx_x_take_geometry(x);
    if (channel < 0 || !g || g->dimensions == 1 || g->geometry == IR_GEO_3D ||
        !ptx_x_take(x, "v4") || !result_type(ptx_x_take_next(x), &type) || type == IR_F16 ||
        type == IR_F16X2 || !ptx_x_take(x, "f32"))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    results(x, type, 4, d, &present);
    ptx_expect(x->p, ',');
    struct ir_instr i = texture_instr(x, IR_TEXTURE_GATHER_R + (unsigned)channel, g, type, IR_F32);
    source(x, g, &i);
    offsets_at_end(x, &i);
    finish(x, &i, type, d, present);
    return true;
}

/* --- what there is ---------------------------------------------------------------------------- */

static struct ir_src field(struct ptx_expand *x, struct ir_src handle, enum ir_type type,
                           size_t offset)
{
    uint32_t reg = ptx_x_register(x, type);
    ptx_x_load(x, IR_SPACE_GLOBAL, type, reg, handle, (int64_t)offset);
    return ir_src_reg(reg);
}

struct ir_src ptx_x_field32(struct ptx_expand *x, struct ir_src handle, size_t offset)
{
    return field(x, handle, IR_U32, offset);
}

struct ir_src ptx_x_field64(struct ptx_expand *x, struct ir_src handle, size_t offset)
{
    return field(x, handle, IR_U64, offset);
}

struct ptx_question {
    const char *word;
    uint16_t offset;
    bool shrinks; /* from level to level */
    uint8_t bits; /* how many bits of the field count; 0: all */
    uint8_t shift;
};

static const struct ptx_question questions[] = {
    { "width", offsetof(struct dev_texture, width), true, 0, 0 },
    { "height", offsetof(struct dev_texture, told_height), true, 0, 0 },
    { "depth", offsetof(struct dev_texture, told_depth), true, 0, 0 },
    { "channel_data_type", offsetof(struct dev_texture, data_type), false, 0, 0 },
    { "channel_order", offsetof(struct dev_texture, order), false, 0, 0 },
    { "array_size", offsetof(struct dev_texture, told_layers), false, 0, 0 },
    { "num_mipmap_levels", offsetof(struct dev_texture, levels), false, 0, 0 },
    { "normalized_coords", offsetof(struct dev_texture, sampler_flags), false, 1, 2 },
    { "filter_mode", offsetof(struct dev_texture, sampler_flags), false, 1, 0 },
    { "addr_mode_0", offsetof(struct dev_texture, address), false, 0, 0 },
    { "addr_mode_1", offsetof(struct dev_texture, address) + 4, false, 0, 0 },
    { "addr_mode_2", offsetof(struct dev_texture, address) + 8, false, 0, 0 },
};
_Static_assert(DEV_SAMPLER_NORMALIZED == 1 << 2 && DEV_SAMPLER_LINEAR == 1, "as the table says");

/* txq, suq: one field of the descriptor. */
bool ptx_x_query(struct ptx_expand *x)
{
    const struct ptx_question *q = NULL;
    uint32_t d = 0;
    bool level = ptx_x_take(x, "level"), one = ptx_x_take(x, "num_samples"),
         zero = ptx_x_take(x, "memory_layout") || ptx_x_take(x, "force_unnormalized_coords");
    for (size_t k = 0; k < GM_ARRAY_LEN(questions) && !q; k++)
        if (ptx_x_take(x, questions[k].word))
            q = &questions[k];
    if ((!q && !one && !zero) || !ptx_x_take(x, "b32"))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    ptx_parse_register(x->p, IR_B32, false, &d);
    ptx_expect(x->p, ',');
    ptx_expect(x->p, '[');
    struct ir_src handle = ptx_x_handle(x), v = ptx_x_imm(one), which = ptx_x_imm(0);
    ptx_expect(x->p, ']');
    if (level && ptx_expect(x->p, ','))
        ptx_parse_source(x->p, IR_B32, 0, &which);
    if (q)
        v = ptx_x_field32(x, handle, q->offset);
    if (q && q->bits)
        v = ptx_x_op2(x, IR_OP_AND, IR_B32, ptx_x_op2(x, IR_OP_SHR, IR_U32, v, ptx_x_imm(q->shift)),
                      ptx_x_imm(1));
    if (q && q->shrinks && level) {
        struct ir_src least = ptx_x_op2(x, IR_OP_MIN, IR_U32, v, ptx_x_imm(1));
        v = ptx_x_op2(x, IR_OP_MAX, IR_U32, ptx_x_op2(x, IR_OP_SHR, IR_U32, v, which), least);
    }
    ptx_x_move(x, IR_B32, d, v);
    return true;
}

bool ptx_x_istypep(struct ptx_expand *x)
{
    static const char *const kinds[] = { "texref", "samplerref", "surfref" };
    static const uint32_t values[] = { DEV_TEXTURE, DEV_SAMPLER, DEV_SURFACE };
    uint32_t d = 0;
    int kind = ptx_x_take_one(x, kinds, 3);
    if (kind < 0)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    ptx_parse_register(x->p, IR_PRED, false, &d);
    ptx_expect(x->p, ',');
    struct ir_src v = ptx_x_field32(x, ptx_x_handle(x), offsetof(struct dev_texture, kind));
    ptx_x_move(x, IR_PRED, d, ptx_x_compare(x, IR_CMP_EQ, IR_U32, v, ptx_x_imm(values[kind])));
    return true;
}
