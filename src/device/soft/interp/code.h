/*
 * An interpreted kernel as the block scheduler sees it.
 */
#ifndef GMUX_SOFT_INTERP_CODE_H
#define GMUX_SOFT_INTERP_CODE_H

#include "device/soft/interp/program.h"

struct interp_code {
    struct soft_code base;
    struct interp_program program;
};

/* soft_code.run_block of interpreted code. */
enum soft_outcome interp_run_block(const struct soft_code *code, struct soft_block *b);
enum soft_outcome interp_run_block_checked(const struct soft_code *code,
                                           struct soft_block *b); /* check.c */

#endif
