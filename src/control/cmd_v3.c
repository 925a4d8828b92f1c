/*
 * Protocol 3's commands about servers, clients and devices.
 */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "control/conn.h"
#include "control/door.h"
#include "control/link.h"
#include "control/listing.h"
#include "control/module.h"
#include "control/queue.h"
#include "control/state.h"

/* Finds the server that the first word names. Replies if there is none. */
static struct ctl_named *named_server(struct ctl_request *r)
{
    const char *name = ctl_words_plain(&r->words, 0);
    struct ctl_named *n = ctl_named_find(r->daemon, name);
    if (!n)
        ctl_reply(r, "Server %s not found\n", name);
    return n;
}

/* Returns the user as whom the server of all users runs (-M). */
static uid_t shared_by(const struct ctl_daemon *d)
{
    return d->options.has_server_user ? d->options.server_uid : d->uid;
}

/* --- servers ---------------------------------------------------------------------------------- */

/* Finds out which server is to be made: the user of --uid, or of a name uid_UID, or the daemon's
 * own user. Without a name the server is called uid_UID. */
static bool wanted_server(const struct ctl_request *r, uid_t *uid,
                          char name[CTL_SERVER_NAME_MAX + 1])
{
    const char *word = ctl_words_option(&r->words, "uid");
    const char *given = ctl_words_plain(&r->words, 0);
    uint64_t number = shared_by(r->daemon);
    if (word && !gm_parse_u64(word, CTL_UID_MAX, &number))
        return false;
    *uid = (uid_t)number;
    if (!word)
        ctl_name_is_user(given, uid);
    if (!*given)
        ctl_name_of_user(*uid, name);
    else /* a name that is too long is no name */
        snprintf(name, CTL_SERVER_NAME_MAX + 1, "%s",
                 strlen(given) > CTL_SERVER_NAME_MAX ? "-" : given);
    return word || *given;
}

static bool is_yes(const char *word)
{
    return word && strcmp(word, "false") != 0 && strcmp(word, "0") != 0;
}

/* Makes the server. If it exists already it must belong to the same user. Returns NULL, with the
 * reason in `*why`. */
static struct ctl_named *create(struct ctl_request *r, uid_t uid, const char *name,
                                const char **why)
{
    struct ctl_daemon *d = r->daemon;
    const char *allowed = ctl_words_option(&r->words, "allowed-devices");
    struct ctl_named *n = ctl_named_find(d, name);
    if (n) {
        *why = n->uid != uid                                 ? "another user's has that name"
               : allowed && strcmp(allowed, n->allowed) != 0 ? "it is there, with other devices"
                                                             : NULL;
        return *why ? NULL : n;
    }
    n = ctl_named_make(d, name, uid, why);
    if (!n)
        return NULL;
    if (allowed)
        *why = ctl_named_allow(d, n, allowed);
    if (!*why)
        *why = ctl_door_open(d, n);
    if (!*why)
        return n;
    ctl_door_close_server(d, n);
    ctl_named_free(n);
    return NULL;
}

void ctl_v3_server_create(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    char name[CTL_SERVER_NAME_MAX + 1];
    const char *problem = NULL;
    struct ctl_named *n = NULL;
    uid_t uid;
    if (is_yes(ctl_words_option(&r->words, "locality-domains")))
        problem = "--locality-domains: devices are not divided";
    else if (!wanted_server(r, &uid, name))
        problem = "--uid is no user's number, or neither it nor a name is there";
    else if (d->options.multiuser && uid != shared_by(d))
        problem = "all users share one server";
    else if (d->uid != 0 && uid != d->uid)
        problem = "the daemon does not run as root: it can start servers for its own user only";
    else if (d->quitting)
        problem = "the daemon is about to end";
    else
        n = create(r, uid, name, &problem);
    if (n && !problem && !d->restoring)
        problem = ctl_queue_start(d, uid, n);
    if (problem)
        ctl_reply(r, "server create: %s\n", problem);
    else
        ctl_state_save(d);
}

static bool is_used(const struct ctl_daemon *d, const struct ctl_named *n)
{
    const struct ctl_server *s = ctl_v3_process(d, n);
    bool used = s && (s->clients_count || !gm_list_empty(&s->pending));
    gm_list_for_each (c, &d->conns, struct ctl_conn, link)
        used |= c->space && c->space->server == n && c->phase == CTL_CONN_WAITING;
    return used;
}

void ctl_v3_server_delete(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    bool force = ctl_words_option(&r->words, "force") != NULL;
    struct ctl_named *n = named_server(r);
    if (!n)
        return;
    if (!force && is_used(d, n)) {
        ctl_reply(r, "server delete: %s has clients; --force ends it in any case\n", n->name);
        return;
    }
    struct ctl_server *s = ctl_v3_process(d, n);
    ctl_queue_forget(d, n);
    ctl_door_close_server(d, n);
    ctl_named_free(n);
    ctl_state_save(d);
    if (s)
        ctl_server_shutdown(s, force);
}

