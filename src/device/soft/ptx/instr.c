/*
 * Opcodes and their modifiers. ops.h says which words an opcode accepts. Here are the rules that
 * tie modifiers to types: an integer multiplication has .lo, .hi or .wide, a float division says
 * how it rounds, and so on.
 */
#include "device/soft/ptx/expand.h"

/* What the modifiers of one instruction said. */
struct ptx_modifiers {
    const struct ptx_token *opcode;
    uint64_t seen; /* PTX_K() */
    unsigned types;
    uint8_t part;    /* lo, hi, wide */
    uint8_t compare; /* as in the text: also PTX_CMP_* */
    uint8_t barrier, barred;
    bool tf32;    /* cvt: its first type, kept as .b32 */
    bool past_l1; /* PTX_PAST_L1 */
};

static bool has(const struct ptx_modifiers *mods, uint64_t kinds)
{
    return (mods->seen & kinds) != 0;
}

static void set_flag(struct ir_instr *i, unsigned flag)
{
    i->flags = (uint16_t)(i->flags | flag);
}

static void apply(struct ir_instr *i, struct ptx_modifiers *mods, const struct ptx_word *word)
{
    static const uint16_t flags[PTX_KIND_COUNT] = {
        [PTX_K_FTZ] = IR_F_FTZ,         [PTX_K_SAT] = IR_F_SAT,
        [PTX_K_APPROX] = IR_F_APPROX,   [PTX_K_CC] = IR_F_CARRY_OUT,
        [PTX_K_NC] = IR_F_NC,           [PTX_K_UNI] = IR_F_UNI,
        [PTX_K_SYNC] = IR_F_SYNC,       [PTX_K_SHIFTAMT] = IR_F_SHIFTAMT,
        [PTX_K_RELU] = IR_F_RELU,       [PTX_K_NAN] = IR_F_NAN,
        [PTX_K_XORSIGN] = IR_F_XORSIGN,
    };
    set_flag(i, flags[word->group]);
    switch (word->group) {
    case PTX_K_ROUND:
    case PTX_K_ROUNDINT:
        i->round = word->value;
        break;
    case PTX_K_PART:
    case PTX_K_WIDE:
        i->mode = mods->part = word->value;
        break;
    case PTX_K_SPACE:
        i->space = word->value;
        break;
    case PTX_K_ORDER:
        i->order = word->value;
        break;
    case PTX_K_SCOPE:
        i->scope = word->value;
        break;
    case PTX_K_VECTOR:
        i->dst_count = word->value; /* until the operands are read */
        break;
    case PTX_K_CACHE:
        mods->past_l1 |= word->value == PTX_PAST_L1;
        break;
    case PTX_K_COMPARE:
        mods->compare = word->value;
        break;
    case PTX_K_BOOL:
        i->boolop = word->value;
        break;
    case PTX_K_ATOMIC:
    case PTX_K_SHUFFLE:
    case PTX_K_DIRECTION:
    case PTX_K_PERMUTE:
    case PTX_K_VOTE:
    case PTX_K_TEST:
        i->mode = word->value;
        break;
    case PTX_K_AMOUNT:
        set_flag(i, word->value ? IR_F_WRAP : 0);
        break;
    case PTX_K_BARRIER:
        mods->barrier = word->value;
        break;
    case PTX_K_BARRED:
        mods->barred = word->value;
        break;
    case PTX_K_TO:
        i->mode = IR_CVTA_TO;
        break;
    default:
        break;
    }
}

static bool apply_type(struct ptx_parser *p, struct ir_instr *i, struct ptx_modifiers *mods,
                       const struct ptx_word *word)
{
    const struct ptx_grammar *g = &ptx_grammar[i->op];
    const struct ptx_token *t = &p->token;
    bool two = g->form == PTX_FORM_CVT || g->form == PTX_FORM_SET || g->form == PTX_FORM_SLCT ||
               g->form == PTX_FORM_PLAIN2;
    if (mods->types >= (g->types ? 1u + two : 0u))
        return ptx_fail(p, -EINVAL, t, "type '.%.*s' is one too many for '%s'", PTX_TEXT(t),
                        ir_ops[i->op].text);
    bool second_free = g->form == PTX_FORM_SLCT && mods->types == 1;
    if (!second_free && !(g->types >> word->value & 1))
        return ptx_fail(p, -ENOTSUP, t, "'%s' of type '.%.*s' is not supported", ir_ops[i->op].text,
                        PTX_TEXT(t));
    if (mods->types++ == 0)
        i->type = word->value;
    else
        i->type2 = word->value;
    return true;
}

