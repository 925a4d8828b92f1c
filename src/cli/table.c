/*
 * Collects the fields of a table and prints them when all are known, since columns are as wide as
 * their widest field.
 */
#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static GM_NORETURN void no_memory(void)
{
    fputs("gmux: out of memory\n", stderr);
    exit(1);
}

void cli_table_addf(struct cli_table *t, const char *fmt, ...)
{
    va_list ap;
    if (t->cells_count == t->cells_room) {
        t->cells_room = t->cells_room ? t->cells_room * 2 : 64;
        t->cells = reallocarray(t->cells, t->cells_room, sizeof(*t->cells));
        if (!t->cells)
            no_memory();
    }
    va_start(ap, fmt);
    if (vasprintf(&t->cells[t->cells_count++], fmt, ap) < 0)
        no_memory();
    va_end(ap);
}

void cli_table_add(struct cli_table *t, const char *text)
{
    cli_table_addf(t, "%s", text);
}

/* Prints a field by RFC 4180. */
static void print_quoted(const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_row(const struct cli_table *t, char *const *cells, const int *widths,
                      enum cli_format format)
{
    for (unsigned i = 0; i < t->columns; i++) {
        bool last = i + 1 == t->columns;
        if (format == CLI_CSV) {
            print_quoted(cells[i]);
            fputs(last ? "\n" : ",", stdout);
        } else if (last) {
            printf("%s\n", cells[i]);
        } else {
            printf("%-*s ", widths[i], cells[i]);
        }
    }
}

void cli_table_print(struct cli_table *t, enum cli_format format, bool headings)
{
    int widths[CLI_COLUMNS_MAX];
    char *first[CLI_COLUMNS_MAX];
    for (unsigned i = 0; i < t->columns; i++) {
        widths[i] = headings ? (int)strlen(t->headings[i]) : 0;
        first[i] = strdup(t->headings[i]);
        if (!first[i])
            no_memory();
        for (unsigned j = i; j < t->cells_count; j += t->columns)
            widths[i] = GM_MAX(widths[i], (int)strlen(t->cells[j]));
    }
    if (headings)
        print_row(t, first, widths, format);
    for (unsigned j = 0; j + t->columns <= t->cells_count; j += t->columns)
        print_row(t, t->cells + j, widths, format);
    for (unsigned i = 0; i < t->columns; i++)
        free(first[i]);
    for (unsigned j = 0; j < t->cells_count; j++)
        free(t->cells[j]);
    free(t->cells);
    t->cells = NULL;
    t->cells_count = t->cells_room = 0;
}

unsigned cli_fields(char *line, char *fields[], unsigned max)
{
    unsigned n = 0;
    while (line && n < max)
        fields[n++] = strsep(&line, "\t");
    return n;
}
