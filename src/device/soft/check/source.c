/*
 * Finds source lines in a PTX text by its .file and .loc, which the compiler writes with -lineinfo.
 * The text is read again for each line: reports are few.
 */
#include <stdio.h>
#include <string.h>

#include "device/soft/check/check.h"

#define UNIT_MARK ".pragma \"gmux unit " /* begins each of several linked texts (ptx/link.c) */

struct place {
    uint32_t file, line;
};

/* The next line of the text, without leading blanks; NULL at the end. */
static const char *line_next(const char **at, const char *end, size_t *length)
{
    const char *from = *at;
    if (from >= end)
        return NULL;
    const char *newline = memchr(from, '\n', (size_t)(end - from));
    const char *stop = newline ? newline : end;
    *at = newline ? newline + 1 : end;
    while (from < stop && (*from == ' ' || *from == '\t'))
        from++;
    *length = (size_t)(stop - from);
    return from;
}

static bool begins(const char *line, size_t length, const char *word)
{
    size_t n = strlen(word);
    return length >= n && memcmp(line, word, n) == 0;
}

/* Reads a number behind blanks; 0 if there is none. */
static uint32_t number(const char **at, const char *end)
{
    uint32_t n = 0;
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        n = n * 10 + (uint32_t)(**at - '0');
    return n;
}

static struct place place_read(const char *at, const char *end)
{
    struct place p;
    p.file = number(&at, end);
    p.line = number(&at, end);
    return p;
}

/* Finds the name of file number `file` in the text that begins at `from`; returns its length. */
static size_t find_file(const char *from, const char *end, uint32_t file, const char **name)
{
    const char *l;
    size_t length;
    while ((l = line_next(&from, end, &length))) {
        if (begins(l, length, UNIT_MARK))
            break;
        if (!begins(l, length, ".file"))
            continue;
        const char *at = l + 5;
        if (number(&at, l + length) != file)
            continue;
        const char *open = memchr(at, '"', (size_t)(l + length - at));
        const char *close = open ? memchr(open + 1, '"', (size_t)(l + length - open - 1)) : NULL;
        if (!close)
            return 0;
        *name = open + 1;
        return (size_t)(close - open - 1);
    }
    return 0;
}

/* Whether the file is a source, not a header: kernels are written in sources, even if functions
 * from headers are inlined into them. */
static bool is_source(const char *from, const char *end, uint32_t file)
{
    const char *name = NULL;
    size_t length = find_file(from, end, file, &name);
    return length > 3 && memcmp(name + length - 3, ".cu", 3) == 0;
}

/* Finds the last .loc before the line, in the same function; the place where that code was inlined,
 * if the text says so; and, since clang does not say so, the last line of a source before it if
 * that .loc belongs to a header. A place that is not known has line 0. `from`: where the text
 * begins that the lines belong to. */
static bool find_loc(const char *text, const char *end, uint32_t line, struct place *place,
                     struct place *inlined, struct place *near, const char **from)
{
    static const char word[] = "inlined_at ";
    const char *at = text, *l;
    struct place source = { 0, 0 };
    size_t length;
    *place = *inlined = *near = (struct place) { 0, 0 };
    *from = text;
    for (uint32_t n = 1; n <= line && (l = line_next(&at, end, &length)); n++) {
        if (begins(l, length, UNIT_MARK)) {
            *from = at;
            place->line = source.line = 0;
        } else if (memmem(l, length, ".entry ", 7) || memmem(l, length, ".func ", 6)) {
            place->line = source.line = 0;
        } else if (begins(l, length, ".loc")) {
            *place = place_read(l + 4, l + length);
            const char *in = memmem(l, length, word, sizeof(word) - 1);
            *inlined = in ? place_read(in + sizeof(word) - 1, l + length) : (struct place) { 0, 0 };
            if (place->file == source.file || is_source(*from, end, place->file))
                source = *place;
        }
    }
    if (place->file != source.file)
        *near = source;
    return place->line != 0;
}

static size_t print_place(const char *from, const char *end, struct place p, char *out,
                          size_t out_size)
{
    const char *name = "?";
    size_t length = find_file(from, end, p.file, &name);
    int shown = length == 0 ? 1 : (int)GM_MIN(length, (size_t)160);
    int n = snprintf(out, out_size, "%.*s:%u", shown, name, p.line);
    return n < 0 ? 0 : GM_MIN((size_t)n, out_size - 1);
}

bool soft_check_source(const char *text, size_t size, uint32_t line, char *out, size_t out_size)
{
    const char *end = text + size, *from;
    struct place place, inlined, near;
    if (!find_loc(text, end, line, &place, &inlined, &near, &from))
        return false;
    size_t n = print_place(from, end, place, out, out_size);
    const char *words = inlined.line ? ", inlined at " : ", near ";
    const struct place *other = inlined.line ? &inlined : &near;
    if (other->line && n + strlen(words) < out_size) {
        memcpy(out + n, words, strlen(words) + 1);
        n += strlen(words);
        n += print_place(from, end, *other, out + n, out_size - n);
    }
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)out[i] < ' ' || out[i] == 0x7f)
            out[i] = '?';
    return true;
}
