/*
 * Functions that are declared for the host and defined for the device, too, or the other way
 * around. nvcc warns of it and takes them for both; clang knows no such function of the class, or
 * an overload that may not be:
 *
 *   test.cu:13:4: error: out-of-line definition of 'get' does not match any declaration in 'S'
 *   test.cu:5:9: note: member declaration nearly matches
 *   test.cu:17:25: error: __host__ __device__ function 'twice' cannot overload __host__ function ..
 *   test.cu:10:5: note: previous declaration is here
 *
 * The one without attributes gets those of the other one. The messages name a line of a source, for
 * which the preprocessor's output has line markers, and a column of that output.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/cc/cc.h"

#define PLACES_MAX 64

static const char nearly[] = ": note: member declaration nearly matches";
static const char device[] = "__attribute__((device)) ", host[] = "__attribute__((host)) ";

/* What a message says of a place. */
struct spot {
    const char *file;
    size_t file_length;
    unsigned line, column;
};

struct insertion {
    const char *at; /* in the text */
    bool host;
};

/* Goes back over digits; the first of them, or NULL: there are none, or no colon before them. */
static const char *back_over_number(const char *begin, const char *end)
{
    const char *at = end;
    while (at > begin && isdigit((unsigned char)at[-1]))
        at--;
    return at < end && at > begin && at[-1] == ':' ? at : NULL;
}

/* Reads the place in a message that goes on with `what`; behind that, or NULL: it is none. */
static const char *read_spot(const char *line, const char *what, struct spot *s)
{
    const char *end = line + strcspn(line, "\n");
    const char *said = memmem(line, (size_t)(end - line), what, strlen(what));
    const char *column = said ? back_over_number(line, said) : NULL;
    const char *number = column ? back_over_number(line, column - 1) : NULL;
    if (!number)
        return NULL;
    s->file = line;
    s->file_length = (size_t)(number - 1 - line);
    s->line = (unsigned)strtoul(number, NULL, 10);
    s->column = (unsigned)strtoul(column, NULL, 10);
    return said + strlen(what);
}

/* The length of the name as far as the text has it in these characters: operators may have spaces,
 * and a template's arguments are not there. */
static size_t name_length(const char *name)
{
    size_t n = *name == '~';
    while (cc_in_word(name[n]))
        n++;
    return n;
}

/* Where the text has the name at a place; NULL: it does not. */
static const char *find_name(const char *text, const struct spot *s, const char *name)
{
    const char *file = "";
    size_t file_length = 0, length = name_length(name);
    unsigned number = 0;
    for (const char *line = text, *next; *line; line = next) {
        size_t n = strcspn(line, "\n");
        next = line + n + (line[n] == '\n');
        if (line[0] == '#' && line[1] == ' ' && isdigit((unsigned char)line[2])) {
            char *end;
            number = (unsigned)strtoul(line + 2, &end, 10) - 1;
            if (end[0] == ' ' && end[1] == '"') {
                file = end + 2;
                file_length = strcspn(file, "\"");
            }
            continue;
        }
        if (++number == s->line && file_length == s->file_length &&
            memcmp(file, s->file, file_length) == 0 && s->column && s->column <= n &&
            strncmp(line + s->column - 1, name, length) == 0)
            return line + s->column - 1;
    }
    return NULL;
}

/* Whether what is defined at `at` has the attribute. */
static bool has_attribute(const char *text, const char *at, const char *attribute)
{
    const char *begin = at;
    while (begin > text && !strchr(";{}", begin[-1]))
        begin--;
    return memmem(begin, (size_t)(at - begin), attribute, strlen(attribute) - 1);
}

/* Where the name at `at` begins with the names of its classes. */
static const char *qualified(const char *text, const char *at)
{
    for (;;) {
        const char *before = cc_before_spaces(text, at);
        if (before - text < 2 || before[-1] != ':' || before[-2] != ':')
            return at;
        at = cc_before_spaces(text, before - 2);
        for (int depth = 0; at > text && (depth || at[-1] == '>'); at--)
            depth += at[-1] == '>' ? 1 : at[-1] == '<' ? -1 : 0;
        while (at > text && cc_in_word(at[-1]))
            at--;
    }
}

/* Whether the lines of messages at `line` are of such a function; what to insert then. */
static bool read_pair(const char *text, const char *line, struct insertion *to)
{
    static const char unknown[] = ": error: out-of-line definition of '";
    static const char overload[] = ": error: __host__ __device__ function '";
    static const char overloaded[] = ": error: __host__ function '";
    static const char previous[] = ": note: previous declaration is here";
    struct spot defined, declared;
    const char *name = read_spot(line, unknown, &defined);
    bool both = !name && (name = read_spot(line, overload, &defined));
    bool back = !name && (name = read_spot(line, overloaded, &defined));
    const char *what = both || back ? previous : nearly, *note = name ? line : NULL;
    /* Lines of the source, with carets, may be between. */
    for (unsigned k = 0; note && k < 9 && (!k || !read_spot(note, what, &declared)); k++) {
        note += strcspn(note, "\n");
        note += *note == '\n';
    }
    if (!note || !read_spot(note, what, &declared))
        return false;
    const char *definition = find_name(text, &defined, name);
    const char *declaration = find_name(text, &declared, name);
    if (!definition || !declaration)
        return false;
    bool forth = both || has_attribute(text, definition, device);
    const char *other = forth ? definition : declaration;
    to->at = forth ? declaration : qualified(text, definition);
    to->host = both || back || has_attribute(text, other, host);
    return forth || back || has_attribute(text, declaration, device);
}

static int compare(const void *a, const void *b)
{
    const struct insertion *p = a, *q = b;
    return p->at < q->at ? -1 : p->at > q->at;
}

bool cc_declare(const char *path, const char *messages)
{
    struct insertion all[PLACES_MAX];
    size_t size, count = 0;
    char *said = cc_read_messages(messages), *text = cc_read(path, &size);
    if (said)
        cc_drop_ranges(said);
    for (const char *line = said; text && line && *line && count < PLACES_MAX;) {
        count += read_pair(text, line, &all[count]);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    qsort(all, count, sizeof(*all), compare);
    FILE *f = count ? fopen(path, "we") : NULL;
    const char *from = text;
    for (size_t i = 0; f && i < count; i++) {
        if (i && all[i].at == all[i - 1].at)
            continue;
        (void)fwrite(from, 1, (size_t)(all[i].at - from), f);
        (void)fprintf(f, "%s%s", device, all[i].host ? host : "");
        from = all[i].at;
    }
    if (count && (!f || fputs(from, f) < 0 || fclose(f) != 0))
        cc_fail("%s: cannot be written", path);
    free(said);
    free(text);
    return count;
}

bool cc_declares(const char *messages)
{
    char *said = cc_read_messages(messages);
    bool any = said && (strstr(said, nearly) || strstr(said, "cannot overload __host__ function") ||
                        strstr(said, "cannot overload __host__ __device__ function"));
    free(said);
    return any;
}
