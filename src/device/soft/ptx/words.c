/*
 * The vocabulary as tables, and a small hash over them. A word with several meanings (.and is a
 * boolean operation of setp, an operation of atom, a reduction of bar) has several rows.
 */
#include "device/soft/ptx/words.h"

#include <string.h>

#define T(name) (1u << IR_##name)

/* Type sets: the column `types` of ops.h. */
enum {
    PTX_T_NONE = 0,
    PTX_T_I32 = T(U32) | T(S32),
    PTX_T_U32 = T(U32),
    PTX_T_B32 = T(B32),
    PTX_T_I3264 = PTX_T_I32 | T(U64) | T(S64),
    PTX_T_INT = PTX_T_I3264 | T(U16) | T(S16),
    PTX_T_BITS = T(B16) | T(B32) | T(B64),
    PTX_T_B3264 = T(B32) | T(B64),
    PTX_T_F32 = T(F32),
    PTX_T_F3264 = T(F32) | T(F64),
    PTX_T_HALVES = T(F16) | T(F16X2) | T(BF16) | T(BF16X2),
    PTX_T_FLOAT = PTX_T_F3264 | PTX_T_HALVES,
    PTX_T_ARITH = PTX_T_INT | PTX_T_FLOAT,
    PTX_T_ADD = PTX_T_ARITH | T(U16X2) | T(S16X2), /* also of min and max */
    PTX_T_MAD = PTX_T_INT | PTX_T_F3264,
    PTX_T_DIV = PTX_T_INT | PTX_T_F3264,
    PTX_T_ABS = T(S16) | T(S32) | T(S64) | PTX_T_FLOAT,
    PTX_T_MOVE = T(PRED) | PTX_T_BITS | PTX_T_INT | PTX_T_FLOAT,
    PTX_T_MEM = T(B8) | T(U8) | T(S8) | PTX_T_BITS | PTX_T_INT | PTX_T_F3264 | T(F16) | T(B128),
    PTX_T_CVT = T(U8) | T(S8) | PTX_T_INT | PTX_T_FLOAT | T(E4M3X2) | T(E5M2X2),
    PTX_T_APPROX = T(F32) | PTX_T_HALVES,
    PTX_T_ADDR = T(U32) | T(U64),
    PTX_T_LOGIC = T(PRED) | PTX_T_BITS,
    PTX_T_SHR = PTX_T_BITS | PTX_T_INT,
    PTX_T_COMPARE = PTX_T_BITS | PTX_T_INT | PTX_T_FLOAT,
    PTX_T_SET = PTX_T_BITS | PTX_T_INT | PTX_T_FLOAT,
    PTX_T_SELECT = PTX_T_BITS | PTX_T_INT | PTX_T_F3264,
    PTX_T_BAR = T(U32) | T(PRED),
    PTX_T_ATOM = PTX_T_I3264 | PTX_T_BITS | PTX_T_FLOAT | T(B128),
    PTX_T_VOTE = T(PRED) | T(B32),
    PTX_T_REDUX = PTX_T_I32 | T(B32),
};

/* Modifier sets: the column `modifiers`. */
#define PTX_M_0 0
#define PTX_M_MEMORY                                                                               \
    (PTX_K(SPACE) | PTX_K(ORDER) | PTX_K(SCOPE) | PTX_K(CACHE) | PTX_K(HINT) | PTX_K(NC) |         \
     PTX_K(VECTOR))
#define PTX_M_CVT                                                                                  \
    (PTX_K(ROUND) | PTX_K(ROUNDINT) | PTX_K(FTZ) | PTX_K(SAT) | PTX_K(RELU) | PTX_K(SATFINITE))
