/*
 * gmux-control, also called nvidia-cuda-mps-control. With -d or -f it is the control daemon, else a
 * UI that sends commands to the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "control/apply.h"
#include "control/command.h"
#include "control/daemon.h"
#include "control/module.h"
#include "control/options.h"
#include "control/restart.h"
#include "control/service.h"
#include "control/ui.h"

static void print_help(FILE *out)
{
    fputs("Usage: gmux-control -d | -f [OPTION]...   start the control daemon\n"
          "       gmux-control [COMMAND]             send it a command, or those on standard "
          "input\n\n"
          "Options:\n",
          out);
    gm_options_print_help(ctl_options_table, out);
    fputs("\nCommands:\n", out);
    for (const struct ctl_command *c = ctl_commands; c->name; c++) {
        char left[64];
        snprintf(left, sizeof(left), "%s %s", c->name, c->arguments);
        fprintf(out, "  %-52s %s\n", left, c->help);
    }
    fputs("\nWith --protocol 3 also:\n", out);
    for (const struct ctl_module_command *c = ctl_module_commands; c->module; c++)
        if (c->exec)
            fprintf(out, "  %s %s %s\n", c->module, c->verb, c->arguments);
    fputs("\nEnvironment: CUDA_MPS_PIPE_DIRECTORY (default /tmp/nvidia-mps), "
          "CUDA_MPS_LOG_DIRECTORY (default\n"
          "/var/log/nvidia-mps). See gmux-control(1).\n",
          out);
}

static void print_commands_scdoc(void)
{
    for (const struct ctl_command *c = ctl_commands; c->name; c++)
        printf("*%s* %s\n\t%s.%s\n\n", c->name, c->arguments, c->help,
               c->flags & CTL_CHANGES ? " Only for the daemon's user and root."
               : c->flags & CTL_OWN   ? " Only for the daemon's user, root, and the client's user."
                                      : "");
}

static void print_modules_scdoc(void)
{
    for (const struct ctl_module_command *c = ctl_module_commands; c->module; c++)
        printf("*%s%s%s* %s\n\t%s%s.%s\n\n", c->module, *c->verb ? " " : "", c->verb, c->arguments,
               c->exec ? "" : "Refused: ", c->help,
               c->flags & CTL_CHANGES ? " Only for the daemon's user and root."
               : c->flags & CTL_OWN   ? " Only for the daemon's user, root, and the client's user."
                                      : "");
}

/* Refuses an option that does not exist. Under NVIDIA's name, text and exit status are NVIDIA's. */
static int refuse(const char *argv0, const char *word)
{
    if (ctl_is_classic_name(argv0)) {
        printf("Unrecognized option %s\n", word);
        print_help(stdout);
        return 0;
    }
    fprintf(stderr, "gmux-control: unrecognized option %s; --help lists them\n", word);
    return 1;
}

/* Closes all descriptors that the daemon got from its caller, so that it neither keeps nor passes
 * on a lock or the end of a pipe. */
static void drop_descriptors(bool background)
{
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, background ? 0 : CLOSE_RANGE_CLOEXEC);
}

/* Opens /dev/null for each standard descriptor that is closed. Otherwise a socket would get its
 * number, and would be written to as a terminal. */
static void fill_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
    gm_close(fd);
}

/* Starts the daemon in a child process. The parent waits until the child listens, or has said why
 * it does not. */
static int run_in_background(const struct ctl_options *options, char **argv)
{
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) < 0) {
        fprintf(stderr, "gmux-control: cannot start: %s\n", strerror(errno));
        return 1;
    }
    pid_t pid = fork();
    if (pid < 0) {
        fprintf(stderr, "gmux-control: cannot start: %s\n", strerror(errno));
        return 1;
    }
    if (pid == 0) {
        gm_close(ready[0]);
        setsid();
        return ctl_daemon_run(options, true, ready[1], argv);
    }
    char byte;
    ssize_t n;
    gm_close(ready[1]);
    do
        n = read(ready[0], &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1)
        return 0;
    int status;
    if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
        fprintf(stderr, "gmux-control: killed at start: %s\n", strsignal(WTERMSIG(status)));
    return 1;
}

/* Sets the user as whom servers run. Returns false after it has printed one line that says what is
 * wrong. */
static bool set_server_user(struct ctl_options *options, const char *name)
{
    uint64_t number;
    const struct passwd *pw = getpwnam(name);
    const char *why = NULL;
    if (!options->multiuser)
        why = "is for the server of all users: -M is missing";
    else if (!pw && !gm_parse_u64(name, CTL_UID_MAX, &number))
        why = "there is no such user";
    else
        options->server_uid = pw ? pw->pw_uid : (uid_t)number;
    if (!why && geteuid() != 0 && options->server_uid != geteuid())
        why = "only root can start a server as another user";
    options->has_server_user = !why;
    if (why)
        fprintf(stderr, "gmux-control: --server-user %s: %s\n", name, why);
    return !why;
}

