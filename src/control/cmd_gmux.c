/*
 * Commands that NVIDIA's program does not have: they serve what gmux(1) shows and sets. The answers
 * are for programs to read: one line for each thing, and a tab between two fields.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "control/command.h"
#include "control/conn.h"
#include "control/group.h"
#include "control/link.h"
#include "control/users.h"

/* --- clients ---------------------------------------------------------------------------------- */

static const char *state_of(const struct ctl_client *c, const struct wire_client_usage *u)
{
    for (unsigned i = 0; i < c->contexts_count; i++)
        if (c->contexts[i].device == u->device && !u->failed)
            return "active";
    return u->failed ? "failed" : c->connected ? "idle" : "starting";
}

void ctl_cmd_clients_row(struct ctl_request *r, const struct ctl_server *s,
                         const struct ctl_client *c, const struct wire_client_usage *u)
{
    char limit[24] = "-";
    if (u->memory_limit != UINT64_MAX)
        snprintf(limit, sizeof(limit), "%llu", (unsigned long long)u->memory_limit);
    bool may = ctl_request_may(r, c->uid);
    ctl_reply(r, "%u\t%u\t%s\t%s\t%.1f\t%s\t%llu\t%s\t%s\t%s\t%.1f\n", c->key, (unsigned)c->uid,
              u->device < s->devices_count ? s->devices[u->device].uuid : "-", state_of(c, u),
              u->share_pct, u->priority == 1 ? "low" : "normal", (unsigned long long)u->memory_used,
              limit, may ? c->command : "-", c->group && may ? c->group->name : "-",
              s->guarantees ? c->wish.guarantee_pct : 0);
}

void ctl_cmd_clients(struct ctl_request *r)
{
    const char *word = ctl_words_at(&r->words, 1);
    struct ctl_server *s = ctl_server_find(r->daemon, word);
    if (!s)
        ctl_reply(r, "Server %s not found\n", word);
    else if (s->channel && (s->state == CTL_SERVER_ACTIVE || s->state == CTL_SERVER_STOPPING))
        ctl_server_ask_usage(s, r, ctl_cmd_clients_row);
}

/* --- pending ---------------------------------------------------------------------------------- */

static void pending_row(struct ctl_request *r, const struct ctl_conn *c, const char *why)
{
    uint64_t since = c->deadline_ns - CTL_HELLO_MS * GM_NS_PER_MS;
    bool may = ctl_request_may(r, c->peer.uid);
    ctl_reply(r, "%d\t%u\t%.1f\t%s\t%s\t%s\n", (int)c->peer.pid, (unsigned)c->peer.uid,
              (double)(gm_now_ns() - since) / 1e9, why, may ? c->command : "-",
              may && *c->wish.group ? c->wish.group : "-");
}

void ctl_cmd_pending(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        gm_list_for_each (c, &s->pending, struct ctl_conn, waiting)
            pending_row(r, c,
                        s->state == CTL_SERVER_RETRYING
                            ? "its server died at start and is started again"
                        : s->state == CTL_SERVER_STARTING ? "its server starts"
                                                          : "its server is about to end");
    gm_list_for_each (c, &d->queue, struct ctl_conn, waiting)
        pending_row(r, c, "another user's server has the device");
}

/* --- limits of clients, users and groups ------------------------------------------------------ */

/* Reads limits from the words from `first` on. Returns false after it has replied what is wrong. */
static bool read_limits(struct ctl_request *r, unsigned first, enum ctl_wish_of of,
                        struct ctl_wish *wish)
{
    const char *why = r->words.count > first ? NULL : ctl_wish_words(of);
    for (unsigned i = first; i < r->words.count && !why; i++)
        why = ctl_wish_set(wish, of, r->words.word[i]);
    if (why)
        ctl_reply(r, "%s\n", why);
    return !why;
}

/* Whether the user may have this guarantee. Replies if not. A guarantee takes from other users, and
 * only some devices can give one. */
static bool may_guarantee(struct ctl_request *r, uid_t uid, const struct ctl_wish *old,
                          const struct ctl_wish *wish)
{
    const struct ctl_daemon *d = r->daemon;
    bool given = true;
    if (wish->guarantee_pct <= 0 || (old && wish->guarantee_pct <= old->guarantee_pct))
        return true;
    if (d->options.multiuser && r->conn && !r->conn->trusted) {
        ctl_reply(r, "Users share one server: guarantees are root's to give\n");
        return false;
    }
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (s->state == CTL_SERVER_ACTIVE && (d->options.multiuser || s->uid == uid))
            given &= s->guarantees;
    if (!given)
        ctl_reply(r, "The device gives no guarantees\n");
    return given;
}

