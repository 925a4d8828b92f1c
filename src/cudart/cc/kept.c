/*
 * What clang leaves in the kernels' text for the host's sake. NVIDIA's compiler and linker refuse
 * the whole text for it, and no kernel looks at it.
 *
 * Statements are overwritten with spaces, so that lines keep their numbers.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/cc/cc.h"

/* What separates words in PTX. */
#define BETWEEN  " \t\n,;(){}[]+="
#define DECLARED ".extern .func"

static void blank(char *at)
{
    for (; *at && *at != ';'; at++)
        if (*at != '\n')
            *at = ' ';
    if (*at)
        *at = ' ';
}

static size_t word_length(const char *at)
{
    return strcspn(at, BETWEEN);
}

/* Finds `.extern .func NAME`, with or without a result before the name; NULL: there is none. What
 * is declared so is defined in another source, or is a function of the host's. */
static char *find_declaration(char *text, const char *name, size_t length)
{
    for (char *at = text; (at = strstr(at, DECLARED)); at++) {
        char *word = at + strlen(DECLARED);
        word += strspn(word, " ");
        if (*word == '(')
            word += strcspn(word, ")") + 1;
        word += strspn(word, " ");
        if (word_length(word) == length && strncmp(word, name, length) == 0)
            return at;
    }
    return NULL;
}

/* clang keeps kernels of other sources that the host names alive by a table, in which it declares
 * them as functions. */
static bool drop_table(char *text)
{
    char *at = strstr(text, ".u64 __clang_gpu_used_external[");
    if (!at)
        return false;
    while (at > text && at[-1] != '\n')
        at--;
    for (char *name = at + strcspn(at, "{"); *name && *name != ';';) {
        name += strcspn(name, "_$;"); /* skip braces, commas and generic() */
        size_t length = strcspn(name, " ,;(){}");
        char *declaration = find_declaration(text, name, length);
        if (length && declaration)
            blank(declaration);
        name += length;
    }
    blank(at);
    return true;
}

/* Whether the word at `name`, in the text, stands elsewhere in it, too. */
static bool is_mentioned(const char *text, const char *name, size_t length)
{
    for (const char *at = text; *at; at += word_length(at)) {
        at += strspn(at, BETWEEN);
        if (at != name && word_length(at) == length && strncmp(at, name, length) == 0)
            return true;
    }
    return false;
}

/* Whether the initial value names a function of the host's. In relocatable code a function may be
 * another source's, unless it is of internal linkage. */
static bool names_host(char *text, const char *value, bool relocatable)
{
    for (const char *at = value; *at && *at != ';'; at += word_length(at)) {
        at += strspn(at, " ,(){}=");
        const size_t length = word_length(at);
        if (!isdigit((unsigned char)*at) && length &&
            (!relocatable || strncmp(at, "_ZL", 3) == 0) && find_declaration(text, at, length))
            return true;
    }
    return false;
}

/* clang makes constants of the host, if others may see them, constants of the device, too. If one
 * has the address of a host's function there would be no such function. */
static bool drop_constants(char *text, bool relocatable)
{
    bool any = false;
    if (!strstr(text, DECLARED))
        return false;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : NULL;
        if (strncmp(line, ".visible .const ", 16) != 0)
            continue;
        char *value = line + strcspn(line, "=;\n"), *name = line + strcspn(line, "[=;\n");
        if (*value != '=' || !names_host(text, value, relocatable))
            continue;
        while (name > line && name[-1] == ' ')
            name--;
        const char *end = name;
        while (name > line && name[-1] != ' ')
            name--;
        if (is_mentioned(text, name, (size_t)(end - name)))
            continue;
        blank(line);
        any = true;
    }
    return any;
}

void cc_drop_kept(const char *path, bool relocatable)
{
    size_t size = 0;
    char *text = cc_read(path, &size);
    if (!text)
        return; /* who reads it next reports this */
    bool changed = relocatable && drop_table(text);
    changed |= drop_constants(text, relocatable);
    FILE *f = changed ? fopen(path, "we") : NULL;
    if (changed && (!f || fwrite(text, 1, size, f) != size || fclose(f) != 0))
        cc_fail("%s: %s", path, strerror(errno));
    free(text);
}

void cc_report_undefined(const char *path)
{
    size_t size;
    char *text = cc_read(path, &size);
    for (char *at = text; at && (at = strstr(at, DECLARED " ")); at++) {
        const char *name = at + strlen(DECLARED);
        name += strspn(name, " ");
        if (*name == '(')
            name += strcspn(name, ")") + 1;
        name += strspn(name, BETWEEN);
        int length = (int)word_length(name);
        char *call = cc_format("\n\t%.*s, \n", length, name);
        if (strncmp(name, "_Z", 2) == 0 && strstr(text, call))
            (void)fprintf(stderr,
                          "gmux-cc: warning: kernels call %.*s, which this source does not define "
                          "for them: without -rdc=true they cannot be launched\n",
                          length, name);
    }
    free(text);
}
