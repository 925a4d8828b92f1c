/*
 * Commands that NVIDIA's program does not have: what gmux(1) shows and sets. Their answers are for programs: a line
 * for each thing, fields with tabs between them, nothing that has to be guessed from columns.
 */
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "control/command.h"
#include "control/link.h"
#include "control/users.h"

/* ---- clients ---- */

void ctl_cmd_clients(struct ctl_request *r)
{
    const char *word = ctl_words_at(&r->words, 1);
    struct ctl_server *s = ctl_server_find(r->daemon, word);
    if (!s)
        ctl_reply(r, "Server %s not found\n", word);
    else if (s->channel && (s->state == CTL_SERVER_ACTIVE || s->state == CTL_SERVER_STOPPING))
        ctl_server_ask_usage(s, r);
}

static const char *state_of(const struct ctl_client *c, const struct wire_client_usage *u)
{
    for (unsigned i = 0; i < c->contexts_count; i++)
        if (c->contexts[i].device == u->device && !u->failed)
            return "active";
    return u->failed ? "failed" : c->connected ? "idle" : "starting";
}

void ctl_cmd_clients_row(struct ctl_request *r, const struct ctl_server *s, const struct ctl_client *c,
                         const struct wire_client_usage *u)
{
    const struct ctl_daemon *d = s->daemon;
    char limit[24] = "-";
    if (u->memory_limit != UINT64_MAX)
        snprintf(limit, sizeof(limit), "%llu", (unsigned long long)u->memory_limit);
    ctl_reply(r, "%u\t%u\t%s\t%s\t%.1f\t%s\t%llu\t%s\t%s\n", c->key, (unsigned)c->uid,
              u->device < d->devices_count ? d->devices[u->device].uuid : "-", state_of(c, u), u->share_pct,
              u->priority == 1 ? "low" : "normal", (unsigned long long)u->memory_used, limit,
              ctl_request_may(r, c->uid) ? c->command : "-");
}

/* ---- pending ---- */

static void pending_row(struct ctl_request *r, const struct ctl_conn *c, const char *why)
{
    uint64_t since = c->deadline_ns - CTL_HELLO_MS * GM_NS_PER_MS;
    ctl_reply(r, "%d\t%u\t%.1f\t%s\t%s\n", (int)c->peer.pid, (unsigned)c->peer.uid,
              (double)(gm_now_ns() - since) / 1e9, why, ctl_request_may(r, c->peer.uid) ? c->command : "-");
}

void ctl_cmd_pending(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        gm_list_for_each (c, &s->pending, struct ctl_conn, waiting)
            pending_row(r, c,
                        s->state == CTL_SERVER_RETRYING   ? "its server died at start and is started again"
                        : s->state == CTL_SERVER_STARTING ? "its server starts"
                                                          : "its server is about to end");
    gm_list_for_each (c, &d->queue, struct ctl_conn, waiting)
        pending_row(r, c, "another user's server has the device");
}

/* ---- limits of clients and users ---- */

/* The words from `first` on. False once the answer says why not. */
static bool read_limits(struct ctl_request *r, unsigned first, struct ctl_wish *wish)
{
    const char *why = r->words.count > first ? NULL : "limits are share=, memory= and priority=";
    for (unsigned i = first; i < r->words.count && !why; i++)
        why = ctl_wish_set(wish, r->words.word[i]);
    if (why)
        ctl_reply(r, "%s\n", why);
    return !why;
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
        if (read_limits(r, 3, &wish)) {
            ctl_client_set_wish(s, c, &wish);
            ctl_reply(r, "0\n");
        }
    }
}

void ctl_cmd_limit_user(struct ctl_request *r)
{
    const char *word = ctl_words_at(&r->words, 1);
    const struct passwd *pw = getpwnam(word);
    uint64_t uid;
    if (pw) {
        uid = pw->pw_uid;
    } else if (!gm_parse_u64(word, UINT32_MAX - 1, &uid)) {
        ctl_reply(r, "User %s not found\n", word);
        return;
    }
    const struct ctl_wish *old = ctl_user_limits(r->daemon, (uid_t)uid);
    struct ctl_wish limits = old ? *old : (struct ctl_wish) { .priority = -1 };
    if (!read_limits(r, 2, &limits))
        return;
    if (ctl_user_set_limits(r->daemon, (uid_t)uid, &limits))
        ctl_reply(r, "0\n");
    else
        ctl_reply(r, "out of memory\n");
}
