/*
 * The intermediate form of a PTX module. The parser makes it; the interpreter, the analyses and the
 * compiler read it.
 *
 * It stays close to PTX (one instruction is one ir_instr, registers keep their declared types),
 * because PTX is already a good form for a compiler. Resolved away are names (everything is an
 * index), scopes, the order of labels in the text, abbreviated types, calls (device functions
 * become parts of the entries: inline.c, outline.c) and the dialects of clang and nvcc.
 *
 * Each kind of thing is one flat array, with indices instead of pointers. A module is immutable
 * after ptx_parse(), and any thread may read it.
 *
 * Address spaces, and what a value in a register means there:
 *   global, const  an ordinary 64-bit address of the client's window. A symbol's address is known
 *                  only when the module has been placed (soft_block.globals[symbol index]). cvta
 *                  between global/const and generic: identity.
 *   shared         byte offset in the block's shared memory (32 bits suffice; also held in 64-bit
 *                  registers)
 *   local          byte offset in the thread's local memory, 0 .. fn->local_bytes - 1
 *   param          byte offset in the packed parameters (inlining removes all other .param
 *                  variables)
 *   generic        IR_GENERIC_* below (see also spaces.h): the upper 32 bits of the address give
 *                  the space. cvta.shared adds IR_GENERIC_SHARED, cvta.to.shared subtracts it; no
 *                  client's window lies there.
 */
#ifndef GMUX_SOFT_IR_IR_H
#define GMUX_SOFT_IR_IR_H

#include "base/attr.h"

#define IR_NONE UINT32_MAX /* no register, symbol, block ... */

#define IR_GENERIC_SHARED 0x100000000ull
#define IR_GENERIC_LOCAL  0x200000000ull
#define IR_GENERIC_PARAM  0x300000000ull
/* The address of the function of rank n (ir/function.c) is IR_FUNCTIONS + n * STEP. No memory lies
 * there. */
#define IR_FUNCTIONS     0x400000000ull
#define IR_FUNCTION_STEP 16u

/* Limits on what a text may declare. Beyond them the module is not loaded. */
#define IR_MAX_INSTRS       (1u << 20) /* per function, after inlining */
#define IR_MAX_REGS         (1u << 20) /* per function, after inlining */
#define IR_MAX_BLOCKS       (1u << 18)
#define IR_MAX_SYMBOLS      (1u << 17)
#define IR_MAX_FNS          (1u << 14)
#define IR_MAX_PARAMS       4096
#define IR_MAX_PARAM_BYTES  32764u
#define IR_MAX_SHARED_BYTES (1u << 20)
#define IR_MAX_LOCAL_BYTES  (512u << 10)
#define IR_MAX_GLOBAL_BYTES (1ull << 36) /* one symbol */
#define IR_MAX_INIT_BYTES   (1ull << 28) /* all initial values of a module together */
#define IR_MAX_ALIGN        (1u << 20)

enum ir_type {
#define IR_TYPE(name, text, size, class) IR_##name,
#include "device/soft/ir/ops.h"
    IR_TYPE_COUNT,
};

enum ir_op {
#define IR_OP(name, ...) IR_OP_##name,
#include "device/soft/ir/ops.h"
    IR_OP_COUNT,
};

enum ir_sreg {
#define IR_SREG(name, ...) IR_SREG_##name,
#include "device/soft/ir/ops.h"
    IR_SREG_COUNT,
};

/* Properties of opcodes (ir_op_info.properties). */
enum {
    IR_P_LOAD = 1,        /* reads memory through `address` */
    IR_P_STORE = 2,       /* writes memory through `address` */
    IR_P_EFFECT = 4,      /* must run even if no result is used */
    IR_P_CROSS_LANE = 8,  /* lanes see each other's values */
    IR_P_TERMINATOR = 16, /* ends a block */
    IR_P_NOP = 32,        /* no meaning on this device: may be skipped */
    IR_P_CARRY_IN = 64,   /* last source is the carry register */
    IR_P_TEXTURE = 256,   /* reads memory at an address that a handle gives */
    IR_P_DST32 = 128,     /* the destination has 32 bits whatever the type is */
};

