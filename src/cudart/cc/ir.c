/*
 * gmux-cc-ir FILE.bc: does to intermediate code what clang 19 cannot do for CUDA. Code for
 * kernels: managed variables. Code for the host: managed variables, and registering the kernels
 * before static variables are initialised, as a program may use the device to do that. clang would
 * register them last.
 */
#include "cudart/cc/ir.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSTRUCTORS "llvm.global_ctors"
#define REGISTER     "__cuda_module_ctor"

/* Lower numbers run earlier. Initialisers of static variables have 65535, as clang's registration
 * has. A number of its own puts ours before those of all sources. It also keeps clang from
 * computing those when it compiles, from values that ours change. */
#define PRIORITY 65534

static LLVMModuleRef module;

_Noreturn void ir_fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "gmux-cc: %s%s\n", what, why);
    exit(1);
}

void ir_run_first(LLVMValueRef function)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0);
    LLVMValueRef before = LLVMGetNamedGlobal(module, CONSTRUCTORS);
    LLVMValueRef list = before ? LLVMGetInitializer(before) : NULL;
    unsigned n = list ? (unsigned)LLVMGetNumOperands(list) : 0, count = 1;
    LLVMValueRef *entries = calloc(n + 1, sizeof(*entries));
    if (!entries)
        ir_fail("no memory", "");
    LLVMValueRef fields[] = { LLVMConstInt(LLVMInt32TypeInContext(context), PRIORITY, false),
                              function, LLVMConstNull(pointer) };
    entries[0] = LLVMConstStructInContext(context, fields, 3, false);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef entry = LLVMGetOperand(list, i);
        if (LLVMGetOperand(entry, 1) != function)
            entries[count++] = entry;
    }
    LLVMTypeRef type = LLVMTypeOf(entries[0]);
    LLVMValueRef after = LLVMAddGlobal(module, LLVMArrayType2(type, count), "");
    LLVMSetLinkage(after, LLVMAppendingLinkage);
    LLVMSetInitializer(after, LLVMConstArray2(type, entries, count));
    if (before)
        LLVMDeleteGlobal(before);
    LLVMSetValueName2(after, CONSTRUCTORS, strlen(CONSTRUCTORS));
    free(entries);
}

int main(int argc, char **argv)
{
    LLVMMemoryBufferRef in;
    char *error = NULL;
    if (argc != 2)
        ir_fail("usage: gmux-cc-ir FILE.bc", "");
    if (LLVMCreateMemoryBufferWithContentsOfFile(argv[1], &in, &error))
        ir_fail("", error);
    if (LLVMParseBitcodeInContext2(LLVMContextCreate(), in, &module))
        ir_fail(argv[1], " is no LLVM bitcode");
    LLVMDisposeMemoryBuffer(in);
    bool kernels = strncmp(LLVMGetTarget(module), "nvptx", 5) == 0;
    ir_managed(module, kernels);
    LLVMValueRef registration = kernels ? NULL : LLVMGetNamedFunction(module, REGISTER);
    if (registration)
        ir_run_first(registration);
    if (LLVMWriteBitcodeToFile(module, argv[1]))
        ir_fail(argv[1], ": cannot be written");
    return 0;
}
