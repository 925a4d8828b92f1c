/*
 * How the state spaces of PTX look as generic addresses on the software device. Interpreter,
 * compiler and helpers use the same numbers (IR_GENERIC_* of ir.h), so that a pointer made by one
 * means the same to the others.
 *
 * Global (and constant) memory: the addresses of the client's window themselves. The other spaces
 * have an aperture of 4 GiB each, outside every window and outside what the host maps; the low 32
 * bits are the address in the space:
 *
 *   shared   byte in the block's shared memory. Masked with soft_block.shared_mask, never faults
 *            for its address; the memory reserved for a block is a power of two
 *            (soft_shared_reserve), so that an aligned access stays inside. Where lanes access
 *            consecutive elements, compiled code masks the address of lane 0 only, which need not
 *            run: for it SOFT_SHARED_GUARD bytes lie in front of the block's memory.
 *   local    byte in the local memory of the thread that uses the address: the same pointer names
 *            another byte in another thread. An access not inside [0, local_stride) is
 *            SOFT_FAULT_ADDRESS.
 *   param    byte in the kernel's parameters; read only. Outside of them: SOFT_FAULT_ADDRESS.
 *
 * Addresses that instructions of one space use (ld.shared, st.local ..) are taken modulo 2^32:
 * clang keeps shared addresses in 64-bit registers, nvcc in 32-bit ones.
 *
 * Alignment: an access must be aligned to its whole size, vectors included, in every space
 * (SOFT_FAULT_MISALIGNED). When several lanes of a warp fault, the one of the lowest lane is
 * reported.
 */
#ifndef GMUX_SOFT_IR_SPACES_H
#define GMUX_SOFT_IR_SPACES_H

#include "base/attr.h"

#define SOFT_SPACE_SHIFT  32 /* address >> 32 tells the aperture */
#define SOFT_SPACE_SHARED UINT64_C(1)
#define SOFT_SPACE_LOCAL  UINT64_C(2)
#define SOFT_SPACE_PARAM  UINT64_C(3)

#define SOFT_SHARED_BASE (SOFT_SPACE_SHARED << SOFT_SPACE_SHIFT)
#define SOFT_LOCAL_BASE  (SOFT_SPACE_LOCAL << SOFT_SPACE_SHIFT)
#define SOFT_PARAM_BASE  (SOFT_SPACE_PARAM << SOFT_SPACE_SHIFT)

/* in front of soft_block.shared: 32 lanes at the longest stride accessed as a whole */
#define SOFT_SHARED_GUARD 1024u

/* Local memory has the pieces of a warp's threads side by side: what all of them access at one
 * address lies together, and an aligned access of 16 bytes or fewer stays in a piece. */
#define SOFT_LOCAL_PIECE 16u

/* Where byte `at` of a thread's local memory lies in its block's; `stride`: bytes of each thread, a
 * multiple of a piece. */
static inline uint64_t soft_local_place(uint64_t stride, uint32_t thread, uint32_t at)
{
    const uint64_t lane = thread % 32, piece = at / SOFT_LOCAL_PIECE;
    return (thread - lane) * stride + (piece * 32 + lane) * SOFT_LOCAL_PIECE +
           at % SOFT_LOCAL_PIECE;
}

/* What lies right behind a block's shared memory: a word for each of its barriers (bar.red), what
 * PTX calls the reserved shared memory. */
#define SOFT_SHARED_BARRIERS 64u
#define SOFT_SHARED_RESERVED 896u
_Static_assert(15 + SOFT_SHARED_BARRIERS + SOFT_SHARED_RESERVED <= SOFT_SHARED_GUARD,
               "soft_shared_reserve() has it");

/* Bytes reserved behind soft_block.shared for a block that has `bytes` of shared memory: a power of
 * two. With the guard zone in front, 32 lanes that begin at the last masked address stay inside as
 * well. */
static inline uint64_t soft_shared_reserve(uint32_t bytes)
{
    uint64_t reserved = SOFT_SHARED_GUARD;
    while (reserved < (uint64_t)bytes + SOFT_SHARED_GUARD)
        reserved *= 2;
    return reserved;
}

static inline bool soft_address_is_shared(uint64_t generic)
{
    return generic >> SOFT_SPACE_SHIFT == SOFT_SPACE_SHARED;
}

static inline bool soft_address_is_local(uint64_t generic)
{
    return generic >> SOFT_SPACE_SHIFT == SOFT_SPACE_LOCAL;
}

static inline bool soft_address_is_param(uint64_t generic)
{
    return generic >> SOFT_SPACE_SHIFT == SOFT_SPACE_PARAM;
}

#endif