#define PTX_M_CVTA       (PTX_K(SPACE) | PTX_K(TO))
#define PTX_M_SPACE      PTX_K(SPACE)
#define PTX_M_PREFETCH   (PTX_K(SPACE) | PTX_K(CACHE))
#define PTX_M_ARITH      (PTX_K(ROUND) | PTX_K(FTZ) | PTX_K(SAT) | PTX_K(CC))
#define PTX_M_MUL        (PTX_M_ARITH | PTX_K(PART) | PTX_K(WIDE))
#define PTX_M_FMA        (PTX_K(ROUND) | PTX_K(FTZ) | PTX_K(SAT) | PTX_K(RELU) | PTX_K(OOB))
#define PTX_M_MUL24      (PTX_K(PART) | PTX_K(SAT))
#define PTX_M_CARRY      PTX_K(CC)
#define PTX_M_MADC       (PTX_K(CC) | PTX_K(PART))
#define PTX_M_DIV        (PTX_K(ROUND) | PTX_K(FTZ) | PTX_K(APPROX) | PTX_K(FULL))
#define PTX_M_FTZ        PTX_K(FTZ)
#define PTX_M_MINMAX     (PTX_K(FTZ) | PTX_K(NAN) | PTX_K(XORSIGN) | PTX_K(ABS) | PTX_K(RELU))
#define PTX_M_RECIPROCAL (PTX_K(ROUND) | PTX_K(FTZ) | PTX_K(APPROX))
#define PTX_M_APPROX     (PTX_K(FTZ) | PTX_K(APPROX))
#define PTX_M_HILO       PTX_K(PART)
#define PTX_M_SHF        (PTX_K(DIRECTION) | PTX_K(AMOUNT))
#define PTX_M_LOP3       PTX_K(BOOL)
#define PTX_M_PRMT       PTX_K(PERMUTE)
#define PTX_M_SHIFTAMT   PTX_K(SHIFTAMT)
#define PTX_M_CLAMP      PTX_K(AMOUNT)
#define PTX_M_COMPARE    (PTX_K(COMPARE) | PTX_K(BOOL) | PTX_K(FTZ))
#define PTX_M_TESTP      PTX_K(TEST)
#define PTX_M_UNI        PTX_K(UNI)
#define PTX_M_BRX        (PTX_K(UNI) | PTX_K(IDX))
#define PTX_M_PMEVENT    PTX_K(WORD)
#define PTX_M_SETMAXNREG (PTX_K(SYNC) | PTX_K(ALIGNED) | PTX_K(ATOMIC))
#define PTX_M_GRIDDEP    PTX_K(WORD)

#define PTX_M_BAR   (PTX_K(BARRIER) | PTX_K(BARRED) | PTX_K(WARP) | PTX_K(ALIGNED) | PTX_K(WORD))
#define PTX_M_FENCE (PTX_K(ORDER) | PTX_K(SCOPE))
#define PTX_M_ATOM                                                                                 \
    (PTX_K(SPACE) | PTX_K(ORDER) | PTX_K(SCOPE) | PTX_K(ATOMIC) | PTX_K(NOFTZ) | PTX_K(CACHE) |    \
     PTX_K(HINT))
#define PTX_M_SHFL  (PTX_K(SYNC) | PTX_K(SHUFFLE))
#define PTX_M_VOTE  (PTX_K(SYNC) | PTX_K(VOTE))
#define PTX_M_MATCH (PTX_K(SYNC) | PTX_K(VOTE))
#define PTX_M_REDUX (PTX_K(SYNC) | PTX_K(ATOMIC))
#define PTX_M_SYNC  PTX_K(SYNC)

