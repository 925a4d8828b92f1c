/*
 * One compile: PTX text in, object out.
 */
#ifndef GMUX_JIT_COMPILE_H
#define GMUX_JIT_COMPILE_H

#include <llvm-c/Core.h>

#include "device/soft/loader/job.h"

/* Where the time went, in nanoseconds. */
struct jit_times {
    uint64_t parse, analyse, emit, optimise, compile;
};

/* 0 with *object the caller's (LLVMDisposeMemoryBuffer); -ENOTSUP: correct, but not possible here;
 * other -errno. `why` gets a one-line reason. `dump` (may be NULL): file for the LLVM module before
 * optimisation. */
GM_MUST_CHECK int jit_compile(const char *text, size_t size, const char *entry,
                              const struct soft_job_options *options, const char *dump,
                              LLVMMemoryBufferRef *object, struct jit_times *times, char *why,
                              size_t why_size);

#endif
