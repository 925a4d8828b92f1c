/*
 * Limits: what is accepted, what is ignored, and what a server is told.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

#include "control/policy.h"

TestSuite(policy, .timeout = 30);

static struct ctl_limits no_limits(void)
{
    unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    unsetenv("CUDA_MPS_CLIENT_PRIORITY");
    unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    struct ctl_limits l;
    ctl_limits_from_environment(&l);
    return l;
}

Test(policy, defaults)
{
    struct ctl_limits l = no_limits();
    cr_assert_float_eq(l.share_pct, 100, 0);
    cr_assert_eq(l.priority, 0);
    cr_assert_eq(l.memory_count, 0);
}

Test(policy, environment)
{
    struct ctl_limits l;
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "12.5", 1);
    setenv("CUDA_MPS_CLIENT_PRIORITY", "1", 1);
    setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G,,x,=2G,1=,1=512MB,2=1", 1);
    ctl_limits_from_environment(&l);
    cr_assert_float_eq(l.share_pct, 12.5, 0);
    cr_assert_eq(l.priority, 1);
    char text[CTL_MEMORY_TEXT_MAX + 1];
    ctl_limits_memory_text(&l, text);
    cr_assert_str_eq(text, "0=1G,1=512MB");
}

Test(policy, bad_words_change_nothing)
{
    static const char *const shares[] = { "",    "0",   "-5",  "101", "100.1", "abc",
                                          "1e1", "nan", "inf", "5x",  " 5",    "0.0" };
    static const char *const priorities[] = { "", "2", "-1", "x", "01x" };
    static const char *const sizes[] = { "",    "abc", "1",   "G",
                                         "-1G", "1T",  "1GG", "99999999999999999999G",
                                         "1 G" };
    struct ctl_limits l = no_limits();
    l.share_pct = 77;
    for (size_t i = 0; i < GM_ARRAY_LEN(shares); i++)
        cr_assert_not(ctl_limits_set_share(&l, shares[i]), "%s", shares[i]);
    cr_assert_float_eq(l.share_pct, 77, 0);
    for (size_t i = 0; i < GM_ARRAY_LEN(priorities); i++)
        cr_assert_not(ctl_limits_set_priority(&l, priorities[i]), "%s", priorities[i]);
    cr_assert(ctl_limits_set_memory(&l, "0", "2G"));
    for (size_t i = 0; i < GM_ARRAY_LEN(sizes); i++)
        cr_assert_not(ctl_limits_set_memory(&l, "0", sizes[i]), "%s", sizes[i]);
    cr_assert_str_eq(ctl_limits_memory(&l, "0"), "2G");
}

Test(policy, devices_are_words)
{
    struct ctl_limits l = no_limits();
    char longest[CTL_DEVICE_WORD_MAX + 2];
    memset(longest, 'G', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    cr_assert_not(ctl_limits_set_memory(&l, longest, "1G"));
    longest[sizeof(longest) - 2] = '\0';
    cr_assert(ctl_limits_set_memory(&l, longest, "1G"));
    cr_assert_not(ctl_limits_set_memory(&l, "", "1G"));
    cr_assert_not(ctl_limits_set_memory(&l, "a=b", "1G"));
    cr_assert_not(ctl_limits_set_memory(&l, "a,b", "1G"));
    cr_assert_null(ctl_limits_memory(&l, "0"));
}

Test(policy, the_last_one_counts)
{
    struct ctl_limits l = no_limits();
    char text[CTL_MEMORY_TEXT_MAX + 1];
    cr_assert(ctl_limits_set_memory(&l, "0", "1G"));
    cr_assert(ctl_limits_set_memory(&l, "GPU-70f5", "2G"));
    cr_assert(ctl_limits_set_memory(&l, "0", "3G"));
    ctl_limits_memory_text(&l, text);
    cr_assert_str_eq(text, "GPU-70f5=2G,0=3G", "set again, it comes last");
}

Test(policy, the_table_is_bounded_and_its_text_fits)
{
    struct ctl_limits l = no_limits();
    char device[CTL_DEVICE_WORD_MAX + 1];
    char text[CTL_MEMORY_TEXT_MAX + 1];
    for (unsigned i = 0; i < CTL_MEMORY_LIMITS_MAX; i++) {
        snprintf(device, sizeof(device), "%063u", i);
        cr_assert(ctl_limits_set_memory(&l, device, "0000000000000000001024M"));
    }
    cr_assert_not(ctl_limits_set_memory(&l, "one-more", "1G"));
    cr_assert(ctl_limits_set_memory(&l, device, "2G"), "one that is there can be changed");
    ctl_limits_memory_text(&l, text);
    cr_assert_leq(strlen(text), CTL_MEMORY_TEXT_MAX);
}

Test(policy, a_wish_is_set_by_words_and_taken_back_by_empty_ones)
{
    struct ctl_wish w = { .priority = -1 };
    cr_assert_null(ctl_wish_set(&w, CTL_OF_CLIENT, "share=33.5"));
    cr_assert_null(ctl_wish_set(&w, CTL_OF_CLIENT, "memory=2G"));
    cr_assert_null(ctl_wish_set(&w, CTL_OF_CLIENT, "priority=low"));
    cr_assert_float_eq(w.share_pct, 33.5, 1e-9);
    cr_assert_str_eq(w.memory, "*=2G");
    cr_assert_eq(w.priority, 1);
    static const char *const wrong[] = { "",
                                         "share",
                                         "share=0",
                                         "share=101",
                                         "share=-1",
                                         "share=x",
                                         "memory=2",
                                         "memory=x",
                                         "memory=-1G",
                                         "priority=2",
                                         "priority=high",
                                         "cores=3",
                                         "memory=99999999999999999999999999G",
                                         "=5" };
    for (size_t i = 0; i < GM_ARRAY_LEN(wrong); i++)
        cr_assert(ctl_wish_set(&w, CTL_OF_CLIENT, wrong[i]), "%s", wrong[i]);
    cr_assert_float_eq(w.share_pct, 33.5, 1e-9, "a mistake changes nothing");
    cr_assert_str_eq(w.memory, "*=2G");
    cr_assert_null(ctl_wish_set(&w, CTL_OF_CLIENT, "share="));
    cr_assert_null(ctl_wish_set(&w, CTL_OF_CLIENT, "memory="));
    cr_assert_null(ctl_wish_set(&w, CTL_OF_CLIENT, "priority="));
    cr_assert(w.share_pct <= 0 && !*w.memory && w.priority == -1);
}

Test(policy, of_two_wishes_the_lower_holds)
{
    struct ctl_wish none = { .priority = -1 }, half = { .share_pct = 50, .priority = 1 },
                    third = { .share_pct = 33 };
    cr_assert_float_eq(ctl_wish_lower(&none, &half).share_pct, 50, 1e-9);
    cr_assert_float_eq(ctl_wish_lower(&half, &third).share_pct, 33, 1e-9);
    cr_assert_float_eq(ctl_wish_lower(&third, &half).share_pct, 33, 1e-9);
    cr_assert_eq(ctl_wish_lower(&none, &none).priority, -1);
    cr_assert_eq(ctl_wish_lower(&third, &half).priority, 1);
}