enum ir_space {
    IR_SPACE_GENERIC,
    IR_SPACE_GLOBAL,
    IR_SPACE_CONST,
    IR_SPACE_SHARED,
    IR_SPACE_LOCAL,
    IR_SPACE_PARAM,
};

/* Rounding. N, Z, M, P: the result of floating point arithmetic (.rn .rz .rm .rp; N also if none
 * was written). NI to PI: to an integral value (cvt.rni and so on). IR_ROUND_NONE: the instruction
 * does not round. */
enum ir_round {
    IR_ROUND_NONE,
    IR_ROUND_N,
    IR_ROUND_Z,
    IR_ROUND_M,
    IR_ROUND_P,
    IR_ROUND_NI,
    IR_ROUND_ZI,
    IR_ROUND_MI,
    IR_ROUND_PI,
    IR_ROUND_NA, /* .rna: nearest, ties away (tf32) */
};

/* Comparison. LO, LS, HI, HS become LT, LE, GT, GE (the type is unsigned). xxU: true also if a or b
 * is NaN. */
enum ir_cmp {
    IR_CMP_NONE,
    IR_CMP_EQ,
    IR_CMP_NE,
    IR_CMP_LT,
    IR_CMP_LE,
    IR_CMP_GT,
    IR_CMP_GE,
    IR_CMP_EQU,
    IR_CMP_NEU,
    IR_CMP_LTU,
    IR_CMP_LEU,
    IR_CMP_GTU,
    IR_CMP_GEU,
    IR_CMP_NUM, /* neither is NaN */
    IR_CMP_NAN, /* one is NaN */
};

/* set, setp: result = (a cmp b) boolop c. */
enum ir_boolop {
    IR_BOOL_NONE,
    IR_BOOL_AND,
    IR_BOOL_OR,
    IR_BOOL_XOR,
};

/* ir_instr.mode: the variants of opcodes. */
enum ir_mode {
    IR_MODE_NONE,
    /* MUL, MAD, MADC, MUL24, MAD24, DP2A (integer). WIDE: type is the sources', the result is twice
       as wide. */
    IR_MUL_LO,
    IR_MUL_HI,
    IR_MUL_WIDE,
    /* SHF */
    IR_SHF_L,
    IR_SHF_R,
    /* PRMT; NONE: the index form */
    IR_PRMT_F4E,
    IR_PRMT_B4E,
    IR_PRMT_RC8,
    IR_PRMT_ECL,
    IR_PRMT_ECR,
    IR_PRMT_RC16,
    /* TESTP */
    IR_TESTP_FINITE,
    IR_TESTP_INFINITE,
    IR_TESTP_NUMBER,
    IR_TESTP_NOTANUMBER,
    IR_TESTP_NORMAL,
    IR_TESTP_SUBNORMAL,
    /* ATOM, RED, REDUX. DEC, INC as in PTX (wrap at the operand). CAS: src[0] compare, src[1] new
       value. */
    IR_ATOM_ADD,
    IR_ATOM_MIN,
    IR_ATOM_MAX,
    IR_ATOM_AND,
    IR_ATOM_OR,
    IR_ATOM_XOR,
    IR_ATOM_INC,
    IR_ATOM_DEC,
    IR_ATOM_EXCH,
    IR_ATOM_CAS,
    IR_ATOM_PHASE, /* mbarrier: phase.h */
    /* SHFL */
    IR_SHFL_UP,
    IR_SHFL_DOWN,
    IR_SHFL_BFLY,
    IR_SHFL_IDX,
    /* VOTE (ALL, ANY, UNI: predicate result; BALLOT: b32), MATCH (ALL, ANY) */
    IR_VOTE_ALL,
    IR_VOTE_ANY,
    IR_VOTE_UNI,
    IR_VOTE_BALLOT,
    /* BAR. RED_* appear only in the parser, which turns them into other instructions
     * (ptx/packed.c). */
    IR_BAR_SYNC,
    IR_BAR_ARRIVE,
    IR_BAR_RED_AND,
    IR_BAR_RED_OR,
    IR_BAR_RED_POPC,
    /* TRAP. NONE: the instruction trap. PC: a call of an address that is no function, or none that
     * could be meant. */
    IR_TRAP_PC,
    /* BRA, BRX: a jump to a function that stays apart (outline.c). The lanes of a BRA come back
     * behind it. */
    IR_BRANCH_CALL,
    IR_BRANCH_RETURN,
    /* CVTA. FROM: space to generic ("cvta.shared"); TO: generic to space ("cvta.to.shared") */
    IR_CVTA_FROM,
    IR_CVTA_TO,
};

