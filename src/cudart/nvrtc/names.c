/*
 * Mangled names. For each name expression a variable of ours is added at the end of the source,
 * which holds the expression's address. So clang instantiates what it names, and in the PTX that
 * variable's initial value is the mangled name. Afterwards the variable is removed, and so are the
 * declarations of kernels that came with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/nvrtc/nvrtc.h"

void rtc_name_symbol(char *text, size_t i)
{
    (void)snprintf(text, 32, "gmux_name_of_%zu", i);
}

/* The name in `... = {generic(NAME)};` or `... = {NAME};`, which the caller frees; NULL: there is
 * none. */
static char *value_of(const char *line, size_t length)
{
    const char *from = memchr(line, '{', length);
    if (!from)
        return NULL;
    from++;
    if (strncmp(from, "generic(", 8) == 0)
        from += 8;
    size_t n = strcspn(from, ")}+,; \n");
    return n && from + n <= line + length ? strndup(from, n) : NULL;
}

/* Whether the entry that begins at `line` is only declared; then `*end` is what follows it. */
static bool is_declaration(const char *line, const char **end)
{
    const char *p = line + strcspn(line, ";{"), *entry = strstr(line, ".entry ");
    if (*line != '.' || !entry || entry > line + strcspn(line, "\n") || *p != ';')
        return false;
    *end = p + 1 + (p[1] == '\n');
    return true;
}

void rtc_take_names(struct _nvrtcProgram *p, char *ptx)
{
    char *to = ptx;
    for (const char *line = ptx, *next; *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        const char *symbol = strstr(line, " gmux_name_of_");
        if (symbol && symbol < line + length) {
            size_t i = strtoul(symbol + 14, NULL, 10);
            if (i < p->names_count && !p->names[i].lowered)
                p->names[i].lowered = value_of(line, length);
            continue;
        }
        if (p->names_count && is_declaration(line, &next))
            continue;
        memmove(to, line, (size_t)(next - line));
        to += next - line;
    }
    *to = '\0';
}
