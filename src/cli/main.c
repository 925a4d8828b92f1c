/*
 * gmux: runs programs on a shared device, shows who uses it, sets their limits. A thin layer over
 * the daemon's UI (control/ui.h): whatever it does, gmux-control(1) can do, too.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"

const struct cli_command cli_commands[] = {
    { "run", "[OPTION]... [--] PROGRAM [ARGUMENT]...", "Run a program on the shared device",
      CLI_WORDS_PROGRAM, cli_run_options, cli_run },
    { "ls", "[OPTION]...", "Show the programs that share a device, and those that wait",
      CLI_WORDS_NONE, cli_list_options, cli_list },
    { "set", "CLIENT|USER|GROUP LIMIT=VALUE...",
      "Set share=, guarantee=, memory=, priority= and group= of processes, users and groups, at "
      "once",
      CLI_WORDS_LIMITS, NULL, cli_set },
    { "stop", "[OPTION] [CLIENT]", "Take the device away from a process, or end the daemon",
      CLI_WORDS_CLIENT, cli_stop_options, cli_stop },
    { "doctor", "[--] [PROGRAM]", "Say what a program would get here, and what is wrong",
      CLI_WORDS_PROGRAM, NULL, cli_doctor },
    { NULL, NULL, NULL, 0, NULL, NULL },
};

static const char *command_name = "gmux";

int cli_fail(const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s: ", command_name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return 1;
}

static void print_usage(const struct cli_command *c, FILE *out)
{
    fprintf(out, "Usage: gmux %s %s\n%s.\n", c->name, c->arguments, c->help);
    if (c->options) {
        fputs("\nOptions:\n", out);
        gm_options_print_help(c->options, out);
    }
}

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
        print_usage(current, stdout);
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

static const struct cli_command *find_command(const char *name)
{
    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

/* What is asked of the program itself, not of a command. */
static bool is_word(const char *word, const char *letter, const char *name)
{
    return strcmp(word, letter) == 0 || strcmp(word, name) == 0 || strcmp(word, name + 2) == 0;
}

/* What nobody has got is no success; who closes a pipe early knows that he did. */
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
            print_usage(c, stdout);
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
    command_name = prefix;
    return finish_output(c->run(c, argc - 1, argv + 1));
}