/* MMA: ir_instr.mode and .mode2, the element types of A and B. From S8 on C has s32, before it
 * f32. */
enum ir_mma {
    IR_MMA_F16,
    IR_MMA_BF16,
    IR_MMA_TF32,
    IR_MMA_E4M3,
    IR_MMA_E5M2,
    IR_MMA_S8,
    IR_MMA_U8,
    IR_MMA_S4,
    IR_MMA_U4,
    IR_MMA_B1_XOR, /* popc(a ^ b) */
    IR_MMA_B1_AND,
    IR_MMA_F64, /* appears only in the parser */
};

/* TEX: ir_instr.mode, the shape of the texture. */
enum ir_geometry {
    IR_GEO_1D,
    IR_GEO_2D,
    IR_GEO_3D,
    IR_GEO_A1D, /* layers */
    IR_GEO_A2D,
    IR_GEO_CUBE,
    IR_GEO_ACUBE,
    IR_GEO_COUNT,
};

/* TEX: ir_instr.mode2. */
enum ir_texture {
    IR_TEXTURE_BASE,     /* a sample of the first level */
    IR_TEXTURE_LEVEL,    /* a sample of the level that a source gives */
    IR_TEXTURE_GATHER_R, /* one channel of the four elements that a sample is made of; _G, _B, _A
                            follow */
    IR_TEXTURE_GATHER_A = IR_TEXTURE_GATHER_R + 3,
    IR_TEXTURE_LOD,  /* which level suits these derivatives of the coordinates: sources 2 .. 4 by x,
                        5 .. 7 by y */
    IR_TEXTURE_PACK, /* channels as sust.p has them to the bytes of an element */
    IR_TEXTURE_COUNT,
};

/* Memory order and scope of LD, ST, ATOM, RED, FENCE, MEMBAR. WEAK: plain access. */
enum ir_order {
    IR_ORDER_WEAK,
    IR_ORDER_RELAXED,
    IR_ORDER_ACQUIRE,
    IR_ORDER_RELEASE,
    IR_ORDER_ACQ_REL,
    IR_ORDER_SC,
    IR_ORDER_VOLATILE, /* like relaxed, but never merged or dropped */
};
enum ir_scope {
    IR_SCOPE_NONE,
    IR_SCOPE_CTA,
    IR_SCOPE_CLUSTER,
    IR_SCOPE_GPU,
    IR_SCOPE_SYS,
};

/* ir_instr.flags */
enum {
    IR_F_FTZ = 1,
    IR_F_SAT = 2,       /* clamp: floats to [0, 1], integers to the range of the type */
    IR_F_APPROX = 4,    /* also .full (div.full.f32) */
    IR_F_CARRY_OUT = 8, /* .cc: dst_pred is the carry */
    /* the text promises that all lanes agree; a hint that must not be relied on */
    IR_F_UNI = 16,
    IR_F_NAN = 32, /* min.NaN, max.NaN */
    IR_F_RELU = 64,
    IR_F_SHIFTAMT = 128,   /* bfind.shiftamt */
    IR_F_WRAP = 256,       /* shf, bmsk, szext: amount taken modulo 32; else clamped to 32 */
    IR_F_NC = 512,         /* ld.global.nc: nobody writes there while the kernel runs */
    IR_F_GUARD_NOT = 1024, /* @!%p */
    IR_F_SYNC = 2048,      /* .sync form: the last source is the member mask */
    IR_F_OWN = 8192,       /* an access that the device added to the text; the checker ignores it */
    IR_F_XORSIGN = 4096,   /* min.xorsign.abs, max.xorsign.abs */
    IR_F_SECOND = 16384,   /* a barrier that hazard.c has added; the checker ignores it */
};

