/*
 * gmux-server's main(). gmux-control starts it with a socket to itself; a client library that found
 * no daemon starts it with the client's own socket. It is not meant to be started by hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/opttab.h"
#include "base/parse.h"
#include "server/keeper.h"
#include "server/server.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("server");

enum {
    OPTION_CONTROL = 1,
    OPTION_PRIVATE,
    OPTION_DEVICE,
    OPTION_VERSION,
    OPTION_HELP,
    OPTION_DUMP_OPTIONS
};

static const struct gm_option options[] = {
    { .id = OPTION_CONTROL,
      .name = "control",
      .argument = "FD",
      .help =
          "Serve the clients that the control daemon at the other end of this socket hands over" },
    { .id = OPTION_PRIVATE,
      .name = "private",
      .argument = "FD",
      .help = "Serve the one client at the other end of this socket",
      .text = "The process goes to the background, and ends when the client does." },
    { .id = OPTION_DEVICE,
      .name = "device",
      .argument = "NAME",
      .help = "Device back end; default $GMUX_DEVICE, else cuda where NVIDIA's driver has a "
              "device, else soft" },
    { .id = OPTION_VERSION,
      .letter = 'v',
      .name = "version",
      .help = "Print the version and exit" },
    { .id = OPTION_HELP, .letter = 'h', .name = "help", .help = "Print this help and exit" },
    { .id = OPTION_DUMP_OPTIONS,
      .name = "dump-options",
      .help = "Print the options as source of the manual page",
      .hidden = true },
    { 0 },
};

static int usage(FILE *out, int status)
{
    fputs("Usage: gmux-server --control FD | --private FD [OPTION]...\n"
          "Started by gmux-control, or by a program's CUDA library where no daemon runs.\n\n",
          out);
    gm_options_print_help(options, out);
    return status;
}

/* The parent ends at once; the child lives as long as the client. 0 in the child, or -errno. */
static int become_daemon(void)
{
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0)
        _exit(0);
    if (setsid() < 0 || chdir("/") < 0)
        return -errno;
    GM_AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -errno;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    /* Nobody reads what a private server says. */
    if (!secure_getenv("GMUX_LOG"))
        dup2(null, STDERR_FILENO);
    return 0;
}

static int serve(int control, int single, const char *device)
{
    static struct srv_server server;
    int fd = control >= 0 ? control : single;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        gm_error(&topic, "descriptor %d: %s", fd, strerror(errno));
        return 1;
    }
    /* Programs of its user must not be able to take its link to the daemon, or speak for it. A
     * private server belongs to its program anyway. */
    if (control >= 0)
        (void)prctl(PR_SET_DUMPABLE, 0);
    int r = control >= 0 ? 0 : become_daemon();
    if (r == 0)
        r = srv_server_init(&server, device);
    if (r < 0) {
        gm_error(&topic, "cannot start: %s", strerror(-r));
        return 1;
    }
    return control >= 0 ? srv_server_run_control(&server, fd) : srv_server_run_private(&server, fd);
}

int main(int argc, char **argv)
{
    const char *device = secure_getenv("GMUX_DEVICE");
    struct gm_options walk;
    int control = -1;
    int single = -1;
    uint64_t fd;
    int id;

    gm_log_init("gmux-server", GM_LOG_WARN);
    gm_options_init(&walk, options, argc, argv);
    while ((id = gm_options_next(&walk)) != GM_OPTIONS_END) {
        switch (id) {
        case OPTION_CONTROL:
        case OPTION_PRIVATE:
            if (!gm_parse_u64(walk.argument, INT32_MAX, &fd))
                return usage(stderr, 2);
            *(id == OPTION_CONTROL ? &control : &single) = (int)fd;
            break;
        case OPTION_DEVICE:
            device = walk.argument;
            break;
        case OPTION_VERSION:
            puts("gmux-server " GMUX_VERSION);
            return 0;
        case OPTION_HELP:
            return usage(stdout, 0);
        case OPTION_DUMP_OPTIONS:
            gm_options_print_scdoc(options, stdout);
            return 0;
        default:
            return usage(stderr, 2);
        }
    }
    if (walk.index != argc || (control >= 0) == (single >= 0))
        return usage(stderr, 2);
    if (!device || !*device)
        device = srv_keeper_cuda_present() ? "cuda" : "soft";
    return serve(control, single, device);
}
