/*
 * Which lane's value stays where several lanes of a warp store to one place with one instruction.
 * PTX leaves that open. It is done here as an H200 does it (driver 580.159.04, 2026-11-26), in
 * global memory and in shared memory: it stores 128 bytes at a time, so groups of 32, 16 or 8
 * lanes, these in ascending order; within a group the lowest lane's value stays.
 */
#ifndef GMUX_SOFT_IR_LANES_H
#define GMUX_SOFT_IR_LANES_H

#include <stdint.h>

#define IR_STORED_AT_ONCE 128u /* bytes */

/* A lane's ordered access (relaxed, volatile and so on) of this size or less is made in one piece,
 * as a GPU does it, whatever elements it has. Programs count on that. */
#define IR_WHOLE_BYTES 16u

/* How many lanes are a group, if each stores `bytes` bytes. */
static inline unsigned ir_store_group(unsigned bytes)
{
    return bytes <= IR_STORED_AT_ONCE / 32 ? 32 : IR_STORED_AT_ONCE / bytes;
}

/* The one of `lanes` whose value stays. There is at least one. */
static inline unsigned ir_store_lane(uint32_t lanes, unsigned bytes)
{
    unsigned first = (31u - (unsigned)__builtin_clz(lanes)) & ~(ir_store_group(bytes) - 1);
    return first + (unsigned)__builtin_ctz(lanes >> first);
}

/* An order in which the lane comes last whose value stays: the bits of the result from the lowest
 * to the highest, bit n standing for lane n ^ turn. `turn`: one less than ir_store_group(). */
static inline uint32_t ir_store_order(uint32_t lanes, unsigned turn)
{
    static const uint32_t low[] = { 0x55555555, 0x33333333, 0x0f0f0f0f, 0x00ff00ff, 0x0000ffff };
    for (unsigned k = 0; lanes != UINT32_MAX && turn >> k; k++)
        lanes = (lanes >> (1u << k) & low[k]) | (lanes & low[k]) << (1u << k);
    return lanes;
}

#endif