enum ir_src_kind {
    IR_SRC_NONE,
    IR_SRC_REG,    /* registers[index] */
    IR_SRC_IMM,    /* bits: already of the operand's type: f32 in the low 32 bits; integers sign- or
                      zero-extended */
    IR_SRC_SYMBOL, /* address of symbols[index] + (int64_t)bits, in the symbol's own space (mov %r,
                      sym) */
    IR_SRC_FN,     /* address of fns[index], until functions are numbered */
    IR_SRC_SREG,   /* special register, enum ir_sreg */
    /* "_" in a vector: the value is not used (only as a destination of ld, never in st) */
    IR_SRC_SINK,
};

struct ir_src {
    uint8_t kind;    /* enum ir_src_kind */
    uint8_t negated; /* predicate operands: !%p */
    uint32_t index;  /* register, symbol or special register */
    uint64_t bits;
};

/* base register + symbol + displacement; either of the first two may be IR_NONE. All sums modulo
 * 2^64 (2^32 where the base register has 32 bits, which only shared, local and param addresses
 * may). */
struct ir_address {
    uint32_t base;
    uint32_t symbol;
    int64_t displacement;
};

#define IR_MAX_DST 4
#define IR_MAX_SRC 8

/*
 * In a finished module symbols appear only where a number cannot: those of global and const memory,
 * and, in addresses, kernel parameters (whose place is ir_symbol_offset()). Addresses of shared and
 * local variables are IMM sources, or displacements without symbol. SREG sources appear in MOV
 * only.
 *
 * A register is as wide as the operand's type, except: LD and CVT may write a wider one (the value
 * is sign- or zero- extended by the class of the destination type), ST and CVT may read a wider one
 * (the low bits count).
 *
 * Operand conventions that differ from "dst = op(src ...)":
 *   LD    dst_count = vector width (1, 2, 4); `type` is the element in memory. A sink is dst
 *         IR_NONE.
 *   ST    src[0 .. src_count) are the elements.
 *   CVT   type = destination's, type2 = source's; to f16x2, bf16x2: src[0] becomes the upper half,
 *         src[1] the lower.
 *   SET   type = destination's, type2 = sources'. SLCT: type2 = type of src[2] (s32 or f32).
 *   SETP  dst[0] = (a cmp b) boolop c, dst_pred = !(a cmp b) boolop c; both may be IR_NONE. src[2]
 *         = c where boolop is not NONE.
 *   SELP  src[2] = predicate.
 *   MUL, MAD with IR_MUL_WIDE: `type` is a's and b's; the result (and c) is twice as wide.
 *   SHL, SHR: src[1] is u32. BFE: src[1], src[2] are u32. BFI: src[2], src[3] are u32. CLZ, POPC,
 *   BFIND: result u32.
 *   DP4A, DP2A  type = a's, type2 = b's (u32 or s32).
 *   LOP3  src[3] = the table (immediate).
 *   SHFL  src: value, b (lane or delta), c, member mask (where IR_F_SYNC); dst_pred = in range.
 *   VOTE  src[0] = predicate, src[1] = member mask (where IR_F_SYNC).
 *   MATCH src: value, mask; mode IR_VOTE_ANY or ALL; dst_pred for ALL.
 *   REDUX src: value, mask. ELECT: dst[0] = leader's lane or IR_NONE, dst_pred = am I; src[0] =
 *   mask.
 *   MMA   C (16 x 8) += A (16 x K) * B (K x 8), of all lanes: src: A (2 registers), B (1), C (4),
 *         member mask; dst: C. Where the elements lie: ptx/mma.c.
 *   TEX   src: handles of texture and sampler (u64), x, y, z, layer (type2: f32 or s32; the layer
 *         is u32), level (type2), offsets (a signed byte for each of x, y, z); what there is not is
 *         0. mode: enum ir_geometry, mode2: enum ir_texture, which may give sources other meanings.
 *         dst: four channels as 32 bits of `type` (f32, s32, u32; f16 in the low half).
 *   BAR   src[0] = number, then thread count where given (bar.sync a, b). src_count tells.
 *   BARWARP  (bar.warp.sync) src[0] = mask.
 *   ATOM, RED  src[0]; for CAS src[0] = compare, src[1] = new. ATOM with dst_count 0: nobody wants
 *              the old value.
 *   PACK  src[0 .. n), low part first, into dst[0]; UNPACK the reverse. type = the whole (b32,
 *         b64).
 *   BRA   target = block. BRX: src[0] = index; its targets are the block's successors in order
 *         (guarded: then the next block).
 *   HELPER  target = enum ir_helper; arguments in src, result (if any) in dst[0].
 *   ADDC, SUBC, MADC: an additional last source, the carry register (a predicate). IR_F_CARRY_OUT:
 *   dst_pred = carry. Subtractions are a + ~b + carry, as GPUs do them (and nvcc's 128-bit
 * divisions want): after one the carry is 1 where nothing was borrowed, and addc may follow subc.
 * Never seen: CALL, LDU (is LD), BARRIER (is BAR), PREFETCH, PREFETCHU, PMEVENT, SETMAXNREG,
 * GRIDDEP (dropped: no effect here).
 */
