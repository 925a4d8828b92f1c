/*
 * What NVIDIA's compiler accepts and clang does not, because the former reads the preprocessor's
 * output as a text of its own: launches with spaces in their brackets, `kernel << <1, 32 >> >()`,
 * and directives that macros expand to, `#define UNROLL #pragma unroll`. In such a text the former
 * are put right here, and the latter need nothing but to be read again.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/cc/cc.h"

/* Behind the literal that begins at `at`, if one does. */
static char *skip_literal(const char *text, char *at)
{
    if (*at == '"' && at > text && at[-1] == 'R') {
        char *open = strchr(at, '(');
        if (!open || open - at > 17)
            return at + 1;
        char end[24];
        (void)snprintf(end, sizeof(end), ")%.*s\"", (int)(open - at - 1), at + 1);
        char *close = strstr(open, end);
        return close ? close + strlen(end) : at + strlen(at);
    }
    if (*at != '"' && (*at != '\'' || (at > text && isxdigit((unsigned char)at[-1]))))
        return at;
    char quote = *at++;
    while (*at && *at != quote && *at != '\n')
        at += at[0] == '\\' && at[1] ? 2 : 1;
    return *at == quote ? at + 1 : at;
}

/* Behind the third of three characters `c` with nothing but spaces between them; NULL: they do not
 * begin at `at`. */
static char *three(char *at, char c)
{
    for (unsigned n = 0; n < 3; n++, at++) {
        at += n ? strspn(at, " \t\n") : 0;
        if (*at != c)
            return NULL;
    }
    return at;
}

/* Moves the spaces between three brackets behind them; true: there were any. */
static bool close_up(char *at, char *end)
{
    char c = *at, *to = at + 3;
    char spaces[64];
    size_t between = (size_t)(end - at) - 3, n = 0;
    if (!between || between > sizeof(spaces))
        return false;
    for (char *from = at; from < end; from++)
        if (*from != c)
            spaces[n++] = *from;
    memset(at, c, 3);
    memcpy(to, spaces, n);
    return true;
}

/* The brackets that end the launch whose configuration begins at `at`; NULL: it is none. */
static char *find_end(const char *text, char *at)
{
    int depth = 0;
    while (*at && depth >= 0 && (depth || *at != ';')) {
        char *behind = skip_literal(text, at);
        if (behind != at) {
            at = behind;
            continue;
        }
        depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        char *end = depth ? NULL : three(at, '>');
        if (end && end[strspn(end, " \t\n")] == '(')
            return at;
        at++;
    }
    return NULL;
}

static bool after_operator(const char *text, const char *at)
{
    while (at > text && isspace((unsigned char)at[-1]))
        at--;
    return at - text >= 8 && memcmp(at - 8, "operator", 8) == 0;
}

bool cc_respell(const char *path)
{
    size_t size;
    char *text = cc_read(path, &size);
    if (!text)
        cc_fail("%s: cannot be read", path);
    bool changed = false, again = false, line_begins = true;
    for (char *at = text; *at;) {
        char *behind = skip_literal(text, at), *open = three(at, '<'), *close = NULL;
        if (line_begins && at[strspn(at, " \t")] == '#') {
            again |= *at != '#';
            at += strcspn(at, "\n");
            continue;
        }
        if (open && (at == text || (at[-1] != '<' && !after_operator(text, at))))
            close = find_end(text, open);
        if (close) {
            changed |= close_up(at, open);
            changed |= close_up(close, three(close, '>'));
            behind = at + 3;
        }
        line_begins = *at == '\n';
        at = behind > at ? behind : at + 1;
    }
    FILE *f = changed ? fopen(path, "we") : NULL;
    if (changed && (!f || fwrite(text, 1, size, f) != size || fclose(f) != 0))
        cc_fail("%s: cannot be written", path);
    free(text);
    return changed || again;
}
