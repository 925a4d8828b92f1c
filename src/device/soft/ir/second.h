/*
 * Second barriers: what hazard.c asks second.c to place.
 */
#ifndef GMUX_SOFT_IR_SECOND_H
#define GMUX_SOFT_IR_SECOND_H

#include "device/soft/ir/raw.h"

/* What an instruction does, for hazard.c and second.c. */
enum ir_mark {
    IR_MARK_BARRIER = 1, /* bar.sync 0 of all threads */
    IR_MARK_WRITE = 2,   /* writes shared memory */
    IR_MARK_POLL = 4,    /* may read what a thread waits for in a loop */
    IR_MARK_READ = 8,    /* reads what warps share */
};

/* Adds a barrier behind each of the function's, if reads are apart from writes then that are not
 * without them. `marks` are bits of enum ir_mark by instruction. False: no memory. */
bool ir_add_seconds(struct ir_raw_fn *raw, const uint8_t *marks);

#endif
