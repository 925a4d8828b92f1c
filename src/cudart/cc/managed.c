/*
 * clang 19 has no __managed__ variables in CUDA. So gmux-cc declares them as device variables in a
 * section of their own, and here intermediate code is changed to treat them as managed.
 *
 * For kernels such a variable is marked as the back end expects (.attribute(.managed)); the driver
 * then gives it memory. The host's code gets a pointer instead, which is NULL until the runtime has
 * loaded the image and writes the address there. Each use reads the pointer first, and loads the
 * image if it is NULL. If that fails, the host's own variable is used: so a program without a
 * device learns of it from its CUDA calls, and not from a signal.
 *
 * Static variables may have such addresses as initial values, which are not known when the program
 * starts. They are written by code that runs before main(), or, for the constants that clang makes
 * for a function's own arrays, when the function is called: a program that never calls it uses no
 * device.
 */
#include <llvm-c/Comdat.h>
#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/cc/ir.h"

#define SECTION "gmux_managed" /* the same section as in host_defines.h */

static LLVMContextRef context;
static LLVMModuleRef module;
static LLVMTypeRef pointer;

/* A managed variable in the host's code, and the pointer that stands for it. */
struct variable {
    LLVMValueRef shadow; /* the variable itself */
    LLVMValueRef slot;   /* the pointer */
};

static struct {
    struct variable *at;
    size_t count;
} variables;

static LLVMValueRef address_function;

static void find_variables(void)
{
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        const char *section = LLVMGetSection(g);
        if (!section || strcmp(section, SECTION) != 0)
            continue;
        LLVMSetSection(g, "");
        void *more = realloc(variables.at, (variables.count + 1) * sizeof(*variables.at));
        if (!more)
            ir_fail("no memory", "");
        variables.at = more;
        variables.at[variables.count++] = (struct variable) { .shadow = g };
    }
}

static const struct variable *find(LLVMValueRef v)
{
    for (size_t i = 0; i < variables.count; i++)
        if (variables.at[i].shadow == v)
            return &variables.at[i];
    return NULL;
}

/* --- kernels ---------------------------------------------------------------------------------- */

static void mark(LLVMValueRef v)
{
    LLVMMetadataRef note[] = {
        LLVMValueAsMetadata(v),
        LLVMMDStringInContext2(context, "managed", 7),
        LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(context), 1, false)),
    };
    LLVMAddNamedMetadataOperand(
        module, "nvvm.annotations",
        LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, note, 3)));
}

/* --- the host's code -------------------------------------------------------------------------- */

static void make_slot(struct variable *v)
{
    char name[4096];
    size_t length;
    int n = snprintf(name, sizeof(name), "%s.managed", LLVMGetValueName2(v->shadow, &length));
    if (n < 0 || (size_t)n >= sizeof(name))
        ir_fail("__managed__: a name is too long", "");
    v->slot = LLVMAddGlobal(module, pointer, name);
    LLVMSetLinkage(v->slot, LLVMGetLinkage(v->shadow));
    LLVMSetVisibility(v->slot, LLVMGetVisibility(v->shadow));
    if (LLVMIsDeclaration(v->shadow))
        return;
    LLVMSetInitializer(v->slot, LLVMConstNull(pointer));
    if (LLVMGetComdat(v->shadow))
        LLVMSetComdat(v->slot, LLVMGetComdat(v->shadow));
    LLVMSetInitializer(v->shadow, LLVMConstNull(LLVMGlobalGetValueType(v->shadow)));
}

/* ptr address(ptr slot, ptr shadow): returns the pointer in the slot. If it is NULL it first loads
 * this module's image; if that fails it returns the shadow. */
