/*
 * Decides which of the lines that strangers cause are written. The file logfile.c writes them.
 */
#include "control/log.h"

#include <stdarg.h>

#include "base/clock.h"
#include "control/conn.h"

/* How many lines strangers may cause at once, and in a second in the long run. */
#define STRANGER_BURST 1000
#define STRANGER_RATE  50
/* How many lines the UIs of root and of the daemon's user may cause. They may look at long
 * lists. */
#define TRUSTED_BURST 20000
#define TRUSTED_RATE  1000

void ctl_log_init(struct ctl_daemon *d)
{
    ctl_ration_init(&d->strangers, STRANGER_BURST, STRANGER_RATE);
    ctl_ration_init(&d->trusted, TRUSTED_BURST, TRUSTED_RATE);
}

void ctl_log(struct ctl_daemon *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ctl_logfile_vwrite(&d->control_log, "Control", d->pid, fmt, ap);
    va_end(ap);
}

static bool may_log(struct ctl_daemon *d, struct ctl_ration *ration, unsigned reserve)
{
    unsigned left_out;
    bool may = ctl_ration_take(ration, gm_now_ns(), reserve, &left_out);
    if (left_out)
        ctl_log(d, "%u lines left out", left_out);
    return may;
}

void ctl_log_stranger(struct ctl_daemon *d, const char *fmt, ...)
{
    va_list ap;
    if (!may_log(d, &d->strangers, 0))
        return;
    va_start(ap, fmt);
    ctl_logfile_vwrite(&d->control_log, "Control", d->pid, fmt, ap);
    va_end(ap);
}

void ctl_log_accept(struct ctl_daemon *d)
{
    /* This is the least interesting line, and may use up half of the ration only. */
    if (may_log(d, &d->strangers, STRANGER_BURST / 2))
        ctl_log(d, "Accepting connection...");
}

void ctl_log_ui(const struct ctl_conn *c, const char *fmt, ...)
{
    va_list ap;
    struct ctl_daemon *d = c->daemon;
    if (!may_log(d, c->trusted ? &d->trusted : &d->strangers, 0))
        return;
    va_start(ap, fmt);
    ctl_logfile_vwrite(&d->control_log, "Control", d->pid, fmt, ap);
    va_end(ap);
}
