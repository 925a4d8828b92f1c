/*
 * gmux: runs programs on a shared device, shows who uses it, and sets limits. It is a thin layer
 * over the daemon's UI (control/ui.h): gmux-control(1) can do everything that it does.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"

static void print_help(FILE *out)
{
    fputs("Usage: gmux COMMAND [OPTION]... [WORD]...\n\nCommands:\n", out);
    for (const struct cli_command *c = cli_commands; c->name; c++)
        fprintf(out, "  %-8s %s\n", c->name, c->help);
    fputs("\n`gmux COMMAND --help` says more. The daemon is the one in CUDA_MPS_PIPE_DIRECTORY, "
          "else the machine's in\n"
          "/tmp/nvidia-mps, else one of your own, which `gmux run` starts. See gmux(1).\n",
          out);
}

static void print_commands_scdoc(void)
{
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        printf("*gmux %s* %s\n\t%s.\n\n", c->name, c->arguments, c->help);
        if (c->options)
            gm_options_print_scdoc(c->options, stdout);
    }
}

static const struct cli_command *find_command(const char *name)
{
    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

/* Whether the word asks about the program itself instead of naming a command. */
static bool is_word(const char *word, const char *letter, const char *name)
{
    return strcmp(word, letter) == 0 || strcmp(word, name) == 0 || strcmp(word, name + 2) == 0;
}

/* Returns the exit status, which tells of output that could not be written. A program that closes
 * the pipe early does so on purpose. */
static int finish_output(int status)
{
    const bool failed = ferror(stdout);
    const int error = fflush(stdout) == 0 ? 0 : errno;
    if (!failed && !error)
        return status;
    return error == EPIPE ? 1
                          : cli_fail("cannot write the output: %s", strerror(error ? error : EIO));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    static char prefix[32];
    signal(SIGPIPE, SIG_IGN);
    gm_log_init("gmux", GM_LOG_WARN);
    if (is_word(name, "-V", "--version")) {
        printf("gmux %s\n", GMUX_VERSION);
        return 0;
    }
    if (strcmp(name, "--dump-commands") == 0) {
        print_commands_scdoc();
        return 0;
    }
    if (strcmp(name, "--dump-completion") == 0)
        return cli_completion(argc > 2 ? argv[2] : "");
    const struct cli_command *c;
    if (is_word(name, "-h", "--help")) {
        c = argc > 2 ? find_command(argv[2]) : NULL;
        if (c) {
            cli_print_usage(c, stdout);
        } else if (argc > 2) {
            return cli_fail("there is no command \"%s\"; `gmux --help` lists them", argv[2]);
        } else {
            print_help(stdout);
        }
        return argc > 1 ? 0 : 1;
    }
    c = find_command(name);
    if (!c)
        return cli_fail("there is no command \"%s\"; `gmux --help` lists them", name);
    snprintf(prefix, sizeof(prefix), "gmux %s", name);
    cli_fail_as(prefix, 1);
    return finish_output(c->run(c, argc - 1, argv + 1));
}
