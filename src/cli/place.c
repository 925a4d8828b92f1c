/*
 * Finds the daemon that serves the user of a command, and starts one if there is none.
 */
#include "cli/place.h"

#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "control/place.h"
#include "control/ui.h"
#include "transport/sock.h"
#include "transport/trust.h"

#define PIPE_VARIABLE "CUDA_MPS_PIPE_DIRECTORY"
#define LOG_VARIABLE  "CUDA_MPS_LOG_DIRECTORY"

#define OTHERS_S    5 /* seconds in which a daemon that somebody else is starting has to listen */
#define WORDS_BYTES 4096

static bool is_own_place; /* the place that is used if nobody named one */

/* Connects to the daemon that listens in the place that the environment names, if it is trusted. */
static int connect_here(void)
{
    struct tp_peer peer;
    GM_AUTO_FD int fd = ctl_ui_connect();
    int r = fd < 0 ? fd : tp_peer(fd, &peer);
    if (r < 0)
        return r;
    if (!tp_daemon_is_trusted(peer.uid))
        return -EPERM;
    ctl_ui_patience(fd, true);
    return gm_take_fd(&fd);
}

static void own_directory(char *out, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && *runtime)
        snprintf(out, size, "%s/gmux", runtime);
    else
        snprintf(out, size, "/tmp/gmux-%u", (unsigned)geteuid());
}

int cli_place_connect(void)
{
    char own[PATH_MAX];
    const char *named = getenv(PIPE_VARIABLE);
    int fd = connect_here();
    if (fd >= 0 || (named && *named))
        return fd;
    is_own_place = true;
    own_directory(own, sizeof(own));
    setenv(PIPE_VARIABLE, own, 1);
    return connect_here();
}

int cli_place_require(void)
{
    int fd = cli_place_connect();
    if (fd == -EPERM)
        return cli_fail(CLI_NOT_BELIEVED, ctl_place_pipe_directory()), -1;
    if (fd < 0)
        return cli_fail("no daemon runs in %s: %s", ctl_place_pipe_directory(), strerror(-fd)), -1;
    return fd;
}

char *cli_find_beside(const char *const *names)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return NULL;
    self[n] = '\0';
    const char *folder = dirname(self);
    for (; *names; names++) {
        char *path;
        if (asprintf(&path, "%s/%s", folder, *names) < 0)
            return NULL;
        char *real = realpath(path, NULL);
        free(path);
        if (real)
            return real;
    }
    return NULL;
}

/* Makes the folder of the user's own daemon, whose socket others may look for. Anybody can make a
 * folder or a link of that name in /tmp before us. Then it is refused. */
static int make_folder(const char *path)
{
    struct stat st;
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return cli_fail("cannot make %s: %s", path, strerror(errno)), -1;
    if (!is_own_place)
        return 0;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022))
        return cli_fail("%s is no folder of yours that only you may write: remove it, or "
                        "set " PIPE_VARIABLE,
                        path),
               -1;
    return 0;
}

/* Runs in the child process, and never returns. The daemon's output goes to `words`. */
static void become_daemon(const char *program, int words)
{
    char log[PATH_MAX];
    snprintf(log, sizeof(log), "%s/log", ctl_place_pipe_directory());
    setenv(LOG_VARIABLE, log, 0);
    /* These are for the program, and not for everybody whom the daemon will serve. */
    unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    unsetenv("CUDA_MPS_CLIENT_PRIORITY");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("GMUX_GROUP");
    unsetenv("GMUX_GUARANTEE");
    if (words >= 0)
        dup2(words, STDERR_FILENO);
    execl(program, "gmux-control", "-d", (char *)NULL);
    _exit(127);
}

/* Connects to a daemon that somebody else began to start at the same time. */
static int connect_soon(void)
{
    const struct timespec nap = { .tv_nsec = 10 * 1000 * 1000 };
    int fd = connect_here();
    for (int i = 0; fd < 0 && fd != -EPERM && i < OTHERS_S * 100; i++) {
        nanosleep(&nap, NULL);
        fd = connect_here();
    }
    return fd;
}

int cli_place_start(void)
{
    static const char *const names[] = { "gmux-control", "../control/gmux-control", NULL };
    GM_AUTO_FREE char *program = cli_find_beside(names);
    char said[WORDS_BYTES + 1];
    int status;
    if (!program)
        return cli_fail("gmux-control is not installed beside gmux"), -1;
    if (make_folder(ctl_place_pipe_directory()) < 0)
        return -1;
    GM_AUTO_FD int words = memfd_create("gmux", MFD_CLOEXEC);
    pid_t pid = fork();
    if (pid < 0)
        return cli_fail("cannot start a daemon: %s", strerror(errno)), -1;
    if (pid == 0)
        become_daemon(program, words);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    ssize_t n = words < 0 ? 0 : pread(words, said, WORDS_BYTES, 0);
    said[GM_MAX(n, 0)] = '\0';
    if (!strstr(said, CTL_ALREADY_RUNNING)) {
        fputs(said, stderr);
        return cli_place_require();
    }
    int fd = connect_soon();
    return fd >= 0 ? fd : cli_place_require();
}

/* Says why the daemon may be silent, as far as that can be seen from here. */
static const char *state_of(int fd)
{
    struct tp_peer peer;
    char path[64], line[512] = "";
    if (tp_peer(fd, &peer) < 0 || peer.pid <= 0)
        return "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)peer.pid);
    FILE *in = fopen(path, "re");
    if (!in)
        return "";
    const char *name_end = fgets(line, sizeof(line), in) ? strrchr(line, ')') : NULL;
    fclose(in);
    return name_end && (name_end[2] == 'T' || name_end[2] == 't') ? ": its process is stopped" : "";
}

char *cli_ask(int fd, const char *fmt, ...)
{
    char *line, *answer = NULL;
    size_t size;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&line, fmt, ap);
    va_end(ap);
    FILE *out = n < 0 ? NULL : open_memstream(&answer, &size);
    bool good = out && ctl_ui_ask(fd, line, out);
    if (out)
        fclose(out);
    if (n >= 0)
        free(line);
    if (good)
        return answer;
    free(answer);
    cli_fail("the daemon in %s does not answer%s", ctl_place_pipe_directory(), state_of(fd));
    return NULL;
}
