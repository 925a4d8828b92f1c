/*
 * Runs the daemon's program again in the same process. One more environment variable names the
 * descriptors that stay open. It also contains the process id, so that no child process takes it
 * for its own.
 */
#include "control/restart.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "control/door.h"
#include "control/place.h"
#include "control/server.h"
#include "control/text.h"

#define VARIABLE "GMUX_RESTARTED" /* PID,SERVERS,FD:NAME,FD:NAME... */

void ctl_restart_read(struct ctl_options *out)
{
    const char *value = getenv(VARIABLE);
    GM_AUTO_FREE char *copy = value ? strdup(value) : NULL;
    char *rest = copy;
    const char *who = strsep(&rest, ","), *servers = strsep(&rest, ",");
    uint64_t pid, returning, fd;
    unsetenv(VARIABLE);
    if (!who || !gm_parse_u64(who, INT32_MAX, &pid) || (pid_t)pid != getpid() || !servers ||
        !gm_parse_u64(servers, CTL_SERVERS_MAX, &returning))
        return;
    out->restarted = true;
    out->returning = (unsigned)returning;
    for (char *name; (name = strsep(&rest, ","));) {
        const char *number = strsep(&name, ":");
        if (name && gm_parse_u64(number, INT32_MAX, &fd) && fd > STDERR_FILENO &&
            ctl_inherited_add(&out->inherited, (int)fd, name) < 0)
            continue; /* this one is made anew */
    }
}

/* Makes a descriptor survive exec, and notes its name. With `t` NULL it undoes that. */
static void pass(struct ctl_text *t, int fd, const char *name)
{
    if (t)
        ctl_text_add(t, ",%d:%s", fd, name);
    fcntl(fd, F_SETFD, t ? 0 : FD_CLOEXEC);
}

static void pass_all(const struct ctl_daemon *d, struct ctl_text *t)
{
    char name[CTL_DOOR_NAME];
    pass(t, d->lock_fd, CTL_LOCK_FILE);
    pass(t, d->listeners[0].fd, CTL_SOCKET);
    pass(t, d->listeners[1].fd, CTL_PRIVILEGED_SOCKET);
    gm_list_for_each (l, &d->doors, struct ctl_listener, link) {
        ctl_door_name(l->space, l == l->space->doors[1], name);
        pass(t, l->fd, name);
    }
}

int ctl_restart(struct ctl_daemon *d)
{
    struct ctl_text t = { 0 };
    unsigned servers = 0;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        servers += s->clients_count != 0;
    ctl_text_add(&t, "%d,%u", (int)d->pid, servers);
    ctl_config_forget(&d->options.config);
    pass_all(d, &t);
    int r = setenv(VARIABLE, t.data ? t.data : "", 1) < 0 ? -errno : 0;
    if (r == 0)
        r = execv(d->program, d->argv) < 0 ? -errno : 0;
    unsetenv(VARIABLE);
    pass_all(d, NULL);
    ctl_text_finish(&t);
    return r;
}
