/*
 * The handlers that are built several times, for different instruction sets: arithmetic on whole
 * warps (handlers.h) and the common memory accesses.
 */
#ifndef GMUX_SOFT_INTERP_VECTOR_H
#define GMUX_SOFT_INTERP_VECTOR_H

#include "device/soft/interp/program.h"
#include "device/soft/ir/lanes.h"

enum interp_handler {
#define V1(OP, TYPE, VARIANT, FLAGS, ...) INTERP_H_##OP##_##TYPE##_##VARIANT##_##FLAGS,
#define V2(OP, TYPE, VARIANT, FLAGS, ...) INTERP_H_##OP##_##TYPE##_##VARIANT##_##FLAGS,
#define V3(OP, TYPE, VARIANT, FLAGS, ...) INTERP_H_##OP##_##TYPE##_##VARIANT##_##FLAGS,
#define VC(OP, TYPE, VARIANT, FLAGS, ...) INTERP_H_##OP##_##TYPE##_##VARIANT##_##FLAGS,
#include "device/soft/interp/handlers.h"
    INTERP_H_SELECT16,
    INTERP_H_SELECT32,
    INTERP_H_SELECT64,
    INTERP_H_UNPACK64,
    INTERP_H_LOAD_GLOBAL32,
    INTERP_H_LOAD_GLOBAL64,
    INTERP_H_LOAD_SHARED32,
    INTERP_H_LOAD_SHARED64,
    INTERP_H_STORE_GLOBAL32,
    INTERP_H_STORE_GLOBAL64,
    INTERP_H_STORE_SHARED32,
    INTERP_H_STORE_SHARED64,
    INTERP_H_COUNT,
};

struct interp_vector {
    const char *name;
    interp_fn *run[INTERP_H_COUNT];
};

extern const struct interp_vector interp_vector_base;
#if defined(__x86_64__)
extern const struct interp_vector interp_vector_v3, interp_vector_v4;
#endif

/* Picks the best set for this CPU. For tests, GMUX_INTERP_ISA=base|v3|v4 picks a lower one, and
 * =scalar sets *scalar_only: use none. */
const struct interp_vector *interp_vector_pick(bool *scalar_only);

/* select.c. The handler for an instruction whose operands all have the width of its types; -1:
 * none. */
int interp_vector_find(const struct ir_instr *i);

#endif
