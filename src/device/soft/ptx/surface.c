/*
 * Surfaces. An address is computed from the descriptor; then an ordinary load, store or reduction
 * accesses it.
 *
 * The x coordinate counts bytes, and elements in formatted stores (.p). Beyond the edges .trap
 * accesses an address that always faults, .clamp the nearest element, .zero nothing; loads then
 * give zeroes.
 */
#include <stddef.h>

#include "device/soft/ptx/texture.h"

#define NOWHERE UINT64_C(0xffffffffffffff00)

enum beyond { BEYOND_TRAP, BEYOND_CLAMP, BEYOND_ZERO };

/* Where an access goes, and whether it is made. */
struct spot {
    struct ir_src at;
    struct ir_src inside; /* a predicate, which includes the instruction's own guard */
};

static bool take_beyond(struct ptx_expand *x, int *out)
{
    static const char *const words[] = { "trap", "clamp", "zero" };
    *out = ptx_x_take_one(x, words, 3);
    return *out >= 0;
}

/* a <= b for u32, and `so_far` (a predicate, or an immediate 1). Computed even where the
 * instruction's guard does not hold. */
static struct ir_src within(struct ptx_expand *x, struct ir_src a, struct ir_src b,
                            struct ir_src so_far)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_SETP, IR_U32);
    i.guard = IR_NONE;
    i.flags = 0;
    i.cmp = IR_CMP_LE;
    i.dst_count = 1;
    i.dst[0] = ptx_x_register(x, IR_PRED);
    i.src_count = 2;
    i.src[0] = a;
    i.src[1] = b;
    if (so_far.kind == IR_SRC_REG) {
        i.boolop = IR_BOOL_AND;
        i.src[i.src_count++] = so_far;
    }
    ptx_x_append(x, &i);
    return ir_src_reg(i.dst[0]);
}

static struct ir_src guard_of(const struct ptx_expand *x)
{
    if (x->guard == IR_NONE)
        return ptx_x_imm(1);
    return (struct ir_src) { .kind = IR_SRC_REG, .index = x->guard, .negated = x->guard_not };
}

/* One coordinate, which is at most `last`: checked, or moved inside. */
static struct ir_src bound(struct ptx_expand *x, struct ir_src v, struct ir_src last, int beyond,
                           bool layer, struct spot *s)
{
    /* A layer has no sign. */
    if (beyond == BEYOND_CLAMP && layer)
        return ptx_x_op2(x, IR_OP_MIN, IR_U32, v, last);
    if (beyond == BEYOND_CLAMP)
        return ptx_x_op2(x, IR_OP_MIN, IR_S32, ptx_x_op2(x, IR_OP_MAX, IR_S32, v, ptx_x_imm(0)),
                         last);
    s->inside = within(x, v, last, s->inside);
    return v;
}

static struct ir_src last_of(struct ptx_expand *x, struct ir_src handle, size_t offset)
{
    return ptx_x_op2(x, IR_OP_SUB, IR_U32, ptx_x_field32(x, handle, offset), ptx_x_imm(1));
}

static struct ir_src wide(struct ptx_expand *x, struct ir_src v)
{
    return v.kind == IR_SRC_IMM ? ptx_x_imm((uint32_t)v.bits) : ptx_x_convert(x, IR_U64, IR_U32, v);
}

/* Finds `size` bytes at the coordinates c. `scale`: bytes per element if x counts elements, else an
 * immediate 1. */
static struct spot find(struct ptx_expand *x, const struct ptx_geometry *g, struct ir_src handle,
                        const struct ir_src c[4], struct ir_src size, struct ir_src scale,
                        int beyond)
{
    struct spot s = { .inside = guard_of(x) };
    struct ir_src row = ptx_x_field32(x, handle, offsetof(struct dev_texture, row)), column = c[0];
    struct ir_src last =
        ptx_x_op2(x, IR_OP_SUB, IR_U32, ptx_x_op2(x, IR_OP_MAX, IR_U32, row, size), size);
    /* An element beyond the edge must not come back inside by overflow. */
    if (scale.kind == IR_SRC_REG) {
        struct ir_src columns = last_of(x, handle, offsetof(struct dev_texture, width));
        column = bound(x, column, columns, beyond, false, &s);
        s.at = ptx_x_mad(x, IR_U64, wide(x, column), wide(x, scale),
                         ptx_x_field64(x, handle, offsetof(struct dev_texture, base)));
    } else {
        column = bound(x, column, last, beyond, false, &s);
        s.at = ptx_x_op2(x, IR_OP_ADD, IR_U64,
                         ptx_x_field64(x, handle, offsetof(struct dev_texture, base)),
                         wide(x, column));
    }
    if (g->dimensions >= 2) {
        struct ir_src y = bound(x, c[1], last_of(x, handle, offsetof(struct dev_texture, height)),
                                beyond, false, &s);
        s.at = ptx_x_mad(x, IR_U64, wide(x, y),
                         ptx_x_field64(x, handle, offsetof(struct dev_texture, pitch)), s.at);
    }
    if (g->dimensions >= 3 || g->layered) {
        size_t limit =
            g->layered ? offsetof(struct dev_texture, layers) : offsetof(struct dev_texture, depth);
        struct ir_src z =
            bound(x, c[g->layered ? 3 : 2], last_of(x, handle, limit), beyond, g->layered, &s);
        s.at = ptx_x_mad(x, IR_U64, wide(x, z),
                         ptx_x_field64(x, handle, offsetof(struct dev_texture, slice)), s.at);
    }
    if (beyond == BEYOND_TRAP) {
        s.at = ptx_x_op3(x, IR_OP_SELP, IR_B64, s.at, ptx_x_imm(NOWHERE), s.inside);
        s.inside = guard_of(x);
    }
    return s;
}

