/*
 * Makes and removes a namespace's sockets by descriptor, so that nobody can put something else in
 * their place meanwhile. The daemon holds the lock of the pipe directory. So a socket in it on
 * which nobody in this process listens was left by a dead daemon.
 */
#include "control/door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/conn.h"
#include "control/directory.h"
#include "control/log.h"
#include "control/place.h"

/* The last problem, as text. */
static char problem[256];

static const char *complain(const char *path, const char *why)
{
    snprintf(problem, sizeof(problem), "%.160s: %s", path, why);
    return problem;
}

void ctl_door_directory(const struct ctl_daemon *d, const struct ctl_space *s, bool of_server,
                        char *out, size_t size)
{
    snprintf(out, size, of_server ? "%s/%s" : "%s/%s/%s", d->pipe_directory, s->server->name,
             s->name);
}

void ctl_door_name(const struct ctl_space *s, bool of_server, char *out)
{
    snprintf(out, CTL_DOOR_NAME, of_server ? "%s/" CTL_SOCKET : "%s/%s/" CTL_SOCKET,
             s->server->name, s->name);
}

/* --- making ----------------------------------------------------------------------------------- */

/* Opens a directory of ours below an open one. Returns a descriptor or -errno. */
static int open_below(const struct ctl_daemon *d, int at, const char *name)
{
    struct stat st;
    mode_t old = umask(022);
    int r = mkdirat(at, name, 0755) < 0 && errno != EEXIST ? -errno : 0;
    umask(old);
    if (r < 0)
        return r;
    GM_AUTO_FD int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if ((st.st_uid != 0 && st.st_uid != d->uid) || (st.st_mode & 022))
        return -EPERM;
    return gm_take_fd(&fd);
}

static bool is_there(int directory, const struct ctl_listener *l)
{
    struct stat st;
    return fstatat(directory, CTL_SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_ino == l->file.st_ino && st.st_dev == l->file.st_dev;
}

static void free_listener(uv_handle_t *h)
{
    free(GM_CONTAINER_OF(h, struct ctl_listener, poll));
}

static void close_listener(struct ctl_listener *l)
{
    gm_list_remove(&l->link);
    uv_close((uv_handle_t *)&l->poll, free_listener);
    l->fd = gm_close(l->fd);
}

/* Listens on a namespace's socket. Returns 0 or -errno. */
static int listen_in(struct ctl_daemon *d, int directory, struct ctl_space *s, unsigned i)
{
    struct ctl_listener **door = &s->doors[i];
    char name[CTL_DOOR_NAME];
    struct stat st;
    if (*door && is_there(directory, *door))
        return 0;
    if (*door)
        close_listener(*door);
    *door = NULL;
    ctl_door_name(s, i, name);
    GM_AUTO_FD int fd = ctl_inherited_take(&d->options.inherited, name);
    if (fd < 0 && fstatat(directory, CTL_SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return -EEXIST;
        unlinkat(directory, CTL_SOCKET, 0);
    }
    if (fd < 0)
        fd = ctl_place_listen(directory, CTL_SOCKET, 0666);
    if (fd < 0)
        return fd;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        fstatat(directory, CTL_SOCKET, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    struct ctl_listener *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    int r = uv_poll_init(&d->loop, &l->poll, fd);
    if (r < 0) {
        free(l);
        return r;
    }
    l->poll.data = d;
    l->file = st;
    l->space = s;
    l->fd = gm_take_fd(&fd);
    gm_list_append(&d->doors, &l->link);
    *door = l;
    ctl_conn_listen(d, true);
    return 0;
}

static const char *open_space(struct ctl_daemon *d, int server_fd, struct ctl_space *s)
{
    char path[TP_DIRECTORY_MAX * 2 + CTL_SERVER_NAME_MAX * 2 + 8];
    ctl_door_directory(d, s, false, path, sizeof(path));
    if (strlen(path) > TP_DIRECTORY_MAX) {
        snprintf(problem, sizeof(problem),
                 "its directory's name would have %zu bytes, for a socket %u are possible",
                 strlen(path), TP_DIRECTORY_MAX);
        return problem;
    }
    GM_AUTO_FD int fd = open_below(d, server_fd, s->name);
    int r = fd < 0 ? fd : 0;
    const bool first = s == ctl_space_default(s->server);
    if (r == 0)
        r = listen_in(d, fd, s, 0);
    if (r == 0 && first)
        r = listen_in(d, server_fd, s, 1);
    return r < 0 ? complain(path, strerror(-r)) : NULL;
}

/* Opens the server's log. If that fails, its lines go to the daemon's log. */
static void open_log(struct ctl_daemon *d, struct ctl_named *n)
{
    char why[256];
    if (n->log.fd >= 0 || !d->log_directory)
        return;
    GM_AUTO_FD int all = ctl_directory_open(d->log_directory, why, sizeof(why));
    GM_AUTO_FD int fd = all < 0 ? -1 : open_below(d, all, n->name);
    int r = fd < 0 ? fd : ctl_logfile_open(&n->log, fd, "server.log");
    if (r < 0)
        ctl_log_stranger(d, "Server %s has no log of its own: %s/%s: %s", n->name, d->log_directory,
                         n->name, strerror(-r));
}

const char *ctl_door_open(struct ctl_daemon *d, struct ctl_named *n)
{
    GM_AUTO_FD int fd = open_below(d, d->pipe_fd, n->name);
    if (fd < 0)
        return complain(n->name, strerror(-fd));
    open_log(d, n);
    gm_list_for_each (s, &n->spaces, struct ctl_space, link) {
        const char *why = open_space(d, fd, s);
        if (why)
            return why;
    }
    return NULL;
}

struct ctl_named *ctl_door_user(struct ctl_daemon *d, uid_t uid)
{
    char name[CTL_SERVER_NAME_MAX + 1];
    const char *why;
    ctl_name_of_user(uid, name);
    struct ctl_named *n = ctl_named_find(d, name);
    if (n)
        return n;
    n = ctl_named_make(d, name, uid, &why);
    if (n)
        why = ctl_door_open(d, n); /* the user's programs can do without the directory */
    if (why)
        ctl_log(d, "Server %s has no directory: %s", name, why);
    return n;
}

/* --- taking away ------------------------------------------------------------------------------ */

static void close_door(int directory, struct ctl_listener **door)
{
    if (!*door)
        return;
    if (directory >= 0 && is_there(directory, *door))
        unlinkat(directory, CTL_SOCKET, 0);
    close_listener(*door);
    *door = NULL;
}

static int open_existing(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void ctl_door_close(struct ctl_daemon *d, struct ctl_space *s)
{
    GM_AUTO_FD int server = open_existing(d->pipe_fd, s->server->name);
    GM_AUTO_FD int fd = server < 0 ? -1 : open_existing(server, s->name);
    bool had = s->doors[0];
    close_door(fd, &s->doors[0]);
    close_door(server, &s->doors[1]);
    if (had && server >= 0)
        unlinkat(server, s->name, AT_REMOVEDIR);
}

void ctl_door_close_server(struct ctl_daemon *d, struct ctl_named *n)
{
    gm_list_for_each (s, &n->spaces, struct ctl_space, link)
        ctl_door_close(d, s);
    unlinkat(d->pipe_fd, n->name, AT_REMOVEDIR); /* fails, and may, if other files are in it */
}

void ctl_door_restore(struct ctl_daemon *d)
{
    gm_list_for_each (n, &d->names, struct ctl_named, link) {
        const char *why = ctl_door_open(d, n);
        if (why)
            ctl_log_stranger(d, "Server %s has no directory: %s", n->name, why);
    }
}
