/*
 * The end of a session. The executor lets go of a client in two steps. First it stops the client:
 * its work is off the device, and its device memory is not used any more. That takes no longer than
 * the client's own kernels. Then it removes the client, with its pinned host memory, which may have
 * to wait for as long as another client's kernel runs (docs/adr/0013-calls-that-wait.md). Between
 * the steps a client that is gone gives back everything that others may want: device memory,
 * modules, its place among the clients. What the executor still touches stays and stays charged:
 * session memory, host memory, the addresses of the window, and arrays, which belong to the
 * executor.
 *
 * A session may have tens of thousands of things to give back. So that happens a piece at a time,
 * and between two pieces the loop serves others. Each piece checks again what may be given back:
 * meanwhile the executor may have died, or another client may have closed something of this one's.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/result.h"
#include "server/object.h"
#include "server/send.h"
#include "server/server.h"

/* how much time is spent on ending things before the loop looks for events again */
#define PIECE_NS (2 * GM_NS_PER_MS)

/* --- a piece at a time ------------------------------------------------------------------------ */

static void end_piece(struct srv_session *c, uint64_t until_ns);

static void on_idle(uv_idle_t *idle)
{
    struct srv_server *s = GM_CONTAINER_OF(idle, struct srv_server, ending_idle);
    const uint64_t until_ns = gm_now_ns() + PIECE_NS;
    do {
        if (gm_list_empty(&s->ending)) {
            uv_idle_stop(idle);
            return;
        }
        struct srv_session *c = gm_list_entry(s->ending.next, struct srv_session, ending);
        gm_list_remove(&c->ending);
        end_piece(c, until_ns);
    } while (gm_now_ns() < until_ns);
}

/* Goes on with it later, behind the others. */
static void end_later(struct srv_session *c)
{
    struct srv_server *s = c->server;
    if (!gm_list_empty(&c->ending))
        return;
    gm_list_append(&s->ending, &c->ending);
    uv_idle_start(&s->ending_idle, on_idle);
}

/* --- out of the executor ---------------------------------------------------------------------- */

static void on_removed(void *arg, int result, struct tp_packet *answer)
{
    struct srv_session *c = arg;
    (void)result;
    (void)answer;
    c->in_executor = false;
}

/* The executor has stopped the client, or has died. */
static void on_stopped(void *arg, int result, struct tp_packet *answer)
{
    struct srv_session *c = arg;
    (void)result;
    (void)answer;
    /* The executor that reported the failure may have died since. */
    if (c->failed)
        tp_session_release_waiters(&c->shared);
    /* End its signals now: a client that records something in between sees that it is too late. */
    end_later(c);
}

/* Nobody waits for the client's signals any more, either. */
static void set_stopped(struct srv_session *c)
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
    /* The executor releases the waiters once nothing of the client runs. If it does not know the
     * client, we release them. */
    if (c->in_executor) {
        remove_from_executor(c);
        return;
    }
    if (c->shared.control)
        tp_session_release_waiters(&c->shared);
    end_later(c); /* for its signals */
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
    /* Its process may still be there, and first has to learn that nothing is done for it any
     * more. */
    if (c->shared.control)
        tp_session_fail(&c->shared, GM_CUDA_MPS_RPC_FAILURE, 0);
    srv_peer_close(&c->peer);
    srv_contexts_end(c);
    srv_say(c->server, "Client process %u disconnected", c->pid);
    srv_link_client_state(c, 0, 0, WIRE_CLIENT_STATE_EXITED);
    remove_from_executor(c);
}

/* --- what is left ----------------------------------------------------------------------------- */

/* Whether the executor has let go of the client. */
static bool is_out(const struct srv_session *c)
{
    /* A removed client's answers come in any order. */
    return !c->in_executor && c->asks == 0 && c->repeats == 0;
}

/* Whether the executor keeps only the client's host memory; its one unanswered request is the
 * removal. */
static bool is_stopped(const struct srv_session *c)
{
    return c->in_executor && c->stopped && c->asks == 1;
}

