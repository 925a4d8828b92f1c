/*
 * Cutting a command line into words. Blanks separate; there is no quoting, as in NVIDIA's control
 * program.
 */
#include <string.h>

#include "control/request.h"

bool ctl_words_parse(struct ctl_words *w, const char *line)
{
    size_t n = strlen(line);
    if (n > CTL_LINE_MAX)
        return false;
    memcpy(w->storage, line, n + 1);
    w->count = 0;
    char *rest = w->storage;
    char *word;
    while (w->count < CTL_WORDS_MAX && (word = strtok_r(rest, " \t\r\n\v\f", &rest)))
        w->word[w->count++] = word;
    return true;
}

const char *ctl_words_at(const struct ctl_words *w, unsigned i)
{
    return i < w->count ? w->word[i] : "";
}

const char *ctl_words_after(const struct ctl_words *w, const char *name)
{
    for (unsigned i = 1; i < w->count; i++)
        if (strcmp(w->word[i], name) == 0)
            return ctl_words_at(w, i + 1);
    return NULL;
}

bool ctl_words_have(const struct ctl_words *w, const char *name)
{
    return ctl_words_after(w, name) != NULL;
}
