/*
 * Ordered accesses to several elements, each in one piece.
 */
#ifndef GMUX_JIT_WHOLE_H
#define GMUX_JIT_WHOLE_H

#include "jit/gen.h"

/* Whether the current instruction's access is one of those below. */
bool jit_is_whole(const struct jit_gen *g, const struct jit_access *x);
/* Loads one lane's elements from `p`; `values` has room for IR_MAX_SRC. */
void jit_load_whole(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                    LLVMValueRef *values);
/* Stores one lane's elements. */
void jit_store_whole(struct jit_gen *g, const struct jit_access *x, LLVMValueRef p,
                     const LLVMValueRef *values);
/* Gives a load or store of one element, or of 8 bytes at most, the order that the instruction has:
 * the compiler neither merges nor drops it. */
void jit_set_order(const struct jit_gen *g, LLVMValueRef access, bool store);

#endif
