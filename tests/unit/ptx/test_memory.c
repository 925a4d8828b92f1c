/*
 * Out of memory at every allocation of a parse and an analysis, one after the other: -ENOMEM each
 * time, and nothing is kept. The linker sends the allocations of the library here (--wrap).
 */
#include <criterion/criterion.h>

#include <errno.h>

#include "common.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *p);

static bool counting;
static long until; /* allocations that still succeed */
static long held;  /* allocations not freed */

static void *take(void *p, bool fresh)
{
    if (counting && p && fresh)
        held++;
    return p;
}

static bool refuse(void)
{
    return counting && until-- <= 0;
}

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : take(__real_malloc(size), true);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuse() ? NULL : take(__real_calloc(count, size), true);
}

void *__wrap_realloc(void *old, size_t size)
{
    return refuse() ? NULL : take(__real_realloc(old, size), old == NULL);
}

void __wrap_free(void *p)
{
    if (counting && p)
        held--;
    __real_free(p);
}

static const char text[] =
    PTX_HEADER ".global .align 4 .b8 table[8] = {1, 2, 3};\n.const .u64 where = table;\n"
               ".func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<3>; .reg .pred %p;\n"
               " ld.param.u32 %r1, [x]; setp.eq.u32 %p, %r1, 0; @%p bra Z; add.s32 %r1, %r1, %r1; "
               "Z: st.param.b32 [r], %r1; }\n"
               ".entry k(.param .u64 a, .param .u32 n) { .reg .b32 %r<9>; .reg .b64 %rd<5>; .reg "
               ".pred %p<3>; .shared .b32 "
               "s[32];\n"
               " ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r4, %r2;\n"
               "L: { .param .b32 x; st.param.b32 [x], %r1; .param .b32 y; call (y), twice, (x); "
               "ld.param.b32 %r3, [y]; }\n"
               " T: .branchtargets A, B; add.s32 %r4, %r4, %r3; bar.sync 0; setp.lt.u32 %p1, %r4, "
               "99; @%p1 bra L;\n"
               " brx.idx %r2, T; A: mul.wide.u32 %rd1, %r4, 4; st.global.u32 [%rd1], 1; B: "
               "st.global.u32 [table], %r3; }\n";

static int parse_and_analyse(void)
{
    static const struct ir_analyse_options opt = { .rows = true };
    struct ir_module *m;
    struct ptx_error err;
    int rc = ptx_parse(text, sizeof(text) - 1, &m, &err);
    if (rc == 0) {
        struct ir_analysis *a;
        rc = ir_analyse(m, ir_module_find_fn(m, "k"), &opt, &a);
        ir_analysis_destroy(a);
    }
    ir_module_destroy(m);
    return rc;
}

Test(ptx_memory, each_allocation_fails_once)
{
    cr_assert(parse_and_analyse() == 0);
    int rc = -ENOMEM;
    for (long n = 0; rc != 0; n++) {
        cr_assert(n < 1000);
        held = 0;
        until = n;
        counting = true;
        rc = parse_and_analyse();
        counting = false;
        cr_assert(rc == 0 || rc == -ENOMEM, "allocation %ld: %d", n, rc);
        cr_assert(held == 0, "allocation %ld: %ld kept", n, held);
    }
}
