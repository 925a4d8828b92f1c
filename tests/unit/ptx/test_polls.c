/*
 * Which loops may wait for other threads (ir/poll.c): a small kernel for each way in which what a
 * thread reads decides whether its loop ends, or does not.
 */
#include <criterion/criterion.h>

#include "common.h"

/* The loops' headers that wait, as text: "1,3". */
static const char *polls(const char *body)
{
    static char list[64];
    static const struct ir_analyse_options nothing_known;
    char *text = ptx_kernel(body);
    struct ptx_error err;
    struct ir_module *m = ptx_try(text, &err);
    struct ir_analysis *a;
    cr_assert(m != NULL, "%u:%u %s\n%s", err.line, err.column, err.text, text);
    cr_assert(ir_analyse(m, 0, &nothing_known, &a) == 0);
    bool *waits = calloc(a->block_count, sizeof(*waits));
    cr_assert(waits != NULL);
    int found = ir_find_polls(&m->fns[0], a, waits);
    list[0] = '\0';
    for (uint32_t b = 0; b < a->block_count; b++)
        if (waits[b])
            snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%u", list[0] ? "," : "",
                     b);
    cr_assert(found == (list[0] != '\0'));
    free(waits);
    ir_analysis_destroy(a);
    ir_module_destroy(m);
    free(text);
    return list;
}

#define BEGIN "ld.param.u64 %rd0, [a];\nmov.u32 %r0, 0;\nmov.u32 %r1, 0;\n"
#define LOOK  "ld.volatile.global.u32 %r2, [%rd0];\nsetp.eq.u32 %p0, %r2, 0;\n"
#define COUNT "add.u32 %r0, %r0, 1;\nsetp.lt.u32 %p1, %r0, 9;\n@%p1 bra L;\nret;"

Test(polls, a_read_ends_the_loop)
{
    cr_assert_str_eq(polls(BEGIN "L:\n" LOOK "@%p0 bra L;\nret;"), "1");
}

Test(polls, a_read_chooses_a_way_in_a_loop_that_is_counted)
{
    cr_assert_str_eq(polls(BEGIN "L:\n" LOOK "@%p0 bra S;\nadd.u32 %r1, %r1, %r2;\n"
                                 "S:\n" COUNT),
                     "");
    cr_assert_str_eq(polls(BEGIN
                           "L:\natom.global.cas.b32 %r2, [%rd0], 0, 1;\nsetp.eq.u32 %p0, %r2, "
                           "0;\n@%p0 bra S;\nst.global.u32 [%rd0+4], %r0;\nS:\n" COUNT),
                     "");
}

Test(polls, a_loop_inside_of_a_way_that_a_read_chooses)
{
    cr_assert_str_eq(polls(BEGIN "L:\n" LOOK "@%p0 bra S;\nmov.u32 %r3, 0;\n"
                                 "I:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 5;\n@%p2 bra I;\n"
                                 "S:\n" COUNT),
                     "");
}

Test(polls, what_was_read_outside_counts_the_rounds)
{
    cr_assert_str_eq(polls(BEGIN LOOK "L:\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p1, %r0, %r2;\n"
                                      "@%p1 bra L;\nret;"),
                     "");
}

Test(polls, only_the_inner_loop)
{
    cr_assert_str_eq(polls(BEGIN "L:\nadd.u32 %r1, %r1, 2;\nI:\n" LOOK "@%p0 bra I;\n" COUNT), "2");
}

Test(polls, two_loops_with_one_header)
{
    cr_assert_str_eq(polls(BEGIN "L:\n" LOOK "@%p0 bra L;\n" COUNT), "1");
}

Test(polls, a_way_that_begins_the_round_anew)
{
    cr_assert_str_eq(polls(BEGIN "L:\nadd.u32 %r1, %r1, 2;\n" LOOK "@%p0 bra L;\n"
                                 "st.global.u32 [%rd0+4], %r1;\n" COUNT),
                     "1");
}

Test(polls, a_register_that_a_way_sets)
{
    cr_assert_str_eq(polls(BEGIN "L:\n" LOOK "@%p0 bra S;\nmov.u32 %r1, 1;\nS:\n"
                                 "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nret;"),
                     "1");
    cr_assert_str_eq(polls(BEGIN "L:\n" LOOK "@!%p0 mov.u32 %r1, 1;\n"
                                 "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nret;"),
                     "1");
}

Test(polls, memory_that_a_way_sets)
{
    cr_assert_str_eq(polls(".shared .u32 done;\n" BEGIN "L:\n" LOOK
                           "@%p0 bra S;\nst.shared.u32 [done], 1;\nS:\n"
                           "ld.shared.u32 %r3, [done];\nsetp.eq.u32 %p1, %r3, 0;\n"
                           "@%p1 bra L;\nret;"),
                     "1");
    cr_assert_str_eq(polls(".shared .u32 done;\n" BEGIN "L:\n" LOOK
                           "@!%p0 st.shared.u32 [done], 1;\n"
                           "ld.shared.u32 %r3, [done];\nsetp.eq.u32 %p1, %r3, 0;\n"
                           "@%p1 bra L;\nret;"),
                     "1");
}

Test(polls, a_list_of_ways)
{
    cr_assert_str_eq(polls(BEGIN "T: .branchtargets L, E;\nL:\n"
                                 "ld.volatile.global.u32 %r2, [%rd0];\n"
                                 "brx.idx %r2, T;\nE:\nret;"),
                     "1");
}

Test(polls, a_swap_against_what_was_read_before)
{
    cr_assert_str_eq(polls(BEGIN "ld.global.u32 %r1, [%rd0];\nL:\nadd.u32 %r3, %r1, 1;\n"
                                 "mov.u32 %r4, %r1;\natom.global.cas.b32 %r1, [%rd0], %r4, %r3;\n"
                                 "setp.ne.u32 %p0, %r1, %r4;\n@%p0 bra L;\nret;"),
                     "");
}

#define SWAP(at)                                                                                   \
    "mad.wide.u32 %rd1, " at ", 4, %rd0;\natom.global.cas.b32 %r2, [%rd1], 0, %r5;\n"              \
    "setp.eq.u32 %p0, %r2, 0;\n"
#define OR_OWN "setp.eq.u32 %p1, %r2, %r5;\nor.pred %p0, %p0, %p1;\n"

Test(polls, a_place_in_a_set)
{
    cr_assert_str_eq(polls(BEGIN "mov.u32 %r5, %tid.x;\nL:\n" SWAP("%r0") OR_OWN
                           "@%p0 bra E;\nadd.u32 %r0, %r0, 1;\nand.b32 %r0, %r0, 15;\n"
                           "bra L;\nE:\nret;"),
                     "");
}

Test(polls, a_place_that_another_has_to_give_back)
{
    cr_assert_str_eq(polls(BEGIN "mov.u32 %r5, %tid.x;\nL:\n" SWAP(
                         "%r0") "@%p0 bra E;\nadd.u32 %r0, %r0, 1;\nand.b32 %r0, %r0, 15;\n"
                                "bra L;\nE:\nret;"),
                     "1");
}

Test(polls, a_lock_that_its_owner_may_take_again)
{
    cr_assert_str_eq(
        polls(BEGIN "mov.u32 %r5, %tid.x;\nL:\n" SWAP("%r0") OR_OWN "@!%p0 bra L;\nret;"), "1");
    /* One lock after the other: the loop over them and the one that waits have one header. */
    cr_assert_str_eq(
        polls(BEGIN "mov.u32 %r5, %tid.x;\nL:\n" SWAP("%r0") OR_OWN "@!%p0 bra L;\n" COUNT), "1");
}
