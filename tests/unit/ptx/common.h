/*
 * Helpers of the PTX tests: a kernel around a few statements, a module as text.
 */
#ifndef GMUX_TEST_PTX_COMMON_H
#define GMUX_TEST_PTX_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/analysis.h"
#include "device/soft/ir/ir.h"
#include "device/soft/ptx/ptx.h"

#define PTX_HEADER ".version 8.5\n.target sm_75\n.address_size 64\n"

/* Registers of every type: %p0-7 pred, %h 16, %r 32, %rd 64, %f f32, %fd f64 bits. */
#define PTX_REGISTERS                                                                              \
    ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; "      \
    ".reg .f64 %fd<8>;\n"

/* Line 4 of a text made by ptx_kernel() begins here. */
#define PTX_KERNEL_HEAD                                                                            \
    ".visible .entry k(.param .u64 a, .param .u32 n, .param .align 8 .b8 s[24]) { " PTX_REGISTERS

/* A whole module with kernel k around `body`; the caller frees it. `body` begins at line 5,
 * column 1. */
static inline char *ptx_kernel(const char *body)
{
    size_t size = strlen(body) + 1024;
    char *text = malloc(size);
    snprintf(text, size, "%s%s%s\n}\n", PTX_HEADER, PTX_KERNEL_HEAD, body);
    return text;
}

static inline char *ir_text(const struct ir_module *m)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ir_print(m, out);
    fclose(out);
    return text;
}

/* Parses or returns NULL with *err filled. */
static inline struct ir_module *ptx_try(const char *text, struct ptx_error *err)
{
    struct ir_module *m;
    return ptx_parse(text, strlen(text), &m, err) == 0 ? m : NULL;
}

#endif
