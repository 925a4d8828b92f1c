/*
 * The option table's parser: every way to write an option, every way to write it wrong, and the two
 * texts.
 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "base/opttab.h"

TestSuite(opttab, .timeout = 30);

enum { ALPHA = 1, BETA, GAMMA };

static const struct gm_option table[] = {
    { .id = ALPHA, .letter = 'a', .name = "alpha", .alias = "alfa", .help = "First letter" },
    { .id = BETA,
      .letter = 'b',
      .name = "beta-max",
      .argument = "N",
      .help = "Second",
      .text = "With a number." },
    { .id = GAMMA, .name = "gamma", .help = "Third", .hidden = true },
    { 0 },
};

/* What the parser makes of up to six words: "id:argument id", then what is left. */
static char *parse(const char *a, const char *b, const char *c)
{
    char *argv[5] = { (char[]) { "prog" }, NULL };
    int argc = 1;
    const char *words[] = { a, b, c };
    for (size_t i = 0; i < GM_ARRAY_LEN(words) && words[i]; i++)
        argv[argc++] = strdup(words[i]);
    char *out = calloc(1, 256);
    struct gm_options o;
    int id;
    gm_options_init(&o, table, argc, argv);
    do {
        id = gm_options_next(&o);
        char item[64];
        if (id > 0 && o.argument)
            snprintf(item, sizeof(item), "%d:%s ", id, o.argument);
        else if (id != GM_OPTIONS_END)
            snprintf(item, sizeof(item), "%d ", id);
        else
            item[0] = '\0';
        strcat(out, item);
    } while (id > 0);
    for (; id == GM_OPTIONS_END && o.index < argc; o.index++)
        strcat(strcat(out, "+"), argv[o.index]);
    for (int i = 1; i < argc; i++)
        free(argv[i]);
    return out;
}

static void expect(const char *expected, const char *a, const char *b, const char *c)
{
    char *got = parse(a, b, c);
    cr_assert_str_eq(got, expected);
    free(got);
}

Test(opttab, every_spelling)
{
    expect("", NULL, NULL, NULL);
    expect("1 ", "-a", NULL, NULL);
    expect("1 ", "--alpha", NULL, NULL);
    expect("1 ", "-alpha", NULL, NULL);
    expect("1 ", "--alfa", NULL, NULL);
    expect("2:5 ", "-b", "5", NULL);
    expect("2:5 ", "-b5", NULL, NULL);
    expect("2:5 ", "--beta-max", "5", NULL);
    expect("2:5 ", "--beta-max=5", NULL, NULL);
    expect("2: ", "--beta-max=", NULL, NULL);
    expect("2:-a ", "-b", "-a", NULL);
    expect("1 2:5 ", "-ab5", NULL, NULL);
    expect("1 1 2:5 ", "-aab", "5", NULL);
    expect("3 ", "--gamma", NULL, NULL);
}

Test(opttab, where_options_end)
{
    expect("1 +quit+-t", "-a", "quit", "-t");
    expect("+-a", "--", "-a", NULL);
    expect("+-", "-", NULL, NULL);
    expect("+", "", NULL, NULL);
}

Test(opttab, mistakes)
{
    expect("-1 ", "--bogus", NULL, NULL);
    expect("-1 ", "--alp", NULL, NULL);
    expect("-1 ", "-x", NULL, NULL);
    expect("1 -1 ", "-ax", NULL, NULL);
    expect("-1 ", "--=", NULL, NULL);
    expect("-2 ", "-b", NULL, NULL);
    expect("-2 ", "--beta-max", NULL, NULL);
    expect("1 -2 ", "-ab", NULL, NULL);
    expect("-3 ", "--alpha=1", NULL, NULL);
}

Test(opttab, the_culprit_is_named)
{
    char *argv[] = { (char[]) { "prog" }, (char[]) { "-axa" }, NULL };
    struct gm_options o;
    gm_options_init(&o, table, 2, argv);
    cr_assert_eq(gm_options_next(&o), ALPHA);
    cr_assert_eq(gm_options_next(&o), GM_OPTIONS_UNKNOWN);
    cr_assert_str_eq(o.word, "-axa");
    cr_assert_eq(gm_options_next(&o), GM_OPTIONS_END);
}

static void expect_text(void (*print)(const struct gm_option *, FILE *), const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    print(table, f);
    fclose(f);
    cr_assert_str_eq(text, expected);
    free(text);
}

Test(opttab, texts)
{
    expect_text(gm_options_print_help, "  -a, --alpha                  First letter\n"
                                       "  -b, --beta-max N             Second\n");
    expect_text(gm_options_print_scdoc, "*-a*, *--alpha*\n\tFirst letter.\n\n"
                                        "*-b*, *--beta-max* _N_\n\tSecond. With a number.\n\n");
}
