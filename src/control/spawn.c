/*
 * Starts a server with fork and exec. uv_spawn() would drop the supplementary groups, and it may be
 * by one of them that a user can open /dev/nvidia*.
 */
#include "control/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "transport/sock.h"

#define LINK_FD 3

static GM_NORETURN void child_fail(const char *what, const char *name)
{
    dprintf(STDERR_FILENO, "%s %s: %s\n", what, name, strerror(errno));
    _exit(127);
}

static void become_user(const struct ctl_spawn *how)
{
    char uid_text[16];
    snprintf(uid_text, sizeof(uid_text), "%u", (unsigned)how->uid);
    errno = 0;
    const struct passwd *pw = getpwuid(how->uid);
    gid_t gid = pw ? pw->pw_gid : how->gid;
    if ((pw ? initgroups(pw->pw_name, gid) : setgroups(0, NULL)) < 0)
        child_fail("cannot set the groups of user", uid_text);
    if (setgid(gid) < 0 || setuid(how->uid) < 0)
        child_fail("cannot become user", uid_text);
    /* The environment describes the daemon's user, and caches go to these places. */
    setenv("HOME", pw && pw->pw_dir ? pw->pw_dir : "/", 1);
    setenv("USER", pw ? pw->pw_name : uid_text, 1);
    setenv("LOGNAME", pw ? pw->pw_name : uid_text, 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("XDG_RUNTIME_DIR");
}

static GM_NORETURN void child(const struct ctl_spawn *how, int link_fd, int output_fd)
{
    sigset_t none;
    int zero = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (dup2(output_fd, STDERR_FILENO) < 0 || dup2(output_fd, STDOUT_FILENO) < 0 || zero < 0 ||
        dup2(zero, STDIN_FILENO) < 0)
        _exit(127);
    /* A handler of the daemon's that ran in the child would tell the daemon. Ignored signals and
     * the mask would stay across exec. */
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();

    if (link_fd == LINK_FD) {
        fcntl(LINK_FD, F_SETFD, 0);
    } else if (dup2(link_fd, LINK_FD) < 0) {
        child_fail("cannot pass on", "the link");
    }
    /* The driver reads the first variable; the software device reads the second, which programs do
     * not have. */
    if (how->visible_devices)
        setenv("CUDA_VISIBLE_DEVICES", how->visible_devices, 1);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible)
        setenv("GMUX_VISIBLE_DEVICES", visible, 1);
    if (how->change_user)
        become_user(how);
    char number[] = { '0' + LINK_FD, '\0' };
    execl(how->path, how->name, "--control", number, (char *)NULL);
    child_fail("cannot execute", how->path);
}

pid_t ctl_spawn_server(const struct ctl_spawn *how, int *link_fd, int *output_fd)
{
    int pair[2], pipe_fds[2];
    int r = tp_pair(pair);
    if (r < 0)
        return r;
    GM_AUTO_FD int ours = pair[0];
    GM_AUTO_FD int theirs = pair[1];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    GM_AUTO_FD int reading = pipe_fds[0];
    GM_AUTO_FD int writing = pipe_fds[1];

    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t pid = fork();
    if (pid == 0)
        child(how, theirs, writing);
    r = -errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (pid < 0)
        return r;
    *link_fd = gm_take_fd(&ours);
    *output_fd = gm_take_fd(&reading);
    return pid;
}

/* Returns DIR/REST if it can be executed, else NULL. The caller frees it. */
static char *candidate(const char *dir, const char *rest)
{
    char *path;
    if (asprintf(&path, "%s/%s", dir, rest) < 0)
        return NULL;
    /* The daemon changes its directory, after which a relative path would lead elsewhere. */
    char *real = access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
    free(path);
    return real;
}

char *ctl_spawn_find_server(void)
{
    char self[4096];
    char *path = NULL;
    const char *dir = secure_getenv("GMUX_LIBEXECDIR");
    if (dir)
        path = candidate(dir, "gmux-server");
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (!path && n > 0) {
        self[n] = '\0';
        dir = dirname(self);
        path = candidate(dir, "gmux-server");
        if (!path)
            path = candidate(dir, "../server/gmux-server");
        if (!path)
            path = candidate(dir, "../libexec/gmux/gmux-server");
    }
    return path ? path : strdup(GMUX_LIBEXECDIR "/gmux-server");
}