static bool is_on(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

/* Sets the environment variable of an option that has one. A daemon that starts its own program
 * again finds it there. Paths are made absolute. Returns false after it has printed one line that
 * says what is wrong. */
static bool set_variable(const struct gm_option *o, const char *argument, bool restarted)
{
    const char *why = argument && o->check ? o->check(argument) : NULL;
    GM_AUTO_FREE char *here = o->is_path && argument && *argument != '/' ? getcwd(NULL, 0) : NULL;
    GM_AUTO_FREE char *path = NULL;
    if (here && asprintf(&path, "%s/%s", here, argument) < 0)
        path = NULL;
    if (why)
        fprintf(stderr, "gmux-control: --%s %s: %s\n", o->name, argument, why);
    else
        setenv(o->variable,
               path       ? path
               : argument ? argument
                          : "1",
               /* NVIDIA's daemon, too, lets the variable win over the argument */
               !restarted && o->id != CTL_OPTION_PROTOCOL);
    return !why;
}

static bool speaks_three(void)
{
    const char *protocol = getenv("CUDA_MPS_PROTOCOL_VERSION");
    return protocol && strcmp(protocol, "3") == 0;
}

/* Merges the command line, the environment and the configuration file, in this order: each sets
 * only what those before it left open. Returns false after it has printed one line that says what
 * is wrong. */
static bool set_options(struct ctl_options *options)
{
    char why[PATH_MAX + 512];
    const char *file = getenv("GMUX_CONFIG"), *server_user;
    if (file && *file && ctl_config_read(&options->config, file, why, sizeof(why)) < 0) {
        fprintf(stderr, "gmux-control: %s\n", why);
        return false;
    }
    options->multiuser = is_on("GMUX_MULTIUSER_SERVER");
    options->exclusive_user = is_on("GMUX_EXCLUSIVE_USER");
    options->classic_limits = is_on("GMUX_CLASSIC_LIMITS");
    options->partitions = is_on("GMUX_STATIC_PARTITIONING");
    const char *protocol = getenv("CUDA_MPS_PROTOCOL_VERSION");
    const char *problem = protocol && *protocol ? ctl_protocol_check(protocol) : NULL;
    if (problem) {
        fprintf(stderr, "gmux-control: CUDA_MPS_PROTOCOL_VERSION=%s: %s\n", protocol, problem);
        return false;
    }
    options->modules = speaks_three();
    const char *apply = getenv("GMUX_APPLY");
    if (apply && *apply && !options->modules) {
        fprintf(stderr, "gmux-control: --apply %s: is for protocol 3: -p 3 is missing\n", apply);
        return false;
    }
    if (apply && *apply && ctl_apply_read(&options->config, apply, why, sizeof(why)) < 0) {
        fprintf(stderr, "gmux-control: %s\n", why);
        return false;
    }
    server_user = getenv("GMUX_SERVER_USER");
    return !(server_user && *server_user) || set_server_user(options, server_user);
}

static int complain(const char *problem)
{
    fprintf(stderr, "gmux-control: %s\n", problem);
    return 1;
}

static void options_finish(struct ctl_options *options)
{
    ctl_config_finish(&options->config);
}

int main(int argc, char **argv)
{
    GM_CLEANUP(options_finish)
    struct ctl_options options = { 0 };
    struct gm_options walk;
    char word_quit[] = "quit";
    bool background = false, foreground = false, check = false, quit = false, ready = false;
    int id;

    fill_standard_descriptors();
    ctl_restart_read(&options);
    gm_log_init("gmux-control", GM_LOG_WARN);
    gm_options_init(&walk, ctl_options_table, argc, argv);
    while ((id = gm_options_next(&walk)) != GM_OPTIONS_END) {
        switch (id) {
        case CTL_OPTION_DAEMON:
            background = true;
            break;
        case CTL_OPTION_FOREGROUND:
            foreground = true;
            break;
        case CTL_OPTION_CHECK:
            check = true;
            break;
        case CTL_OPTION_READY_DEVICES:
            ready = true;
            break;
        case CTL_OPTION_QUIT:
            quit = true;
            break;
        case CTL_OPTION_VERSION:
            printf("CUDA MPS Control binary version: %d\ngmux %s\n", CTL_BINARY_VERSION,
                   GMUX_VERSION);
            return 0;
        case CTL_OPTION_HELP:
            print_help(stdout);
            return 0;
        case CTL_OPTION_DUMP_OPTIONS:
            gm_options_print_scdoc(ctl_options_table, stdout);
            return 0;
        case CTL_OPTION_DUMP_COMMANDS:
            print_commands_scdoc();
            return 0;
        case CTL_OPTION_DUMP_MODULES:
            print_modules_scdoc();
            return 0;
        default:
            if (id > 0 && walk.row->variable) {
                if (!set_variable(walk.row, walk.argument, options.restarted))
                    return 1;
                break;
            }
            return refuse(argv[0], walk.word);
        }
    }
    if (quit && (foreground || background || check))
        return complain("--quit and an option that starts a daemon exclude each other");
    if ((foreground || background || check) && !set_options(&options))
        return 1;
    if (check)
        return 0;
    if (foreground && !options.restarted && !ctl_service_sockets(&options.inherited))
        return 1;
    if ((foreground || background) && !options.restarted)
        drop_descriptors(!foreground);
    if (foreground)
        return ctl_daemon_run(&options, false, -1, argv);
    /* The daemon that restarted was in the background already. */
    if (background && options.restarted)
        return ctl_daemon_run(&options, true, -1, argv);
    if (background)
        return run_in_background(&options, argv);
    /* In protocol 3, -q alone means --quit. */
    if (quit || (ready && speaks_three()))
        return ctl_ui_run(1, (char *[]) { word_quit });
    return ctl_ui_run(argc - walk.index, argv + walk.index);
}
