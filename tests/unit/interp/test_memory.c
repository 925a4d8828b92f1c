/*
 * Loads of a warp while somebody else writes to the same place: here the hook that is told of each
 * access, just before it is made.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "soft.h"

static const char text[] = ".version 7.0\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".visible .entry k(.param .u64 from, .param .u64 to)\n"
                           "{\n"
                           "    .reg .b64 %d<4>;\n"
                           "    .reg .b32 %r<3>;\n"
                           "    ld.param.u64 %d0, [from];\n"
                           "    ld.param.u64 %d1, [to];\n"
                           "    ld.volatile.global.v2.u32 {%r0, %r1}, [%d0];\n"
                           "    mov.u32 %r2, %tid.x;\n"
                           "    mad.wide.u32 %d2, %r2, 8, %d1;\n"
                           "    st.global.v2.u32 [%d2], {%r0, %r1};\n"
                           "    ret;\n"
                           "}\n";

static void count_up(void *arg, uint32_t thread, const void *at, uint32_t bytes, const void *value)
{
    (void)thread;
    (void)bytes;
    (void)value;
    uint32_t *word = arg;
    if (at == word || at == word + 1)
        word[0]++, word[1]++;
}

Test(interp_memory, lanes_that_read_one_place_get_one_value)
{
    char why[512] = "";
    bool unsupported;
    struct soft_bench *bench = soft_bench_create();
    cr_assert(soft_bench_place(bench, text, sizeof(text) - 1, "k", why, sizeof(why)), "%s", why);
    struct soft_code *code = soft_bench_code(bench, SOFT_TIER_INTERP, NULL, text, sizeof(text) - 1,
                                             "k", &unsupported, why, sizeof(why));
    cr_assert_not_null(code, "%s", why);
    uint32_t *word = soft_bench_alloc(bench, 2 * sizeof(*word));
    uint32_t(*read)[2] = soft_bench_alloc(bench, 32 * sizeof(*read));
    memset(word, 0, 2 * sizeof(*word));
    const void *params[] = { word, read };
    const uint32_t grid[3] = { 1, 1, 1 }, block[3] = { 32, 1, 1 };
    soft_bench_watch(bench, count_up, word);
    cr_assert_eq(soft_bench_launch(bench, code, grid, block, 0, params, NULL, 0), PTX_FAULT_NONE);
    cr_assert_gt(word[0], 0, "the hook was told of the load");
    for (int l = 0; l < 32; l++)
        cr_assert(read[l][0] == read[0][0] && read[l][1] == read[0][1], "lane %d", l);
    code->destroy(code);
    soft_bench_destroy(bench);
}
