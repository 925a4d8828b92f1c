/*
 * Keeps each user's groups, and tells the servers when a group changes.
 */
#include "control/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "control/process.h"

#define PER_USER_MAX 256 /* groups with limits that a user may have */

static bool has_limits(const struct ctl_group *g)
{
    return g->limits.share_pct > 0 || g->limits.guarantee_pct > 0 || *g->limits.memory;
}

static struct ctl_group *find(const struct ctl_daemon *d, uid_t uid, const char *name)
{
    gm_list_for_each (g, &d->groups, struct ctl_group, link)
        if (g->uid == uid && strcmp(g->name, name) == 0)
            return g;
    return NULL;
}

static struct ctl_group *find_or_make(struct ctl_daemon *d, uid_t uid, const char *name)
{
    struct ctl_group *g = find(d, uid, name);
    if (g)
        return g;
    g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    g->uid = uid;
    g->limits.priority = -1;
    memcpy(g->name, name, strlen(name) + 1);
    gm_list_append(&d->groups, &g->link);
    return g;
}

static void drop_unused(struct ctl_group *g)
{
    if (g->clients || has_limits(g))
        return;
    gm_list_remove(&g->link);
    free(g);
}

struct ctl_group *ctl_group_get(struct ctl_daemon *d, uid_t uid, const char *name)
{
    struct ctl_group *g = *name ? find_or_make(d, uid, name) : NULL;
    if (g)
        g->clients++;
    return g;
}

void ctl_group_put(struct ctl_group *g)
{
    if (!g)
        return;
    g->clients--;
    drop_unused(g);
}

const struct ctl_wish *ctl_group_limits(const struct ctl_daemon *d, uid_t uid, const char *name)
{
    const struct ctl_group *g = find(d, uid, name);
    return g ? &g->limits : NULL;
}

static void send_place(struct ctl_server *s, const struct ctl_client *c)
{
    uint8_t buffer[256];
    struct wire_enc e;
    const struct ctl_group *g = c->group;
    struct wire_link_client_group m = {
        .pid = c->key,
        .guarantee_pct = c->wish.guarantee_pct,
        .group = g ? g->name : "",
        .group_share_pct = g ? g->limits.share_pct : 0,
        .group_guarantee_pct = g ? g->limits.guarantee_pct : 0,
        .group_memory = UINT64_MAX,
    };
    uint64_t bytes;
    if (!s->knows_groups)
        return;
    const char *size = g ? strchr(g->limits.memory, '=') : NULL;
    if (size && gm_parse_size(size + 1, &bytes))
        m.group_memory = bytes;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_client_group(&e, 0, &m);
    ctl_server_send(s, &e);
}

void ctl_client_place(struct ctl_server *s, struct ctl_client *c)
{
    struct ctl_group *old = c->group;
    c->group = ctl_group_get(s->daemon, c->uid, c->wish.group);
    ctl_group_put(old);
    send_place(s, c);
}

static unsigned count_set(const struct ctl_daemon *d, uid_t uid)
{
    unsigned n = 0;
    gm_list_for_each (g, &d->groups, struct ctl_group, link)
        n += g->uid == uid && has_limits(g);
    return n;
}

const char *ctl_group_set(struct ctl_daemon *d, uid_t uid, const char *name,
                          const struct ctl_wish *limits)
{
    const struct ctl_group *old = find(d, uid, name);
    if ((!old || !has_limits(old)) && count_set(d, uid) >= PER_USER_MAX)
        return "the user has too many groups";
    struct ctl_group *g = find_or_make(d, uid, name);
    if (!g)
        return "out of memory";
    g->limits = *limits;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        gm_list_for_each (c, &s->clients, struct ctl_client, link)
            if (c->group == g)
                send_place(s, c);
    drop_unused(g);
    return NULL;
}

void ctl_groups_free(struct ctl_daemon *d)
{
    gm_list_for_each_safe (g, &d->groups, struct ctl_group, link) {
        gm_list_remove(&g->link);
        free(g);
    }
}
