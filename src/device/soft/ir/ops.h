/*
 * The tables of the instruction set: types, opcodes, special registers, one line each, included
 * several times with different macros (enum, names, parser grammar, analysis properties). Adding an
 * ordinary instruction is one line here plus its meaning in the interpreter and the compiler.
 *
 * No include guard: define one or more of IR_TYPE, IR_OP, IR_SREG before including; all three are
 * undefined at the end.
 *
 * IR_TYPE(NAME, text, size in bytes, class) class: B untyped bits, U unsigned, S signed, F float, P
 * predicate
 *
 * IR_OP(NAME, text, form, sources, types, modifiers, properties)
 *   form      the shape of the operand list (PTX_FORM_*: src/device/soft/ptx/words.h), for the
 *             parser only
 *   sources   number of ordinary source operands (without address, guard, carry)
 *   types     set of types accepted after the opcode (PTX_T_*), for the parser only
 *   modifiers set of modifiers accepted (PTX_M_*), for the parser only
 *   properties  IR_P_* of ir.h
 *
 * IR_SREG(NAME, text, type)
 */

#ifndef IR_TYPE
#define IR_TYPE(...)
#endif
#ifndef IR_OP
#define IR_OP(...)
#endif
#ifndef IR_SREG
#define IR_SREG(...)
#endif

IR_TYPE(VOID, "", 0, B)
IR_TYPE(B8, "b8", 1, B)
IR_TYPE(B16, "b16", 2, B)
IR_TYPE(B32, "b32", 4, B)
IR_TYPE(B64, "b64", 8, B)
IR_TYPE(U8, "u8", 1, U)
IR_TYPE(U16, "u16", 2, U)
IR_TYPE(U32, "u32", 4, U)
IR_TYPE(U64, "u64", 8, U)
IR_TYPE(S8, "s8", 1, S)
IR_TYPE(S16, "s16", 2, S)
IR_TYPE(S32, "s32", 4, S)
IR_TYPE(S64, "s64", 8, S)
IR_TYPE(F16, "f16", 2, F)
IR_TYPE(BF16, "bf16", 2, F)
IR_TYPE(F16X2, "f16x2", 4, F)
IR_TYPE(BF16X2, "bf16x2", 4, F)
IR_TYPE(F32, "f32", 4, F)
IR_TYPE(F64, "f64", 8, F)
IR_TYPE(U16X2, "u16x2", 4, B) /* done in pieces: only the parser sees them */
IR_TYPE(S16X2, "s16x2", 4, B)
IR_TYPE(PRED, "pred", 1, P)
IR_TYPE(E4M3X2, "e4m3x2", 2, F)
IR_TYPE(E5M2X2, "e5m2x2", 2, F)
IR_TYPE(B128, "b128", 16, B) /* in registers two of B64; behind the parser only of ATOM */

/* Data movement. MOV with a vector on one side is PACK ("mov.b64 %rd, {%r1, %r2}") or UNPACK. */
IR_OP(MOV, "mov", MOV, 1, MOVE, 0, 0)
IR_OP(PACK, "mov", INTERNAL, 0, NONE, 0, 0)
IR_OP(UNPACK, "mov", INTERNAL, 1, NONE, 0, 0)
IR_OP(LD, "ld", LD, 0, MEM, MEMORY, IR_P_LOAD)
IR_OP(LDU, "ldu", LD, 0, MEM, MEMORY, IR_P_LOAD)
IR_OP(ST, "st", ST, 1, MEM, MEMORY, IR_P_STORE | IR_P_EFFECT)
IR_OP(CVT, "cvt", CVT, 1, CVT, CVT, 0)
IR_OP(CVTA, "cvta", CVTA, 1, ADDR, CVTA, 0)
IR_OP(ISSPACEP, "isspacep", ISSPACEP, 1, NONE, SPACE, 0)
IR_OP(PREFETCH, "prefetch", ADDRESS_ONLY, 0, NONE, PREFETCH, IR_P_NOP)
IR_OP(PREFETCHU, "prefetchu", ADDRESS_ONLY, 0, NONE, PREFETCH, IR_P_NOP)

