/*
 * Starts a server of our own for a process that has neither a daemon nor a driver. The two are
 * connected by a socket pair, and the server ends when our end closes, however this process ends.
 *
 * The program in which this library lives must not notice a child: no SIGCHLD for a handler that
 * reaps unknown processes, no zombie, nothing for its waitpid(-1). So the server's parent is init.
 * A helper process that shares our memory spawns the server and exits. It is made by clone()
 * without an exit signal, so that it sends no signal, and only a wait for its id with __WCLONE
 * finds it.
 */
#include "client/session/attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "transport/sock.h"

#define SERVER_FD    3
#define HELPER_STACK (256u << 10)

static struct gm_log_topic topic = GM_LOG_TOPIC("attach");

struct spawn_order {
    const char *path;
    char *const *argv;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
    int error;
};

static int helper_main(void *arg)
{
    struct spawn_order *o = arg;
    pid_t pid;
    o->error = posix_spawn(&pid, o->path, o->actions, o->attributes, o->argv, environ);
    return 0;
}

/* Runs the order in a helper process that leaves no trace. Returns 0 or -errno. */
static int spawn_detached(struct spawn_order *o)
{
    sigset_t all, before;
    uint8_t *stack = mmap(NULL, HELPER_STACK, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -errno;
    /* No signal handler of the program may run in the helper, whose memory is the program's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t helper = clone(helper_main, stack + HELPER_STACK, CLONE_VM | CLONE_VFORK, o);
    int result = helper < 0 ? -errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (helper > 0) {
        while (waitpid(helper, NULL, __WCLONE) < 0 && errno == EINTR)
            ;
        result = -o->error;
    }
    munmap(stack, HELPER_STACK);
    return result;
}

static bool try_server(char *out, size_t size, const char *directory, const char *below)
{
    int n = snprintf(out, size, "%s/%sgmux-server", directory, below);
    return n > 0 && (size_t)n < size && access(out, X_OK) == 0;
}

/* Finds the server that belongs to this library: the environment names it, or it lies beside us in
 * a build tree, or it is installed. */
static bool find_server(char *out, size_t size)
{
    const char *named = secure_getenv("GMUX_LIBEXECDIR");
    if (named && *named)
        return try_server(out, size, named, "");
    Dl_info info;
    char own[PATH_MAX];
    if (dladdr((const void *)&topic, &info) && realpath(info.dli_fname, own)) {
        char *slash = strrchr(own, '/');
        if (slash) {
            *slash = '\0';
            if (try_server(out, size, own, "../server/") ||
                try_server(out, size, own, "../libexec/gmux/") ||
                try_server(out, size, own, "../../libexec/gmux/") ||
                try_server(out, size, own, "../../../libexec/gmux/"))
                return true;
        }
    }
    return try_server(out, size, GMUX_LIBEXECDIR, "");
}

static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int fd)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETSID);
    r = r ? r : posix_spawnattr_setsigmask(attributes, &none);
    r = r ? r : posix_spawnattr_setsigdefault(attributes, &all);
    /* The socket comes first, because descriptor 3 may be the socket or one of the program's. No
     * other descriptor of the program's stays open in the server. */
    r = r ? r : posix_spawn_file_actions_adddup2(actions, fd, SERVER_FD);
    r = r ? r : posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    r = r ? r : posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!secure_getenv("GMUX_LOG"))
        r = r ? r
              : posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    r = r ? r : posix_spawn_file_actions_addclosefrom_np(actions, SERVER_FD + 1);
    return -r;
}

int rt_private_start(char *why, size_t why_size)
{
    char path[PATH_MAX];
    char name[] = "gmux-server", option[] = "--private", number[] = "3",
         device_option[] = "--device";
    const char *wanted = secure_getenv("GMUX_DEVICE");
    GM_AUTO_FREE char *device = strdup(wanted && *wanted ? wanted : "soft");
    char *const argv[] = { name, option, number, device_option, device, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int fds[2];

    if (!device)
        return -ENOMEM;
    if (!find_server(path, sizeof(path))) {
        (void)snprintf(why, why_size,
                       "gmux-server is not installed (looked in %s, and beside the library)",
                       GMUX_LIBEXECDIR);
        return -ENOENT;
    }
    int r = tp_pair(fds);
    if (r < 0) {
        (void)snprintf(why, why_size, "socketpair: %s", strerror(-r));
        return r;
    }
    /* If the program has closed its standard descriptors, the server's end may have one of their
     * numbers, which the redirections below would overwrite. So it gets another number. */
    int theirs = fcntl(fds[1], F_DUPFD_CLOEXEC, SERVER_FD + 1);
    gm_close(fds[1]);
    r = theirs < 0 ? -errno : 0;
    if (r == 0) {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
        r = prepare(&actions, &attributes, theirs);
        struct spawn_order order = {
            .path = path, .argv = argv, .actions = &actions, .attributes = &attributes
        };
        r = r ? r : spawn_detached(&order);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        gm_close(theirs);
    }
    if (r < 0) {
        gm_close(fds[0]);
        (void)snprintf(why, why_size, "%s: %s", path, strerror(-r));
        return r;
    }
    return fds[0];
}
