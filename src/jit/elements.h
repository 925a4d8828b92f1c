/*
 * One lane's access to the elements of an instruction (ld.v4 has four), at one address.
 */
#ifndef GMUX_JIT_ELEMENTS_H
#define GMUX_JIT_ELEMENTS_H

#include "jit/gen.h"

/* Whether other processors can see in which order the instruction accesses memory. One thread alone
 * runs a block and its warps: of shared and local memory the order of its program is enough. */
bool jit_is_ordered(const struct jit_gen *g);
/* Loads the elements from `p` on into `values`, which has room for IR_MAX_SRC, in the order that
 * the instruction asks for. */
void jit_load_elements(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                       LLVMValueRef *values);
/* Stores them, in the order that the instruction asks for. */
void jit_store_elements(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                        const LLVMValueRef *values);

#endif
