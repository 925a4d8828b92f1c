/*
 * Decides, after an executor's death, which images are to blame and which clients are lost with it.
 */
#include "base/clock.h"
#include "base/result.h"
#include "server/hooks.h"
#include "server/server.h"

static bool is_load(const struct srv_request *r)
{
    return r->accused && r->type == WIRE_ENGINE_MODULE_LOAD && r->fds_count;
}

void srv_executor_blame(struct srv_executor *x, bool memory)
{
    const struct srv_session *one = NULL;
    bool several_users = false;
    x->wary &= !x->restored;
    gm_list_for_each (r, &x->sent, struct srv_request, link)
        if (is_load(r) && r->done) {
            several_users |= one && one->uid != r->session->uid;
            one = r->session;
        }
    gm_list_for_each (r, &x->sent, struct srv_request, link) {
        if (!is_load(r))
            continue;
        x->wary |= r->done != NULL;
        if (r->done)
            srv_backoff_blame(&x->backoff, r->session->uid, !several_users, gm_now_ns());
        srv_blame(&x->server->blame, r->session->uid, srv_request_image(r), x->started_ns,
                  memory && r->done ? SRV_CULPRIT : 1);
    }
}

void srv_executor_settle(struct srv_executor *x)
{
    const uint64_t now = gm_now_ns();
    srv_backoff_settle(&x->backoff, x->died_ns ? now - x->died_ns : 0, now);
}

/* How likely it is that a module of the session, which was being loaded again, was the cause. */
static unsigned suspicion(const struct srv_executor *x, const struct srv_session *c)
{
    unsigned most = 0;
    gm_list_for_each (r, &x->sent, struct srv_request, link)
        if (r->session == c && !r->done && r->type == WIRE_ENGINE_MODULE_LOAD)
            most = GM_MAX(most, r->suspected);
    return most;
}

/* Whether work was in flight on some stream, which is lost with the executor. */
static bool is_busy(const struct srv_session *c)
{
    for (uint32_t i = 0; c->shared.control && i < c->shared.streams_count; i++) {
        const struct tp_stream_slot *slot = &c->shared.streams[i];
        if (atomic_load_explicit(&slot->accepted, memory_order_acquire) !=
            atomic_load_explicit(&slot->completed.value, memory_order_acquire))
            return true;
    }
    return false;
}

/* Decides which clients are lost with the executor: those with work in flight, and the client whose
 * module was being loaded again alone, or for the second time at the same time as others'. */
void srv_executor_judge(struct srv_executor *x)
{
    gm_list_for_each (c, &x->server->sessions, struct srv_session, link) {
        if (!c->in_executor)
            continue;
        c->suspected += suspicion(x, c);
        if (c->failed || c->phase == SRV_DRAINING) {
            c->in_executor = false;
            /* The executor was about to do this. */
            if (c->failed)
                tp_session_release_waiters(&c->shared);
        } else if (c->suspected >= SRV_CULPRIT) {
            srv_backoff_blame(&x->backoff, c->uid, true, gm_now_ns());
            srv_link_fault(x->server, c->pid, GM_CUDA_LAUNCH_FAILED,
                           "its module ended the executor");
            c->in_executor = false;
            srv_hooks.session_fail(c, GM_CUDA_LAUNCH_FAILED, 0, "its module ended the executor");
        } else if (is_busy(c)) {
            c->in_executor = false;
            srv_hooks.session_fail(c, GM_CUDA_LAUNCH_FAILED, 0,
                                   "it had work in flight when the executor ended");
        }
    }
}
