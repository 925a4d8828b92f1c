/*
 * Cuts a command line into words. Blanks separate words, and there is no quoting, as in NVIDIA's
 * control program.
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

/* --- words of protocol 3: a module, a verb, and behind them options and plain words ------------
 */

#define BEHIND_VERB 2

static bool is_option(const char *word)
{
    return strncmp(word, "--", 2) == 0 || strchr(word, '=');
}

const char *ctl_words_plain(const struct ctl_words *w, unsigned i)
{
    for (unsigned n = BEHIND_VERB; n < w->count; n++)
        if (!is_option(w->word[n]) && i-- == 0)
            return w->word[n];
    return "";
}

unsigned ctl_words_plain_count(const struct ctl_words *w)
{
    unsigned count = 0;
    for (unsigned n = BEHIND_VERB; n < w->count; n++)
        count += !is_option(w->word[n]);
    return count;
}

const char *ctl_option_name(const char *word, size_t *size)
{
    const char *name = strncmp(word, "--", 2) == 0 ? word + 2 : word;
    *size = strcspn(name, "=");
    *size += name[*size] == '=';
    return is_option(word) ? name : NULL;
}

const char *ctl_words_option(const struct ctl_words *w, const char *name)
{
    const char *value = NULL;
    for (unsigned i = BEHIND_VERB; i < w->count; i++) {
        size_t n;
        const char *given = ctl_option_name(w->word[i], &n);
        if (given && n > 0 && strncmp(given, name, strlen(name)) == 0 &&
            n - (given[n - 1] == '=') == strlen(name))
            value = given + n;
    }
    return value;
}
