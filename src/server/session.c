/*
 * A session's beginning, and its client's connection. Nothing that a client says is believed: a
 * message that it may not send (serve.c has the table) ends the connection, with one line in the
 * log.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/result.h"
#include "server/serve.h"
#include "server/server.h"
#include "transport/foreign.h"

#define AUDIT_MS 2000u
/* If the daemon has not read this much, clients wait whose messages would have to be reported to
 * it. */
#define UNTOLD_MAX (1u << 20)

static const struct srv_peer_ops session_ops;

static uint64_t namespace_of(uint32_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static void read_client(struct srv_session *c, const struct srv_client *client)
{
    c->pid = client->pid;
    c->uid = client->uid;
    c->pid_namespace = namespace_of(client->pid);
    c->command = client->command ? strdup(client->command) : NULL;
    srv_session_take_wish(c, client->share_pct, client->priority, client->memory_limits);
}

static void say_full(struct srv_session *c)
{
    struct srv_server *s = c->server;
    uint64_t most = s->account.limit[SRV_SESSIONS];
    if (srv_account_left(&s->account, SRV_SESSIONS) == 0)
        srv_say(s, "Failed to accept new client. Maximum number of clients (%llu) reached.",
                (unsigned long long)most);
    else
        srv_say(s,
                "Failed to accept new client. User %u has %llu clients, which is all it may have "
                "of %llu.",
                c->uid, (unsigned long long)c->user->account.used[SRV_SESSIONS],
                (unsigned long long)most);
}

/* A client can write to all of its areas, allocated or not. The pages that this makes are charged
 * to its own user by the system, but gmux's limits should hold, too. */
static void on_audit(uv_timer_t *timer)
{
    struct srv_server *s = GM_CONTAINER_OF(timer, struct srv_server, audit);
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->phase != SRV_DRAINING &&
            (srv_area_is_overdrawn(&c->areas[0]) || srv_area_is_overdrawn(&c->areas[1]))) {
            srv_say(s,
                    "Dropping client {PID: %u, Context ID: 0} of user %u: it uses memory it was "
                    "not given",
                    c->pid, c->uid);
            srv_session_drop(c);
        }
    if (gm_list_empty(&s->sessions))
        uv_timer_stop(timer);
}

static void watch(struct srv_server *s)
{
    if (!uv_is_active((uv_handle_t *)&s->audit))
        uv_timer_start(&s->audit, on_audit, AUDIT_MS, AUDIT_MS);
}

void srv_session_create(struct srv_server *s, int fd, const struct srv_client *client)
{
    struct srv_session *c = calloc(1, sizeof(*c));
    if (c)
        c->user = srv_user_get(s, client->uid);
    if (!c || !c->user) {
        free(c);
        tp_hang_up(fd);
        srv_link_client_gone(s, client->pid, "out of memory");
        return;
    }
    c->server = s;
    c->id = ++s->next_session;
    c->shared_fd = -1;
    c->areas[0].fd = -1;
    c->areas[1].fd = -1;
    /* Every client uses device 0. */
    c->devices_used = 1;
    c->phase = SRV_OPENING;
    gm_list_init(&c->objects);
    gm_list_init(&c->names);
    gm_list_init(&c->modules);
    gm_list_init(&c->contexts);
    gm_list_init(&c->ending);
    srv_waiting_init(&c->waiting);
    srv_account_init(&c->account, &c->user->account);
    c->account.limit[SRV_ALLOCATIONS] = SRV_ALLOCATIONS_MAX;
    c->account.limit[SRV_MAPPINGS] = SRV_MAPPINGS_MAX;
    c->account.limit[SRV_MODULES] = SRV_MODULES_MAX;
    c->account.limit[SRV_IMAGE_BYTES] = SRV_IMAGE_BYTES_MAX;
    c->account.limit[SRV_CONTEXTS] = SRV_CONTEXTS_MAX;
    for (uint32_t d = 0; d < TP_DEVICES; d++)
        c->arrays[d] = (struct srv_charge) { &c->account, srv_device_bytes(d), 0 };
    c->account.limit[SRV_OBJECTS] = SRV_OBJECTS_MAX;
    c->account.limit[SRV_NAMES] = SRV_NAMES_MAX;
    read_client(c, client);
    srv_partition_take(c);
    int r = srv_peer_open(&c->peer, &s->loop, fd, &session_ops);
    if (r < 0) {
        srv_link_client_gone(s, c->pid, strerror(-r));
        srv_user_put(c->user);
        free(c->memory_text);
        free(c->command);
        free(c);
        return;
    }
    c->peer.sharers = &c->user->sessions;
    gm_list_append(&s->sessions, &c->link);
    s->sessions_count++;
    watch(s);
    srv_say(s, "Received new client request for {PID: %u, Context ID: 0}", c->pid);
    /* There will be no other executor. */
    if (s->executor.closing) {
        srv_session_refuse(c, GM_CUDA_MPS_SERVER_NOT_READY, "the server is about to end");
        return;
    }
    if (srv_charge(&c->count, &c->account, SRV_SESSIONS, 1) < 0) {
        say_full(c);
        srv_session_refuse(c, GM_CUDA_MPS_MAX_CLIENTS_REACHED, "too many clients");
        return;
    }
    srv_say(s, "Client {PID: %u, Context ID: 0} connected", c->pid);
    srv_link_client_state(c, 0, 0, WIRE_CLIENT_STATE_CONNECTED);
    if (s->devices_count && s->executor.state == SRV_EXECUTOR_READY)
        srv_session_offer(c);
}

/* --- the connection --------------------------------------------------------------------------- */

static const char *on_packet(struct srv_peer *p, struct tp_packet *packet)
{
    struct srv_session *c = GM_CONTAINER_OF(p, struct srv_session, peer);
    const size_t untold = c->server->link.queue_bytes;
    const char *why = srv_serve(c, packet);
    /* The client that causes it waits: a link that overflows would be lost to all. */
    c->unheard |= c->server->link.queue_bytes > GM_MAX(untold, (size_t)UNTOLD_MAX);
    srv_session_pace(c);
    return why;
}

static void on_gone(struct srv_peer *p, bool broke, const char *why)
{
    struct srv_session *c = GM_CONTAINER_OF(p, struct srv_session, peer);
    if (broke)
        srv_say(c->server, "Dropping client {PID: %u, Context ID: 0} of user %u: %s", c->pid,
                c->uid, why);
    srv_session_drop(c);
}

static void on_peer_closed(struct srv_peer *p)
{
    struct srv_session *c = GM_CONTAINER_OF(p, struct srv_session, peer);
    c->peer_closed = true;
    srv_session_check_end(c);
}

static const struct srv_peer_ops session_ops = {
    .sender = WIRE_CLIENT,
    .queue_bytes_max = 256u << 10, /* a client that asks one thing after the other has less */
    .packet = on_packet,
    .gone = on_gone,
    .closed = on_peer_closed,
};
