/*
 * gmux-check: runs a program on a software device of its own, with the checker on, and shows what
 * that found. The report comes through a file, because the program may do anything with its own
 * descriptors, and may consist of many processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/opttab.h"
#include "base/parse.h"
#include "cli/command.h"
#include "cli/program.h"

#define LINE_MARK      "========= "
#define STATUS_FOUND   1
#define STATUS_UNUSED  2   /* nothing was checked */
#define STATUS_OURS    125 /* gmux-check itself failed; env and timeout use this number, too */
#define STATUS_MISSING 127
#define STATUS_DENIED  126
#define STATUS_SIGNAL  128

enum { CHECKS = 1, LOG_FILE, STATUS, HELP, VERSION };

static const struct gm_option options[] = {
    { .id = CHECKS,
      .letter = 'c',
      .name = "checks",
      .argument = "CHECKS",
      .help =
          "What to look for: memory, race, uninit, with commas; all unless this says otherwise" },
    { .id = LOG_FILE,
      .letter = 'l',
      .name = "log",
      .argument = "FILE",
      .help = "Write the report to FILE instead of standard error" },
    { .id = STATUS,
      .letter = 'e',
      .name = "error-exitcode",
      .argument = "NUMBER",
      .help = "The exit status if anything was found, 1 unless this says otherwise" },
    { .id = HELP, .letter = 'h', .name = "help", .help = "Say this, and end" },
    { .id = VERSION, .name = "version", .help = "Say the version, and end" },
    { .name = NULL },
};

struct settings {
    const char *checks;
    const char *log;
    int status;
};

static pid_t child;
static volatile sig_atomic_t child_lives;

static void print_help(FILE *out)
{
    fputs("Usage: gmux-check [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
          "Run a CUDA program on a software device, and find its kernels' mistakes in the use of "
          "memory.\n\nOptions:\n",
          out);
    gm_options_print_help(options, out);
    fputs("\nSee gmux-check(1).\n", out);
}

static bool good_checks(const char *text)
{
    static const char *const words[] = { "memory", "race", "uninit" };
    for (;;) {
        size_t length = strcspn(text, ","), k = 0;
        while (k < GM_ARRAY_LEN(words) &&
               (strlen(words[k]) != length || memcmp(words[k], text, length) != 0))
            k++;
        if (k == GM_ARRAY_LEN(words))
            return false;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}

/* Applies an option. Returns 0 to go on, else the exit status plus one. */
static int apply(struct settings *s, int id, const char *argument)
{
    uint64_t number;
    switch (id) {
    case CHECKS:
        if (!good_checks(argument))
            return cli_fail("%s: checks are memory, race and uninit, with commas", argument) + 1;
        s->checks = argument;
        return 0;
    case LOG_FILE:
        s->log = argument;
        return 0;
    case STATUS:
        if (!gm_parse_u64(argument, 255, &number) || number == 0)
            return cli_fail("%s is no exit status from 1 to 255", argument) + 1;
        s->status = (int)number;
        return 0;
    case VERSION:
        printf("gmux-check %s\n", GMUX_VERSION);
        return 1;
    default:
        print_help(stdout);
        return 1;
    }
}

/* Prepares the program's environment: our library comes first, the checker is on, and there is no
 * daemon. */
static int set_environment(const struct settings *s, const char *report)
{
    GM_AUTO_FREE char *folder = cli_library_folder();
    GM_AUTO_FREE char *path = NULL;
    const char *old = getenv("LD_LIBRARY_PATH");
    if (!folder)
        return cli_fail("our libcuda.so.1 is not installed where gmux-check is");
    if (asprintf(&path, "%s%s%s", folder, old && *old ? ":" : "", old ? old : "") < 0)
        return cli_fail("out of memory");
    if (setenv("LD_LIBRARY_PATH", path, 1) != 0 || setenv("GMUX_CHECK", s->checks, 1) != 0 ||
        setenv("GMUX_CHECK_LOG", report, 1) != 0 || unsetenv("GMUX_REQUIRE") != 0)
        return cli_fail("out of memory");
    return 0;
}

static void pass_on(int signal)
{
    if (child_lives)
        (void)kill(child, signal);
}

/* Runs the program. An interrupt from the terminal reaches the program by itself, and its report is
 * still wanted. */
static int run(char **argv)
{
    int status;
    const struct sigaction pass = { .sa_handler = pass_on, .sa_flags = SA_RESTART },
                           ignore = { .sa_handler = SIG_IGN };
    child = fork();
    if (child < 0)
        return cli_fail("fork: %s", strerror(errno));
    if (child == 0) {
        execvp(argv[0], argv);
        int error = errno;
        cli_fail("%s: %s", argv[0], strerror(error));
        _exit(error == ENOENT ? STATUS_MISSING : STATUS_DENIED);
    }
    child_lives = 1;
    (void)sigaction(SIGTERM, &pass, NULL);
    (void)sigaction(SIGHUP, &pass, NULL);
    (void)sigaction(SIGINT, &ignore, NULL);
    (void)sigaction(SIGQUIT, &ignore, NULL);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return cli_fail("waitpid: %s", strerror(errno));
    child_lives = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_SIGNAL + WTERMSIG(status);
}

struct counts {
    unsigned long found;    /* headings of findings */
    unsigned long programs; /* programs that were checked */
};

/* Copies the report, and counts what it lists. */
static struct counts show(FILE *from, FILE *to)
{
    struct counts n = { 0 };
    GM_AUTO_FREE char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, from) > 0) {
        fputs(line, to);
        const char *text =
            strncmp(line, LINE_MARK, strlen(LINE_MARK)) == 0 ? line + strlen(LINE_MARK) : "";
        if (strncmp(text, "GMUX-CHECK ", strlen("GMUX-CHECK ")) == 0)
            n.programs++;
        else if (strncmp(text, "Invalid ", 8) == 0 || strncmp(text, "Uninitialized ", 14) == 0 ||
                 strncmp(text, "Race ", 5) == 0 || strncmp(text, "Barrier ", 8) == 0)
            n.found++;
    }
    return n;
}

