/*
 * control.log and server.log: what users, scripts and bug reports read. The words of the lines are
 * NVIDIA MPS's where it has words for the event; the form is
 *
 *     [2026-11-21 01:06:57.409 Control  1380] Accepting connection...
 *
 * with the time in the daemon's time zone, a tag and a process id. One write per line, appended, so
 * that rotating the file away (and SIGHUP) loses nothing. A file that has grown to CTL_LOG_MAX
 * becomes NAME.1, and the one that had this name goes: two files of that size are all that can be
 * filled.
 */
#ifndef GMUX_CONTROL_LOGFILE_H
#define GMUX_CONTROL_LOGFILE_H

#include <stdarg.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

/* 64 MiB: 600,000 lines. */
#define CTL_LOG_MAX (64u << 20)

struct ctl_logfile {
    const char *name; /* in the directory */
    int directory;    /* -1: no file */
    int fd;           /* -1: no file */
    int echo;         /* a second descriptor that gets every line, or -1; not closed here */
    uint64_t size;
};

/*
 * A ration of lines for those who could otherwise fill the disk: a burst, then a rate. Lines beyond
 * it are counted, and the count is written once a second when there is room again. Other things
 * that must be limited use it, too.
 */
struct ctl_ration {
    unsigned burst;
    unsigned per_second;
    unsigned left; /* how many lines may be written now */
    unsigned left_out;
    uint64_t refilled_ns;
    uint64_t told_ns;
};

void ctl_ration_init(struct ctl_ration *r, unsigned burst, unsigned per_second);
/* Whether a line may be written and more than `reserve` are left. `*left_out`: how many were left
 * out before it, to be told now; 0: nothing to tell. */
GM_MUST_CHECK bool ctl_ration_take(struct ctl_ration *r, uint64_t now_ns, unsigned reserve,
                                   unsigned *left_out);
/* Whether the whole burst is available again. */
bool ctl_ration_is_whole(struct ctl_ration *r, uint64_t now_ns);

/* Opens or creates `name` (the pointer is kept) in a directory, which stays the caller's. 0 or
 * -errno. */
GM_MUST_CHECK int ctl_logfile_open(struct ctl_logfile *l, int directory, const char *name);
/* Opens the file again under its name, in that directory (-1: the same as before). If that fails,
 * the old file stays in use. */
void ctl_logfile_reopen(struct ctl_logfile *l, int directory);
void ctl_logfile_finish(struct ctl_logfile *l);

void ctl_logfile_write(struct ctl_logfile *l, const char *tag, pid_t pid, const char *fmt, ...)
    GM_PRINTF(4, 5);
void ctl_logfile_vwrite(struct ctl_logfile *l, const char *tag, pid_t pid, const char *fmt,
                        va_list ap) GM_PRINTF(4, 0);

#endif