/* Words that newer versions of PTX allow after more instructions (barrier.cluster, red.v2 and
 * others): that such a word is not known here is no error in the text. */
static bool is_newer(const struct ptx_token *t)
{
    static const char *const words[] = { "async", "bulk", "cluster", "v2", "v4", "v8" };
    for (size_t k = 0; k < GM_ARRAY_LEN(words); k++)
        if (ptx_text_is(t, words[k]))
            return true;
    return false;
}

static bool parse_modifiers(struct ptx_parser *p, struct ir_instr *i, struct ptx_modifiers *mods)
{
    const struct ptx_grammar *g = &ptx_grammar[i->op];
    for (; p->token.kind == PTX_DOT; ptx_advance(p)) {
        const struct ptx_token *t = &p->token;
        bool known;
        if (i->op == IR_OP_CVT && mods->types == 0 && ptx_text_is(t, "tf32")) {
            mods->tf32 = true;
            mods->types++;
            i->type = IR_B32;
            continue;
        }
        const struct ptx_word *word =
            ptx_words_find_modifier(&p->words, t->text, t->length, g->modifiers, &known);
        if (!word) {
            bool wrong = known && !is_newer(t);
            return ptx_fail(p, wrong ? -EINVAL : -ENOTSUP, t, "modifier '.%.*s' of '%s' %s",
                            PTX_TEXT(t), ir_ops[i->op].text,
                            wrong ? "does not belong there" : "is not supported");
        }
        if (word->kind == PTX_WORD_TYPE) {
            if (!apply_type(p, i, mods, word))
                return false;
            continue;
        }
        uint64_t kind = 1ull << word->group;
        if (has(mods, kind) && word->group != PTX_K_CACHE && word->group != PTX_K_WORD)
            return ptx_fail(p, -EINVAL, t, "modifier '.%.*s' of '%s' contradicts an earlier one",
                            PTX_TEXT(t), ir_ops[i->op].text);
        mods->seen |= kind;
        apply(i, mods, word);
    }
    return !p->why.error;
}

/* --- rules ------------------------------------------------------------------------------------ */

static bool wrong(struct ptx_parser *p, const struct ptx_modifiers *mods, const struct ir_instr *i,
                  const char *why)
{
    const char *type = ir_types[i->type].text;
    return ptx_fail(p, -EINVAL, mods->opcode, "'%s%s%s' %s", ir_ops[i->op].text, *type ? "." : "",
                    type, why);
}

/* An integer multiplication must say which half of the product it wants. */
static bool check_part(struct ptx_parser *p, struct ir_instr *i, const struct ptx_modifiers *mods)
{
    bool part = has(mods, PTX_K(PART) | PTX_K(WIDE));
    switch (i->op) {
    case IR_OP_MUL:
    case IR_OP_MAD:
        if (ir_type_is_float(i->type) ? part : !part)
            return wrong(p, mods, i, part ? "has no half to choose" : "needs .lo, .hi or .wide");
        if (mods->part == IR_MUL_WIDE && ir_types[i->type].size > 4)
            return wrong(p, mods, i, "cannot be .wide");
        return true;
    case IR_OP_MUL24:
    case IR_OP_MAD24:
    case IR_OP_MADC:
    case IR_OP_DP2A:
        return part || wrong(p, mods, i, "needs .lo or .hi");
    default:
        return true;
    }
}