static int finish(const struct settings *s, const char *report, int status)
{
    FILE *to = s->log ? fopen(s->log, "we") : stderr, *from = fopen(report, "re");
    struct counts n = { 0 };
    if (!to)
        return cli_fail("%s: %s", s->log, strerror(errno));
    if (from) {
        n = show(from, to);
        fclose(from);
    }
    if (to != stderr && fclose(to) != 0)
        return cli_fail("%s: %s", s->log, strerror(errno));
    if (n.found) {
        cli_fail("%lu place%s with an error", n.found, n.found == 1 ? "" : "s");
        return s->status;
    }
    if (n.programs || status != 0)
        return status;
    cli_fail("the program used no device through gmux, so nothing was checked (is its CUDA runtime "
             "linked statically?)");
    return STATUS_UNUSED;
}

int main(int argc, char **argv)
{
    struct settings s = { .checks = "memory,race,uninit", .status = STATUS_FOUND };
    struct gm_options walk;
    int id;
    cli_fail_as("gmux-check", STATUS_OURS);
    if (argc > 1 && strcmp(argv[1], "--dump-options") == 0) {
        gm_options_print_scdoc(options, stdout);
        return 0;
    }
    gm_options_init(&walk, options, argc, argv);
    while ((id = gm_options_next(&walk)) > 0) {
        int end = apply(&s, id, walk.argument);
        if (end)
            return end - 1;
    }
    if (id < 0)
        return cli_fail("option %s %s", walk.word,
                        id == GM_OPTIONS_UNKNOWN       ? "is unknown"
                        : id == GM_OPTIONS_NO_ARGUMENT ? "needs an argument"
                                                       : "takes no argument");
    if (walk.index >= argc)
        return cli_fail("which program?");

    const char *folder = getenv("TMPDIR");
    GM_AUTO_FREE char *report = NULL;
    if (asprintf(&report, "%s/gmux-check-XXXXXX", folder && *folder ? folder : "/tmp") < 0)
        return cli_fail("out of memory");
    int fd = mkostemp(report, O_CLOEXEC);
    if (fd < 0)
        return cli_fail("%s: %s", report, strerror(errno));
    gm_close(fd);
    int status = set_environment(&s, report);
    status = status ? status : finish(&s, report, run(argv + walk.index));
    (void)unlink(report);
    return status;
}
