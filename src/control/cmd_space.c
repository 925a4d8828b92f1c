/*
 * Commands of protocol 3 about namespaces. A namespace is a directory of a server's; it sets limits
 * for the programs that connect there.
 */
#include <stdio.h>
#include <string.h>

#include "control/door.h"
#include "control/listing.h"
#include "control/module.h"
#include "control/queue.h"
#include "control/state.h"
#include "control/users.h"

struct ctl_server *ctl_v3_process(const struct ctl_daemon *d, const struct ctl_named *n)
{
    struct ctl_server *found = NULL;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (s->named == n && (!found || s->state != CTL_SERVER_STOPPING))
            found = s;
    return found;
}

const char *ctl_v3_status(const struct ctl_server *s)
{
    return !s                                ? "Stopped"
           : s->state == CTL_SERVER_ACTIVE   ? "Ready"
           : s->state == CTL_SERVER_STOPPING ? "Stopping"
                                             : "Starting";
}

/* Finds the namespace that the request names in that server. Replies if there is none. */
static struct ctl_space *named_space(struct ctl_request *r, const char *server)
{
    const char *name = ctl_words_plain(&r->words, 0);
    const struct ctl_named *n = server ? ctl_named_find(r->daemon, server) : NULL;
    struct ctl_space *s = n ? ctl_space_find(n, name) : NULL;
    if (!server)
        ctl_reply(r, "namespace %s: --server= is needed\n", ctl_words_at(&r->words, 1));
    else if (!n)
        ctl_reply(r, "Server %s not found\n", server);
    else if (!s)
        ctl_reply(r, "Namespace %s not found in server %s\n", name, server);
    return s;
}

void ctl_v3_space_create(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    const char *name = ctl_words_plain(&r->words, 0), *why = NULL;
    const char *server = ctl_words_option(&r->words, "server");
    struct ctl_named *n = server ? ctl_named_find(d, server) : NULL;
    if (!server)
        why = "--server= is needed";
    else if (!n) {
        ctl_reply(r, "Server %s not found\n", server);
        return;
    }
    struct ctl_space *s = why ? NULL : ctl_space_make(n, name, &why);
    if (s)
        why = ctl_door_open(d, n);
    if (!why) {
        ctl_state_save(d);
        return;
    }
    ctl_reply(r, "namespace create: %s\n", why);
    if (s) {
        ctl_door_close(d, s);
        ctl_space_free(s);
    }
}

static unsigned count_clients(const struct ctl_daemon *d, const struct ctl_space *space)
{
    unsigned n = 0;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        gm_list_for_each (c, &s->clients, struct ctl_client, link)
            n += c->space == space;
    return n;
}

/* Deletes a namespace. Programs that are in it stay with the server, in its namespace `default`. */
void ctl_v3_space_delete(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    struct ctl_space *s = named_space(r, ctl_words_option(&r->words, "server"));
    if (!s)
        return;
    if (s == ctl_space_default(s->server)) {
        ctl_reply(r, "namespace delete: default goes with its server\n");
    } else if (!ctl_words_option(&r->words, "force") && count_clients(d, s)) {
        ctl_reply(r, "namespace delete: %s has clients; --force deletes it in any case\n", s->name);
    } else {
        ctl_queue_forget_space(d, s);
        ctl_door_close(d, s);
        ctl_space_free(s);
        ctl_state_save(d);
    }
}

void ctl_v3_space_change(struct ctl_request *r, const char *command, struct ctl_space *s)
{
    static const char *const fields[] = { "active-thread-percentage", "pinned-memory-limit",
                                          "client-priority" };
    struct ctl_space changed = *s;
    unsigned given = 0;
    for (size_t i = 0; i < GM_ARRAY_LEN(fields); i++) {
        const char *value = ctl_words_option(&r->words, fields[i]);
        const char *why = value ? ctl_space_set(&changed, fields[i], value) : NULL;
        given += value != NULL;
        if (why) {
            ctl_reply(r, "%s: %s\n", command, why);
            return;
        }
    }
    if (!given) {
        ctl_reply(r, "%s: a FIELD=VALUE is needed\n", command);
        return;
    }
    s->limits = changed.limits;
    gm_list_for_each (server, &r->daemon->servers, struct ctl_server, link)
        gm_list_for_each (c, &server->clients, struct ctl_client, link)
            if (c->space == s)
                ctl_client_send_limits(server, c);
    ctl_state_save(r->daemon);
}

void ctl_v3_space_set(struct ctl_request *r)
{
    struct ctl_space *s = named_space(r, ctl_words_option(&r->words, "server"));
    if (s)
        ctl_v3_space_change(r, "namespace set", s);
}

static const char *const columns[] = { "name",
                                       "server",
                                       "server-status",
                                       "pinned-memory-limit",
                                       "active-thread-percentage",
                                       "client-priority",
                                       "pipe-directory" };
#define COLUMNS GM_ARRAY_LEN(columns)
_Static_assert(COLUMNS <= CTL_COLUMNS_MAX, "room");

struct cells {
    char limits[3][sizeof(((struct ctl_wish *)0)->memory)], directory[512];
    const char *cells[COLUMNS];
};

static void fill(const struct ctl_daemon *d, const struct ctl_space *s, struct cells *out)
{
    for (unsigned i = 0; i < 3; i++)
        ctl_space_get(s, columns[3 + i], out->limits[i], sizeof(out->limits[i]));
    ctl_door_directory(d, s, false, out->directory, sizeof(out->directory));
    const char *cells[] = {
        s->name,        s->server->name, ctl_v3_status(ctl_v3_process(d, s->server)),
        out->limits[0], out->limits[1],  out->limits[2],
        out->directory
    };
    memcpy(out->cells, cells, sizeof(cells));
}

static void rows(struct ctl_listing *l)
{
    const struct ctl_request *r = l->request;
    const char *name = ctl_words_plain(&r->words, 0);
    const char *server = ctl_words_option(&r->words, "server");
    gm_list_for_each (n, &r->daemon->names, struct ctl_named, link)
        gm_list_for_each (s, &n->spaces, struct ctl_space, link) {
            struct cells cells;
            if ((*name && strcmp(name, s->name) != 0) || (server && strcmp(server, n->name) != 0))
                continue;
            fill(r->daemon, s, &cells);
            ctl_listing_row(l, cells.cells);
        }
}

void ctl_v3_space_list(struct ctl_request *r)
{
    const char *server = ctl_words_option(&r->words, "server");
    if (server && !ctl_named_find(r->daemon, server))
        ctl_reply(r, "Server %s not found\n", server);
    else
        ctl_listing(r, columns, COLUMNS, rows);
}

void ctl_v3_space_get(struct ctl_request *r)
{
    const char *field = ctl_words_plain(&r->words, 2);
    const struct ctl_space *s = named_space(r, ctl_words_plain(&r->words, 1));
    struct cells cells;
    if (!s)
        return;
    fill(r->daemon, s, &cells);
    for (unsigned i = 0; i < COLUMNS; i++)
        if (strcmp(field, columns[i]) == 0) {
            ctl_reply(r, "%s\n", cells.cells[i]);
            return;
        }
    ctl_reply(r, "namespace get: there is no field %s\n", field);
}
