/*
 * Reads files; and finds out which files a source includes, from the dependencies that clang writes
 * for make, and whether a word is in one of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cudart/cc/cc.h"

char *cc_read(const char *path, size_t *size)
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
    if (text)
        *size = (size_t)st.st_size;
    if (f)
        (void)fclose(f);
    return text;
}

bool cc_mentions(const char *path, const char *word)
{
    size_t size;
    char *text = cc_read(path, &size);
    bool found = text && strstr(text, word);
    free(text);
    return found;
}

bool cc_any_mentions(const char *path, const char *word)
{
    size_t size;
    char *text = cc_read(path, &size), *at = text ? strchr(text, ':') : NULL;
    bool found = false;
    if (!at)
        cc_fail("%s: %s", path, text ? "no dependencies" : strerror(errno));
    at++;
    while (*at && !found) {
        at += strspn(at, " \t\n");
        char *name = at, *to = at;
        /* A backslash stands before a space or a special character in a name, and at the end of a
         * line. */
        for (; *at && *at != ' ' && *at != '\n'; at++) {
            if ((*at == '\\' && (at[1] == ' ' || at[1] == '#')) || (*at == '$' && at[1] == '$'))
                at++;
            *to++ = *at;
        }
        if (*at)
            at++;
        *to = '\0';
        found = *name && strcmp(name, "\\") != 0 && cc_mentions(name, word);
    }
    free(text);
    return found;
}
