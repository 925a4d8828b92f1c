/*
 * Finds loops in which a thread may wait for another one of its block without a barrier: locks,
 * flags. Compiled code runs the lanes of a divergent warp path by path and the warps one after the
 * other, so that such a thread would wait for ever, were it not parked (park.c).
 */
#ifndef GMUX_JIT_SPIN_H
#define GMUX_JIT_SPIN_H

#include "device/soft/ir/analysis.h"

/* Line of an instruction that polls; 0: there is none. UINT32_MAX: no memory to find out.
 * polls[block]: it is the header of a loop that waits, or of one around it. */
uint32_t jit_find_spin(const struct ir_fn *fn, const struct ir_analysis *a, bool *polls);

#endif
