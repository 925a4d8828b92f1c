/*
 * Refuses the clients that wait, then ends the servers. The daemon ends with the last server.
 */
#include "control/quit.h"

#include "control/queue.h"
#include "control/server.h"

void ctl_quit_server_gone(struct ctl_daemon *d)
{
    if (!d->quitting)
        ctl_queue_advance(d);
    else if (gm_list_empty(&d->servers) && !d->finished)
        ctl_timer_start(d->end, 0);
}

void ctl_quit(struct ctl_daemon *d, int64_t force_ms)
{
    bool first = !d->quitting;
    d->quitting = true;
    if (first)
        ctl_queue_refuse_all(d, GM_CUDA_MPS_SERVER_NOT_READY, "the daemon is about to end");
    gm_list_for_each_safe (s, &d->servers, struct ctl_server, link) {
        if (s->pid > 0 && force_ms == 0) {
            ctl_server_shutdown(s, true);
            continue;
        }
        bool has_process = s->pid > 0;
        ctl_server_shutdown(s, false); /* frees a server that has no process */
        if (has_process && force_ms > 0)
            ctl_server_force_after(s, (uint64_t)force_ms);
    }
    ctl_quit_server_gone(d);
}
