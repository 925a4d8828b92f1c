/*
 * gmux-cc-managed IN.bc OUT.bc. clang 19 has no __managed__ variables in CUDA. So gmux-cc declares
 * them as device variables in a section of their own, stops both of its compilations at LLVM's
 * intermediate code, and this program does the rest.
 *
 * For kernels such a variable is marked as the back end expects (.attribute(.managed)); the driver
 * then gives it memory. The host's code gets a pointer instead, which is NULL until the runtime has
 * loaded the image and writes the address there. Each use reads the pointer first, and loads the
 * image if it is NULL. If that fails, the host's own variable is used: so a program without a
 * device learns of it from its CUDA calls, and not from a signal.
 */
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Comdat.h>
#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

_Noreturn static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "gmux-cc: __managed__: %s%s\n", what, why);
    exit(1);
}

static void find_variables(void)
{
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        const char *section = LLVMGetSection(g);
        if (!section || strcmp(section, SECTION) != 0)
            continue;
        LLVMSetSection(g, "");
        void *more = realloc(variables.at, (variables.count + 1) * sizeof(*variables.at));
        if (!more)
            fail("no memory", "");
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
        fail("a name is too long", "");
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

/* Whether the address of a managed variable is part of the constant. */
static bool reaches(LLVMValueRef constant)
{
    if (LLVMIsAGlobalVariable(constant))
        return find(constant) != NULL;
    if (!LLVMIsAConstantExpr(constant) && !LLVMIsAConstantArray(constant) &&
        !LLVMIsAConstantStruct(constant))
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
        fail("an address within too many arrays", "");
    for (unsigned i = 0; i < n; i++)
        operands[i] = compute(b, LLVMGetOperand(constant, i));
    LLVMOpcode op = LLVMGetConstOpcode(constant);
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
        fail("an address in an expression that is not known here", "");
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

/* Initial values are written before anything runs, so none of them may contain an address that is
 * not known yet. */
static void check_initializers(void)
{
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        LLVMValueRef value = LLVMGetInitializer(g);
        size_t length;
        const char *name = LLVMGetValueName2(g, &length);
        if (!value || strncmp(name, "llvm.", 5) == 0 || strncmp(name, "__clang_", 8) == 0)
            continue; /* lists of what the compiler keeps alive */
        if (reaches(value))
            fail("an address of such a variable is no initial value for a static variable: ", name);
    }
}

static void rewrite_host(void)
{
    for (size_t i = 0; i < variables.count; i++)
        make_slot(&variables.at[i]);
    check_initializers();
    LLVMValueRef last = LLVMGetLastFunction(module);
    make_address_function();
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

int main(int argc, char **argv)
{
    LLVMMemoryBufferRef in;
    char *error = NULL;
    if (argc != 3)
        fail("usage: gmux-cc-managed IN.bc OUT.bc", "");
    context = LLVMContextCreate();
    pointer = LLVMPointerTypeInContext(context, 0);
    if (LLVMCreateMemoryBufferWithContentsOfFile(argv[1], &in, &error))
        fail("", error);
    if (LLVMParseBitcodeInContext2(context, in, &module))
        fail(argv[1], " is no LLVM bitcode");
    find_variables();
    if (strncmp(LLVMGetTarget(module), "nvptx", 5) == 0)
        for (size_t i = 0; i < variables.count; i++)
            mark(variables.at[i].shadow);
    else if (variables.count)
        rewrite_host();
    if (LLVMWriteBitcodeToFile(module, argv[2]))
        fail(argv[2], ": cannot be written");
    return 0;
}