/* Where rounding may be left out, that means .rn. */
static bool check_float(struct ptx_parser *p, struct ir_instr *i, const struct ptx_modifiers *mods)
{
    enum ir_type type = i->type;
    bool is_float = ir_type_is_float(type);
    bool rounds = has(mods, PTX_K(ROUND));
    if (!is_float) {
        if (rounds || has(mods, PTX_K(APPROX) | PTX_K(FULL) | PTX_K(RELU)) ||
            (has(mods, PTX_K(FTZ)) && i->op != IR_OP_SET && i->op != IR_OP_SLCT))
            return wrong(p, mods, i, "takes no modifier of floating point");
        if (has(mods, PTX_K(SAT)) &&
            !(type == IR_S32 &&
              (i->op == IR_OP_ADD || i->op == IR_OP_SUB ||
               (mods->part == IR_MUL_HI && (i->op == IR_OP_MAD || i->op == IR_OP_MAD24)))))
            return wrong(p, mods, i, "takes no .sat");
        return true;
    }
    if (has(mods, PTX_K(FTZ)) && type == IR_F64 && !(i->op == IR_OP_RCP || i->op == IR_OP_RSQRT))
        return wrong(p, mods, i, "takes no .ftz");
    if (has(mods, PTX_K(SAT)) && type == IR_F64)
        return wrong(p, mods, i, "takes no .sat");
    if (has(mods, PTX_K(CC)))
        return wrong(p, mods, i, "takes no .cc");
    switch (i->op) {
    case IR_OP_FMA:
    case IR_OP_MAD:
        /* No rounding is given: ptxas takes .rn. */
        if (!rounds && i->op == IR_OP_MAD && type == IR_F32)
            i->round = IR_ROUND_N;
        else if (!rounds)
            return wrong(p, mods, i, "needs a rounding (.rn ..)");
        /* It is not documented which NaN .oob takes for 0; it is written only for copies that this
         * device does not have. */
        if (has(mods, PTX_K(OOB)) &&
            (type == IR_F32 || type == IR_F64 || has(mods, PTX_K(FTZ) | PTX_K(SAT))))
            return wrong(p, mods, i, "takes no .oob");
        i->op = IR_OP_FMA;
        return true;
    case IR_OP_DIV:
    case IR_OP_RCP:
    case IR_OP_SQRT: {
        bool approx = has(mods, PTX_K(APPROX) | PTX_K(FULL));
        if (rounds == approx || (approx && type == IR_F64 && i->op != IR_OP_RCP))
            return wrong(p, mods, i,
                         type == IR_F64 ? "needs a rounding (.rn ..)"
                                        : "needs a rounding (.rn ..) or .approx");
        /* The result may be off by two units in the last place; here it is exact. */
        if (has(mods, PTX_K(FULL)))
            i->round = IR_ROUND_N;
        return true;
    }
    case IR_OP_RSQRT:
    case IR_OP_SIN:
    case IR_OP_COS:
    case IR_OP_EX2:
    case IR_OP_LG2:
    case IR_OP_TANH:
        return has(mods, PTX_K(APPROX)) || wrong(p, mods, i, "needs .approx");
    case IR_OP_ADD:
    case IR_OP_SUB:
    case IR_OP_MUL:
        if (!rounds)
            i->round = IR_ROUND_N;
        return true;
    default:
        return true;
    }
}

/* Two 8-bit floats: converted from two f32 or a pair of f16, or to such a pair. */
static bool check_byte_floats(struct ptx_parser *p, struct ir_instr *i,
                              const struct ptx_modifiers *mods)
{
    bool to = i->type == IR_E4M3X2 || i->type == IR_E5M2X2;
    if (i->round != IR_ROUND_N || has(mods, PTX_K(FTZ) | PTX_K(SAT)) ||
        has(mods, PTX_K(SATFINITE)) != to)
        return wrong(p, mods, i, to ? "needs .rn and .satfinite" : "needs .rn alone");
    return (to ? i->type2 == IR_F32 || i->type2 == IR_F16X2 : i->type == IR_F16X2) ||
           ptx_fail(p, -ENOTSUP, mods->opcode, "'cvt.%s.%s' is not supported",
                    ir_types[i->type].text, ir_types[i->type2].text);
}

static bool is_half(enum ir_type t)
{
    return t == IR_F16 || t == IR_BF16 || t == IR_F16X2 || t == IR_BF16X2;
}

