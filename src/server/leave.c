/*
 * A session's end. The executor lets go of a client in two steps. First it is stopped: its work is
 * off the device, and its device memory is not used any more; that takes no longer than its own
 * kernels do. Then it is removed, with its pinned host memory, and that may have to wait for as
 * long as somebody else's kernel runs (docs/adr/0013). In between a client that is gone gives back
 * all that others may want: device memory, modules, its place among the clients. What the executor
 * still touches stays and stays charged: session memory, host memory, the addresses of the window;
 * and so do arrays, which are the executor's.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/result.h"
#include "server/object.h"
#include "server/send.h"
#include "server/server.h"

/* Whose signals are ended before the loop looks for events again: some 2 ms. */
#define SIGNAL_PAGES 16u

/* --- signals ---------------------------------------------------------------------------------- */

static void go_on(struct srv_session *c);

static void on_idle(uv_idle_t *idle)
{
    struct srv_server *s = GM_CONTAINER_OF(idle, struct srv_server, signals_idle);
    struct srv_session *c = gm_list_entry(s->signals.next, struct srv_session, signals);
    gm_list_remove(&c->signals);
    if (!srv_signals_end(c, SIGNAL_PAGES)) {
        gm_list_append(&s->signals, &c->signals); /* behind the others */
        return;
    }
    if (gm_list_empty(&s->signals))
        uv_idle_stop(idle);
    go_on(c);
    srv_session_check_end(c);
}

/* False: when they are, it goes on. */
static bool signals_are_ended(struct srv_session *c)
{
    if (!gm_list_empty(&c->signals))
        return false;
    if (srv_signals_end(c, SIGNAL_PAGES))
        return true;
    gm_list_append(&c->server->signals, &c->signals);
    uv_idle_start(&c->server->signals_idle, on_idle);
    return false;
}

/* --- out of the executor ---------------------------------------------------------------------- */

static void on_removed(void *arg, int result, struct tp_packet *answer)
{
    struct srv_session *c = arg;
    (void)result;
    (void)answer;
    c->in_executor = false;
}

/* Or the executor has died. */
static void on_stopped(void *arg, int result, struct tp_packet *answer)
{
    struct srv_session *c = arg;
    (void)result;
    (void)answer;
    /* The executor has done so if it ever knew the client; the one that did may have died. */
    if (c->failed)
        tp_session_release_waiters(&c->shared);
    if (signals_are_ended(c)) /* in this order: who records in between sees that it is late */
        go_on(c);
}

static void go_on(struct srv_session *c)
{
    if (!c->removing || c->stopped)
        return;
    c->stopped = true;
    if (!c->in_executor)
        return;
    srv_engine_client_remove(c, &(struct wire_engine_client_remove) { c->id }, on_removed, c);
}

static void remove_from_executor(struct srv_session *c)
{
    if (!c->in_executor || c->removing)
        return;
    c->removing = true;
    srv_engine_client_stop(c, &(struct wire_engine_client_stop) { c->id }, on_stopped, c);
}

/* --- reasons ---------------------------------------------------------------------------------- */

void srv_session_fail(struct srv_session *c, int result, uint64_t address, const char *why)
{
    if (c->failed || c->phase == SRV_DRAINING)
        return;
    srv_say(c->server, "Client {PID: %u, Context ID: 0} gets error %d: %s", c->pid, result, why);
    c->failed = result;
    c->phase = SRV_FAILED;
    if (c->shared.control)
        tp_session_fail(&c->shared, (uint32_t)result, address);
    /* The executor lets the waiters go once nothing of the client runs; where it does not know the
     * client, we do. */
    if (c->in_executor) {
        remove_from_executor(c);
        return;
    }
    if (c->shared.control)
        tp_session_release_waiters(&c->shared);
    (void)signals_are_ended(c);
}

void srv_session_refuse(struct srv_session *c, int result, const char *reason)
{
    struct wire_enc e = srv_encoder(c->server);
    const struct wire_session_failed m = { result, reason };
    wire_pack_session_failed(&e, 0, &m);
    srv_peer_send(&c->peer, &e, NULL, 0);
    srv_session_drop(c);
}

void srv_session_drop(struct srv_session *c)
{
    if (c->phase == SRV_DRAINING)
        return;
    c->phase = SRV_DRAINING;
    /* Its process may still be there: first it must know that nothing is done for it any more. */
    if (c->shared.control)
        tp_session_fail(&c->shared, GM_CUDA_MPS_RPC_FAILURE, 0);
    srv_peer_close(&c->peer);
    srv_contexts_end(c);
    srv_say(c->server, "Client process %u disconnected", c->pid);
    srv_link_client_state(c, 0, 0, WIRE_CLIENT_STATE_EXITED);
    remove_from_executor(c);
}