struct ir_instr {
    uint8_t op;   /* enum ir_op */
    uint8_t type; /* enum ir_type */
    uint8_t type2;
    uint8_t space;  /* enum ir_space: of address, cvta, isspacep */
    uint8_t round;  /* enum ir_round */
    uint8_t cmp;    /* enum ir_cmp */
    uint8_t boolop; /* enum ir_boolop */
    uint8_t mode;   /* enum ir_mode */
    uint8_t order;  /* enum ir_order */
    uint8_t scope;  /* enum ir_scope */
    uint8_t dst_count;
    uint8_t src_count;
    uint16_t flags; /* IR_F_* */
    uint8_t mode2;  /* MMA */
    uint32_t guard; /* predicate register or IR_NONE; IR_F_GUARD_NOT */
    uint32_t dst[IR_MAX_DST];
    uint32_t dst_pred; /* second destination, a predicate, or IR_NONE */
    uint32_t target;
    struct ir_address address;
    struct ir_src src[IR_MAX_SRC];
    uint32_t line, column; /* of the opcode in the text, from 1 */
};

/*
 * Blocks are in text order and partition the instructions. A block ends with BRA, BRX, RET, EXIT,
 * after a barrier that waits, or where the next one has a label. Successors: guarded BRA: {target,
 * next}; BRA: {target}; BRX: its targets (guarded: then next); unguarded RET, EXIT: none;
 * everything else: {next}. A function never runs off its end: the parser adds a RET. Block 0 is the
 * entry and has no predecessor.
 */
struct ir_block {
    uint32_t first, count;           /* instructions */
    uint32_t succ_first, succ_count; /* in ir_fn.succ; one block may appear twice */
};

struct ir_reg {
    uint8_t type;    /* enum ir_type */
    uint32_t name;   /* in ir_module.strings; of a range "%r<9>": the prefix, then `number` */
    uint32_t number; /* IR_NONE: none */
};

enum ir_symbol_flags {
    IR_SYM_EXTERN = 1,  /* without storage here: dynamic shared memory, the thread's stack */
    IR_SYM_VISIBLE = 2, /* .visible, .weak or .common */
    IR_SYM_ARRAY = 4,
    IR_SYM_KERNEL_PARAM = 8,
    IR_SYM_MANAGED = 16,
    /* Replaced by another symbol of that name: nothing refers to it (ptx/link.c). */
    IR_SYM_DROPPED = 32,
    IR_SYM_WEAK = 64,       /* .weak or .common */
    IR_SYM_WORKSPACE = 128, /* the hidden parameter: fn->workspace_at */
};

/* Variables that hold a descriptor (device/texture.h), as the wire format numbers them. */
enum ir_reference {
    IR_REFERENCE_NONE,
    IR_REFERENCE_TEXTURE,
    IR_REFERENCE_SURFACE,
    IR_REFERENCE_SAMPLER,
};

