/*
 * Walks a path from the root, one part at a time. Each part is opened without following links and
 * checked through its descriptor, so that what was checked is what is used. See directory.h.
 */
#include "control/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LINKS_MAX 40

/* How the kernel shows ids of other user namespaces, and the inode of the first user namespace
 * (PROC_USER_INIT_INO). */
#define OVERFLOW_UID    65534
#define INITIAL_USER_NS 0xeffffffdu

struct walk {
    int at; /* O_PATH */
    unsigned links;
    char rest[PATH_MAX]; /* the part of the path that has not been walked yet */
    char *why;
    size_t why_size;
};

static int refuse(struct walk *w, const char *text)
{
    snprintf(w->why, w->why_size, "%s", text);
    return -1;
}

/* Whether this process is in a user namespace other than the machine's first. There the machine's
 * root has the overflow id, as all users of other namespaces have. What lies above our directories
 * is taken to be root's. */
static bool in_user_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != INITIAL_USER_NS;
}

static bool trusted(uid_t owner, bool last)
{
    return owner == 0 || owner == geteuid() ||
           (owner == OVERFLOW_UID && !last && in_user_namespace());
}

/* Refuses a directory that another user owns or may rename things in: that user
 * could put something else in the place of ours. */
static int check(struct walk *w, const struct stat *st, bool last)
{
    const char *which = last ? "" : "a directory above it ";
    mode_t others = S_IWOTH | (last ? S_IWGRP : 0);
    if (geteuid() != 0)
        return 0;
    if (!trusted(st->st_uid, last))
        snprintf(w->why, w->why_size, "%sbelongs to user %u, who could take our place", which,
                 (unsigned)st->st_uid);
    else if (S_ISDIR(st->st_mode) && (st->st_mode & others) && !(st->st_mode & S_ISVTX))
        snprintf(w->why, w->why_size,
                 "%sis for others to write to, who could take our place (chmod go-w, or +t)",
                 which);
    else if (S_ISLNK(st->st_mode) && last)
        snprintf(w->why, w->why_size, "is a link");
    else
        return 0;
    return -1;
}

/* Cuts the next part off the path. Returns false at its end. */
static bool next_part(struct walk *w, char part[NAME_MAX + 1], bool *last)
{
    const char *p = w->rest + strspn(w->rest, "/");
    size_t n = strcspn(p, "/");
    if (n == 0 || n > NAME_MAX)
        return false;
    memcpy(part, p, n);
    part[n] = '\0';
    p += n;
    p += strspn(p, "/");
    *last = *p == '\0';
    memmove(w->rest, p, strlen(p) + 1);
    return true;
}

static void go_to(struct walk *w, int fd)
{
    gm_close(w->at);
    w->at = fd;
}

/* Puts the link's target in front of the rest of the path. */
static int follow(struct walk *w, int fd)
{
    char target[PATH_MAX * 2];
    ssize_t n = readlinkat(fd, "", target, PATH_MAX - 1);
    if (n <= 0 || ++w->links > LINKS_MAX)
        return refuse(w, strerror(n <= 0 ? errno : ELOOP));
    snprintf(target + n, sizeof(target) - (size_t)n, "/%s", w->rest);
    if (strlen(target) >= sizeof(w->rest))
        return refuse(w, strerror(ENAMETOOLONG));
    strcpy(w->rest, target);
    if (*target != '/')
        return 0;
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return refuse(w, strerror(errno));
    go_to(w, root);
    return 0;
}

static int step(struct walk *w, const char *part, bool last)
{
    struct stat st;
    const int how = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    GM_AUTO_FD int fd = openat(w->at, part, how);
    if (fd < 0 && errno == ENOENT && last && (mkdirat(w->at, part, 0755) == 0 || errno == EEXIST))
        fd = openat(w->at, part, how);
    if (fd < 0 || fstat(fd, &st) < 0)
        return refuse(w, strerror(errno));
    if (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
        return refuse(w, strerror(ENOTDIR));
    if (check(w, &st, last) < 0)
        return -1;
    if (S_ISLNK(st.st_mode))
        return follow(w, fd);
    go_to(w, gm_take_fd(&fd));
    return 0;
}

int ctl_directory_open(const char *path, char *why, size_t why_size)
{
    struct walk w = { .at = -1, .why = why, .why_size = why_size };
    char part[NAME_MAX + 1], here[PATH_MAX] = "";
    bool last;
    if (*path != '/' && !getcwd(here, sizeof(here)))
        return refuse(&w, strerror(errno));
    int n = snprintf(w.rest, sizeof(w.rest), "%s/%s", here, path);
    if (n < 0 || (size_t)n >= sizeof(w.rest))
        return refuse(&w, strerror(ENAMETOOLONG));
    w.at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w.at < 0)
        return refuse(&w, strerror(errno));
    while (next_part(&w, part, &last)) {
        if (step(&w, part, last) == 0)
            continue;
        gm_close(w.at);
        return -1;
    }
    if (w.rest[strspn(w.rest, "/")] == '\0')
        return w.at;
    gm_close(w.at);
    return refuse(&w, strerror(ENAMETOOLONG));
}
