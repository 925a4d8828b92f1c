/*
 * What gmux-jit gives up before it reads the first text of a stranger: new privileges, memory,
 * descriptors and CPU time without limit, core dumps, and every system call that a compiler working
 * from memory to memory does not need.
 */
#ifndef GMUX_JIT_SANDBOX_H
#define GMUX_JIT_SANDBOX_H

#include "base/attr.h"

#define JIT_SANDBOX_CPU_S 600 /* CPU time of the process, all jobs together */

/* After LLVM is set up and the socket is there; for ever. 0 or -errno; `what` (a word or two) says
 * what failed. */
GM_MUST_CHECK int jit_sandbox_enter(const char **what);

#endif
