/*
 * The vocabulary of PTX: opcodes, types, modifiers and special registers, found by their text; and
 * the grammar columns of ops.h (operand form, type set, modifier set per opcode).
 */
#ifndef GMUX_SOFT_PTX_WORDS_H
#define GMUX_SOFT_PTX_WORDS_H

#include "device/soft/ir/ir.h"

/* Shape of an operand list. */
enum ptx_form {
    PTX_FORM_INTERNAL, /* appears in no text */
    PTX_FORM_BARE,     /* none */
    PTX_FORM_PLAIN,    /* d, a, b, c of one type */
    PTX_FORM_PLAIN2,   /* d, a, b, c: two types, of a and of b (dp4a) */
    PTX_FORM_NODST,    /* a */
    PTX_FORM_MOV,
    PTX_FORM_LD,  /* d or {d, d}, [a] */
    PTX_FORM_ST,  /* [a], b or {b, b} */
    PTX_FORM_CVT, /* two types */
    PTX_FORM_CVTA,
    PTX_FORM_ISSPACEP,
    PTX_FORM_ADDRESS_ONLY, /* [a] */
    PTX_FORM_SHIFT,        /* d, a, b: b is 32 bits */
    PTX_FORM_BITFIELD,     /* the last two sources are 32 bits */
    PTX_FORM_LOP3,         /* d, a, b, c, table */
    PTX_FORM_SETP,         /* p|q, a, b, c */
    PTX_FORM_SET,
    PTX_FORM_SELP,
    PTX_FORM_SLCT,
    PTX_FORM_TESTP,
    PTX_FORM_BRA,
    PTX_FORM_BRX,
    PTX_FORM_CALL,
    PTX_FORM_PMEVENT,
    PTX_FORM_BAR,
    PTX_FORM_ATOM, /* d, [a], b, c */
    PTX_FORM_RED,  /* [a], b */
    PTX_FORM_SHFL, /* d|p, a, b, c, mask */
    PTX_FORM_VOTE,
    PTX_FORM_MATCH,
    PTX_FORM_ELECT, /* d|p, mask */
};

/* Kinds of modifiers. A word may belong to several; the modifiers that the opcode accepts decide
 * which one is meant. */
enum ptx_kind {
    PTX_K_FTZ,
    PTX_K_SAT,
    PTX_K_ROUND,    /* rn rz rm rp */
    PTX_K_ROUNDINT, /* rni rzi rmi rpi */
    PTX_K_APPROX,
    PTX_K_FULL,
    PTX_K_PART, /* lo hi */
    PTX_K_WIDE,
    PTX_K_CC,
    PTX_K_SPACE,
    PTX_K_ORDER,
    PTX_K_SCOPE,
    PTX_K_CACHE, /* hints, ignored but for PTX_PAST_L1 */
    PTX_K_HINT,  /* a cache policy follows the operands */
    PTX_K_NC,
    PTX_K_VECTOR,
    PTX_K_UNI,
    PTX_K_SYNC,
    PTX_K_ALIGNED,
    PTX_K_COMPARE,
    PTX_K_BOOL,
    PTX_K_ATOMIC,
    PTX_K_NOFTZ,
    PTX_K_SATFINITE,
    PTX_K_SHUFFLE,
    PTX_K_DIRECTION, /* shf: l r */
    PTX_K_AMOUNT,    /* clamp wrap */
    PTX_K_PERMUTE,
    PTX_K_VOTE,
    PTX_K_TEST,
    PTX_K_SHIFTAMT,
    PTX_K_BARRIER, /* sync arrive red */
    PTX_K_BARRED,  /* popc and or */
    PTX_K_WARP,
    PTX_K_TO,
    PTX_K_IDX,
    PTX_K_RELU,
    PTX_K_NAN,
    PTX_K_XORSIGN,
    PTX_K_ABS,
    PTX_K_OOB,
    PTX_K_WORD, /* words without effect here, such as griddepcontrol, pmevent, barrier.cta */
    PTX_KIND_COUNT,
};

#define PTX_K(kind) (1ull << PTX_K_##kind)

/* A cache operator by which other blocks' writes are seen: cg, cv. */
#define PTX_PAST_L1 1u

/* Comparisons that only unsigned types have; they become IR_CMP_LT to IR_CMP_GE. */
enum {
    PTX_CMP_LO = IR_CMP_NAN + 1,
    PTX_CMP_LS,
    PTX_CMP_HI,
    PTX_CMP_HS,
};

enum ptx_word_kind {
    PTX_WORD_OPCODE,   /* value: enum ir_op */
    PTX_WORD_TYPE,     /* value: enum ir_type */
    PTX_WORD_MODIFIER, /* group: enum ptx_kind, value: depends on it */
    PTX_WORD_SREG,     /* value: enum ir_sreg */
};

struct ptx_word {
    const char *text;
    uint8_t kind; /* enum ptx_word_kind */
    uint8_t group;
    uint8_t value;
    uint8_t length;
};

struct ptx_grammar {
    uint8_t form;       /* enum ptx_form */
    uint32_t types;     /* 1 << enum ir_type */
    uint64_t modifiers; /* 1 << enum ptx_kind */
};
extern const struct ptx_grammar ptx_grammar[IR_OP_COUNT];

#define PTX_WORD_SLOTS 1024

/* A hash table with open addressing. It is filled once per parse, which takes only some 2 us and
 * needs no global state. */
struct ptx_words {
    const struct ptx_word *slots[PTX_WORD_SLOTS];
};

void ptx_words_init(struct ptx_words *w);

/* Finds the opcode or special register (`kind`) of that text; NULL: there is none. */
const struct ptx_word *ptx_words_find(const struct ptx_words *w, enum ptx_word_kind kind,
                                      const char *text, uint32_t length);

/* Finds what `.text` means after an opcode that accepts the modifiers in `accepted`: a type or a
 * modifier. NULL: nothing; *known then says whether PTX has the word at all. */
const struct ptx_word *ptx_words_find_modifier(const struct ptx_words *w, const char *text,
                                               uint32_t length, uint64_t accepted, bool *known);

#endif