/* Others wait for device memory; host memory may have to stay. */
static bool pages_rest(struct srv_session *c, bool host)
{
    bool rest = !host || srv_heap_rests(&c->host);
    for (uint32_t d = 0; d < TP_DEVICES; d++)
        rest &= srv_heap_rests(&c->heaps[d]);
    return rest;
}

/* Whether nothing of the client runs and it asks for nothing any more. If another client closes
 * what this one had freed, its pages first have to be swept. */
static bool may_give_back(struct srv_session *c)
{
    return c->phase == SRV_DRAINING && c->peer_closed &&
           (is_out(c) || (is_stopped(c) && !c->given_back)) && pages_rest(c, is_out(c));
}

static bool give_devices_back(struct srv_session *c, uint64_t until_ns)
{
    if (c->given_back)
        return true;
    bool done = srv_modules_free(c, until_ns) && srv_attachments_end(c, false, until_ns) &&
                srv_objects_end(c, false, until_ns);
    for (uint32_t d = 0; d < TP_DEVICES && done; d++)
        done = srv_heap_finish(&c->heaps[d], until_ns);
    if (!done)
        return false;
    c->given_back = true;
    srv_area_finish(&c->areas[0]);
    srv_contexts_end(c);
    return true;
}

static bool give_host_back(struct srv_session *c, uint64_t until_ns)
{
    return srv_attachments_end(c, true, until_ns) && srv_objects_end(c, true, until_ns) &&
           srv_heap_finish(&c->host, until_ns);
}

/* Makes room for another client, unless too many are on their way out. */
static void give_place(struct srv_session *c)
{
    if (c->leaving.amount == 0 && srv_charge(&c->leaving, &c->account, SRV_LEAVING, 1) == 0)
        srv_charge_release(&c->count);
}

static void session_destroy(struct srv_session *c)
{
    struct srv_server *s = c->server;
    for (uint32_t d = 0; d < TP_DEVICES; d++)
        srv_charge_release(&c->arrays[d]);
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

static void end_piece(struct srv_session *c, uint64_t until_ns)
{
    if (!srv_signals_end(c, until_ns)) {
        end_later(c);
        return;
    }
    set_stopped(c);
    if (may_give_back(c)) {
        const bool out = is_out(c);
        if (!give_devices_back(c, until_ns) || (out && !give_host_back(c, until_ns))) {
            end_later(c);
            return;
        }
        if (out) {
            session_destroy(c);
            return;
        }
        give_place(c);
    }
    if (c->phase == SRV_DRAINING)
        srv_server_check_end(c->server);
}

void srv_session_check_end(struct srv_session *c)
{
    if (c->phase != SRV_DRAINING)
        return;
    if (may_give_back(c))
        end_later(c);
    srv_server_check_end(c->server);
}

/* --- the server's end ------------------------------------------------------------------------- */

/* Clients that are not on their way out. */
static bool has_clients(struct srv_server *s)
{
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->phase != SRV_DRAINING)
            return true;
    return false;
}

void srv_server_check_end(struct srv_server *s)
{
    if (s->link_lost && !has_clients(s))
        s->stopping = true; /* no client can come any more */
    if (!s->stopping || s->ended)
        return;
    /* The executor ends, too, with what it still has to do for clients that are gone. Nobody waits
     * for a private server, so there it may finish: it compiles a kernel for the next run. */
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->phase != SRV_DRAINING || !c->stopped || (s->private_mode && !is_out(c)))
            return;
    s->ended = true;
    srv_say(s, "Exiting");
    s->has_link = false;
    srv_peer_close(&s->link);
    srv_door_close(s);
    srv_executor_close(&s->executor);
    uv_close((uv_handle_t *)&s->terminate, NULL);
    uv_close((uv_handle_t *)&s->dump, NULL);
    uv_close((uv_handle_t *)&s->audit, NULL);
    uv_close((uv_handle_t *)&s->relink, NULL);
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
