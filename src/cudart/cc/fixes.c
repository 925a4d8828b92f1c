/*
 * What nvcc's front end reads into a program and clang wants to be written: the word `typename`
 * before a type that depends on a template's parameter. Clang says where it lacks, in messages that
 * begin with, for -fdiagnostics-print-source-range-info,
 *
 *   source.cu:116:27:{214:27-214:39}: error: missing 'typename' prior to
 *
 * The numbers in braces count the lines and bytes of the file that was compiled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/cc/cc.h"

static const char word[] = "typename ";
static const char error[] = ": error: missing 'typename' prior to";

struct place {
    unsigned line, column;
};

static int compare(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    if (p->line != q->line)
        return p->line < q->line ? -1 : 1;
    return p->column == q->column ? 0 : p->column < q->column ? -1 : 1;
}

char *cc_read_messages(const char *path)
{
    size_t size;
    char *text = cc_read(path, &size), *to = text;
    if (!text)
        return NULL;
    for (const char *from = text; *from;) {
        if (strncmp(from, "\033[", 2) == 0) {
            from += strcspn(from, "m\n");
            from += *from == 'm';
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return text;
}

/* The ranges in the head of a message, ":{..}{..}", and their length; NULL: there are none. */
static char *find_ranges(const char *line, size_t *length)
{
    size_t n = strcspn(line, "\n");
    for (char *at = memmem(line, n, ":{", 2); at;
         at = memmem(at + 1, (size_t)(line + n - at) - 1, ":{", 2)) {
        *length = strspn(at + 1, "{}0123456789:-");
        if (strncmp(at + *length - 1, "}: ", 3) == 0)
            return at;
    }
    return NULL;
}

static bool read_place(const char *line, struct place *p)
{
    size_t length;
    const char *at = find_ranges(line, &length);
    return at && strncmp(at + length, error, strlen(error)) == 0 &&
           sscanf(at, ":{%u:%u", &p->line, &p->column) == 2;
}

void cc_drop_ranges(char *messages)
{
    char *to = messages, *at;
    size_t length;
    for (char *line = messages, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        at = find_ranges(line, &length);
        size_t head = at ? (size_t)(at - line) : 0, drop = at ? length : 0;
        memmove(to, line, head);
        memmove(to + head, line + head + drop, (size_t)(next - line) - head - drop);
        to += (size_t)(next - line) - drop;
    }
    *to = '\0';
}

/* Writes the text with the word at the places, which are in order. */
static void write_fixed(const char *path, const char *text, const struct place *places,
                        size_t count)
{
    FILE *f = fopen(path, "we");
    unsigned line = 1;
    size_t i = 0;
    for (const char *c = text, *begin = text; f && *c; c++) {
        while (i < count &&
               (places[i].line < line ||
                (places[i].line == line && places[i].column <= (unsigned)(c - begin) + 1))) {
            if (i == 0 || compare(&places[i - 1], &places[i]) != 0)
                (void)fputs(word, f);
            i++;
        }
        (void)fputc(*c, f);
        if (*c == '\n') {
            line++;
            begin = c + 1;
        }
    }
    if (!f || ferror(f) || fclose(f) != 0)
        cc_fail("%s: cannot be written", path);
}

bool cc_fix(const char *path, const char *messages)
{
    size_t size, count = 0;
    char *said = cc_read_messages(messages), *text = cc_read(path, &size);
    struct place *places = NULL;
    for (const char *line = said; line && *line;) {
        struct place p;
        if (read_place(line, &p)) {
            places = realloc(places, (count + 1) * sizeof(*places));
            if (!places)
                cc_fail("no memory");
            places[count++] = p;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    if (count && text) {
        qsort(places, count, sizeof(*places), compare);
        write_fixed(path, text, places, count);
    }
    free(places);
    free(said);
    free(text);
    return count && text;
}
