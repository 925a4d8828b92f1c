/*
 * Parses PTX text into an ir_module. The text comes from clients and is treated as hostile: every
 * size is limited, nothing recurses as deep as the text says, and time is linear in its length.
 *
 * An instruction, modifier or directive that this device does not have leaves the entries that need
 * it without code, with a text that names it and its place (ir_fn.lacks). Nothing is skipped
 * silently except what cannot change a result: debug information, cache hints, prefetches, pragmas.
 */
#ifndef GMUX_SOFT_PTX_PTX_H
#define GMUX_SOFT_PTX_PTX_H

#include "base/attr.h"

struct ir_module;

struct ptx_error {
    char unit[64];         /* name of the unit in a linked text; empty: the text has no units */
    uint32_t line, column; /* from 1; 0: the error has no place (no memory) */
    char text[200];
};

/*
 * Parses `size` bytes at `text` (a NUL ends it early; need not be terminated). 0: *out is the
 * caller's, to be freed with ir_module_destroy(). -EINVAL: bad text, -EEXIST, -ENOENT: units that
 * cannot be linked, -ENOTSUP: not for this device as a whole (32-bit addresses), -E2BIG: over a
 * limit, -ENOMEM; *err says where and why (always filled on failure). Any thread.
 */
GM_MUST_CHECK int ptx_parse(const char *text, size_t size, struct ir_module **out,
                            struct ptx_error *err);
/* Like ptx_parse(), for a module that may have up to `instrs` instructions, counted after inlining.
 * Each takes some 300 bytes while the text is parsed. */
GM_MUST_CHECK int ptx_parse_within(const char *text, size_t size, uint64_t instrs,
                                   struct ir_module **out, struct ptx_error *err);

#endif
