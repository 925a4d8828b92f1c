/*
 * Command lines and the table they are looked up in; replies that grow; the cleaning of strangers'
 * texts.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "control/command.h"

TestSuite(words, .timeout = 30);

Test(words, blanks_separate)
{
    struct ctl_words w;
    cr_assert(ctl_words_parse(&w, " \tset_active_thread_percentage  658\t50 \r\n"));
    cr_assert_eq(w.count, 3);
    cr_assert_str_eq(ctl_words_at(&w, 0), "set_active_thread_percentage");
    cr_assert_str_eq(ctl_words_at(&w, 1), "658");
    cr_assert_str_eq(ctl_words_at(&w, 2), "50");
    cr_assert_str_eq(ctl_words_at(&w, 3), "", "a missing word is empty");
}

Test(words, nothing_is_no_word)
{
    struct ctl_words w;
    cr_assert(ctl_words_parse(&w, ""));
    cr_assert_eq(w.count, 0);
    cr_assert(ctl_words_parse(&w, "  \t "));
    cr_assert_eq(w.count, 0);
    cr_assert_str_eq(ctl_words_at(&w, 0), "");
}

Test(words, flags)
{
    struct ctl_words w;
    cr_assert(ctl_words_parse(&w, "quit -t 5"));
    cr_assert_str_eq(ctl_words_after(&w, "-t"), "5");
    cr_assert_null(ctl_words_after(&w, "-f"));
    cr_assert_null(ctl_words_after(&w, "quit"), "the command is no flag");
    cr_assert(ctl_words_have(&w, "-t"));
    cr_assert(ctl_words_parse(&w, "start_server -uid"));
    cr_assert_str_eq(ctl_words_after(&w, "-uid"), "", "there, without a word behind it");
}

Test(words, limits)
{
    struct ctl_words w;
    char line[CTL_LINE_MAX + 2];
    memset(line, 'x', sizeof(line));
    line[CTL_LINE_MAX] = '\0';
    cr_assert(ctl_words_parse(&w, line));
    cr_assert_eq(strlen(ctl_words_at(&w, 0)), CTL_LINE_MAX);
    line[CTL_LINE_MAX] = 'x';
    line[CTL_LINE_MAX + 1] = '\0';
    cr_assert_not(ctl_words_parse(&w, line));
    cr_assert(ctl_words_parse(&w, "a b c d e f g h i j k l m n o p q r s t"));
    cr_assert_eq(w.count, CTL_WORDS_MAX);
}

Test(words, every_command_is_found_and_complete)
{
    static const char *const open[] = { "ps",      "device_query", "version", "clients",
                                        "pending", "groups",       "lspart" };
    static const char *const own[] = { "terminate_client", "limit_client", "limit_group" };
    for (const struct ctl_command *c = ctl_commands; c->name; c++) {
        cr_assert_eq(ctl_command_find(c->name), c, "%s: twice in the table?", c->name);
        cr_assert(c->exec && c->arguments && *c->help);
        bool asks = strncmp(c->name, "get_", 4) == 0;
        for (size_t i = 0; i < GM_ARRAY_LEN(open); i++)
            asks = asks || strcmp(c->name, open[i]) == 0;
        bool owners = false;
        for (size_t i = 0; i < GM_ARRAY_LEN(own); i++)
            owners = owners || strcmp(c->name, own[i]) == 0;
        bool kept = strncmp(c->name, "set_default_", 12) == 0 ||
                    strcmp(c->name, "limit_user") == 0 || strcmp(c->name, "limit_group") == 0 ||
                    strcmp(c->name, "sm_partition") == 0 || strcmp(c->name, "name_server") == 0;
        unsigned flags = asks ? 0 : owners ? CTL_OWN : CTL_CHANGES;
        cr_assert_eq(c->flags, flags | (kept ? CTL_KEPT : 0), "%s: open to whom, and kept?",
                     c->name);
    }
    cr_assert_null(ctl_command_find("bogus"));
    cr_assert_null(ctl_command_find(""));
    cr_assert_null(ctl_command_find("QUIT"));
}

Test(words, text_grows_and_is_cut)
{
    struct ctl_text t = { 0 };
    for (int i = 0; i < 1000; i++)
        ctl_text_add(&t, "%d\n", i);
    cr_assert_eq(t.size, 3890);
    cr_assert_str_eq(t.data + t.size - 4, "999\n");
    ctl_text_cut(&t, 4);
    cr_assert_str_eq(t.data, "0\n1\n");
    ctl_text_add(&t, "end");
    cr_assert_str_eq(t.data, "0\n1\nend");

    char *big = malloc(CTL_TEXT_MAX + 1);
    memset(big, 'x', CTL_TEXT_MAX);
    big[CTL_TEXT_MAX] = '\0';
    ctl_text_add(&t, "%s", big);
    cr_assert_eq(t.size, 7, "more than the limit is left out");
    free(big);
    ctl_text_finish(&t);
    cr_assert_null(t.data);
}

Test(words, clean)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "", "" },
        { "a\n\033[2J\177 \t\303\244", "a??[2J? ?\303\244" },
        { "\302\2332J\302\205\302\240", "??2J??\302\240" }, /* CSI, next line, no-break space */
        { "\2332J\200\237", "?2J??" },                      /* the same in one byte: no UTF-8 */
        { "\303", "?" },                                    /* cut */
        { "\360\237\230\200\342\202", "\360\237\230\200??" },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(cases); i++) {
        char s[64];
        snprintf(s, sizeof(s), "%s", cases[i].in);
        gm_text_clean(s);
        cr_assert_str_eq(s, cases[i].out, "case %zu: %s", i, s);
    }
}