struct ir_symbol {
    uint8_t space; /* enum ir_space: GLOBAL, CONST, SHARED, LOCAL, PARAM */
    uint8_t type;  /* element type */
    uint8_t flags;
    uint8_t reference; /* global: enum ir_reference */
    uint32_t name;
    uint32_t fn;    /* the function that it belongs to, or IR_NONE: module scope */
    uint32_t align; /* power of two */
    uint64_t size;  /* bytes; 0 for the extern shared array */
    /* offset in its space, for shared, local, param (not for extern shared: ir_symbol_offset()) */
    uint64_t offset;
    uint64_t init;      /* global, const: initial bytes at ir_module.init_bytes + init */
    uint64_t init_size; /* may be less than size: the rest is zero. 0: all zero */
    uint32_t line;
    uint32_t element; /* bytes of an element; 0: no array of one dimension */
};

/* An address inside initial bytes: *(init_bytes of `symbol` + offset) = address of `target` +
 * addend (size bytes), shifted to the right. */
struct ir_reloc {
    uint32_t symbol;
    uint32_t target;
    uint64_t offset;
    int64_t addend;
    uint8_t size; /* 1, 4 or 8 */
    uint8_t shift;
    bool to_fn; /* the target is a function; no longer set once functions are numbered */
};

struct ir_param {
    uint32_t symbol; /* PARAM symbol: size, align, offset */
    uint8_t type;
};

struct ir_fn {
    uint32_t name;
    bool is_entry;
    bool is_defined;                   /* has a body; all entries have */
    uint32_t param_first, param_count; /* in ir_module.params */
    uint32_t param_bytes;              /* size of the packed parameters, including the hidden one */
    uint32_t param_declared;           /* size without the hidden one */
    uint32_t workspace_at; /* offset of the hidden one: a cooperative launch's workspace */
    bool uses_workspace;
    uint64_t address; /* what stands for it where the text takes its address; 0: nothing does */
    uint32_t maxntid[3], reqntid[3]; /* 0: not given */
    uint32_t minnctapersm, maxnreg;
    /* Shared memory: statics (also those of inlined functions and used module-scope ones) come
     * first, then the dynamic part, at shared_dynamic. */
    uint32_t shared_static;
    uint32_t shared_dynamic; /* offset of extern shared symbols: shared_static rounded up to their
                                alignment */
    bool uses_dynamic_shared;
    uint32_t local_bytes; /* per thread, multiple of 16 */
    bool uses_stack;      /* it also needs as much local memory as the client's stack limit says */
    uint32_t instr_count, block_count, reg_count, succ_count;
    struct ir_instr *instrs;
    struct ir_block *blocks;
    struct ir_reg *regs;
    uint32_t *succ;
    uint32_t line, target; /* target: sm number of the text that it stands in */
    /* Entries: a text that names the feature that it needs and this device does not have, with its
     * place; the entry then has no code and cannot be launched. 0: it lacks nothing. */
    uint32_t lacks;
};

/* Host functions that a kernel may call: CUDA's own two, and those of exec/children.h. */
enum ir_helper {
    IR_HELPER_VPRINTF,      /* s32 (u64 format, u64 arguments): both generic addresses */
    IR_HELPER_ASSERTFAIL,   /* (u64 message, u64 file, u32 line, u64 function, u64 char size) */
    IR_HELPER_CHILD_BYTES,  /* s32 (u64 kernel, u64 0): bytes of its parameters, or < 0 */
    IR_HELPER_CHILD_LAUNCH, /* s32 (u64 record, u64 stream): a cudaError */
    IR_HELPER_COUNT,
};

struct ir_module {
    uint32_t version; /* PTX ISA: major * 10 + minor */
    uint32_t target;  /* sm number, such as 90; of several texts the highest */
    /* the most registers of a kernel, as the program's linker was told; 0: it was not told */
    uint32_t registers_most;
    uint32_t fn_count, symbol_count, param_count, reloc_count;
    struct ir_fn *fns; /* entries and device functions; only the parser needs the latter */
    struct ir_symbol *symbols;
    struct ir_param *params;
    struct ir_reloc *relocs;
    uint8_t *init_bytes;
    uint64_t init_size;
    char *strings; /* NUL-terminated names; fields called `name` are offsets in it */
    uint64_t strings_size;
};