static bool check_cvt(struct ptx_parser *p, struct ir_instr *i, const struct ptx_modifiers *mods)
{
    if (mods->types != 2)
        return wrong(p, mods, i, "needs two types");
    bool to = ir_type_is_float(i->type), from = ir_type_is_float(i->type2);
    bool rounds = has(mods, PTX_K(ROUND)), integral = has(mods, PTX_K(ROUNDINT));
    bool pair = i->type == IR_F16X2 || i->type == IR_BF16X2;
    bool to_bytes = i->type == IR_E4M3X2 || i->type == IR_E5M2X2;
    if (to_bytes || i->type2 == IR_E4M3X2 || i->type2 == IR_E5M2X2)
        return check_byte_floats(p, i, mods);
    if (mods->tf32)
        set_flag(i, has(mods, PTX_K(SATFINITE)) ? IR_F_SAT : 0);
    if (mods->tf32)
        return (i->type2 == IR_F32 && rounds && !integral && !has(mods, PTX_K(FTZ))) ||
               wrong(p, mods, i, "of tf32 is from f32, with a rounding");
    bool finite = has(mods, PTX_K(SATFINITE));
    bool clamps = i->type2 == IR_F32 && is_half(i->type) && !has(mods, PTX_K(SAT) | PTX_K(FTZ));
    set_flag(i, finite ? IR_F_NAN : 0);
    if ((finite && !clamps) || i->round == IR_ROUND_NA || i->type2 == IR_F16X2 ||
        i->type2 == IR_BF16X2 || (pair && i->type2 != IR_F32))
        return ptx_fail(p, -ENOTSUP, mods->opcode, "'cvt.%s.%s' is not supported",
                        ir_types[i->type].text, ir_types[i->type2].text);
    if (rounds && integral)
        return wrong(p, mods, i, "has two roundings");
    bool narrows = to && from && ir_types[i->type].size < ir_types[i->type2].size;
    bool halves = to && from && ir_types[i->type].size == 2 && i->type != i->type2;
    if (!to && !from && (rounds || integral))
        return wrong(p, mods, i, "between integers does not round");
    if (!to && from && !integral)
        return wrong(p, mods, i, "to an integer needs .rni, .rzi, .rmi or .rpi");
    /* Between f16 and bf16 ptxas takes .rn. */
    if (halves && !narrows && !rounds)
        i->round = IR_ROUND_N;
    else if (to && (!from || narrows || pair || halves) && !rounds)
        return wrong(p, mods, i, "needs a rounding (.rn ..)");
    bool exact = to && from && !narrows && !pair && !halves;
    if (exact && rounds && i->type2 != IR_BF16)
        return wrong(p, mods, i, "does not round");
    i->round = exact && rounds ? IR_ROUND_NONE : i->round;
    if (to && from && i->type != i->type2 && integral)
        return wrong(p, mods, i, "cannot round to an integral value");
    if (has(mods, PTX_K(FTZ)) && i->type != IR_F32 && i->type2 != IR_F32)
        return wrong(p, mods, i, "takes no .ftz");
    if (has(mods, PTX_K(RELU)) && !to)
        return wrong(p, mods, i, "takes no .relu");
    return true;
}

/* .lo .ls .hi .hs mean .lt to .ge of unsigned types. Types .bXX have only equality. */
static bool check_compare(struct ptx_parser *p, struct ir_instr *i,
                          const struct ptx_modifiers *mods)
{
    enum ir_type type = i->op == IR_OP_SET ? i->type2 : i->type;
    uint8_t c = mods->compare;
    bool half = type == IR_F16 || type == IR_BF16;
    if (i->op == IR_OP_SET &&
        (mods->types != 2 ||
         (i->type != IR_U32 && i->type != IR_S32 && i->type != IR_F32 && i->type != IR_F16 &&
          i->type != IR_BF16 && i->type != IR_B32 && i->type != IR_F16X2 && i->type != IR_BF16X2 &&
          !(half && (i->type == IR_U16 || i->type == IR_S16)))))
        return wrong(p, mods, i, "is not supported: set.cmp.{u32,s32,f32,f16}.type");
    bool pair = type == IR_F16X2 || type == IR_BF16X2;
    if (i->op == IR_OP_SET && (pair || i->type == IR_F16X2 || i->type == IR_BF16X2) &&
        i->type != type && !(pair && (i->type == IR_U32 || i->type == IR_S32)))
        return ptx_fail(p, -ENOTSUP, mods->opcode, "'set.%s.%s' is not supported",
                        ir_types[i->type].text, ir_types[type].text);
    if (c == IR_CMP_NONE)
        return wrong(p, mods, i, "needs a comparison (.eq ..)");
    if (has(mods, PTX_K(FTZ)) && !ir_type_is_float(type))
        return wrong(p, mods, i, "takes no .ftz");
    static const uint8_t plain[] = { IR_CMP_LT, IR_CMP_LE, IR_CMP_GT, IR_CMP_GE };
    bool is_unsigned_form = c >= PTX_CMP_LO;
    bool is_float_form = !is_unsigned_form && c >= IR_CMP_EQU;
    char class = ir_types[type].class;
    if ((is_unsigned_form && class != 'U') || (is_float_form && class != 'F') ||
        (class == 'B' && c != IR_CMP_EQ && c != IR_CMP_NE))
        return wrong(p, mods, i, "has no such comparison");
    i->cmp = is_unsigned_form ? plain[c - PTX_CMP_LO] : c;
    return true;
}

