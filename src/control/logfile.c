#include "control/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "control/text.h"

void ctl_ration_init(struct ctl_ration *r, unsigned burst, unsigned per_second)
{
    *r = (struct ctl_ration) { .burst = burst, .per_second = per_second, .left = burst };
}

static void refill(struct ctl_ration *r, uint64_t now)
{
    uint64_t line_ns = GM_NS_PER_S / r->per_second;
    uint64_t lines = (now - r->refilled_ns) / line_ns;
    if (lines >= r->burst - r->left) {
        r->left = r->burst;
        r->refilled_ns = now;
    } else {
        r->left += (unsigned)lines;
        r->refilled_ns += lines * line_ns;
    }
}

bool ctl_ration_take(struct ctl_ration *r, uint64_t now_ns, unsigned reserve, unsigned *left_out)
{
    *left_out = 0;
    refill(r, now_ns);
    if (r->left <= reserve) {
        r->left_out++;
        return false;
    }
    r->left--;
    if (r->left_out && now_ns - r->told_ns >= GM_NS_PER_S) {
        *left_out = r->left_out;
        r->left_out = 0;
        r->told_ns = now_ns;
    }
    return true;
}

static int open_file(const char *path)
{
    /* O_NOFOLLOW: the directory may be one where others can put links. */
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
    return fd < 0 ? -errno : fd;
}

int ctl_logfile_open(struct ctl_logfile *l, const char *directory, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return -ENOMEM;
    int fd = open_file(path);
    if (fd < 0) {
        free(path);
        return fd;
    }
    l->path = path;
    l->fd = fd;
    return 0;
}

void ctl_logfile_reopen(struct ctl_logfile *l)
{
    int fd = l->path ? open_file(l->path) : -1;
    if (fd < 0)
        return;
    gm_close(l->fd);
    l->fd = fd;
}

void ctl_logfile_finish(struct ctl_logfile *l)
{
    l->fd = gm_close(l->fd);
    free(l->path);
    l->path = NULL;
}

void ctl_logfile_vwrite(struct ctl_logfile *l, const char *tag, pid_t pid, const char *fmt, va_list ap)
{
    char line[4608]; /* a UI command has up to 4096 bytes */
    struct timespec now;
    struct tm tm;

    if (l->fd < 0 && l->echo < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    size_t used = strftime(line, sizeof(line), "[%Y-%m-%d %H:%M:%S", &tm);
    int n = snprintf(line + used, sizeof(line) - used, ".%03ld %s %5d] ", now.tv_nsec / 1000000, tag, (int)pid);
    if (n > 0)
        used += (size_t)n;
    char *text = line + used;
    n = vsnprintf(text, sizeof(line) - used - 1, fmt, ap);
    ctl_text_clean(text);
    if (n > 0)
        used = GM_MIN(used + (size_t)n, sizeof(line) - 2);
    line[used++] = '\n';

    ssize_t written = 0;
    if (l->fd >= 0)
        written = write(l->fd, line, used);
    if (l->echo >= 0)
        written = write(l->echo, line, used);
    (void)written; /* a full disk must not stop the daemon */
}

void ctl_logfile_write(struct ctl_logfile *l, const char *tag, pid_t pid, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ctl_logfile_vwrite(l, tag, pid, fmt, ap);
    va_end(ap);
}