struct ir_op_info {
    const char *text; /* as in PTX */
    uint8_t sources;
    uint16_t properties;
};
struct ir_type_info {
    const char *text;
    uint8_t size;
    char class; /* 'B', 'U', 'S', 'F', 'P' */
};
struct ir_sreg_info {
    const char *text;
    uint8_t type;
};
extern const struct ir_op_info ir_ops[IR_OP_COUNT];
extern const struct ir_type_info ir_types[IR_TYPE_COUNT];
extern const struct ir_sreg_info ir_sregs[IR_SREG_COUNT];
extern const char *const ir_helper_names[IR_HELPER_COUNT];
/* Finds a host function by its name; IR_HELPER_COUNT: there is none. */
enum ir_helper ir_find_helper(const char *name);

/* Frees the module. NULL is fine. */
void ir_module_destroy(struct ir_module *m);
/* About how many bytes of memory the module takes. */
uint64_t ir_module_bytes(const struct ir_module *m);

/* Index of the entry of that name, or IR_NONE. */
uint32_t ir_module_find_fn(const struct ir_module *m, const char *name);
/* Index of the module-scope global or const symbol of that name, or IR_NONE. */
uint32_t ir_module_find_symbol(const struct ir_module *m, const char *name);

static inline const char *ir_name(const struct ir_module *m, uint32_t name)
{
    return m->strings + name;
}

/* Offset of a parameter in the packed parameters. (Only the parser uses it for shared and local
 * symbols.) */
static inline uint64_t ir_symbol_offset(const struct ir_module *m, const struct ir_fn *fn,
                                        uint32_t symbol)
{
    const struct ir_symbol *s = &m->symbols[symbol];
    if ((s->flags & IR_SYM_EXTERN) && (s->space == IR_SPACE_SHARED || s->space == IR_SPACE_LOCAL))
        return s->space == IR_SPACE_SHARED ? fn->shared_dynamic : fn->local_bytes;
    if (s->flags & IR_SYM_WORKSPACE)
        return fn->workspace_at;
    return s->offset;
}

/* True for symbols whose address is fixed only when the module is placed. */
static inline bool ir_symbol_is_placed(const struct ir_module *m, uint32_t symbol)
{
    const struct ir_symbol *s = &m->symbols[symbol];
    return (s->space == IR_SPACE_GLOBAL || s->space == IR_SPACE_CONST) &&
           !(s->flags & IR_SYM_DROPPED);
}

static inline bool ir_type_is_float(enum ir_type t)
{
    return ir_types[t].class == 'F';
}
static inline bool ir_type_is_signed(enum ir_type t)
{
    return ir_types[t].class == 'S';
}
/* The untyped (B) type of the same size; a predicate stays a predicate. */
static inline enum ir_type ir_type_untyped(enum ir_type t)
{
    if (t == IR_PRED)
        return IR_PRED;
    switch (ir_types[t].size) {
    case 1:
        return IR_B8;
    case 2:
        return IR_B16;
    case 4:
        return IR_B32;
    default:
        return IR_B64;
    }
}

/* A barrier at which the warps of a block wait for each other. It ends its block. */
static inline bool ir_is_barrier(const struct ir_instr *i)
{
    return i->op == IR_OP_BAR && i->mode != IR_BAR_ARRIVE;
}

/* Whether blocks of an entry may wait for each other. */
bool ir_may_wait(const struct ir_fn *fn);

/* About how many 32-bit registers a thread of an entry would need on a GPU. */
uint32_t ir_register_pressure(const struct ir_fn *fn);

/* Prints the module (or one function) as text that is nearly PTX, for tests and debugging. */
struct _IO_FILE;
void ir_print(const struct ir_module *m, struct _IO_FILE *out);
void ir_print_fn(const struct ir_module *m, uint32_t fn, struct _IO_FILE *out);

#endif