const struct ptx_grammar ptx_grammar[IR_OP_COUNT] = {
#define IR_OP(name, text, form, sources, types, modifiers, properties)                             \
    { PTX_FORM_##form, PTX_T_##types, PTX_M_##modifiers },
#include "device/soft/ir/ops.h"
};

static const struct ptx_word vocabulary[] = {
#define IR_OP(name, text, form, ...)                                                               \
    { text, PTX_WORD_OPCODE, PTX_FORM_##form, IR_OP_##name, sizeof(text) - 1 },
#define IR_TYPE(name, text, ...) { text, PTX_WORD_TYPE, 0, IR_##name, sizeof(text) - 1 },
#define IR_SREG(name, text, ...) { text, PTX_WORD_SREG, 0, IR_SREG_##name, sizeof(text) - 1 },
#include "device/soft/ir/ops.h"

#define M(text, kind, value)                                                                       \
    {                                                                                              \
        text, PTX_WORD_MODIFIER, PTX_K_##kind, value, sizeof(text) - 1                             \
    }
    M("ftz", FTZ, 0),
    M("noftz", NOFTZ, 0),
    M("satfinite", SATFINITE, 0),
    M("rna", ROUND, IR_ROUND_NA),
    M("sat", SAT, 0),
    M("rn", ROUND, IR_ROUND_N),
    M("rz", ROUND, IR_ROUND_Z),
    M("rm", ROUND, IR_ROUND_M),
    M("rp", ROUND, IR_ROUND_P),
    M("rni", ROUNDINT, IR_ROUND_NI),
    M("rzi", ROUNDINT, IR_ROUND_ZI),
    M("rmi", ROUNDINT, IR_ROUND_MI),
    M("rpi", ROUNDINT, IR_ROUND_PI),
    M("approx", APPROX, 0),
    M("full", FULL, 0),
    M("lo", PART, IR_MUL_LO),
    M("hi", PART, IR_MUL_HI),
    M("wide", WIDE, IR_MUL_WIDE),
    M("cc", CC, 0),
    M("global", SPACE, IR_SPACE_GLOBAL),
    M("const", SPACE, IR_SPACE_CONST),
    M("shared", SPACE, IR_SPACE_SHARED),
    M("shared::cta", SPACE, IR_SPACE_SHARED),
    /* A cluster has one block. */
    M("shared::cluster", SPACE, IR_SPACE_SHARED),
    M("local", SPACE, IR_SPACE_LOCAL),
    M("param", SPACE, IR_SPACE_PARAM),
    M("param::entry", SPACE, IR_SPACE_PARAM),
    M("param::func", SPACE, IR_SPACE_PARAM),
    M("weak", ORDER, IR_ORDER_WEAK),
    M("relaxed", ORDER, IR_ORDER_RELAXED),
    M("acquire", ORDER, IR_ORDER_ACQUIRE),
    M("release", ORDER, IR_ORDER_RELEASE),
    M("acq_rel", ORDER, IR_ORDER_ACQ_REL),
    M("sc", ORDER, IR_ORDER_SC),
    M("volatile", ORDER, IR_ORDER_VOLATILE),
    /* .relaxed follows, so that it is done once like every access with an order. */
    M("mmio", CACHE, 0),
    M("cta", SCOPE, IR_SCOPE_CTA),
    M("cluster", SCOPE, IR_SCOPE_CLUSTER),
    M("gpu", SCOPE, IR_SCOPE_GPU),
    M("gl", SCOPE, IR_SCOPE_GPU),
    M("sys", SCOPE, IR_SCOPE_SYS),
    M("ca", CACHE, 0),
    M("cg", CACHE, PTX_PAST_L1),
    M("cs", CACHE, 0),
    M("lu", CACHE, 0),
    M("cv", CACHE, PTX_PAST_L1),
    M("wb", CACHE, 0),
    M("wt", CACHE, 0),
    M("L1", CACHE, 0),
    M("L2", CACHE, 0),
    M("L1::evict_normal", CACHE, 0),
    M("L1::evict_unchanged", CACHE, 0),
    M("L1::evict_first", CACHE, 0),
    M("L1::evict_last", CACHE, 0),
    M("L1::no_allocate", CACHE, 0),
    M("L2::evict_normal", CACHE, 0),
    M("L2::evict_first", CACHE, 0),
    M("L2::evict_last", CACHE, 0),
    M("L2::64B", CACHE, 0),
    M("L2::128B", CACHE, 0),
    M("L2::256B", CACHE, 0),
    M("L2::cache_hint", HINT, 0),
    M("nc", NC, 0),
    M("v2", VECTOR, 2),
    M("v4", VECTOR, 4),
    M("uni", UNI, 0),
    M("sync", SYNC, 0),
    M("aligned", ALIGNED, 0),
    M("eq", COMPARE, IR_CMP_EQ),
    M("ne", COMPARE, IR_CMP_NE),
    M("lt", COMPARE, IR_CMP_LT),
    M("le", COMPARE, IR_CMP_LE),
    M("gt", COMPARE, IR_CMP_GT),
    M("ge", COMPARE, IR_CMP_GE),
    M("lo", COMPARE, PTX_CMP_LO),
    M("ls", COMPARE, PTX_CMP_LS),
    M("hi", COMPARE, PTX_CMP_HI),
    M("hs", COMPARE, PTX_CMP_HS),
    M("equ", COMPARE, IR_CMP_EQU),
    M("neu", COMPARE, IR_CMP_NEU),
    M("ltu", COMPARE, IR_CMP_LTU),
    M("leu", COMPARE, IR_CMP_LEU),
    M("gtu", COMPARE, IR_CMP_GTU),
    M("geu", COMPARE, IR_CMP_GEU),
    M("num", COMPARE, IR_CMP_NUM),
    M("nan", COMPARE, IR_CMP_NAN),
    M("and", BOOL, IR_BOOL_AND),
    M("or", BOOL, IR_BOOL_OR),
    M("xor", BOOL, IR_BOOL_XOR),
    M("add", ATOMIC, IR_ATOM_ADD),
    M("min", ATOMIC, IR_ATOM_MIN),
    M("max", ATOMIC, IR_ATOM_MAX),
    M("and", ATOMIC, IR_ATOM_AND),
    M("or", ATOMIC, IR_ATOM_OR),
    M("xor", ATOMIC, IR_ATOM_XOR),
    M("inc", ATOMIC, IR_ATOM_INC),
    M("dec", ATOMIC, IR_ATOM_DEC),
    M("exch", ATOMIC, IR_ATOM_EXCH),
    M("cas", ATOMIC, IR_ATOM_CAS),
    M("up", SHUFFLE, IR_SHFL_UP),
    M("down", SHUFFLE, IR_SHFL_DOWN),
    M("bfly", SHUFFLE, IR_SHFL_BFLY),
    M("idx", SHUFFLE, IR_SHFL_IDX),
    M("l", DIRECTION, IR_SHF_L),
    M("r", DIRECTION, IR_SHF_R),
    M("clamp", AMOUNT, 0),
    M("wrap", AMOUNT, 1),
    M("f4e", PERMUTE, IR_PRMT_F4E),
    M("b4e", PERMUTE, IR_PRMT_B4E),
    M("rc8", PERMUTE, IR_PRMT_RC8),
    M("ecl", PERMUTE, IR_PRMT_ECL),
    M("ecr", PERMUTE, IR_PRMT_ECR),
    M("rc16", PERMUTE, IR_PRMT_RC16),
    M("all", VOTE, IR_VOTE_ALL),
    M("any", VOTE, IR_VOTE_ANY),
    M("uni", VOTE, IR_VOTE_UNI),
    M("ballot", VOTE, IR_VOTE_BALLOT),
    M("finite", TEST, IR_TESTP_FINITE),
    M("infinite", TEST, IR_TESTP_INFINITE),
    M("number", TEST, IR_TESTP_NUMBER),
    M("notanumber", TEST, IR_TESTP_NOTANUMBER),
    M("normal", TEST, IR_TESTP_NORMAL),
    M("subnormal", TEST, IR_TESTP_SUBNORMAL),
    M("shiftamt", SHIFTAMT, 0),
    M("sync", BARRIER, IR_BAR_SYNC),
    M("arrive", BARRIER, IR_BAR_ARRIVE),
    M("red", BARRIER, IR_BAR_RED_POPC),
    M("popc", BARRED, IR_BAR_RED_POPC),
    M("and", BARRED, IR_BAR_RED_AND),
    M("or", BARRED, IR_BAR_RED_OR),
    M("warp", WARP, 0),
    M("to", TO, 0),
    M("idx", IDX, 0),
    M("relu", RELU, 0),
    M("NaN", NAN, 0),
    M("xorsign", XORSIGN, 0),
    M("oob", OOB, 0),
    M("abs", ABS, 0),
    M("cta", WORD, 0),
    M("mask", WORD, 0),
    M("launch_dependents", WORD, 0),
    M("wait", WORD, 0),
#undef M
};

static uint32_t hash(const char *text, uint32_t length)
{
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < length; i++)
        h = (h ^ (uint8_t)text[i]) * 16777619u;
    return h ^ h >> 15;
}

_Static_assert(sizeof(vocabulary) / sizeof(vocabulary[0]) < PTX_WORD_SLOTS / 2,
               "the table stays sparse");

void ptx_words_init(struct ptx_words *w)
{
    memset(w, 0, sizeof(*w));
    for (size_t i = 0; i < GM_ARRAY_LEN(vocabulary); i++) {
        const struct ptx_word *word = &vocabulary[i];
        /* Internal operations, which no text names, have the same text as the ones that it
         * names. */
        if (word->length == 0 ||
            (word->kind == PTX_WORD_OPCODE && word->group == PTX_FORM_INTERNAL))
            continue;
        uint32_t slot = hash(word->text, word->length) % PTX_WORD_SLOTS;
        while (w->slots[slot])
            slot = (slot + 1) % PTX_WORD_SLOTS;
        w->slots[slot] = word;
    }
}

static bool equal(const struct ptx_word *word, const char *text, uint32_t length)
{
    return word->length == length && memcmp(word->text, text, length) == 0;
}

const struct ptx_word *ptx_words_find(const struct ptx_words *w, enum ptx_word_kind kind,
                                      const char *text, uint32_t length)
{
    uint32_t slot = hash(text, length) % PTX_WORD_SLOTS;
    for (const struct ptx_word *word; (word = w->slots[slot]); slot = (slot + 1) % PTX_WORD_SLOTS)
        if (word->kind == kind && equal(word, text, length))
            return word;
    return NULL;
}

const struct ptx_word *ptx_words_find_modifier(const struct ptx_words *w, const char *text,
                                               uint32_t length, uint64_t accepted, bool *known)
{
    uint32_t slot = hash(text, length) % PTX_WORD_SLOTS;
    *known = false;
    for (const struct ptx_word *word; (word = w->slots[slot]); slot = (slot + 1) % PTX_WORD_SLOTS) {
        if (word->kind != PTX_WORD_TYPE && word->kind != PTX_WORD_MODIFIER)
            continue;
        if (!equal(word, text, length))
            continue;
        *known = true;
        if (word->kind == PTX_WORD_TYPE || (accepted >> word->group & 1))
            return word;
    }
    return NULL;
}
