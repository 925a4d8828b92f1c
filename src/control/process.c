/*
 * Signals, packets and log lines of a server's process, for the files above.
 */
#include "control/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/log.h"
#include "control/space.h"

void ctl_server_kill(struct ctl_server *s, const char *reason)
{
    if (s->state != CTL_SERVER_STARTING)
        s->state = CTL_SERVER_STOPPING;
    else if (!s->cause[0])
        snprintf(s->cause, sizeof(s->cause), "%s", reason);
    if (s->pid <= 0 || s->killed)
        return;
    ctl_log(s->daemon, "Killing server %d: %s", (int)s->pid, reason);
    if (s->process >= 0)
        syscall(SYS_pidfd_send_signal, s->process, SIGKILL, NULL, 0);
    else
        kill(s->pid, SIGKILL);
    s->killed = true;
    s->end_at_ns = gm_now_ns() + CTL_END_MS * GM_NS_PER_MS;
    ctl_timer_start(s->timer, CTL_END_MS);
}

void ctl_server_send(struct ctl_server *s, const struct wire_enc *e)
{
    int r = s->channel ? ctl_channel_send(s->channel, e, -1) : 0;
    /* A server that has closed its link is about to end, and the loop tells us. A server that does
     * not read cannot be helped. */
    if (r < 0 && r != -EPIPE && r != -ECONNRESET)
        ctl_server_kill(s, "it does not read its link");
}

/* NVIDIA's log tags the lines that come before a server has its device in another way. */
static const char *tag_of(struct ctl_server *s, const char *line)
{
    bool other = !s->initialised;
    if (strcmp(line, "Initializing server process") == 0 || s->state != CTL_SERVER_STARTING)
        s->initialised = true;
    return other && s->state == CTL_SERVER_STARTING ? "Other" : "Server";
}

void ctl_server_log(struct ctl_server *s, const char *line)
{
    struct ctl_logfile *log =
        s->named && s->named->log.fd >= 0 ? &s->named->log : &s->daemon->server_log;
    unsigned left_out;
    bool may = ctl_ration_take(&s->lines, gm_now_ns(), 0, &left_out);
    if (left_out)
        ctl_logfile_write(log, "Server", s->pid, "%u lines left out", left_out);
    if (may)
        ctl_logfile_write(log, tag_of(s, line), s->pid, "%s", line);
}
