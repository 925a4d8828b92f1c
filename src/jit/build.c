/*
 * What all files build with: functions, blocks, types, constants, intrinsics. Nothing here knows
 * the kernel's registers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jit/gen.h"
#include "jit/target.h"

void jit_unsupported(struct jit_gen *g, const char *fmt, ...)
{
    va_list ap;
    if (g->failed)
        return;
    g->failed = true;
    size_t used = 0;
    if (g->i)
        used = (size_t)snprintf(g->reason, sizeof(g->reason), "line %u: ", g->i->line);
    va_start(ap, fmt);
    vsnprintf(g->reason + used, sizeof(g->reason) - used, fmt, ap);
    va_end(ap);
}

LLVMValueRef jit_at_offset(struct jit_gen *g, LLVMBuilderRef b, LLVMValueRef base, uint64_t offset)
{
    LLVMValueRef at = LLVMConstInt(g->i64, offset, 0);
    return LLVMBuildGEP2(b, g->i8, base, &at, 1, "");
}

void jit_set_attribute(struct jit_gen *g, LLVMValueRef f, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(g->context, kind, 0));
}

static void set_string_attribute(struct jit_gen *g, LLVMValueRef f, const char *name,
                                 const char *value)
{
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(g->context, name, (unsigned)strlen(name),
                                                      value, (unsigned)strlen(value)));
}

LLVMValueRef jit_add_function(struct jit_gen *g, const char *name, LLVMTypeRef type, bool external)
{
    LLVMValueRef f = LLVMAddFunction(g->module, name, type);
    jit_set_attribute(g, f, "nounwind");
    set_string_attribute(g, f, "no-builtins", "true");
    /* Frames are bounded (compile.c hears of those that are not), and touched page by page from the
     * top: one that is too large for the stack all the same ends in the guard behind it and not in
     * somebody else's memory. */
    char frame_max[16];
    snprintf(frame_max, sizeof(frame_max), "%u", g->frame_max);
    set_string_attribute(g, f, "warn-stack-size", frame_max);
    set_string_attribute(g, f, "probe-stack", "inline-asm");
    if (g->target->avx512) {
        set_string_attribute(g, f, "prefer-vector-width", "512");
        set_string_attribute(g, f, "min-legal-vector-width", "512");
    }
    if (g->flushes)
        set_string_attribute(g, f, "denormal-fp-math", "preserve-sign,preserve-sign");
    if (!external)
        LLVMSetLinkage(f, LLVMInternalLinkage);
    return f;
}

LLVMBasicBlockRef jit_new_block(struct jit_gen *g, const char *name)
{
    return LLVMAppendBasicBlockInContext(g->context, g->function, name);
}

void jit_position(struct jit_gen *g, LLVMBasicBlockRef at)
{
    LLVMPositionBuilderAtEnd(g->b, at);
}

void jit_branch_unlikely(struct jit_gen *g, LLVMValueRef bad, LLVMBasicBlockRef to)
{
    LLVMBasicBlockRef next = jit_new_block(g, "");
    LLVMValueRef br = LLVMBuildCondBr(g->b, bad, to, next);
    LLVMSetMetadata(br, g->prof_kind, g->unlikely);
    jit_position(g, next);
}

/* --- types and constants ---------------------------------------------------------------------- */

LLVMTypeRef jit_int(const struct jit_gen *g, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return g->i8;
    case 2:
        return g->i16;
    case 4:
        return g->i32;
    default:
        return g->i64;
    }
}

LLVMTypeRef jit_type(const struct jit_gen *g, enum ir_type type)
{
    switch (type) {
    case IR_PRED:
        return g->i1;
    case IR_F32:
        return g->f32;
    case IR_F64:
        return g->f64;
    case IR_F16:
        return g->f16;
    default:
        return jit_int(g, (unsigned)ir_types[type].size);
    }
}

LLVMTypeRef jit_vec(const struct jit_gen *g, LLVMTypeRef element)
{
    return LLVMVectorType(element, g->lanes);
}

bool jit_is_vec(LLVMValueRef v)
{
    return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
}

static LLVMTypeRef element_of(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

LLVMTypeRef jit_like(LLVMValueRef shape, LLVMTypeRef element)
{
    return jit_is_vec(shape) ? LLVMVectorType(element, LLVMGetVectorSize(LLVMTypeOf(shape)))
                             : element;
}

LLVMValueRef jit_splat(struct jit_gen *g, LLVMValueRef scalar)
{
    LLVMTypeRef t = jit_vec(g, LLVMTypeOf(scalar));
    if (LLVMIsConstant(scalar)) {
        LLVMValueRef all[JIT_LANES_MAX];
        for (unsigned i = 0; i < g->lanes; i++)
            all[i] = scalar;
        return LLVMConstVector(all, g->lanes);
    }
    LLVMValueRef v =
        LLVMBuildInsertElement(g->b, LLVMGetPoison(t), scalar, LLVMConstInt(g->i64, 0, 0), "");
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(t), LLVMConstNull(jit_vec(g, g->i32)), "");
}

