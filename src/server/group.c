/*
 * Groups of a user's programs. A session that changes its group takes its charges along.
 */
#include "server/group.h"

#include <stdlib.h>
#include <string.h>

#include "server/send.h"
#include "server/server.h"

static struct srv_group *find(struct srv_session *c, const char *name)
{
    struct srv_user *u = c->user;
    gm_list_for_each (g, &u->groups, struct srv_group, link)
        if (strcmp(g->name, name) == 0)
            return g;
    struct srv_group *g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    snprintf(g->name, sizeof(g->name), "%s", name);
    g->number = ++c->server->next_group;
    srv_account_init(&g->account, &u->account);
    gm_list_append(&u->groups, &g->link);
    return g;
}

void srv_group_leave(struct srv_session *c)
{
    struct srv_group *g = c->group;
    if (!g)
        return;
    srv_account_move(&c->account, &c->user->account);
    c->group = NULL;
    if (--g->members > 0)
        return;
    srv_account_check_clear(&g->account);
    gm_list_remove(&g->link);
    free(g);
}

static double percentage(double value)
{
    return value > 0 ? GM_MIN(value, 100) : 0;
}

void srv_group_place(struct srv_session *c, const struct wire_link_client_group *m)
{
    struct srv_group *g = *m->group ? find(c, m->group) : NULL;
    c->guarantee_pct = percentage(m->guarantee_pct);
    /* It must not end when it is left and joined again. */
    if (g)
        g->members++;
    srv_group_leave(c);
    if (!g)
        return;
    g->share_pct = percentage(m->group_share_pct);
    g->guarantee_pct = percentage(m->group_guarantee_pct);
    for (uint32_t d = 0; d < TP_DEVICES; d++)
        g->account.limit[srv_device_bytes(d)] = m->group_memory;
    srv_account_move(&c->account, &g->account);
    c->group = g;
}

bool srv_group_matters(const struct srv_session *c)
{
    return c->group || c->guarantee_pct > 0 || srv_partition_group(c);
}

void srv_group_tell(struct srv_session *c, srv_answer_fn *done)
{
    const struct srv_group *g = c->group;
    const uint32_t partition = srv_partition_group(c);
    struct wire_engine_client_group m = {
        .client = c->id,
        .guarantee_pct = c->guarantee_pct,
        .group = g ? g->number : 0,
        .group_share_pct = g ? g->share_pct : 0,
        .group_guarantee_pct = g ? g->guarantee_pct : 0,
    };
    if (partition) {
        m.guarantee_pct = 0;
        m.group = partition;
        m.group_share_pct = m.group_guarantee_pct = srv_partition_share(c);
    }
    srv_engine_client_group(c, &m, done, c);
}