static void make_address_function(void)
{
    LLVMTypeRef parameters[] = { pointer, pointer };
    LLVMTypeRef type = LLVMFunctionType(pointer, parameters, 2, false);
    LLVMTypeRef load_type = LLVMFunctionType(LLVMInt8TypeInContext(context), &pointer, 1, false);
    LLVMValueRef f = address_function = LLVMAddFunction(module, "gmux.managed.address", type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    unsigned kind = LLVMGetEnumAttributeKindForName("alwaysinline", strlen("alwaysinline"));
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, kind, 0));
    LLVMValueRef load_image = LLVMGetNamedFunction(module, "__cudaInitModule");
    if (!load_image)
        load_image = LLVMAddFunction(module, "__cudaInitModule", load_type);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(context, f, "entry");
    LLVMBasicBlockRef first = LLVMAppendBasicBlockInContext(context, f, "first");
    LLVMBasicBlockRef known = LLVMAppendBasicBlockInContext(context, f, "known");
    LLVMBuilderRef b = LLVMCreateBuilderInContext(context);
    LLVMValueRef slot = LLVMGetParam(f, 0), shadow = LLVMGetParam(f, 1);
    LLVMPositionBuilderAtEnd(b, entry);
    LLVMValueRef p = LLVMBuildLoad2(b, pointer, slot, "");
    LLVMBuildCondBr(b, LLVMBuildIsNull(b, p, ""), first, known);
    LLVMPositionBuilderAtEnd(b, first);
    /* If the handle is only declared here, it is in another object: then all images are loaded. */
    LLVMValueRef handle = LLVMGetNamedGlobal(module, "__cuda_gpubin_handle");
    handle = handle ? LLVMBuildLoad2(b, pointer, handle, "") : LLVMConstNull(pointer);
    LLVMBuildCall2(b, load_type, load_image, &handle, 1, "");
    LLVMValueRef now = LLVMBuildLoad2(b, pointer, slot, "");
    LLVMValueRef some = LLVMBuildSelect(b, LLVMBuildIsNull(b, now, ""), shadow, now, "");
    LLVMBuildBr(b, known);
    LLVMPositionBuilderAtEnd(b, known);
    LLVMValueRef result = LLVMBuildPhi(b, pointer, "");
    LLVMValueRef values[] = { p, some };
    LLVMBasicBlockRef from[] = { entry, first };
    LLVMAddIncoming(result, values, from, 2);
    LLVMBuildRet(b, result);
    LLVMDisposeBuilder(b);
}

static bool is_aggregate(LLVMValueRef constant)
{
    return LLVMIsAConstantArray(constant) || LLVMIsAConstantStruct(constant);
}

/* Whether the address of a managed variable is part of the constant. */
static bool reaches(LLVMValueRef constant)
{
    if (LLVMIsAGlobalVariable(constant))
        return find(constant) != NULL;
    if (!LLVMIsAConstantExpr(constant) && !is_aggregate(constant) &&
        !LLVMIsAConstantVector(constant))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(constant); i++)
        if (reaches(LLVMGetOperand(constant, (unsigned)i)))
            return true;
    return false;
}

/* Computes the constant by instructions at the builder's position. */
static LLVMValueRef compute(LLVMBuilderRef b, LLVMValueRef constant)
{
    if (!reaches(constant))
        return constant;
    const struct variable *v = LLVMIsAGlobalVariable(constant) ? find(constant) : NULL;
    if (v) {
        LLVMValueRef arguments[] = { v->slot, v->shadow };
        return LLVMBuildCall2(b, LLVMGlobalGetValueType(address_function), address_function,
                              arguments, 2, "");
    }
    LLVMValueRef operands[16];
    unsigned n = (unsigned)LLVMGetNumOperands(constant);
    if (n > 16)
        ir_fail("__managed__: an address within too many arrays", "");
    for (unsigned i = 0; i < n; i++)
        operands[i] = compute(b, LLVMGetOperand(constant, i));
    LLVMOpcode op = LLVMIsAConstantExpr(constant) ? LLVMGetConstOpcode(constant) : LLVMRet;
    switch (op) {
    case LLVMGetElementPtr:
        return LLVMBuildGEP2(b, LLVMGetGEPSourceElementType(constant), operands[0], operands + 1,
                             n - 1, "");
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMXor:
        return LLVMBuildBinOp(b, op, operands[0], operands[1], "");
    case LLVMTrunc:
    case LLVMPtrToInt:
    case LLVMIntToPtr:
    case LLVMBitCast:
    case LLVMAddrSpaceCast:
        return LLVMBuildCast(b, op, operands[0], LLVMTypeOf(constant), "");
    default:
        ir_fail("__managed__: an address in an expression that is not known here", "");
    }
}

static bool is_call_of(LLVMValueRef i, const char *name)
{
    size_t length;
    LLVMValueRef f = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
    return f && LLVMIsAFunction(f) && strcmp(LLVMGetValueName2(f, &length), name) == 0;
}

/* Turns clang's registration of a device variable into that of a managed one, which has the same
 * parameters except for the pointer. */
static void register_managed(LLVMValueRef call)
{
    const struct variable *v = find(LLVMGetOperand(call, 1));
    if (!v)
        return;
    LLVMValueRef f = LLVMGetNamedFunction(module, "__cudaRegisterManagedVar");
    if (!f)
        f = LLVMAddFunction(module, "__cudaRegisterManagedVar", LLVMGetCalledFunctionType(call));
    LLVMSetOperand(call, 1, v->slot);
    LLVMSetOperand(call, (unsigned)LLVMGetNumOperands(call) - 1, f);
}