static bool check_atomic(struct ptx_parser *p, struct ir_instr *i, const struct ptx_modifiers *mods)
{
    if (!has(mods, PTX_K(ATOMIC)))
        return wrong(p, mods, i, "needs an operation (.add ..)");
    char class = ir_types[i->type].class;
    uint8_t size = ir_types[i->type].size;
    bool right = false, half = class == 'F' && i->type != IR_F32 && i->type != IR_F64;
    bool sums = i->mode == IR_ATOM_ADD || i->mode == IR_ATOM_MIN || i->mode == IR_ATOM_MAX;
    if (has(mods, PTX_K(NOFTZ)) != (half && sums))
        return wrong(p, mods, i, half ? "needs .noftz" : "takes no .noftz");
    switch (i->mode) {
    case IR_ATOM_ADD:
        right = class == 'U' || class == 'S' || class == 'F';
        break;
    case IR_ATOM_MIN:
    case IR_ATOM_MAX:
        right = class == 'U' || class == 'S';
        break;
    case IR_ATOM_AND:
    case IR_ATOM_OR:
    case IR_ATOM_XOR:
        right = class != 'F' && size <= 8;
        break;
    case IR_ATOM_INC:
    case IR_ATOM_DEC:
        right = class == 'U' && size == 4;
        break;
    case IR_ATOM_EXCH:
    case IR_ATOM_CAS:
        right = i->op == IR_OP_ATOM && class != 'F' && (size > 2 || i->mode == IR_ATOM_CAS);
        break;
    default:
        break;
    }
    if (!right || (i->op == IR_OP_REDUX && (i->mode > IR_ATOM_XOR || class == 'F')))
        return ptx_fail(p, -ENOTSUP, mods->opcode, "this operation of '%s' on .%s is not supported",
                        ir_ops[i->op].text, ir_types[i->type].text);
    if (i->op != IR_OP_REDUX && i->order == IR_ORDER_WEAK)
        i->order = IR_ORDER_RELAXED;
    return true;
}

static bool check_memory(struct ptx_parser *p, struct ir_instr *i, const struct ptx_modifiers *mods)
{
    unsigned width = i->dst_count ? i->dst_count : 1;
    if (width * ir_types[i->type].size > 16)
        return wrong(p, mods, i, "of over 16 bytes");
    bool is_store = i->op == IR_OP_ST;
    if (is_store && (i->space == IR_SPACE_CONST || has(mods, PTX_K(NC))))
        return wrong(p, mods, i, "cannot store there");
    if (is_store ? i->order == IR_ORDER_ACQUIRE : i->order == IR_ORDER_RELEASE)
        return wrong(p, mods, i, "has the wrong memory order");
    if (i->order == IR_ORDER_ACQ_REL || i->order == IR_ORDER_SC)
        return wrong(p, mods, i, "has the wrong memory order");
    if (i->op == IR_OP_LDU)
        i->op = IR_OP_LD;
    /* Blocks talk to each other that way: CUB before 2.1 publishes a value together with its state.
     */
    if (mods->past_l1 && width > 1 && i->order == IR_ORDER_WEAK)
        i->order = IR_ORDER_RELAXED;
    return true;
}