static const char *const server_columns[] = {
    "name", "uid", "pid", "status", "pipe-directory", "allowed-devices", "context-ids"
};
#define SERVER_COLUMNS GM_ARRAY_LEN(server_columns)
_Static_assert(SERVER_COLUMNS <= CTL_COLUMNS_MAX, "room");
_Static_assert(CTL_VISIBLE_MAX >= CTL_DEVICES_MAX * sizeof(((struct ctl_device *)0)->uuid), "room");

struct server_cells {
    char uid[16], pid[16], directory[512];
    char devices[CTL_VISIBLE_MAX + 1];
    const char *cells[SERVER_COLUMNS];
};

static void fill_server(const struct ctl_daemon *d, const struct ctl_named *n,
                        struct server_cells *out)
{
    const struct ctl_server *s = ctl_v3_process(d, n);
    const bool runs = s && s->pid > 0;
    size_t size = 0;
    snprintf(out->uid, sizeof(out->uid), "%u", (unsigned)n->uid);
    snprintf(out->pid, sizeof(out->pid), "%d", runs ? (int)s->pid : 0);
    snprintf(out->devices, sizeof(out->devices), "%s", *n->allowed ? n->allowed : "-");
    for (char *p = out->devices; *p; p++)
        *p = *p == ',' ? ';' : *p;
    for (unsigned i = 0; s && i < s->devices_count && s->state == CTL_SERVER_ACTIVE; i++)
        size += (size_t)snprintf(out->devices + size, sizeof(out->devices) - size, "%s%s",
                                 i ? ";" : "", s->devices[i].uuid);
    ctl_door_directory(d, ctl_space_default(n), true, out->directory, sizeof(out->directory));
    const char *cells[] = {
        n->name,      out->uid, runs ? out->pid : "-", ctl_v3_status(s), out->directory,
        out->devices, "-"
    };
    memcpy(out->cells, cells, sizeof(cells));
}

static void server_rows(struct ctl_listing *l)
{
    const char *name = ctl_words_plain(&l->request->words, 0);
    gm_list_for_each (n, &l->request->daemon->names, struct ctl_named, link) {
        struct server_cells cells;
        if (*name && strcmp(name, n->name) != 0)
            continue;
        fill_server(l->request->daemon, n, &cells);
        ctl_listing_row(l, cells.cells);
    }
}

void ctl_v3_server_list(struct ctl_request *r)
{
    if (!*ctl_words_plain(&r->words, 0) || named_server(r))
        ctl_listing(r, server_columns, SERVER_COLUMNS, server_rows);
}

void ctl_v3_server_set(struct ctl_request *r)
{
    struct ctl_named *n = named_server(r);
    if (!n)
        return;
    if (is_yes(ctl_words_option(&r->words, "locality-domains")))
        ctl_reply(r, "server set: --locality-domains: devices are not divided\n");
    else if (ctl_words_option(&r->words, "uid"))
        ctl_reply(r, "server set: --uid: whose a server is is said when it is created\n");
    else
        ctl_v3_space_change(r, "server set", ctl_space_default(n));
}

void ctl_v3_server_get(struct ctl_request *r)
{
    const char *field = ctl_words_plain(&r->words, 1);
    const struct ctl_named *n = named_server(r);
    char value[sizeof(((struct ctl_wish *)0)->memory)];
    struct server_cells cells;
    if (!n)
        return;
    fill_server(r->daemon, n, &cells);
    for (unsigned i = 0; i < SERVER_COLUMNS; i++)
        if (strcmp(field, server_columns[i]) == 0) {
            ctl_reply(r, "%s\n", cells.cells[i]);
            return;
        }
    if (ctl_space_get(ctl_space_default(n), field, value, sizeof(value)))
        ctl_reply(r, "%s\n", value);
    else
        ctl_reply(r, "server get: there is no field %s\n", field);
}

/* --- clients ---------------------------------------------------------------------------------- */

static const char *const client_fields[] = { "pid", "server", "device",  "maws-ns",
                                             "cmd", "pci-id", "linux-ns" };
#define CLIENT_COLUMNS 5 /* how many of the fields the list shows */
#define CLIENT_FIELDS  GM_ARRAY_LEN(client_fields)

struct client_cells {
    char pid[16], device[16], namespace[24];
    const char *cells[CLIENT_FIELDS];
};

static void fill_client(const struct ctl_request *r, const struct ctl_server *s,
                        const struct ctl_client *c, struct client_cells *out)
{
    const char *pci = "-";
    snprintf(out->pid, sizeof(out->pid), "%u", c->key);
    snprintf(out->device, sizeof(out->device), "-");
    if (c->contexts_count) {
        snprintf(out->device, sizeof(out->device), "%u", c->contexts[0].device);
        if (c->contexts[0].device < s->devices_count)
            pci = s->devices[c->contexts[0].device].pci;
    }
    snprintf(out->namespace, sizeof(out->namespace), "-");
    if (c->pid_namespace)
        snprintf(out->namespace, sizeof(out->namespace), "%llu",
                 (unsigned long long)c->pid_namespace);
    const char *command = ctl_request_may(r, c->uid) ? c->command : "-";
    const char *cells[] = { out->pid, s->name, out->device,   c->space ? c->space->name : "-",
                            command,  pci,     out->namespace };
    memcpy(out->cells, cells, sizeof(cells));
}