LLVMValueRef jit_as_vec(struct jit_gen *g, LLVMValueRef v)
{
    return jit_is_vec(v) ? v : jit_splat(g, v);
}

LLVMValueRef jit_ramp(struct jit_gen *g, LLVMTypeRef element, int64_t stride)
{
    LLVMValueRef all[JIT_LANES_MAX];
    for (unsigned i = 0; i < g->lanes; i++)
        all[i] = LLVMConstInt(element, (uint64_t)stride * (uint64_t)i, 0);
    return LLVMConstVector(all, g->lanes);
}

static LLVMValueRef spread(LLVMValueRef like, LLVMValueRef scalar)
{
    LLVMValueRef all[64];
    if (!jit_is_vec(like))
        return scalar;
    unsigned n = LLVMGetVectorSize(LLVMTypeOf(like));
    for (unsigned i = 0; i < n; i++)
        all[i] = scalar;
    return LLVMConstVector(all, n);
}

LLVMValueRef jit_const(struct jit_gen *g, LLVMValueRef like, uint64_t bits)
{
    return spread(like, LLVMConstInt(element_of(like), bits, 0));
}

LLVMValueRef jit_real(struct jit_gen *g, LLVMValueRef like, double value)
{
    return spread(like, LLVMConstReal(element_of(like), value));
}

unsigned jit_bit_width(LLVMTypeRef t)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(t);
    case LLVMHalfTypeKind:
        return 16;
    case LLVMFloatTypeKind:
        return 32;
    default:
        return 64;
    }
}

static bool is_int(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMIntegerTypeKind;
}

LLVMValueRef jit_as_int(struct jit_gen *g, LLVMValueRef v)
{
    LLVMTypeRef from = element_of(v);
    if (is_int(from))
        return v;
    return LLVMBuildBitCast(g->b, v,
                            jit_like(v, LLVMIntTypeInContext(g->context, jit_bit_width(from))), "");
}

LLVMValueRef jit_resize(struct jit_gen *g, LLVMValueRef v, LLVMTypeRef element, bool sign)
{
    LLVMTypeRef from = element_of(v);
    if (from == element)
        return v;
    v = jit_as_int(g, v);
    unsigned have = jit_bit_width(from), want = jit_bit_width(element);
    LLVMTypeRef as_int =
        jit_like(v, is_int(element) ? element : LLVMIntTypeInContext(g->context, want));
    if (have > want)
        v = LLVMBuildTrunc(g->b, v, as_int, "");
    else if (have < want)
        v = sign ? LLVMBuildSExt(g->b, v, as_int, "") : LLVMBuildZExt(g->b, v, as_int, "");
    return is_int(element) ? v : LLVMBuildBitCast(g->b, v, jit_like(v, element), "");
}

LLVMValueRef jit_immediate(struct jit_gen *g, uint64_t bits, enum ir_type type)
{
    LLVMTypeRef t = jit_type(g, type);
    if (is_int(t))
        return LLVMConstInt(t, bits, 0);
    return LLVMConstBitCast(
        LLVMConstInt(LLVMIntTypeInContext(g->context, jit_bit_width(t)), bits, 0), t);
}

/* --- instructions ----------------------------------------------------------------------------- */

LLVMValueRef jit_alloca(struct jit_gen *g, LLVMTypeRef type, const char *name)
{
    LLVMBuilderRef at = LLVMCreateBuilderInContext(g->context);
    LLVMBasicBlockRef first = LLVMGetEntryBasicBlock(g->function);
    LLVMValueRef instruction = LLVMGetFirstInstruction(first);
    if (instruction)
        LLVMPositionBuilderBefore(at, instruction);
    else
        LLVMPositionBuilderAtEnd(at, first);
    LLVMValueRef v = LLVMBuildAlloca(at, type, name);
    LLVMDisposeBuilder(at);
    return v;
}

LLVMValueRef jit_select(struct jit_gen *g, LLVMValueRef cond, LLVMValueRef yes, LLVMValueRef no)
{
    if (jit_is_vec(cond)) {
        yes = jit_as_vec(g, yes);
        no = jit_as_vec(g, no);
    }
    return LLVMBuildSelect(g->b, cond, yes, no, "");
}

LLVMValueRef jit_intrinsic(struct jit_gen *g, const char *name, LLVMTypeRef *types,
                           unsigned type_count, LLVMValueRef *args, unsigned arg_count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(g->module, id, types, type_count);
    return LLVMBuildCall2(g->b, LLVMIntrinsicGetType(g->context, id, types, type_count), f, args,
                          arg_count, "");
}

LLVMValueRef jit_call1(struct jit_gen *g, const char *name, LLVMValueRef a)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    return jit_intrinsic(g, name, &t, 1, &a, 1);
}

LLVMValueRef jit_call2(struct jit_gen *g, const char *name, LLVMValueRef a, LLVMValueRef c)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    LLVMValueRef args[] = { a, c };
    return jit_intrinsic(g, name, &t, 1, args, 2);
}

