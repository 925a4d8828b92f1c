/*
 * Starts the program anew under the same process id, with one option more: the descriptors that
 * stay open. What the option names is looked at before it is believed.
 */
#include "control/restart.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/door.h"
#include "control/server.h"

#define OPTION "--restarted="

struct ctl_restart {
    char *path;  /* of the program, before a newer one took its place */
    char **argv; /* with room for the option, in front of the others */
};

struct ctl_restart *ctl_restart_prepare(char **argv)
{
    struct ctl_restart *r = calloc(1, sizeof(*r));
    size_t n = 0, kept = 2;
    while (argv[n])
        n++;
    if (!r)
        return NULL;
    r->path = realpath("/proc/self/exe", NULL);
    r->argv = calloc(n + 2, sizeof(*r->argv));
    if (!r->path || !r->argv) {
        ctl_restart_free(r);
        return NULL;
    }
    r->argv[0] = argv[0];
    for (size_t i = 1; i < n; i++)
        if (strncmp(argv[i], OPTION, strlen(OPTION)) != 0)
            r->argv[kept++] = argv[i];
    return r;
}

void ctl_restart_free(struct ctl_restart *r)
{
    if (!r)
        return;
    free(r->path);
    free(r->argv);
    free(r);
}

/* A socket or a file that somebody left open for us; nothing else has been opened yet. */
static bool is_open_as(int fd, mode_t kind)
{
    struct stat st;
    return fd > STDERR_FILENO && fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

bool ctl_restart_read(struct ctl_inherited *out, const char *text)
{
    char rest;
    int *s = out->sockets;
    out->restarted =
        sscanf(text, "%d,%d,%d,%d%c", &s[0], &s[1], &out->lock, &out->servers, &rest) == 4 &&
        out->servers >= 0 && is_open_as(s[0], S_IFSOCK) && is_open_as(s[1], S_IFSOCK) &&
        is_open_as(out->lock, S_IFREG) && s[0] != s[1];
    return out->restarted;
}

int ctl_restart(struct ctl_daemon *d)
{
    char option[64];
    const int fds[] = { d->listeners[0].fd, d->listeners[1].fd, d->lock_fd };
    unsigned servers = 0;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        servers += s->clients_count != 0;
    snprintf(option, sizeof(option), OPTION "%d,%d,%d,%u", fds[0], fds[1], fds[2], servers);
    d->restart->argv[1] = option;
    for (size_t i = 0; i < GM_ARRAY_LEN(fds); i++)
        fcntl(fds[i], F_SETFD, 0);
    ctl_config_forget(&d->options.config);
    ctl_door_bequeath(d, true);
    execv(d->restart->path, d->restart->argv);
    int r = -errno;
    ctl_door_bequeath(d, false);
    for (size_t i = 0; i < GM_ARRAY_LEN(fds); i++)
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    return r;
}