static bool check_barrier(struct ptx_parser *p, struct ir_instr *i,
                          const struct ptx_modifiers *mods)
{
    if (!has(mods, PTX_K(BARRIER)))
        return wrong(p, mods, i, "needs .sync, .arrive or .red");
    if (has(mods, PTX_K(WARP))) {
        if (mods->barrier != IR_BAR_SYNC || mods->types || has(mods, PTX_K(BARRED)))
            return wrong(p, mods, i, "is not 'bar.warp.sync'");
        i->op = IR_OP_BARWARP;
        return true;
    }
    bool is_red = mods->barrier == IR_BAR_RED_POPC;
    if (is_red != has(mods, PTX_K(BARRED)))
        return wrong(p, mods, i, "needs .popc, .and or .or with .red, and only there");
    if (is_red && i->type != (mods->barred == IR_BAR_RED_POPC ? IR_U32 : IR_PRED))
        return wrong(p, mods, i, "has the wrong type");
    if (!is_red && mods->types)
        return wrong(p, mods, i, "takes no type");
    i->op = IR_OP_BAR;
    i->mode = is_red ? mods->barred : mods->barrier;
    return true;
}

static bool check_lanes(struct ptx_parser *p, struct ir_instr *i, const struct ptx_modifiers *mods)
{
    bool sync = has(mods, PTX_K(SYNC));
    switch (i->op) {
    case IR_OP_SHFL:
        return has(mods, PTX_K(SHUFFLE)) || wrong(p, mods, i, "needs .up, .down, .bfly or .idx");
    case IR_OP_VOTE:
        if (!has(mods, PTX_K(VOTE)) || (i->mode == IR_VOTE_BALLOT) != (i->type == IR_B32))
            return wrong(p, mods, i,
                         "is not supported: .all, .any, .uni with .pred or .ballot with .b32");
        return true;
    case IR_OP_MATCH:
        if (!sync || (i->mode != IR_VOTE_ANY && i->mode != IR_VOTE_ALL))
            return wrong(p, mods, i, "needs .any or .all, and .sync");
        return true;
    case IR_OP_REDUX:
        return (sync || wrong(p, mods, i, "needs .sync")) && check_atomic(p, i, mods);
    case IR_OP_ELECT:
        return sync || wrong(p, mods, i, "needs .sync");
    default:
        return true;
    }
}

static bool check_minmax(struct ptx_parser *p, struct ir_instr *i, const struct ptx_modifiers *mods)
{
    bool is_float = ir_type_is_float(i->type);
    if (has(mods, PTX_K(XORSIGN)) != has(mods, PTX_K(ABS)))
        return wrong(p, mods, i, "knows .xorsign.abs only together");
    if (has(mods, PTX_K(NAN) | PTX_K(XORSIGN)) && (!is_float || i->type == IR_F64))
        return wrong(p, mods, i, "takes no such modifier");
    if (has(mods, PTX_K(RELU)) && i->type != IR_S32 && i->type != IR_S16X2)
        return wrong(p, mods, i, "takes no .relu");
    return true;
}

