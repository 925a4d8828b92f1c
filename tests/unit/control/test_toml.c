/*
 * The reader of configuration files: what TOML 1.0.0 says about keys and values of one line, and
 * what is refused.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/toml.h"

static char seen[4096];

/* Items as "a.b=text;" with a letter for the type. */
static const char *collect(void *arg, const struct gm_toml_item *item)
{
    size_t n = strlen(seen);
    for (unsigned i = 0; i < item->depth; i++)
        n += (size_t)snprintf(seen + n, sizeof(seen) - n, "%s%s", i ? "." : "", item->path[i]);
    snprintf(seen + n, sizeof(seen) - n, ":%c=%s;", "sifb"[item->type], item -> text);
    return strcmp(item->text, "refuse") == 0 ? arg : NULL;
}

static int read_text(const char *text, size_t size, struct gm_toml_error *error)
{
    char why[] = "no";
    /* At the end of its memory, so that a sanitizer sees a byte too many. */
    char *copy = malloc(size);
    seen[0] = '\0';
    if (size)
        memcpy(copy, text, size);
    int r = gm_toml_read(copy, size, collect, why, error);
    free(copy);
    return r;
}

Test(toml, values)
{
    static const char *const cases[][2] = {
        { "", "" },
        { "\n\r\n \t# comment\n", "" },
        { "a = 1", "a:i=1;" },
        { "a=1\r\nb=2 # two\n", "a:i=1;b:i=2;" },
        { "a = +17\nb = -0\nc = 1_000_000\nd = 0xdead_BEEF\ne = 0o755\nf = 0b1101",
          "a:i=17;b:i=0;c:i=1000000;d:i=3735928559;e:i=493;f:i=13;" },
        { "a = 3.25\nb = -1e6\nc = 6.6e-34", "a:f=3.25;b:f=-1e6;c:f=6.6e-34;" },
        { "a = true\nb = false", "a:b=true;b:b=false;" },
        { "a = \"x\\ty\\\"\\\\\\u00e9\\U0001F600\"", "a:s=x\ty\"\\\xc3\xa9\xf0\x9f\x98\x80;" },
        { "a = 'C:\\n'\nb = ''\nc = \"\"", "a:s=C:\\n;b:s=;c:s=;" },
        { "[t]\na = 1\n[t.u]\na = 2\n['x.y'.\"z\"]\nb.c = 3", "t.a:i=1;t.u.a:i=2;x.y.z.b.c:i=3;" },
        { "[ t . u ]\n 3-_x = 'v'", "t.u.3-_x:s=v;" },
        { "a.b = 1\n\"a.b\" = 2", "a.b:i=1;a.b:i=2;" },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(cases); i++) {
        struct gm_toml_error error;
        int r = read_text(cases[i][0], strlen(cases[i][0]), &error);
        cr_assert_eq(r, 0, "%s: line %u: %s: %s", cases[i][0], error.line, error.key, error.why);
        cr_assert_str_eq(seen, cases[i][1], "%s", cases[i][0]);
    }
}

Test(toml, mistakes)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *key;
    } cases[] = {
        { "a", 1, "a" },
        { "a = ", 1, "a" },
        { "= 1", 1, "" },
        { "\na = 1 2", 2, "a" },
        { "a = 01", 1, "a" },
        { "a = 1__0", 1, "a" },
        { "a = _1", 1, "a" },
        { "a = 1_", 1, "a" },
        { "a = 1.", 1, "a" },
        { "a = 0x", 1, "a" },
        { "a = -0x1", 1, "a" },
        { "a = 99999999999999999999", 1, "a" },
        { "a = inf", 1, "a" },
        { "a = truely", 1, "a" },
        { "a = 1979-05-27", 1, "a" },
        { "a = 07:32:00", 1, "a" },
        { "a = \"x", 1, "a" },
        { "a = \"x\ny\"", 1, "a" },
        { "a = \"\"\"x\"\"\"", 1, "a" },
        { "a = \"\\q\"", 1, "a" },
        { "a = \"\\ud800\"", 1, "a" },
        { "a = \"\\u0000\"", 1, "a" },
        { "a = \"\\u12", 1, "a" },
        { "a = \"\\", 1, "a" },
        { "a = '\x01'", 1, "a" },
        { "a = '\xc3'", 1, "a" },
        { "# \xff", 1, "" },
        { "a = [1]", 1, "a" },
        { "a = {}", 1, "a" },
        { "[a", 1, "a" },
        { "[]", 1, "" },
        { "[[a]", 1, "a" },
        { "[[a]]\n[a]", 2, "a" },
        { "[a]\n[[a.b]]\nc = 1\n[[a.b]]\nc = 1\nc = 2", 6, "a.b.1.c" },
        { "[a] b", 1, "a" },
        { "[a]\n[a]", 2, "a" },
        { "b = 1\n[a]\nb = 1\nb = 2", 4, "a.b" },
        { "a.b = 1\na.b = 2", 2, "a.b" },
        { "a.b.c.d.e.f.g.h.i = 1", 1, "" },
        { "ok = 1\nx.y = 'refuse'\nnever = 1", 2, "x.y" },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(cases); i++) {
        struct gm_toml_error error;
        cr_assert_lt(read_text(cases[i].text, strlen(cases[i].text), &error), 0, "%s",
                     cases[i].text);
        cr_assert_eq(error.line, cases[i].line, "%s: line %u", cases[i].text, error.line);
        cr_assert_str_eq(error.key, cases[i].key, "%s", cases[i].text);
        cr_assert(*error.why);
        cr_assert_null(strstr(seen, "never"));
    }
}

/* Whatever the bytes are, the reader ends within them. */
Test(toml, any_bytes)
{
    static const char text[] = "[users.'a b']\nshare = \"33\\u0025\" # c\n\n[g.\"x\".y]\nn = "
                               "-1_0.5e3\nb = true\nh = 0xF_f\n";
    struct gm_toml_error error;
    for (size_t cut = 0; cut < sizeof(text); cut++)
        (void)!read_text(text, cut, &error);
    char changed[sizeof(text)];
    for (size_t at = 0; at + 1 < sizeof(text); at++)
        for (int byte = 0; byte < 256; byte++) {
            memcpy(changed, text, sizeof(text));
            changed[at] = (char)byte;
            (void)!read_text(changed, sizeof(text) - 1, &error);
        }
}
