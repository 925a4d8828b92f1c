/*
 * How many threads of a block have to run.
 */
#ifndef GMUX_SOFT_IR_CLONES_H
#define GMUX_SOFT_IR_CLONES_H

#include "device/soft/ir/ir.h"

/* Whether a special register tells the lanes of a warp apart, wherever they are in the block. */
bool ir_tells_lane(uint32_t sreg);
/* Whether an instruction looks at other lanes, or at its lane's or its warp's number. */
bool ir_sees_lanes(const struct ir_instr *i);

/* How many of a thread's indices matter to an entry, from x on. Threads that differ in no such
 * index leave the same in memory. */
unsigned ir_thread_dims(const struct ir_fn *fn);

/* How many threads of a block of that size have to run if so many indices matter: the first ones
 * by their linear number. */
static inline uint64_t ir_threads(unsigned dims, const uint32_t ntid[3])
{
    uint64_t threads = 1;
    for (unsigned d = 0; d < dims; d++)
        threads *= ntid[d];
    return threads;
}

#endif
