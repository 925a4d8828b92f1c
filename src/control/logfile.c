/*
 * Appends lines to a log, and starts a new file when it is full. If the log cannot be written the
 * daemon goes on without it, and tries again later.
 */
#include "control/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

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

bool ctl_ration_is_whole(struct ctl_ration *r, uint64_t now_ns)
{
    refill(r, now_ns);
    return r->left == r->burst;
}

/* Opens the log. Where others can put files or links into the directory (it is sticky), those are
 * refused. */
static int open_file(struct ctl_logfile *l)
{
    struct stat st;
    GM_AUTO_FD int fd = openat(
        l->directory, l->name,
        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (S_ISREG(st.st_mode) && (st.st_nlink > 1 || (geteuid() == 0 && st.st_uid != 0)))
        return -EPERM;
    l->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    return gm_take_fd(&fd);
}

int ctl_logfile_open(struct ctl_logfile *l, int directory, const char *name)
{
    l->name = name;
    l->directory = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    int fd = l->directory < 0 ? -errno : open_file(l);
    if (fd < 0) {
        l->directory = gm_close(l->directory);
        return fd;
    }
    l->fd = fd;
    return 0;
}

void ctl_logfile_reopen(struct ctl_logfile *l, int directory)
{
    GM_AUTO_FD int before = l->directory;
    if (before < 0)
        return;
    l->directory = fcntl(directory >= 0 ? directory : before, F_DUPFD_CLOEXEC, 0);
    int fd = l->directory >= 0 ? open_file(l) : -1;
    if (fd >= 0) {
        gm_close(l->fd);
        l->fd = fd;
        return;
    }
    gm_close(l->directory);
    l->directory = gm_take_fd(&before);
}

void ctl_logfile_finish(struct ctl_logfile *l)
{
    l->fd = gm_close(l->fd);
    l->directory = gm_close(l->directory);
}

/* Starts a new file. If that fails it is tried again after as many bytes. */
static void rotate(struct ctl_logfile *l)
{
    char old[64];
    l->size = 0;
    snprintf(old, sizeof(old), "%s.1", l->name);
    if (renameat(l->directory, l->name, l->directory, old) == 0)
        ctl_logfile_reopen(l, -1);
}

void ctl_logfile_vwrite(struct ctl_logfile *l, const char *tag, pid_t pid, const char *fmt,
                        va_list ap)
{
    char line[4608]; /* a UI's command has up to 4096 bytes */
    struct timespec now;
    struct tm tm;

    if (l->fd < 0 && l->echo < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &tm);
    size_t used = strftime(line, sizeof(line), "[%Y-%m-%d %H:%M:%S", &tm);
    int n = snprintf(line + used, sizeof(line) - used, ".%03ld %s %5d] ", now.tv_nsec / 1000000,
                     tag, (int)pid);
    if (n > 0)
        used += (size_t)n;
    char *text = line + used;
    n = vsnprintf(text, sizeof(line) - used - 1, fmt, ap);
    gm_text_clean(text);
    if (n > 0)
        used = GM_MIN(used + (size_t)n, sizeof(line) - 2);
    line[used++] = '\n';

    ssize_t written = 0;
    if (l->fd >= 0 && l->size + used > CTL_LOG_MAX)
        rotate(l);
    if (l->fd >= 0)
        written = write(l->fd, line, used);
    if (written > 0)
        l->size += (uint64_t)written;
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