static void rewrite_instruction(LLVMBuilderRef b, LLVMValueRef i)
{
    if (is_call_of(i, "__cudaRegisterVar")) {
        register_managed(i);
        return;
    }
    for (unsigned k = 0; k < (unsigned)LLVMGetNumOperands(i); k++) {
        LLVMValueRef operand = LLVMGetOperand(i, k);
        if (!reaches(operand))
            continue;
        /* An operand of a phi is computed at the end of the block that it comes from. */
        if (LLVMIsAPHINode(i))
            LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(i, k)));
        else
            LLVMPositionBuilderBefore(b, i);
        LLVMSetOperand(i, k, compute(b, operand));
    }
}

/* --- addresses in initial values -------------------------------------------------------------- */

/* Writes what of the initial value contains such addresses. */
static void write_addresses(LLVMBuilderRef b, LLVMValueRef place, LLVMValueRef value)
{
    LLVMTypeRef index_type = LLVMInt32TypeInContext(context);
    if (!reaches(value))
        return;
    if (!is_aggregate(value)) {
        LLVMSetAlignment(LLVMBuildStore(b, compute(b, value), place), 1); /* it may be packed */
        return;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++) {
        LLVMValueRef path[] = { LLVMConstNull(index_type),
                                LLVMConstInt(index_type, (unsigned)i, false) };
        write_addresses(b, LLVMBuildGEP2(b, LLVMTypeOf(value), place, path, 2, ""),
                        LLVMGetOperand(value, (unsigned)i));
    }
}

/* void initialise(void): completes the initial value of the variable. */
static LLVMValueRef make_initialiser(LLVMValueRef variable)
{
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, false);
    LLVMValueRef f = LLVMAddFunction(module, "gmux.managed.initialise", type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(context, f, "entry"));
    write_addresses(b, variable, LLVMGetInitializer(variable));
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
    return f;
}

/* Whether only instructions use the constant. */
static bool is_used_by_functions(LLVMValueRef constant)
{
    for (LLVMUseRef u = LLVMGetFirstUse(constant); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        if (!LLVMIsAInstruction(user) && !(LLVMIsAConstantExpr(user) && is_used_by_functions(user)))
            return false;
    }
    return true;
}

static bool is_used_by(LLVMValueRef constant, LLVMValueRef function)
{
    for (LLVMUseRef u = LLVMGetFirstUse(constant); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        if (LLVMIsAInstruction(user)
                ? LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)) == function
                : is_used_by(user, function))
            return true;
    }
    return false;
}

/* Calls the initialiser at the beginning of all functions up to the last that use the constant. */
static void initialise_in_functions(LLVMValueRef constant, LLVMValueRef initialiser,
                                    LLVMValueRef last)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(context);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (is_used_by(constant, f)) {
            LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(f)));
            LLVMBuildCall2(b, LLVMGlobalGetValueType(initialiser), initialiser, NULL, 0, "");
        }
        if (f == last)
            break;
    }
    LLVMDisposeBuilder(b);
}

static void initialise_variables(LLVMValueRef last)
{
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        LLVMValueRef value = LLVMGetInitializer(g);
        size_t length;
        const char *name = LLVMGetValueName2(g, &length);
        if (!value || !reaches(value) || strncmp(name, "llvm.", 5) == 0 ||
            strncmp(name, "__clang_", 8) == 0)
            continue; /* those are lists of what the compiler keeps alive */
        if (LLVMIsThreadLocal(g))
            ir_fail("__managed__: an address is no initial value for a thread's variable: ", name);
        bool is_of_function = LLVMGetLinkage(g) == LLVMPrivateLinkage && is_used_by_functions(g);
        LLVMValueRef initialiser = make_initialiser(g);
        LLVMSetGlobalConstant(g, false);
        if (is_of_function)
            initialise_in_functions(g, initialiser, last);
        else
            ir_run_first(initialiser);
    }
}

static void rewrite_functions(LLVMValueRef last)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(context);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k))
            for (LLVMValueRef i = LLVMGetFirstInstruction(k); i; i = LLVMGetNextInstruction(i))
                rewrite_instruction(b, i);
        if (f == last)
            break;
    }
    LLVMDisposeBuilder(b);
}

void ir_managed(LLVMModuleRef of, bool kernels)
{
    module = of;
    context = LLVMGetModuleContext(of);
    pointer = LLVMPointerTypeInContext(context, 0);
    find_variables();
    if (variables.count == 0)
        return;
    for (size_t i = 0; i < variables.count; i++) {
        if (kernels)
            mark(variables.at[i].shadow);
        else
            make_slot(&variables.at[i]);
    }
    if (kernels)
        return;
    LLVMValueRef last = LLVMGetLastFunction(module);
    make_address_function();
    initialise_variables(last);
    rewrite_functions(last);
}