static void set_guard(struct ir_instr *i, struct ir_src p)
{
    i->guard = p.kind == IR_SRC_REG ? p.index : IR_NONE;
    i->flags = p.kind == IR_SRC_REG && p.negated ? IR_F_GUARD_NOT : 0;
}

/* "[handle, {coordinates}]" */
static struct ir_src parse_place(struct ptx_expand *x, const struct ptx_geometry *g,
                                 struct ir_src c[4])
{
    ptx_expect(x->p, '[');
    struct ir_src handle = ptx_x_handle(x);
    ptx_expect(x->p, ',');
    ptx_x_coordinates(x, g, IR_B32, c);
    ptx_expect(x->p, ']');
    return handle;
}

static unsigned take_vector(struct ptx_expand *x)
{
    return ptx_x_take(x, "v4") ? 4 : ptx_x_take(x, "v2") ? 2 : 1;
}

static void take_caching(struct ptx_expand *x)
{
    static const char *const words[] = { "ca", "cg", "cs", "cv", "wb", "wt" };
    ptx_x_take_one(x, words, GM_ARRAY_LEN(words));
}

static bool take_bits(struct ptx_expand *x, enum ir_type *type)
{
    static const char *const words[] = { "b8", "b16", "b32", "b64" };
    static const uint8_t types[] = { IR_B8, IR_B16, IR_B32, IR_B64 };
    int k = ptx_x_take_one(x, words, 4);
    *type = k < 0 ? IR_VOID : (enum ir_type)types[k];
    return k >= 0;
}

/* Cubes exist only for textures: as surfaces their faces are layers. */
static const struct ptx_geometry *take_geometry(struct ptx_expand *x)
{
    const struct ptx_geometry *g = ptx_x_take_geometry(x);
    return g && g->geometry < IR_GEO_CUBE ? g : NULL;
}

bool ptx_x_suld(struct ptx_expand *x)
{
    uint32_t d[4] = { 0 };
    enum ir_type type;
    struct ir_src c[4];
    int beyond;
    bool plain = ptx_x_take(x, "b");
    const struct ptx_geometry *g = take_geometry(x);
    take_caching(x);
    unsigned count = take_vector(x);
    if (!plain || !g || !take_bits(x, &type) || !take_beyond(x, &beyond) ||
        count * ir_types[type].size > 16)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    ptx_x_destinations(x, type, true, count, d);
    ptx_expect(x->p, ',');
    struct ir_src handle = parse_place(x, g, c);
    struct spot s =
        find(x, g, handle, c, ptx_x_imm(count * ir_types[type].size), ptx_x_imm(1), beyond);
    for (unsigned k = 0; k < count && beyond == BEYOND_ZERO && !x->p->why.error; k++)
        if (d[k] != IR_NONE)
            ptx_x_move(x, ir_type_untyped((enum ir_type)x->p->raw->regs[d[k]].type), d[k],
                       ptx_x_imm(0));
    struct ir_instr i = ptx_x_instr(x, IR_OP_LD, type);
    set_guard(&i, s.inside);
    i.space = IR_SPACE_GLOBAL;
    i.address.base = s.at.index;
    i.dst_count = (uint8_t)count;
    memcpy(i.dst, d, sizeof(d));
    ptx_x_append(x, &i);
    return true;
}

static void store(struct ptx_expand *x, const struct spot *s, struct ir_src inside,
                  enum ir_type type, const struct ir_src *v, unsigned count)
{
    struct ir_instr i = ptx_x_instr(x, IR_OP_ST, type);
    set_guard(&i, inside);
    i.space = IR_SPACE_GLOBAL;
    i.address.base = s->at.index;
    i.src_count = (uint8_t)count;
    for (unsigned k = 0; k < count; k++)
        i.src[k] = v[k];
    ptx_x_append(x, &i);
}

/* sust.p: packs channels into an element of the surface's format. Its size is known only at run
 * time. */
