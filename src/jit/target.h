/*
 * LLVM's side of a compile that has nothing to do with PTX: the machine to compile for, passes, the
 * object file.
 */
#ifndef GMUX_JIT_TARGET_H
#define GMUX_JIT_TARGET_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "device/soft/loader/job.h"

struct jit_target {
    enum soft_isa isa;
    LLVMTargetMachineRef machine;
    LLVMTargetMachineRef quick; /* the same, for large kernels: compiles without optimising */
    bool avx512, avx2; /* x86: with what the vector forms of PTX instructions can be made */
    bool extracts;     /* lanes are better taken out of a register one by one than read from memory,
                          where it was stored as a whole */
    bool gathers;      /* a gather takes no longer than loads of its elements by themselves */
    bool fma,
        half; /* has instructions for multiply-add with one rounding, and between f16 and f32 */
};

/* An attribute of functions that are inlined when the optimiser is done: it shall see calls. They
 * are "noinline", too. */
#define JIT_LATE "gmux-late"

/* Once per process, before the sandbox closes: reads the CPU's features, registers the back end.
 * False: this LLVM cannot compile for this machine. */
GM_MUST_CHECK bool jit_target_init(void);

/* The target for an instruction set, made at the first use; NULL if there is none. */
const struct jit_target *jit_target_get(enum soft_isa isa);

/* Gives the module its triple and layout; before code is emitted. */
void jit_target_prepare(const struct jit_target *t, LLVMModuleRef m);

/* Verifies the module and optimises it, if it is large only a little. `in_pieces`: blocks are to be
 * joined on the way. 0, or -1 with a one-line reason. */
GM_MUST_CHECK int jit_target_optimise(const struct jit_target *t, LLVMModuleRef m, bool large,
                                      bool in_pieces, char *why, size_t why_size);

/* Compiles it then. 0 with *object the caller's (LLVMDisposeMemoryBuffer), or the same. */
GM_MUST_CHECK int jit_target_compile(const struct jit_target *t, LLVMModuleRef m, bool large,
                                     LLVMMemoryBufferRef *object, char *why, size_t why_size);

#endif
