/*
 * IR_ATOM_PHASE: what mbarrier's instructions do to the word of a barrier (ptx/mbarrier.c). They
 * add to each of its counts. When nothing more is expected, neither arrivals (bits 0 to 19) nor
 * bytes (43 to 63), then the arrivals of a phase (20 to 39) are expected again, and the phase (bit
 * 40) changes. Each count wraps by itself: NVIDIA's header for sm_80 makes 128 threads arrive
 * 32,769 times each.
 */
#ifndef GMUX_SOFT_IR_PHASE_H
#define GMUX_SOFT_IR_PHASE_H

#include <stdint.h>

#define IR_PHASE_PENDING  UINT64_C(0xfffff)
#define IR_PHASE_EXPECTED 20
#define IR_PHASE_BIT      (UINT64_C(1) << 40)
#define IR_PHASE_AGE      (UINT64_C(3) << 41) /* how often it was made, modulo 4 */
#define IR_PHASE_BYTES    (~UINT64_C(0) << 43)
#define IR_PHASE_COUNTS   (IR_PHASE_BYTES | IR_PHASE_PENDING)
static inline uint64_t ir_phase_add(uint64_t word, uint64_t by)
{
    const uint64_t expected = IR_PHASE_PENDING << IR_PHASE_EXPECTED;
    word = ((word + by) & IR_PHASE_PENDING) | (((word & expected) + (by & expected)) & expected) |
           ((word & ~(expected | IR_PHASE_PENDING)) + (by & IR_PHASE_BYTES));
    if (word & IR_PHASE_COUNTS)
        return word;
    return (word | (word >> IR_PHASE_EXPECTED & 0xfffff)) ^ IR_PHASE_BIT;
}

#endif
