/*
 * Which files a source includes, as clang writes it down for make, and whether a word is in them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cudart/cc/cc.h"

/* The whole file, with a zero behind it, in memory that the caller frees; NULL if it cannot be
 * read.
 */
static char *read_text(const char *path)
{
    FILE *f = fopen(path, "re");
    struct stat st;
    char *text = NULL;
    if (f && fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode))
        text = calloc(1, (size_t)st.st_size + 1);
    if (text && fread(text, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        free(text);
        text = NULL;
    }
    if (f)
        (void)fclose(f);
    return text;
}

static bool mentions(const char *path, const char *word)
{
    char *text = read_text(path);
    bool found = text && strstr(text, word);
    free(text);
    return found;
}

bool cc_any_mentions(const char *path, const char *word)
{
    char *text = read_text(path), *at = text ? strchr(text, ':') : NULL;
    bool found = false;
    if (!at)
        cc_fail("%s: %s", path, text ? "no dependencies" : strerror(errno));
    at++;
    while (*at && !found) {
        at += strspn(at, " \t\n");
        char *name = at, *to = at;
        /* A backslash stands before a space or a mark within a name, and at the end of a line. */
        for (; *at && *at != ' ' && *at != '\n'; at++) {
            if ((*at == '\\' && (at[1] == ' ' || at[1] == '#')) || (*at == '$' && at[1] == '$'))
                at++;
            *to++ = *at;
        }
        if (*at)
            at++;
        *to = '\0';
        found = *name && strcmp(name, "\\") != 0 && mentions(name, word);
    }
    free(text);
    return found;
}
