/*
 * What a server does when its daemon is gone. Its clients do not need the daemon; they go on here.
 * The next daemon in the same place, perhaps of a newer version, takes over this server with its
 * clients, so that it lists and limits them, and new clients of the user come to the same server.
 * So the daemon can be killed and replaced under running programs.
 *
 * A daemon is trusted if it runs as root or as our own user; clients use the same rule.
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "server/server.h"
#include "transport/trust.h"

#define RELINK_MS 100

static struct gm_log_topic topic = GM_LOG_TOPIC("link");

static void send_client(struct srv_server *s, const struct srv_session *c)
{
    const struct wire_link_return_client m = {
        .pid = c->pid,
        .uid = c->uid,
        .share_pct = c->share_pct < 100 ? c->share_pct : 0,
        .priority = c->priority,
        .memory_limits = c->memory_text ? c->memory_text : "",
        .command = c->command ? c->command : "",
    };
    struct wire_enc e = srv_encoder(s);
    wire_pack_link_return_client(&e, 0, &m);
    srv_peer_send(&s->link, &e, NULL, 0);
    if (c->partition.pid) {
        const struct wire_link_return_partition partition = { c->pid, c->partition.name };
        e = srv_encoder(s);
        wire_pack_link_return_partition(&e, 0, &partition);
        srv_peer_send(&s->link, &e, NULL, 0);
    }
    if (c->space) {
        const struct wire_link_return_space space = { c->pid, c->space };
        e = srv_encoder(s);
        wire_pack_link_return_space(&e, 0, &space);
        srv_peer_send(&s->link, &e, NULL, 0);
    }
    if (!c->group && c->guarantee_pct <= 0)
        return;
    const struct wire_link_return_group group = { c->pid, c->guarantee_pct,
                                                  c->group ? c->group->name : "" };
    e = srv_encoder(s);
    wire_pack_link_return_group(&e, 0, &group);
    srv_peer_send(&s->link, &e, NULL, 0);
}

/* Tells the daemon what daemons know of servers that they started themselves. */
static void introduce(struct srv_server *s)
{
    const struct wire_link_return m = {
        .version = WIRE_VERSION,
        .multiuser = s->multiuser,
        .stopping = s->stopping,
        .share_pct = s->limits.share_pct,
        .priority = s->limits.priority,
        .memory_limits = s->limits.memory_text,
    };
    struct wire_enc e = srv_encoder(s);
    wire_pack_link_return(&e, 0, &m);
    srv_peer_send(&s->link, &e, NULL, 0);
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->phase != SRV_DRAINING)
            send_client(s, c);
    srv_link_ready(s);
    gm_list_for_each (c, &s->sessions, struct srv_session, link) {
        if (c->phase == SRV_DRAINING)
            continue;
        srv_link_client_state(c, 0, 0, WIRE_CLIENT_STATE_CONNECTED);
        gm_list_for_each (x, &c->contexts, struct srv_context, link)
            if (!x->opening)
                srv_link_client_state(c, x->id, x->device, WIRE_CLIENT_STATE_ACTIVE);
    }
    srv_say(s, "Connected to a new control daemon");
}

static void on_try(uv_timer_t *timer)
{
    struct srv_server *s = GM_CONTAINER_OF(timer, struct srv_server, relink);
    char path[TP_DIRECTORY_MAX + 16];
    struct tp_peer peer;
    snprintf(path, sizeof(path), "%s/control", s->pipe_directory);
    GM_AUTO_FD int fd = tp_connect_now(path);
    if (fd < 0 || tp_peer(fd, &peer) < 0 || !tp_daemon_is_trusted(peer.uid) ||
        srv_peer_open(&s->link, &s->loop, gm_take_fd(&fd), s->link.ops) < 0)
        return;
    gm_info(&topic, "back to a control daemon, process %d", (int)peer.pid);
    uv_timer_stop(timer);
    s->link_lost = false;
    s->has_link = true;
    introduce(s);
}

void srv_relink_begin(struct srv_server *s)
{
    s->link_lost = true;
    srv_server_check_end(s);
}

void srv_relink_closed(struct srv_server *s)
{
    if (s->link_lost && !s->ended)
        uv_timer_start(&s->relink, on_try, 0, RELINK_MS);
}
