/*
 * Options of a program as a table: one row per option, which feeds the parser, --help, the manual
 * page, the completion of shells, the environment and the configuration file, so that they cannot
 * disagree. A table ends with a row whose name is NULL.
 *
 * The parser takes --name, --name=value, --name value, -x, -xyz, -xvalue, -x value and, as NVIDIA's
 * programs do, a whole long name behind one dash (-multiuser-server). Names are never abbreviated.
 * It stops at "--" and at the first word that is no option: what follows is a command.
 *
 * No global state; any thread.
 */
#ifndef GMUX_BASE_OPTTAB_H
#define GMUX_BASE_OPTTAB_H

#include <stdio.h>

#include "base/attr.h"

struct gm_option {
    int id;               /* what gm_options_next() returns; positive */
    char letter;          /* 0: none */
    const char *name;     /* without its dashes */
    const char *alias;    /* another long name, accepted and not shown; NULL: none */
    const char *argument; /* what the argument is called in texts; NULL: the option takes none */
    const char *values;   /* words that the argument may be, for completion; NULL: not a few */
    const char *help;     /* one line, no full stop */
    const char *text;     /* more about it for the manual page (scdoc); NULL: the line will do */
    bool hidden;          /* accepted, in neither text */
    /* An environment variable that says the same (an option without argument: "1"). Such an option
     * may stand in a configuration file as well, under its name. */
    const char *variable;
    bool is_path; /* its argument is one */
    /* What is wrong with such a text; NULL: nothing. No function: any text is good. */
    const char *(*check)(const char *text);
};

enum {
    GM_OPTIONS_END = 0,          /* `index` is at the first word that is no option */
    GM_OPTIONS_UNKNOWN = -1,     /* `word` is the culprit */
    GM_OPTIONS_NO_ARGUMENT = -2, /* `word` needs an argument and has none */
    GM_OPTIONS_NOT_WANTED = -3,  /* `word` has an argument and takes none */
};

struct gm_options {
    const struct gm_option *table;
    int argc;
    char **argv;
    int index;                   /* of the word to read next */
    const char *cluster;         /* rest of a word of letters */
    const char *argument;        /* of the option returned last */
    const struct gm_option *row; /* the same */
    const char *word;            /* as it was typed */
};

void gm_options_init(struct gm_options *o, const struct gm_option *table, int argc, char **argv);

/* The next option's id, GM_OPTIONS_END, or one of the errors above. */
GM_MUST_CHECK int gm_options_next(struct gm_options *o);

/* The row of that name; NULL. */
const struct gm_option *gm_option_find(const struct gm_option *table, const char *name);

/* Column text for --help. */
void gm_options_print_help(const struct gm_option *table, FILE *out);
/* Prints these rows as scdoc source, without a heading. */
void gm_options_print_scdoc(const struct gm_option *table, FILE *out);

#endif