static bool check(struct ptx_parser *p, struct ir_instr *i, const struct ptx_modifiers *mods)
{
    const struct ptx_grammar *g = &ptx_grammar[i->op];
    bool optional_type = g->form == PTX_FORM_BAR;
    if (g->types && mods->types == 0 && !optional_type)
        return wrong(p, mods, i, "needs a type");
    switch (g->form) {
    case PTX_FORM_CVT:
        return check_cvt(p, i, mods);
    case PTX_FORM_SETP:
    case PTX_FORM_SET:
        return check_compare(p, i, mods);
    case PTX_FORM_LD:
    case PTX_FORM_ST:
        return check_memory(p, i, mods);
    case PTX_FORM_ATOM:
    case PTX_FORM_RED:
        return check_atomic(p, i, mods);
    case PTX_FORM_BAR:
        return check_barrier(p, i, mods);
    case PTX_FORM_CVTA:
        if (!has(mods, PTX_K(SPACE)))
            return wrong(p, mods, i, "needs a space");
        i->mode = i->mode == IR_CVTA_TO ? IR_CVTA_TO : IR_CVTA_FROM;
        return i->type == IR_U64 ||
               ptx_fail(p, -ENOTSUP, mods->opcode, "'cvta.u32' is not supported");
    case PTX_FORM_ISSPACEP:
        return has(mods, PTX_K(SPACE)) || wrong(p, mods, i, "needs a space");
    case PTX_FORM_SLCT:
        if (i->type2 != IR_S32 && i->type2 != IR_F32)
            return wrong(p, mods, i, "needs .s32 or .f32 as its second type");
        return true;
    case PTX_FORM_PLAIN2:
        return (mods->types == 2 || wrong(p, mods, i, "needs two types")) && check_part(p, i, mods);
    case PTX_FORM_TESTP:
        return has(mods, PTX_K(TEST)) || wrong(p, mods, i, "needs a test (.finite ..)");
    case PTX_FORM_BRX:
        return has(mods, PTX_K(IDX)) || wrong(p, mods, i, "needs .idx");
    default:
        break;
    }
    if (i->op == IR_OP_SHF)
        return has(mods, PTX_K(DIRECTION)) || wrong(p, mods, i, "needs .l or .r");
    if (i->op == IR_OP_MIN || i->op == IR_OP_MAX)
        if (!check_minmax(p, i, mods))
            return false;
    bool bits_only =
        i->op == IR_OP_BREV || i->op == IR_OP_CLZ || i->op == IR_OP_POPC || g->form == PTX_FORM_MOV;
    if (!bits_only && g->form == PTX_FORM_PLAIN && ir_ops[i->op].properties != IR_P_CROSS_LANE)
        if (i->op != IR_OP_MIN && i->op != IR_OP_MAX && !check_float(p, i, mods))
            return false;
    return check_part(p, i, mods) && check_lanes(p, i, mods);
}

/* Processors of compute capability 1 had no subnormal f32, and PTX for them may leave the rounding
 * of mad open. Later processors run such texts with .ftz and one rounding. */
static void adapt_old(const struct ptx_parser *p, struct ir_instr *i, struct ptx_modifiers *mods)
{
    bool old = p->target < 20, single = i->type == IR_F32 || i->type2 == IR_F32;
    if (old && single && (ptx_grammar[i->op].modifiers & PTX_K(FTZ)))
        set_flag(i, IR_F_FTZ);
    if (old && i->type == IR_F32 && i->op == IR_OP_MAD && !has(mods, PTX_K(ROUND))) {
        mods->seen |= PTX_K(ROUND);
        i->round = IR_ROUND_N;
    }
}

/* --- one instruction -------------------------------------------------------------------------- */

bool ptx_parse_instr(struct ptx_parser *p, const struct ptx_token *opcode, uint32_t guard,
                     bool guard_not)
{
    const struct ptx_word *word =
        ptx_words_find(&p->words, PTX_WORD_OPCODE, opcode->text, opcode->length);
    ptx_expansion *expansion;
    if (word ? (expansion = ptx_x_newer(p, word->value)) != NULL
             : ptx_is_expanded(opcode, &expansion))
        return ptx_parse_expanded(p, opcode, expansion, guard, guard_not);
    if (!word)
        return ptx_lacks_instruction(opcode)
                   ? ptx_fail(p, -ENOTSUP, opcode, "instruction '%.*s' is not supported",
                              PTX_TEXT(opcode))
                   : ptx_fail(p, -EINVAL, opcode, "instruction '%.*s' is not known",
                              PTX_TEXT(opcode));
    struct ir_instr i;
    struct ptx_modifiers mods = { .opcode = opcode };
    ir_instr_init(&i, word->value, opcode->line, opcode->column);
    i.guard = guard;
    if (guard_not)
        set_flag(&i, IR_F_GUARD_NOT);
    if (!parse_modifiers(p, &i, &mods))
        return false;
    adapt_old(p, &i, &mods);
    if (!check(p, &i, &mods) || !ptx_parse_operands(p, &i, opcode))
        return false;
    struct ir_src policy;
    if (has(&mods, PTX_K(HINT)) &&
        (!ptx_expect(p, ',') || !ptx_parse_source(p, IR_B64, 0, &policy)))
        return false;
    if (!ptx_expect(p, ';'))
        return false;
    bool dropped = (ir_ops[i.op].properties & IR_P_NOP) && i.op != IR_OP_NANOSLEEP;
    if (ptx_is_in_pieces(&i))
        return ptx_append_pieces(p, opcode, &i);
    return dropped || ptx_append_instr(p, &i);
}
