/*
 * gmux-server: started by gmux-control with a socket to it, or by a client library that found no daemon, with the
 * client's own socket; not meant to be started by hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "server/server.h"

#define DEFAULT_DEVICE "soft"

static struct gm_log_topic topic = GM_LOG_TOPIC("server");

static int usage(FILE *out, int status)
{
    fputs("usage: gmux-server --control FD [--device NAME]\n"
          "       gmux-server --private FD [--device NAME]\n"
          "       gmux-server -v\n"
          "Started by gmux-control, or by a program's CUDA library where no daemon runs.\n"
          "NAME: device back end; default $GMUX_DEVICE, else " DEFAULT_DEVICE ".\n",
          out);
    return status;
}

/* The parent ends at once, the child lives for the client. 0 in the child, or -errno. */
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
    if (!secure_getenv("GMUX_LOG")) /* nobody wants to hear of us */
        dup2(null, STDERR_FILENO);
    return 0;
}

/* Every session costs descriptors. */
static void raise_descriptor_limit(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int serve(int control, int single, const char *device)
{
    static struct srv_server server;
    int fd = control >= 0 ? control : single;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        gm_error(&topic, "descriptor %d: %s", fd, strerror(errno));
        return 1;
    }
    int r = control >= 0 ? 0 : become_daemon();
    raise_descriptor_limit();
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
    static const struct option options[] = {
        { "control", required_argument, NULL, 'c' }, { "private", required_argument, NULL, 'p' },
        { "device", required_argument, NULL, 'd' },  { "version", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },          { 0 },
    };
    const char *device = secure_getenv("GMUX_DEVICE");
    int control = -1;
    int single = -1;
    uint64_t fd;
    int c;

    gm_log_init("gmux-server", GM_LOG_WARN);
    while ((c = getopt_long(argc, argv, "vh", options, NULL)) != -1) {
        switch (c) {
        case 'c':
        case 'p':
            if (!gm_parse_u64(optarg, INT32_MAX, &fd))
                return usage(stderr, 2);
            *(c == 'c' ? &control : &single) = (int)fd;
            break;
        case 'd':
            device = optarg;
            break;
        case 'v':
            puts("gmux-server " GMUX_VERSION);
            return 0;
        case 'h':
            return usage(stdout, 0);
        default:
            return usage(stderr, 2);
        }
    }
    if (optind != argc || (control >= 0) == (single >= 0))
        return usage(stderr, 2);
    return serve(control, single, device && *device ? device : DEFAULT_DEVICE);
}