LLVMValueRef jit_call3(struct jit_gen *g, const char *name, LLVMValueRef a, LLVMValueRef c,
                       LLVMValueRef d)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    LLVMValueRef args[] = { a, c, d };
    return jit_intrinsic(g, name, &t, 1, args, 3);
}

/* LLVM 19 makes fptosi.sat and fptoui.sat of vectors lane by lane. */
LLVMValueRef jit_to_int(struct jit_gen *g, LLVMValueRef v, LLVMTypeRef t, bool sign)
{
    const unsigned bits = LLVMGetIntTypeWidth(t), digits = element_of(v) == g->f32 ? 24 : 53;
    LLVMTypeRef to = jit_like(v, t), types[] = { to, LLVMTypeOf(v) };
    if (!jit_is_vec(v))
        return jit_intrinsic(g, sign ? "llvm.fptosi.sat" : "llvm.fptoui.sat", types, 2, &v, 1);
    const unsigned top = sign ? bits - 1 : bits; /* what fits is below 2^top */
    const double end = top < 63 ? (double)(UINT64_C(1) << top) : top == 63 ? 0x1p63 : 0x1p64;
    LLVMValueRef zero = jit_real(g, v, 0), low = sign ? jit_real(g, v, -end) : zero, beyond = NULL;
    v = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealORD, v, v, ""), v, zero);
    v = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealOLT, v, low, ""), low, v);
    if (top <= digits) { /* the largest integer is a number of the type */
        LLVMValueRef high = jit_real(g, v, end - 1);
        v = jit_select(g, LLVMBuildFCmp(g->b, LLVMRealOGT, v, high, ""), high, v);
    } else {
        beyond = LLVMBuildFCmp(g->b, LLVMRealOGE, v, jit_real(g, v, end), "");
        v = jit_select(g, beyond, zero, v);
    }
    LLVMTypeRef wide = jit_like(v, bits < 32 ? g->i32 : t);
    LLVMValueRef r =
        sign || bits < 32 ? LLVMBuildFPToSI(g->b, v, wide, "") : LLVMBuildFPToUI(g->b, v, wide, "");
    r = jit_resize(g, r, t, sign);
    const uint64_t most = UINT64_MAX >> (64 - top);
    return beyond ? jit_select(g, beyond, jit_const(g, r, most), r) : r;
}

LLVMValueRef jit_shuffle(struct jit_gen *g, LLVMValueRef a, LLVMValueRef c, const int *lanes,
                         unsigned count)
{
    LLVMValueRef index[JIT_LANES_MAX * 8];
    for (unsigned i = 0; i < count; i++)
        index[i] =
            lanes[i] < 0 ? LLVMGetPoison(g->i32) : LLVMConstInt(g->i32, (unsigned)lanes[i], 0);
    return LLVMBuildShuffleVector(g->b, a, c, LLVMConstVector(index, count), "");
}

LLVMValueRef jit_pick(struct jit_gen *g, LLVMValueRef v, LLVMValueRef lane)
{
    return LLVMBuildExtractElement(g->b, v, lane, "");
}

/* Calls an intrinsic that works on `chunk` elements for all lanes; further arguments are the same
 * for each call. Where there are fewer lanes, what the others get and give does not matter. */
LLVMValueRef jit_chunks(struct jit_gen *g, const char *name, LLVMTypeRef *types,
                        unsigned type_count, unsigned chunk, LLVMValueRef *args, unsigned arg_count,
                        LLVMValueRef *more, unsigned more_count)
{
    LLVMValueRef parts[JIT_LANES_MAX], call[8];
    int order[JIT_LANES_MAX];
    unsigned n = GM_MAX(g->lanes / chunk, 1u);
    for (unsigned c = 0; c < n; c++) {
        for (unsigned k = 0; k < chunk; k++)
            order[k] = c * chunk + k < g->lanes ? (int)(c * chunk + k) : -1;
        for (unsigned a = 0; a < arg_count; a++)
            call[a] = jit_shuffle(g, args[a], LLVMGetPoison(LLVMTypeOf(args[a])), order, chunk);
        for (unsigned a = 0; a < more_count; a++)
            call[arg_count + a] = more[a];
        parts[c] = jit_intrinsic(g, name, types, type_count, call, arg_count + more_count);
    }
    for (; n > 1; n /= 2, chunk *= 2) {
        for (unsigned k = 0; k < 2 * chunk; k++)
            order[k] = (int)k;
        for (unsigned c = 0; c < n / 2; c++)
            parts[c] = jit_shuffle(g, parts[2 * c], parts[2 * c + 1], order, 2 * chunk);
    }
    if (chunk <= g->lanes)
        return parts[0];
    for (unsigned k = 0; k < g->lanes; k++)
        order[k] = (int)k;
    return jit_shuffle(g, parts[0], LLVMGetPoison(LLVMTypeOf(parts[0])), order, g->lanes);
}

LLVMValueRef jit_all_lanes(const struct jit_gen *g)
{
    return LLVMConstInt(g->i32, (UINT64_C(1) << g->lanes) - 1, 0);
}
