/*
 * gmux, the command that people type. Each of its commands is a row of a table: --help, the manual
 * page and the completion of shells come from it.
 */
#ifndef GMUX_CLI_COMMAND_H
#define GMUX_CLI_COMMAND_H

#include "base/opttab.h"

/* What the words of a command are, for the completion of shells. */
enum cli_words {
    CLI_WORDS_NONE,
    CLI_WORDS_PROGRAM, /* a program and its arguments */
    CLI_WORDS_CLIENT,
    CLI_WORDS_LIMITS, /* a client, user or group, then limits */
};

struct cli_command {
    const char *name;
    const char *arguments;
    const char *help; /* one line, no full stop */
    enum cli_words words;
    const struct gm_option *options; /* NULL: none */
    /* `argv[0]` is the command's name. The exit status. */
    int (*run)(const struct cli_command *c, int argc, char **argv);
};

extern const struct cli_command cli_commands[]; /* ends with a row whose name is NULL */

/* One line on standard error, begun with the command's name. Returns the exit status of a failure:
 * "gmux" and 1, if cli_fail_as() has not said otherwise. */
int cli_fail(const char *fmt, ...) GM_PRINTF(1, 2);
/* `name` must last. */
void cli_fail_as(const char *name, int status);

/* Begins to read a command's options. */
void cli_options_init(const struct cli_command *c, struct gm_options *walk, int argc, char **argv);
/* The next option's id, GM_OPTIONS_END, or -1 after a line on standard error that names the
 * mistake. */
GM_MUST_CHECK int cli_options_next(struct gm_options *walk);

/* 0, or 1 after a line on standard error if there are words behind the options. */
GM_MUST_CHECK int cli_options_end(const struct gm_options *walk);

void cli_print_usage(const struct cli_command *c, FILE *out);

/* Prints the completion for a shell: bash, zsh or fish. The exit status. */
int cli_completion(const char *shell);

int cli_run(const struct cli_command *c, int argc, char **argv);
int cli_list(const struct cli_command *c, int argc, char **argv);
int cli_set(const struct cli_command *c, int argc, char **argv);
int cli_stop(const struct cli_command *c, int argc, char **argv);
int cli_doctor(const struct cli_command *c, int argc, char **argv);

extern const struct gm_option cli_run_options[];
extern const struct gm_option cli_list_options[];
extern const struct gm_option cli_stop_options[];

#endif
