/*
 * Names of users, and their limits. When a limit changes, all servers are told that have clients of
 * the user.
 */
#include "control/users.h"

#include <pwd.h>
#include <stdlib.h>

#include "base/parse.h"
#include "control/group.h"
#include "control/process.h"
#include "control/space.h"

bool ctl_user_named(const char *word, uid_t *out)
{
    const struct passwd *pw = getpwnam(word);
    uint64_t uid;
    if (!pw && !gm_parse_u64(word, CTL_UID_MAX, &uid))
        return false;
    *out = pw ? pw->pw_uid : (uid_t)uid;
    return true;
}

static struct ctl_user *find_user(const struct ctl_daemon *d, uid_t uid)
{
    gm_list_for_each (u, &d->users, struct ctl_user, link)
        if (u->uid == uid)
            return u;
    return NULL;
}

const struct ctl_wish *ctl_user_limits(const struct ctl_daemon *d, uid_t uid)
{
    const struct ctl_user *u = find_user(d, uid);
    return u ? &u->limits : NULL;
}

bool ctl_user_set_limits(struct ctl_daemon *d, uid_t uid, const struct ctl_wish *limits)
{
    struct ctl_user *u = find_user(d, uid);
    if (!u) {
        u = calloc(1, sizeof(*u));
        if (!u)
            return false;
        u->uid = uid;
        gm_list_append(&d->users, &u->link);
    }
    u->limits = *limits;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        gm_list_for_each (c, &s->clients, struct ctl_client, link)
            if (c->uid == uid)
                ctl_client_send_limits(s, c);
    return true;
}

void ctl_client_set_wish(struct ctl_server *s, struct ctl_client *c, const struct ctl_wish *wish)
{
    bool placed =
        *c->wish.group || *wish->group || c->wish.guarantee_pct > 0 || wish->guarantee_pct > 0;
    c->wish = *wish;
    c->ordered = true;
    ctl_client_send_limits(s, c);
    if (placed)
        ctl_client_place(s, c);
}

/* Returns what holds for a client in its namespace. The namespace's percentage replaces the
 * client's, its priority counts if the client has none. What a command has set can only be
 * lowered. */
static struct ctl_wish wish_in_space(const struct ctl_client *c)
{
    struct ctl_wish w = c->wish;
    const struct ctl_wish *of = c->space ? &c->space->limits : NULL;
    if (of && c->ordered)
        return ctl_wish_lower(&w, of);
    if (of && of->share_pct > 0)
        w.share_pct = of->share_pct;
    if (of && w.priority < 0)
        w.priority = of->priority;
    return w;
}

static void send_space(struct ctl_server *s, const struct ctl_client *c)
{
    char name[2 * CTL_SERVER_NAME_MAX + 2];
    uint8_t buffer[1024];
    struct wire_enc e;
    if (!c->space || !s->knows_spaces)
        return;
    snprintf(name, sizeof(name), "%s/%s", c->space->server->name, c->space->name);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_client_space(
        &e, 0,
        &(struct wire_link_client_space) { .pid = c->key,
                                           .name = name,
                                           .memory_limits = c->space->limits.memory,
                                           .memory_most = c->memory_most });
    ctl_server_send(s, &e);
}

void ctl_client_send_limits(struct ctl_server *s, const struct ctl_client *c)
{
    uint8_t buffer[1024];
    struct wire_enc e;
    const struct ctl_wish *user = ctl_user_limits(s->daemon, c->uid);
    struct ctl_wish w = wish_in_space(c);
    if (user)
        w = ctl_wish_lower(&w, user);
    send_space(s, c);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_client_limits(
        &e, 0,
        &(struct wire_link_client_limits) { .pid = c->key,
                                            .share_pct = w.share_pct,
                                            .priority = w.priority,
                                            .memory_limits = w.memory,
                                            .memory_ceiling = user ? user->memory : "" });
    ctl_server_send(s, &e);
}

void ctl_users_free(struct ctl_daemon *d)
{
    gm_list_for_each_safe (u, &d->users, struct ctl_user, link) {
        gm_list_remove(&u->link);
        free(u);
    }
}