void ctl_cmd_limit_client(struct ctl_request *r)
{
    const char *server_word = ctl_words_at(&r->words, 1);
    const char *client_word = ctl_words_at(&r->words, 2);
    struct ctl_server *s = ctl_server_find(r->daemon, server_word);
    struct ctl_client *c = NULL;
    uint64_t key;
    if (s && gm_parse_u64(client_word, UINT32_MAX, &key))
        c = ctl_server_client(s, (uint32_t)key);
    if (!s) {
        ctl_reply(r, "Server %s not found\n", server_word);
    } else if (!c) {
        ctl_reply(r, "Client %s not found\n", client_word);
    } else if (!ctl_request_may(r, c->uid)) {
        ctl_reply(r, "Client %s is another user's\n", client_word);
    } else {
        struct ctl_wish wish = c->wish;
        if (!read_limits(r, 3, CTL_OF_CLIENT, &wish) || !may_guarantee(r, c->uid, &c->wish, &wish))
            return;
        if (*wish.group && !s->knows_groups) {
            ctl_reply(r, "Server %s is of a version before groups\n", server_word);
        } else {
            ctl_client_set_wish(s, c, &wish);
            ctl_reply(r, "0\n");
        }
    }
}

void ctl_cmd_limit_user(struct ctl_request *r)
{
    const char *word = ctl_words_at(&r->words, 1);
    uid_t uid;
    if (!ctl_user_named(word, &uid)) {
        ctl_reply(r, "User %s not found\n", word);
        return;
    }
    const struct ctl_wish *old = ctl_user_limits(r->daemon, uid);
    struct ctl_wish limits = old ? *old : (struct ctl_wish) { .priority = -1 };
    if (!read_limits(r, 2, CTL_OF_USER, &limits))
        return;
    if (ctl_user_set_limits(r->daemon, uid, &limits))
        ctl_reply(r, "0\n");
    else
        ctl_reply(r, "out of memory\n");
}

/* The argument is NAME, a group of the user who asks, or USER/NAME. */
void ctl_cmd_limit_group(struct ctl_request *r)
{
    const char *word = ctl_words_at(&r->words, 1);
    const char *slash = strrchr(word, '/');
    const char *name = slash ? slash + 1 : word;
    char user[64];
    uid_t uid = r->conn ? r->conn->peer.uid : r->daemon->uid;
    snprintf(user, sizeof(user), "%.*s", (int)(slash ? slash - word : 0), word);
    if (!ctl_group_is_name(name)) {
        ctl_reply(
            r,
            "\"%s\" is no group: its name has letters, digits, '.', '_' and '-', not only digits\n",
            word);
        return;
    }
    if (slash && !ctl_user_named(user, &uid)) {
        ctl_reply(r, "User %s not found\n", user);
        return;
    }
    if (!ctl_request_may(r, uid)) {
        ctl_reply(r, "Group %s is another user's\n", word);
        return;
    }
    const struct ctl_wish *old = ctl_group_limits(r->daemon, uid, name);
    struct ctl_wish limits = old ? *old : (struct ctl_wish) { .priority = -1 };
    if (!read_limits(r, 2, CTL_OF_GROUP, &limits) || !may_guarantee(r, uid, old, &limits))
        return;
    const char *why = ctl_group_set(r->daemon, uid, name, &limits);
    ctl_reply(r, "%s\n", why ? why : "0");
}

void ctl_cmd_groups(struct ctl_request *r)
{
    gm_list_for_each (g, &r->daemon->groups, struct ctl_group, link) {
        const char *size = strchr(g->limits.memory, '=');
        if (ctl_request_may(r, g->uid))
            ctl_reply(r, "%s\t%u\t%u\t%.1f\t%.1f\t%s\n", g->name, (unsigned)g->uid, g->clients,
                      g->limits.share_pct > 0 ? g->limits.share_pct : 100, g->limits.guarantee_pct,
                      size ? size + 1 : "-");
    }
}
