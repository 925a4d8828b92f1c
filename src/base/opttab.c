/*
 * Parses options, and makes --help and the manual page from the same table.
 */
#include "base/opttab.h"

#include <string.h>

void gm_options_init(struct gm_options *o, const struct gm_option *table, int argc, char **argv)
{
    *o = (struct gm_options) { .table = table, .argc = argc, .argv = argv, .index = 1 };
}

static const struct gm_option *by_letter(const struct gm_option *table, char letter)
{
    for (const struct gm_option *r = table; r->name; r++)
        if (r->letter == letter)
            return r;
    return NULL;
}

static bool is_name(const char *name, const char *s, size_t n)
{
    return name && strlen(name) == n && memcmp(name, s, n) == 0;
}

static const struct gm_option *by_name(const struct gm_option *table, const char *s, size_t n)
{
    for (const struct gm_option *r = table; r->name; r++)
        if (is_name(r->name, s, n) || is_name(r->alias, s, n))
            return r;
    return NULL;
}

const struct gm_option *gm_option_find(const struct gm_option *table, const char *name)
{
    return by_name(table, name, strlen(name));
}

/* Takes the next word as the option's argument. */
static int take_word(struct gm_options *o, const struct gm_option *r)
{
    if (o->index >= o->argc)
        return GM_OPTIONS_NO_ARGUMENT;
    o->argument = o->argv[o->index++];
    return r->id;
}

static int next_letter(struct gm_options *o)
{
    const struct gm_option *r = by_letter(o->table, *o->cluster++);
    o->row = r;
    const char *rest = o->cluster;
    if (*rest == '\0')
        o->cluster = NULL;
    if (!r) {
        o->cluster = NULL;
        return GM_OPTIONS_UNKNOWN;
    }
    if (!r->argument)
        return r->id;
    if (*rest == '\0')
        return take_word(o, r);
    o->argument = rest;
    o->cluster = NULL;
    return r->id;
}

int gm_options_next(struct gm_options *o)
{
    o->argument = NULL;
    if (o->cluster)
        return next_letter(o);
    if (o->index >= o->argc)
        return GM_OPTIONS_END;

    const char *word = o->argv[o->index];
    if (word[0] != '-' || word[1] == '\0')
        return GM_OPTIONS_END;
    o->index++;
    if (strcmp(word, "--") == 0)
        return GM_OPTIONS_END;
    o->word = word;

    bool dashes = word[1] == '-';
    const char *name = word + (dashes ? 2 : 1);
    size_t n = strcspn(name, "=");
    const struct gm_option *r = dashes || n > 1 ? by_name(o->table, name, n) : NULL;
    o->row = r;
    if (!r) {
        if (dashes)
            return GM_OPTIONS_UNKNOWN;
        o->cluster = name;
        return next_letter(o);
    }
    if (name[n] == '=') {
        if (!r->argument)
            return GM_OPTIONS_NOT_WANTED;
        o->argument = name + n + 1;
        return r->id;
    }
    return r->argument ? take_word(o, r) : r->id;
}

void gm_options_print_help(const struct gm_option *table, FILE *out)
{
    for (const struct gm_option *r = table; r->name; r++) {
        if (r->hidden)
            continue;
        char left[64];
        int n = 0;
        if (r->letter)
            n = snprintf(left, sizeof(left), "-%c, ", r->letter);
        else
            n = snprintf(left, sizeof(left), "    ");
        snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", r->name, r->argument ? " " : "",
                 r->argument ? r->argument : "");
        fprintf(out, "  %-28s %s\n", left, r->help);
    }
}

void gm_options_print_scdoc(const struct gm_option *table, FILE *out)
{
    for (const struct gm_option *r = table; r->name; r++) {
        if (r->hidden)
            continue;
        fputs("*", out);
        if (r->letter)
            fprintf(out, "-%c*, *", r->letter);
        fprintf(out, "--%s*", r->name);
        if (r->argument)
            fprintf(out, " _%s_", r->argument);
        fprintf(out, "\n\t%s.", r->help);
        if (r->text)
            fprintf(out, " %s", r->text);
        if (r->variable)
            fprintf(out, " Environment: *%s*.", r->variable);
        fputs("\n\n", out);
    }
}
