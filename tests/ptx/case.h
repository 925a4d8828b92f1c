/*
 * A PTX case: a kernel, its arguments before the launch and what they must be after it. See
 * README.md for the format.
 */
#ifndef GMUX_TESTS_PTX_CASE_H
#define GMUX_TESTS_PTX_CASE_H

#include "base/attr.h"

#define PTX_ARGS_MAX  32
#define PTX_PRINT_MAX 4096

enum ptx_type {
    PTX_U8,
    PTX_S8,
    PTX_U16,
    PTX_S16,
    PTX_U32,
    PTX_S32,
    PTX_U64,
    PTX_S64,
    PTX_F16,
    PTX_BF16,
    PTX_F32,
    PTX_F64
};

enum ptx_fault {
    PTX_FAULT_NONE,
    PTX_FAULT_ADDRESS,
    PTX_FAULT_MISALIGNED,
    PTX_FAULT_TRAP,
    PTX_FAULT_ASSERT,
    PTX_FAULT_BARRIER,
    PTX_FAULT_PC,      /* call of what is no function */
    PTX_FAULT_ENDLESS, /* never expected */
    PTX_FAULT_OTHER,
};

struct ptx_arg {
    char name[32];
    enum ptx_type type;
    bool is_value;
    bool is_checked;     /* `expected` counts */
    size_t count, bytes; /* elements */
    uint8_t *initial;
    uint8_t *expected;
    bool *ignored; /* by element: "_" */
    uint8_t *data; /* what the target leaves; same size */
};

struct ptx_case {
    char kernel[128];
    uint32_t grid[3], block[3], shared;
    double tolerance;
    enum ptx_fault fault;
    bool only_soft, skip_jit, estimate;
    char print[PTX_PRINT_MAX];   /* expected */
    char printed[PTX_PRINT_MAX]; /* what the target leaves */
    struct ptx_arg args[PTX_ARGS_MAX];
    size_t arg_count;
    char *text;
    size_t text_size;
};

/* Reads a file. NULL with the reason in `why`. */
struct ptx_case *ptx_case_load(const char *path, char *why, size_t why_size);
void ptx_case_destroy(struct ptx_case *c);
/* Arguments to their initial state, nothing printed. */
void ptx_case_reset(struct ptx_case *c);
/* Whether the state left by a target that ended with `fault` is as expected; the first difference
 * in `why`. */
bool ptx_case_check(const struct ptx_case *c, enum ptx_fault fault, char *why, size_t why_size);

extern const size_t ptx_type_size[];
extern const char *const ptx_fault_name[];

#endif
