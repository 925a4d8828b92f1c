/*
 * The interpreter, which is tier 0 of the software device. It runs a kernel at once, without a
 * compiler; the compiler is tested against it; and it does what the compiler cannot.
 *
 * For each warp it needs soft_code.save_bytes of soft_block.save, aligned to 128; soft_block.shared
 * has soft_shared_reserve() bytes. It does not use soft_block.first_thread and .alive.
 */
#ifndef GMUX_SOFT_INTERP_INTERP_H
#define GMUX_SOFT_INTERP_INTERP_H

#include "device/soft/exec/code.h"

struct ir_module;
struct soft_helpers;

/* Makes the code of entry `fn` of `m`; `m` may be destroyed afterwards. NULL, with one line in
 * `why`: the interpreter does not know an instruction, or there is too little memory. Any
 * thread. */
struct soft_code *interp_code_create(const struct ir_module *m, uint32_t fn, char *why,
                                     size_t why_size);

/* Makes code that is checked, for blocks whose `check` is set. */
struct soft_code *interp_code_create_checked(const struct ir_module *m, uint32_t fn, char *why,
                                             size_t why_size);

/* Sets the entries of `h` by which the interpreter serves compiled code. */
void interp_serve(struct soft_helpers *h);

#endif
