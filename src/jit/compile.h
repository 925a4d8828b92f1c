/*
 * From PTX text to objects.
 */
#ifndef GMUX_JIT_COMPILE_H
#define GMUX_JIT_COMPILE_H

#include <llvm-c/Core.h>

#include "device/soft/loader/job.h"

struct ir_module;

/* Where the time went, in nanoseconds; all 0 before a parse. */
struct jit_times {
    uint64_t parse, analyse, emit, optimise, compile;
};

/* The text's module, the caller's. It can be compiled from as often as there are entries, with
 * every block size. 0, or -errno and a one-line reason. */
GM_MUST_CHECK int jit_parse(const char *text, size_t size, struct ir_module **out,
                            struct jit_times *times, char *why, size_t why_size);
/* Leaves the module as it was. 0 with *object the caller's (LLVMDisposeMemoryBuffer); -ENOTSUP:
 * correct, but not possible here; other -errno. `why` gets a one-line reason. `dump` (may be NULL):
 * file for the LLVM module before optimisation. */
GM_MUST_CHECK int jit_compile(struct ir_module *m, const char *entry,
                              const struct soft_job_options *options, const char *dump,
                              LLVMMemoryBufferRef *object, struct jit_times *times, char *why,
                              size_t why_size);

#endif
