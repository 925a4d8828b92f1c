/*
 * Parses the options of a command, by the command's row in the table.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct gm_option no_options[] = { { .name = NULL } };
static const struct cli_command *current;

void cli_options_init(const struct cli_command *c, struct gm_options *walk, int argc, char **argv)
{
    current = c;
    gm_options_init(walk, c->options ? c->options : no_options, argc, argv);
}

int cli_options_next(struct gm_options *walk)
{
    int id = gm_options_next(walk);
    if (id >= 0)
        return id;
    if (id == GM_OPTIONS_UNKNOWN &&
        (strcmp(walk->word, "--help") == 0 || strcmp(walk->word, "-h") == 0)) {
        cli_print_usage(current, stdout);
        exit(0);
    }
    cli_fail("option %s %s", walk->word,
             id == GM_OPTIONS_UNKNOWN       ? "is unknown"
             : id == GM_OPTIONS_NO_ARGUMENT ? "needs an argument"
                                            : "takes no argument");
    return -1;
}

int cli_options_end(const struct gm_options *walk)
{
    return walk->index < walk->argc
               ? cli_fail("\"%s\" is one word too many", walk->argv[walk->index])
               : 0;
}

void cli_print_usage(const struct cli_command *c, FILE *out)
{
    fprintf(out, "Usage: gmux %s %s\n%s.\n", c->name, c->arguments, c->help);
    if (c->options) {
        fputs("\nOptions:\n", out);
        gm_options_print_help(c->options, out);
    }
}