static void client_rows(struct ctl_listing *l)
{
    const struct ctl_request *r = l->request;
    const char *name = ctl_words_option(&r->words, "server");
    bool all = ctl_words_option(&r->words, "all") != NULL;
    gm_list_for_each (s, &r->daemon->servers, struct ctl_server, link)
        gm_list_for_each (c, &s->clients, struct ctl_client, link) {
            struct client_cells cells;
            fill_client(r, s, c, &cells);
            if ((all || c->contexts_count) && (!name || strcmp(name, s->name) == 0))
                ctl_listing_row(l, cells.cells);
        }
}

void ctl_v3_client_list(struct ctl_request *r)
{
    const char *name = ctl_words_option(&r->words, "server");
    if (name && !ctl_named_find(r->daemon, name))
        ctl_reply(r, "Server %s not found\n", name);
    else
        ctl_listing(r, client_fields, CLIENT_COLUMNS, client_rows);
}

/* Finds the client that the first word names, and its server. Replies if there is none. */
static struct ctl_client *named_client(struct ctl_request *r, struct ctl_server **server)
{
    const char *word = ctl_words_plain(&r->words, 0);
    uint64_t key;
    if (gm_parse_u64(word, UINT32_MAX, &key))
        gm_list_for_each (s, &r->daemon->servers, struct ctl_server, link) {
            struct ctl_client *c = ctl_server_client(s, (uint32_t)key);
            *server = s;
            if (c)
                return c;
        }
    ctl_reply(r, "Client %s not found\n", word);
    return NULL;
}

void ctl_v3_client_get(struct ctl_request *r)
{
    const char *field = ctl_words_plain(&r->words, 1);
    struct ctl_server *s;
    const struct ctl_client *c = named_client(r, &s);
    struct client_cells cells;
    if (!c)
        return;
    fill_client(r, s, c, &cells);
    for (unsigned i = 0; i < CLIENT_FIELDS; i++)
        if (strcmp(field, client_fields[i]) == 0) {
            ctl_reply(r, "%s\n", cells.cells[i]);
            return;
        }
    ctl_reply(r, "client get: there is no field %s\n", field);
}

void ctl_v3_client_terminate(struct ctl_request *r)
{
    struct ctl_server *s;
    const struct ctl_client *c = named_client(r, &s);
    if (!c)
        return;
    if (ctl_request_may(r, c->uid))
        ctl_server_terminate(s, c->key, r);
    else
        ctl_reply(r, "Client %s is another user's\n", ctl_words_plain(&r->words, 0));
}

/* --- devices ---------------------------------------------------------------------------------- */

static void device_row(struct ctl_listing *l, const struct ctl_server *s, unsigned i)
{
    const struct ctl_daemon *d = s->daemon;
    const struct ctl_device *device = &s->devices[i];
    const struct ctl_parts *parts = &device->parts;
    char ordinal[16], size[16] = "-", chunks[16] = "-";
    /* A server that has all devices has described them. */
    for (unsigned j = 0; j < d->devices_count; j++)
        if (strcmp(d->devices[j].uuid, device->uuid) == 0)
            parts = &d->devices[j].parts;
    snprintf(ordinal, sizeof(ordinal), "%u", i);
    if (parts->multiprocessors) {
        snprintf(size, sizeof(size), "%u", parts->multiprocessors);
        snprintf(chunks, sizeof(chunks), "%u", parts->groups);
    }
    const char *cells[] = { ordinal,      s->name, device->pci, device->uuid,
                            device->name, size,    chunks,      "N/A" };
    ctl_listing_row(l, cells);
}

static void device_rows(struct ctl_listing *l)
{
    const char *name = ctl_words_option(&l->request->words, "server");
    gm_list_for_each (s, &l->request->daemon->servers, struct ctl_server, link)
        for (unsigned i = 0; i < s->devices_count && s->state == CTL_SERVER_ACTIVE; i++)
            if (!name || strcmp(name, s->name) == 0)
                device_row(l, s, i);
}

void ctl_v3_device_list(struct ctl_request *r)
{
    static const char *const names[] = { "Ordinal", "Server",    "PCI ID",       "Device UUID",
                                         "Name",    "Total SMs", "Total Chunks", "Attributes" };
    const char *name = ctl_words_option(&r->words, "server");
    if (name && !ctl_named_find(r->daemon, name))
        ctl_reply(r, "Server %s not found\n", name);
    else
        ctl_listing(r, names, GM_ARRAY_LEN(names), device_rows);
}