/* --- what is left ----------------------------------------------------------------------------- */

/* Nothing of the client runs, and it asks for nothing any more. */
static void give_back(struct srv_session *c)
{
    if (c->given_back)
        return;
    c->given_back = true;
    srv_modules_free(c);
    srv_attachments_end(c, false);
    srv_objects_end(c, false);
    for (uint32_t d = 0; d < TP_DEVICES; d++)
        srv_heap_finish(&c->heaps[d]);
    srv_area_finish(&c->areas[0]);
    srv_contexts_end(c);
}

/* Another client may come instead, unless too many are on their way out. */
static void give_place(struct srv_session *c)
{
    if (c->leaving.amount == 0 && srv_charge(&c->leaving, &c->account, SRV_LEAVING, 1) == 0)
        srv_charge_release(&c->count);
}

static void session_destroy(struct srv_session *c)
{
    struct srv_server *s = c->server;
    give_back(c);
    srv_attachments_end(c, true);
    srv_objects_end(c, true);
    for (uint32_t d = 0; d < TP_DEVICES; d++)
        srv_charge_release(&c->arrays[d]);
    srv_heap_finish(&c->host);
    srv_area_finish(&c->areas[1]);
    srv_session_free_windows(c, 0);
    tp_session_detach(&c->shared);
    gm_close(c->shared_fd);
    srv_charge_release(&c->count);
    srv_charge_release(&c->leaving);
    srv_account_check_clear(&c->account);
    srv_group_leave(c);
    srv_user_put(c->user);
    free(c->memory_text);
    free(c->space);
    free(c->space_memory);
    free(c->command);
    gm_list_remove(&c->link);
    s->sessions_count--;
    free(c);
    srv_server_check_end(s);
}

/* Devices are what others wait for; host memory may have to stay. */
static bool pages_rest(struct srv_session *c, bool host)
{
    bool rest = !host || srv_heap_rests(&c->host);
    for (uint32_t d = 0; d < TP_DEVICES; d++)
        rest &= srv_heap_rests(&c->heaps[d]);
    return rest;
}

void srv_session_check_end(struct srv_session *c)
{
    if (c->phase != SRV_DRAINING)
        return;
    if (c->peer_closed && c->asks == 0 && c->repeats == 0 && !c->in_executor &&
        pages_rest(c, true)) { /* an executor answers as it likes */
        if (signals_are_ended(c))
            session_destroy(c);
        return;
    }
    if (c->peer_closed && c->asks == 1 && c->in_executor && c->stopped &&
        pages_rest(c, false)) { /* the one is for the removal */
        give_back(c);
        give_place(c);
    }
    srv_server_check_end(c->server);
}

/* --- the server's end ------------------------------------------------------------------------- */

void srv_server_check_end(struct srv_server *s)
{
    if (s->link_lost && gm_list_empty(&s->sessions))
        s->stopping = true; /* nobody can come */
    if (!s->stopping || s->ended)
        return;
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->phase != SRV_DRAINING || !c->stopped)
            return;
    s->ended =
        true; /* and the executor, with what it has left to do for those whose clients are gone */
    srv_say(s, "Exiting");
    s->has_link = false;
    srv_peer_close(&s->link);
    srv_door_close(s);
    srv_executor_close(&s->executor);
    uv_close((uv_handle_t *)&s->terminate, NULL);
    uv_close((uv_handle_t *)&s->dump, NULL);
    uv_close((uv_handle_t *)&s->audit, NULL);
    uv_close((uv_handle_t *)&s->relink, NULL);
    uv_close((uv_handle_t *)&s->signals_idle, NULL);
    srv_reader_close(&s->reader);
    srv_sweeper_close(&s->sweeper);
}

void srv_server_stop(struct srv_server *s, bool force)
{
    if (!s->stopping && !gm_list_empty(&s->sessions) && !force)
        srv_say(s, "Waiting for current clients to finish");
    s->stopping = true;
    if (force) {
        gm_list_for_each (c, &s->sessions, struct srv_session, link)
            srv_session_drop(c);
        srv_executor_close(&s->executor); /* nothing waits for its answers */
    }
    srv_server_check_end(s);
}
