/*
 * Keeps the inherited sockets in an array that is searched from its beginning: a daemon takes each
 * of them once.
 */
#include "control/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct ctl_inherited_fd {
    int fd;
    char *name;
};

int ctl_inherited_add(struct ctl_inherited *in, int fd, const char *name)
{
    struct ctl_inherited_fd *fds = realloc(in->fds, (in->count + 1) * sizeof(*fds));
    if (!fds)
        return -ENOMEM;
    in->fds = fds;
    fds[in->count] = (struct ctl_inherited_fd) { .fd = fd, .name = strdup(name) };
    if (!fds[in->count].name)
        return -ENOMEM;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        free(fds[in->count].name);
        return -errno;
    }
    in->count++;
    return 0;
}

static struct ctl_inherited_fd *find(const struct ctl_inherited *in, const char *name)
{
    for (size_t i = 0; i < in->count; i++)
        if (strcmp(in->fds[i].name, name) == 0)
            return &in->fds[i];
    return NULL;
}

bool ctl_inherited_has(const struct ctl_inherited *in, const char *name)
{
    return find(in, name);
}

int ctl_inherited_take(struct ctl_inherited *in, const char *name)
{
    struct ctl_inherited_fd *found = find(in, name);
    return found ? gm_take_fd(&found->fd) : -1;
}

void ctl_inherited_finish(struct ctl_inherited *in)
{
    for (size_t i = 0; i < in->count; i++) {
        gm_close(in->fds[i].fd);
        free(in->fds[i].name);
    }
    free(in->fds);
    *in = (struct ctl_inherited) { 0 };
}
