/*
 * Chooses the vector handler that carries out an instruction, and the set of handlers for this CPU.
 */
#include <stdlib.h>
#include <string.h>

#include "device/soft/exec/helpers.h"
#include "device/soft/interp/vector.h"

/* Values of VARIANT in handlers.h: a mode, a comparison, or for cvt source type and integral
 * rounding. */
#define VARIANT_NONE   0
#define VARIANT_APPROX 1
#define VARIANT_L      IR_SHF_L
#define VARIANT_R      IR_SHF_R
#define VARIANT_LO     IR_MUL_LO
#define VARIANT_HI     IR_MUL_HI
#define VARIANT_WIDE   IR_MUL_WIDE
#define VARIANT_EQ     IR_CMP_EQ
#define VARIANT_NE     IR_CMP_NE
#define VARIANT_LT     IR_CMP_LT
#define VARIANT_LE     IR_CMP_LE
#define VARIANT_GT     IR_CMP_GT
#define VARIANT_GE     IR_CMP_GE
#define VARIANT_EQU    IR_CMP_EQU
#define VARIANT_NEU    IR_CMP_NEU
#define VARIANT_LTU    IR_CMP_LTU
#define VARIANT_LEU    IR_CMP_LEU
#define VARIANT_GTU    IR_CMP_GTU
#define VARIANT_GEU    IR_CMP_GEU
#define VARIANT_NUM    IR_CMP_NUM
#define VARIANT_NAN    IR_CMP_NAN

#define FROM(type, round)   ((IR_##type) | (round) << 8)
#define VARIANT_FROM_B32    FROM(B32, 0)
#define VARIANT_FROM_B64    FROM(B64, 0)
#define VARIANT_FROM_U16    FROM(U16, 0)
#define VARIANT_FROM_S16    FROM(S16, 0)
#define VARIANT_FROM_U32    FROM(U32, 0)
#define VARIANT_FROM_S32    FROM(S32, 0)
#define VARIANT_FROM_U64    FROM(U64, 0)
#define VARIANT_FROM_S64    FROM(S64, 0)
#define VARIANT_FROM_F32    FROM(F32, 0)
#define VARIANT_FROM_F64    FROM(F64, 0)
#define VARIANT_FROM_F32_NI FROM(F32, IR_ROUND_NI)
#define VARIANT_FROM_F32_ZI FROM(F32, IR_ROUND_ZI)
#define VARIANT_FROM_F32_MI FROM(F32, IR_ROUND_MI)
#define VARIANT_FROM_F32_PI FROM(F32, IR_ROUND_PI)
#define VARIANT_FROM_F64_NI FROM(F64, IR_ROUND_NI)
#define VARIANT_FROM_F64_ZI FROM(F64, IR_ROUND_ZI)
#define VARIANT_FROM_F64_MI FROM(F64, IR_ROUND_MI)
#define VARIANT_FROM_F64_PI FROM(F64, IR_ROUND_PI)

#define FLAGS_N      0
#define FLAGS_FTZ    IR_F_FTZ
#define FLAGS_SAT    IR_F_SAT
#define FLAGS_FTZSAT (IR_F_FTZ | IR_F_SAT)
#define FLAGS_WRAP   IR_F_WRAP

/* Flags that do not influence a vector handler's result. A handler does not fit an instruction with
 * any other flag that is not in its line. */
#define FLAGS_HARMLESS (IR_F_APPROX | IR_F_UNI | IR_F_GUARD_NOT)

struct choice {
    uint8_t op, type;
    uint16_t variant, flags;
};

static const struct choice choices[] = {
#define CHOICE(OP, TYPE, VARIANT, FLAGS)                                                           \
    { IR_OP_##OP, IR_##TYPE, VARIANT_##VARIANT, FLAGS_##FLAGS },
#define V1(OP, TYPE, VARIANT, FLAGS, ...) CHOICE(OP, TYPE, VARIANT, FLAGS)
#define V2(OP, TYPE, VARIANT, FLAGS, ...) CHOICE(OP, TYPE, VARIANT, FLAGS)
#define V3(OP, TYPE, VARIANT, FLAGS, ...) CHOICE(OP, TYPE, VARIANT, FLAGS)
#define VC(OP, TYPE, VARIANT, FLAGS, ...) CHOICE(OP, TYPE, VARIANT, FLAGS)
#include "device/soft/interp/handlers.h"
};

/* The B type of the same size for U and S types. */
static uint8_t untyped(uint8_t type)
{
    if (ir_types[type].class != 'U' && ir_types[type].class != 'S')
        return type;
    return (uint8_t)ir_type_untyped((enum ir_type)type);
}

static int find(struct choice c)
{
    for (size_t k = 0; k < GM_ARRAY_LEN(choices); k++)
        if (choices[k].op == c.op && choices[k].type == c.type && choices[k].variant == c.variant &&
            choices[k].flags == c.flags)
            return (int)k; /* the enum has the same order */
    return -1;
}

static int find_cvt(const struct ir_instr *i, struct choice c)
{
    bool from_float = ir_types[i->type2].class == 'F', to_float = ir_types[i->type].class == 'F';
    uint8_t round = i->round;
    if (round == IR_ROUND_N && to_float)
        round = 0;
    if (from_float && !to_float) {
        c.flags &= (uint16_t)~IR_F_SAT; /* the handler always clamps */
        if (i->type2 != IR_F32)
            c.flags &= (uint16_t)~IR_F_FTZ;
    }
    c.variant = (uint16_t)(i->type2 | round << 8);
    int h = find(c);
    if (h < 0 && !from_float && !to_float) {
        c.type = untyped(c.type);
        h = find(c);
        c.variant = untyped(i->type2);
    }
    return h < 0 && !from_float && !to_float ? find(c) : h;
}

int interp_vector_find(const struct ir_instr *i)
{
    struct choice c = { .op = i->op,
                        .type = i->type,
                        .flags = i->flags & (uint16_t)~FLAGS_HARMLESS };
    if (i->op == IR_OP_CVT)
        return find_cvt(i, c);
    if (i->round != IR_ROUND_NONE && i->round != IR_ROUND_N)
        return -1;
    if (i->type == IR_F64 && (i->flags & IR_F_APPROX))
        return -1;
    c.variant = i->op == IR_OP_SETP ? i->cmp : i->mode;
    if (i->op == IR_OP_DIV && (i->flags & IR_F_APPROX))
        c.variant = VARIANT_APPROX;
    int h = find(c);
    if (h < 0) {
        c.type = untyped(c.type);
        h = find(c);
    }
    return h;
}

const struct interp_vector *interp_vector_pick(bool *scalar_only)
{
    const char *wish = secure_getenv("GMUX_INTERP_ISA");
    *scalar_only = wish && strcmp(wish, "scalar") == 0;
#if defined(__x86_64__)
    const unsigned isa = soft_helper_isa();
    if (wish && strcmp(wish, "base") == 0)
        return &interp_vector_base;
    if (isa == 4 && !(wish && strcmp(wish, "v3") == 0))
        return &interp_vector_v4;
    if (isa >= 3)
        return &interp_vector_v3;
#endif
    return &interp_vector_base;
}
