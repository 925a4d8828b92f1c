/*
 * The interpreter: tier 0 of the software device. It runs a kernel at once, without a compiler, is
 * what the compiler is tested against, and does what the compiler cannot.
 *
 * Per warp it needs soft_code.save_bytes of soft_block.save, aligned to 128; soft_block.shared has
 * soft_shared_reserve() bytes. soft_block.first_thread and .alive are not used.
 */
#ifndef GMUX_SOFT_INTERP_INTERP_H
#define GMUX_SOFT_INTERP_INTERP_H

#include "device/soft/exec/code.h"

struct ir_module;
struct soft_helpers;

/* Code for entry `fn` of `m`, which may be destroyed afterwards. NULL with a one-line reason in
 * `why`: an instruction that the interpreter does not know, or too little memory. Any thread. */
struct soft_code *interp_code_create(const struct ir_module *m, uint32_t fn, char *why,
                                     size_t why_size);

/* The same for a kernel that is checked: for blocks whose `check` is set. */
struct soft_code *interp_code_create_checked(const struct ir_module *m, uint32_t fn, char *why,
                                             size_t why_size);

/* What the interpreter does for compiled code, too. */
void interp_serve(struct soft_helpers *h);

#endif
