/*
 * Reads the introduction of a server that outlived its daemon. The server and its clients are put
 * where they would be if this daemon had started them.
 */
#include "control/return.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "control/conn.h"
#include "control/group.h"
#include "control/door.h"
#include "control/log.h"
#include "control/users.h"

/* Servers of a user: one takes new clients, the others may still have old ones. */
#define PER_USER_MAX 8

/* Whether the user has as many servers as a user may have: those above, and one for each server
 * with a name. */
static bool has_enough(const struct ctl_daemon *d, uid_t uid)
{
    unsigned n = 0, most = PER_USER_MAX;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        n += s->uid == uid;
    gm_list_for_each (named, &d->names, struct ctl_named, link)
        most += named->uid == uid;
    return n >= most;
}

static const char *why_not(const struct ctl_conn *c, const struct wire_link_return *m)
{
    const struct ctl_daemon *d = c->daemon;
    if (m->version != WIRE_VERSION)
        return "a server of another version is back: it ends with its clients";
    if ((m->multiuser != 0) != d->options.multiuser)
        return "a server is back, but with or without -M it is not what this daemon has";
    if (d->options.multiuser &&
        c->peer.uid != (d->options.has_server_user ? d->options.server_uid : d->uid))
        return "a server of all users is back, but runs as another user";
    if (d->uid != 0 && c->peer.uid != d->uid)
        return "a server of another user is back";
    if (c->peer.pid <= 0 || d->quitting)
        return "a server is back and cannot be taken";
    if (d->servers_count >= CTL_SERVERS_MAX || has_enough(d, c->peer.uid))
        return "a server is back, but there are too many";
    return NULL;
}

/* Refuses the server. It goes on for the clients that it has, and looks for no other daemon. */
static void send_away(struct ctl_conn *c)
{
    uint8_t buffer[64];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_shutdown(&e, 0, &(struct wire_link_shutdown) { .force = 0 });
    int r = ctl_channel_send(c->channel, &e, -1);
    (void)r; /* the server has gone */
}

const char *ctl_return_server(struct ctl_conn *c, const struct wire_link_return *m)
{
    struct ctl_daemon *d = c->daemon;
    const char *why = why_not(c, m);
    if (why) {
        send_away(c);
        return why;
    }
    int process = ctl_channel_process(c->channel);
    struct ctl_server *s = process >= 0 ? ctl_server_new(d, c->peer.uid, c->peer.gid, NULL) : NULL;
    if (!s) {
        gm_close(process);
        return "a server is back, but there is no memory, or no process";
    }
    s->process = process;
    s->pid = c->peer.pid;
    s->state = CTL_SERVER_STARTING;
    s->leaving = m->stopping != 0;
    s->limits =
        (struct ctl_limits) { .share_pct =
                                  m->share_pct > 0 && m->share_pct <= 100 ? m->share_pct : 100,
                              .priority = m->priority == 1 };
    ctl_limits_set_memory_list(&s->limits, m->memory_limits);
    s->channel = c->channel;
    ctl_channel_give(s->channel, ctl_hooks.link, s);
    c->channel = NULL;
    ctl_conn_close(c);
    ctl_log(d, "Server %d of user %u is back from an earlier daemon", (int)s->pid,
            (unsigned)s->uid);
    ctl_timer_start(s->timer, CTL_START_MS);
    return NULL;
}

bool ctl_return_client(struct ctl_server *s, const struct wire_link_return_client *m)
{
    struct ctl_wish wish = { .share_pct = m->share_pct, .priority = m->priority };
    char command[1025];
    if (s->process < 0 || s->clients_count >= CTL_CLIENTS_MAX || !m->pid ||
        ctl_server_client(s, m->pid) || (!s->daemon->options.multiuser && m->uid != s->uid) ||
        !(m->share_pct >= 0 && m->share_pct <= 100) || m->priority < -1 || m->priority > 1)
        return false;
    snprintf(wish.memory, sizeof(wish.memory), "%s", m->memory_limits);
    snprintf(command, sizeof(command), "%s", m->command);
    gm_text_clean(command);
    return ctl_server_add_client(s, m->pid, m->uid, &wish, command) != NULL;
}

bool ctl_return_space(struct ctl_server *s, const struct wire_link_return_space *m)
{
    struct ctl_daemon *d = s->daemon;
    struct ctl_client *c = s->process < 0 ? NULL : ctl_server_client(s, m->pid);
    char name[CTL_SERVER_NAME_MAX + 1];
    const size_t n = strcspn(m->name, "/");
    if (!c || n > CTL_SERVER_NAME_MAX || !m->name[n])
        return false;
    s->knows_spaces = true;
    memcpy(name, m->name, n);
    name[n] = '\0';
    struct ctl_named *named = d->options.modules ? ctl_named_find(d, name) : NULL;
    if (!named || named->uid != s->uid)
        return true; /* the server was deleted meanwhile, or this daemon's protocol has no names */
    ctl_server_name(s, named);
    c->space = ctl_space_find(named, m->name + n + 1);
    return true;
}

bool ctl_return_group(struct ctl_server *s, const struct wire_link_return_group *m)
{
    struct ctl_client *c = s->process < 0 ? NULL : ctl_server_client(s, m->pid);
    if (!c || (*m->group && !ctl_group_is_name(m->group)) ||
        !(m->guarantee_pct >= 0 && m->guarantee_pct <= 100))
        return false;
    c->wish.guarantee_pct = m->guarantee_pct;
    snprintf(c->wish.group, sizeof(c->wish.group), "%s", m->group);
    return true;
}

/* Tells the server what was set for users and groups under an earlier daemon. */
static void limit_clients(struct ctl_server *s)
{
    if (s->daemon->options.modules && !s->named)
        ctl_server_name(s, ctl_door_user(s->daemon, s->uid));
    gm_list_for_each (c, &s->clients, struct ctl_client, link) {
        if (s->named && !c->space)
            c->space = ctl_space_default(s->named);
        if (c->space || ctl_user_limits(s->daemon, c->uid))
            ctl_client_send_limits(s, c);
        if (*c->wish.group || c->wish.guarantee_pct > 0)
            ctl_client_place(s, c);
    }
}

void ctl_return_ready(struct ctl_server *s)
{
    struct ctl_daemon *d = s->daemon;
    limit_clients(s);
    gm_list_for_each (other, &d->servers, struct ctl_server, link)
        s->leaving |= other != s && other->uid == s->uid && other->named == s->named &&
                      other->state != CTL_SERVER_STOPPING;
    if (s->leaving)
        ctl_server_shutdown(s, false);
    if (d->returning && --d->returning == 0)
        ctl_timer_start(d->advance, 0);
}