static void store_formatted(struct ptx_expand *x, const struct ptx_geometry *g,
                            struct ir_src handle, const struct ir_src c[4], const struct ir_src *v,
                            unsigned count, int beyond)
{
    static const struct {
        uint8_t bytes, type, count;
    } stores[] = {
        { 1, IR_B8, 1 }, { 2, IR_B16, 1 }, { 4, IR_B32, 1 }, { 8, IR_B32, 2 }, { 16, IR_B32, 4 }
    };
    struct ir_src element = ptx_x_field32(x, handle, offsetof(struct dev_texture, element)),
                  words[4];
    struct ir_instr pack = ptx_x_instr(x, IR_OP_TEX, IR_U32);
    pack.type2 = IR_S32;
    pack.mode = g->geometry;
    pack.mode2 = IR_TEXTURE_PACK;
    pack.src_count = 8;
    pack.src[0] = pack.src[1] = handle;
    for (unsigned k = 0; k < 6; k++)
        pack.src[2 + k] = k < count ? v[k] : ptx_x_imm(0);
    pack.dst_count = 4;
    for (unsigned k = 0; k < 4; k++) {
        pack.dst[k] = ptx_x_register(x, IR_B32);
        words[k] = ir_src_reg(pack.dst[k]);
    }
    ptx_x_append(x, &pack);
    struct spot s = find(x, g, handle, c, element, element, beyond);
    for (size_t k = 0; k < GM_ARRAY_LEN(stores); k++) {
        struct ir_src fits = within(x, element, ptx_x_imm(stores[k].bytes), s.inside);
        fits = within(x, ptx_x_imm(stores[k].bytes), element, fits);
        struct ir_src first[4] = { words[0], words[1], words[2], words[3] };
        if (stores[k].bytes == 2)
            first[0] = ptx_x_convert(x, IR_U16, IR_U32, words[0]);
        store(x, &s, fits, (enum ir_type)stores[k].type, first, stores[k].count);
    }
}

bool ptx_x_sust(struct ptx_expand *x)
{
    static const char *const formatted_types[] = { "b32", "u32", "s32", "f32" };
    enum ir_type type = IR_B32;
    struct ir_src c[4], v[4] = { { 0 } };
    int beyond;
    bool formatted = ptx_x_take(x, "p"), plain = !formatted && ptx_x_take(x, "b");
    const struct ptx_geometry *g = take_geometry(x);
    take_caching(x);
    unsigned count = take_vector(x);
    bool typed = formatted ? ptx_x_take_one(x, formatted_types, 4) >= 0 : take_bits(x, &type);
    if ((!plain && !formatted) || !g || !typed || !take_beyond(x, &beyond) ||
        count * ir_types[type].size > 16)
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    struct ir_src handle = parse_place(x, g, c);
    ptx_expect(x->p, ',');
    ptx_x_sources(x, type, true, count, v);
    if (formatted) {
        store_formatted(x, g, handle, c, v, count, beyond);
        return true;
    }
    struct spot s =
        find(x, g, handle, c, ptx_x_imm(count * ir_types[type].size), ptx_x_imm(1), beyond);
    store(x, &s, s.inside, type, v, count);
    return true;
}

/* sured.b: x counts bytes. sured.p: it counts 32-bit elements. */
bool ptx_x_sured(struct ptx_expand *x)
{
    static const char *const operations[] = { "add", "min", "max", "and", "or" };
    static const uint8_t modes[] = { IR_ATOM_ADD, IR_ATOM_MIN, IR_ATOM_MAX, IR_ATOM_AND,
                                     IR_ATOM_OR };
    static const char *const words[] = { "u32", "s32", "b32", "u64", "s64", "b64" };
    static const uint8_t types[] = { IR_U32, IR_S32, IR_B32, IR_U64, IR_S64, IR_B64 };
    struct ir_src c[4], v = { 0 };
    int beyond;
    bool elements = ptx_x_take(x, "p"), plain = !elements && ptx_x_take(x, "b");
    int operation = ptx_x_take_one(x, operations, GM_ARRAY_LEN(operations));
    const struct ptx_geometry *g = take_geometry(x);
    int word = ptx_x_take_one(x, words, GM_ARRAY_LEN(words));
    if ((!plain && !elements) || operation < 0 || !g || word < 0 || !take_beyond(x, &beyond))
        return ptx_x_refuse(x);
    if (!ptx_x_taken_all(x))
        return false;
    enum ir_type type = (enum ir_type)types[word];
    struct ir_src handle = parse_place(x, g, c), scale = ptx_x_imm(1),
                  size = ptx_x_imm(ir_types[type].size);
    ptx_expect(x->p, ',');
    ptx_parse_source(x->p, type, 0, &v);
    bool bits = ir_types[type].class == 'B';
    /* .b32 means the surface's format; the sign matters only for min and max. */
    if (bits && operation < 3) {
        type = ir_types[type].size == 8 ? IR_U64 : IR_U32;
    }
    if (elements)
        scale = ptx_x_field32(x, handle, offsetof(struct dev_texture, element));
    struct spot s = find(x, g, handle, c, size, scale, beyond);
    struct ir_instr i = ptx_x_instr(x, IR_OP_RED, type);
    set_guard(&i, s.inside);
    i.mode = modes[operation];
    i.space = IR_SPACE_GLOBAL;
    i.order = IR_ORDER_RELAXED;
    i.address.base = s.at.index;
    i.src_count = 1;
    i.src[0] = v;
    ptx_x_append(x, &i);
    return true;
}