/* Integer and floating point arithmetic. */
IR_OP(ADD, "add", PLAIN, 2, ADD, ARITH, 0)
IR_OP(SUB, "sub", PLAIN, 2, ARITH, ARITH, 0)
IR_OP(MUL, "mul", PLAIN, 2, ARITH, MUL, 0)
IR_OP(MAD, "mad", PLAIN, 3, MAD, MUL, 0)
IR_OP(FMA, "fma", PLAIN, 3, FLOAT, FMA, 0)
IR_OP(MUL24, "mul24", PLAIN, 2, I32, MUL24, 0)
IR_OP(MAD24, "mad24", PLAIN, 3, I32, MUL24, 0)
IR_OP(ADDC, "addc", PLAIN, 2, I3264, CARRY, IR_P_CARRY_IN)
IR_OP(SUBC, "subc", PLAIN, 2, I3264, CARRY, IR_P_CARRY_IN)
IR_OP(MADC, "madc", PLAIN, 3, I3264, MADC, IR_P_CARRY_IN)
IR_OP(SAD, "sad", PLAIN, 3, INT, 0, 0)
IR_OP(DIV, "div", PLAIN, 2, DIV, DIV, 0)
IR_OP(REM, "rem", PLAIN, 2, INT, 0, 0)
IR_OP(ABS, "abs", PLAIN, 1, ABS, FTZ, 0)
IR_OP(NEG, "neg", PLAIN, 1, ABS, FTZ, 0)
IR_OP(MIN, "min", PLAIN, 2, ADD, MINMAX, 0)
IR_OP(MAX, "max", PLAIN, 2, ADD, MINMAX, 0)
IR_OP(RCP, "rcp", PLAIN, 1, F3264, RECIPROCAL, 0)
IR_OP(SQRT, "sqrt", PLAIN, 1, F3264, RECIPROCAL, 0)
IR_OP(RSQRT, "rsqrt", PLAIN, 1, F3264, APPROX, 0)
IR_OP(SIN, "sin", PLAIN, 1, F32, APPROX, 0)
IR_OP(COS, "cos", PLAIN, 1, F32, APPROX, 0)
IR_OP(EX2, "ex2", PLAIN, 1, APPROX, APPROX, 0)
IR_OP(LG2, "lg2", PLAIN, 1, F32, APPROX, 0)
IR_OP(TANH, "tanh", PLAIN, 1, APPROX, APPROX, 0)
IR_OP(COPYSIGN, "copysign", PLAIN, 2, F3264, 0, 0)
IR_OP(DP4A, "dp4a", PLAIN2, 3, I32, 0, 0)
IR_OP(DP2A, "dp2a", PLAIN2, 3, I32, HILO, 0)

/* Bits. */
IR_OP(AND, "and", PLAIN, 2, LOGIC, 0, 0)
IR_OP(OR, "or", PLAIN, 2, LOGIC, 0, 0)
IR_OP(XOR, "xor", PLAIN, 2, LOGIC, 0, 0)
IR_OP(NOT, "not", PLAIN, 1, LOGIC, 0, 0)
IR_OP(CNOT, "cnot", PLAIN, 1, BITS, 0, 0)
IR_OP(SHL, "shl", SHIFT, 2, BITS, 0, 0)
IR_OP(SHR, "shr", SHIFT, 2, SHR, 0, 0)
IR_OP(SHF, "shf", PLAIN, 3, B32, SHF, 0)
IR_OP(LOP3, "lop3", LOP3, 4, B32, LOP3, 0)
IR_OP(PRMT, "prmt", PLAIN, 3, B32, PRMT, 0)
IR_OP(BFE, "bfe", BITFIELD, 3, I3264, 0, 0)
IR_OP(BFI, "bfi", BITFIELD, 4, B3264, 0, 0)
IR_OP(BFIND, "bfind", PLAIN, 1, I3264, SHIFTAMT, IR_P_DST32)
IR_OP(BREV, "brev", PLAIN, 1, B3264, 0, 0)
IR_OP(CLZ, "clz", PLAIN, 1, B3264, 0, IR_P_DST32)
IR_OP(POPC, "popc", PLAIN, 1, B3264, 0, IR_P_DST32)
IR_OP(BMSK, "bmsk", PLAIN, 2, B32, CLAMP, 0)
IR_OP(SZEXT, "szext", PLAIN, 2, I32, CLAMP, 0)
IR_OP(FNS, "fns", PLAIN, 3, B32, 0, 0)

/* Comparison and selection. */
IR_OP(SETP, "setp", SETP, 2, COMPARE, COMPARE, 0)
IR_OP(SET, "set", SET, 2, SET, COMPARE, 0)
IR_OP(SELP, "selp", SELP, 3, SELECT, 0, 0)
IR_OP(SLCT, "slct", SLCT, 3, SELECT, FTZ, 0)
IR_OP(TESTP, "testp", TESTP, 1, F3264, TESTP, 0)

/* Control. BRA, BRX, RET, EXIT end a block; so do barriers that wait. */
IR_OP(BRA, "bra", BRA, 0, NONE, UNI, IR_P_TERMINATOR)
IR_OP(BRX, "brx", BRX, 1, NONE, BRX, IR_P_TERMINATOR)
IR_OP(CALL, "call", CALL, 0, NONE, UNI, IR_P_EFFECT)
IR_OP(HELPER, "call", INTERNAL, 0, NONE, 0, IR_P_EFFECT)
IR_OP(RET, "ret", BARE, 0, NONE, UNI, IR_P_TERMINATOR)
IR_OP(EXIT, "exit", BARE, 0, NONE, 0, IR_P_TERMINATOR)
IR_OP(TRAP, "trap", BARE, 0, NONE, 0, IR_P_EFFECT)
IR_OP(BRKPT, "brkpt", BARE, 0, NONE, 0, IR_P_EFFECT)
IR_OP(NANOSLEEP, "nanosleep", NODST, 1, U32, 0, IR_P_NOP)
IR_OP(PMEVENT, "pmevent", PMEVENT, 0, NONE, PMEVENT, IR_P_NOP)
IR_OP(SETMAXNREG, "setmaxnreg", NODST, 1, U32, SETMAXNREG, IR_P_NOP)
IR_OP(GRIDDEP, "griddepcontrol", BARE, 0, NONE, GRIDDEP, IR_P_NOP)

/* Synchronisation and communication. */
IR_OP(BAR, "bar", BAR, 0, BAR, BAR, IR_P_EFFECT)
IR_OP(BARRIER, "barrier", BAR, 0, BAR, BAR, IR_P_EFFECT)
IR_OP(BARWARP, "bar", INTERNAL, 1, NONE, 0, IR_P_CROSS_LANE | IR_P_EFFECT)
IR_OP(MEMBAR, "membar", BARE, 0, NONE, FENCE, IR_P_EFFECT)
IR_OP(FENCE, "fence", BARE, 0, NONE, FENCE, IR_P_EFFECT)
IR_OP(ATOM, "atom", ATOM, 1, ATOM, ATOM, IR_P_LOAD | IR_P_STORE | IR_P_EFFECT)
IR_OP(RED, "red", RED, 1, ATOM, ATOM, IR_P_STORE | IR_P_EFFECT)
IR_OP(SHFL, "shfl", SHFL, 4, B32, SHFL, IR_P_CROSS_LANE)
IR_OP(VOTE, "vote", VOTE, 2, VOTE, VOTE, IR_P_CROSS_LANE)
IR_OP(MATCH, "match", MATCH, 2, B3264, MATCH, IR_P_CROSS_LANE)
IR_OP(REDUX, "redux", PLAIN, 2, REDUX, REDUX, IR_P_CROSS_LANE)
IR_OP(ACTIVEMASK, "activemask", PLAIN, 0, B32, 0, IR_P_CROSS_LANE)
IR_OP(MMA, "mma", INTERNAL, 8, NONE, 0, IR_P_CROSS_LANE)
IR_OP(TEX, "tex", INTERNAL, 8, NONE, 0, IR_P_TEXTURE)
IR_OP(ELECT, "elect", ELECT, 1, NONE, SYNC, IR_P_CROSS_LANE)

IR_SREG(TID_X, "%tid.x", U32)
IR_SREG(TID_Y, "%tid.y", U32)
IR_SREG(TID_Z, "%tid.z", U32)
IR_SREG(NTID_X, "%ntid.x", U32)
IR_SREG(NTID_Y, "%ntid.y", U32)
IR_SREG(NTID_Z, "%ntid.z", U32)
IR_SREG(CTAID_X, "%ctaid.x", U32)
IR_SREG(CTAID_Y, "%ctaid.y", U32)
IR_SREG(CTAID_Z, "%ctaid.z", U32)
IR_SREG(NCTAID_X, "%nctaid.x", U32)
IR_SREG(NCTAID_Y, "%nctaid.y", U32)
IR_SREG(NCTAID_Z, "%nctaid.z", U32)
IR_SREG(LANEID, "%laneid", U32)
IR_SREG(WARPID, "%warpid", U32)
IR_SREG(NWARPID, "%nwarpid", U32)
IR_SREG(SMID, "%smid", U32)
IR_SREG(NSMID, "%nsmid", U32)
IR_SREG(GRIDID, "%gridid", U64)
IR_SREG(LANEMASK_EQ, "%lanemask_eq", U32)
IR_SREG(LANEMASK_LE, "%lanemask_le", U32)
IR_SREG(LANEMASK_LT, "%lanemask_lt", U32)
IR_SREG(LANEMASK_GE, "%lanemask_ge", U32)
IR_SREG(LANEMASK_GT, "%lanemask_gt", U32)
IR_SREG(CLOCK, "%clock", U32)
IR_SREG(CLOCK_HI, "%clock_hi", U32)
IR_SREG(CLOCK64, "%clock64", U64)
IR_SREG(GLOBALTIMER, "%globaltimer", U64)
IR_SREG(GLOBALTIMER_LO, "%globaltimer_lo", U32)
IR_SREG(GLOBALTIMER_HI, "%globaltimer_hi", U32)
IR_SREG(DYNAMIC_SMEM, "%dynamic_smem_size", U32)
IR_SREG(TOTAL_SMEM, "%total_smem_size", U32)

#undef IR_TYPE
#undef IR_OP
#undef IR_SREG
