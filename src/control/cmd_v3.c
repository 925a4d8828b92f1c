/*
 * Protocol 3's commands about servers, clients and devices.
 */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "control/link.h"
#include "control/listing.h"
#include "control/module.h"
#include "control/name.h"
#include "control/queue.h"
#include "control/state.h"

#define NAME_MAX_BYTES (CTL_SERVER_NAME_MAX + 1)

static void server_name(const struct ctl_server *s, char out[NAME_MAX_BYTES])
{
    ctl_name_of(s->daemon, s->uid, out);
}

/* Beside the server that takes clients there may be one of the same user that is about to end. */
static struct ctl_server *find_server(struct ctl_daemon *d, const char *name)
{
    struct ctl_server *found = NULL;
    uid_t uid;
    if (!ctl_name_find(d, name, &uid))
        return NULL;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (s->uid == uid && (!found || s->state != CTL_SERVER_STOPPING))
            found = s;
    return found;
}

/* The server that the first word names; replies if there is none. */
static struct ctl_server *named_server(struct ctl_request *r)
{
    const char *name = ctl_words_plain(&r->words, 0);
    struct ctl_server *s = find_server(r->daemon, name);
    if (!s)
        ctl_reply(r, "Server %s not found\n", name);
    return s;
}

/* With -M, as whom all users' server runs. */
static uid_t shared_by(const struct ctl_daemon *d)
{
    return d->options.has_server_user ? d->options.server_uid : d->uid;
}

/* --- servers ---------------------------------------------------------------------------------- */

/* Of --uid, of the name if it is uid_UID, or the daemon's own. */
static bool wanted_uid(const struct ctl_request *r, const char *name, uid_t *uid)
{
    const char *word = ctl_words_option(&r->words, "uid");
    uint64_t number = r->daemon->uid;
    if (word && !gm_parse_u64(word, CTL_UID_MAX, &number))
        return false;
    *uid = (uid_t)number;
    return word || ctl_name_find(r->daemon, name, uid) || *name;
}

/* A server that runs keeps the name that it has. */
static bool runs_by_another(struct ctl_daemon *d, uid_t uid, const char *name)
{
    char own[NAME_MAX_BYTES];
    ctl_name_of(d, uid, own);
    return strcmp(own, name) != 0 && find_server(d, own);
}

void ctl_v3_server_create(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    const char *name = ctl_words_plain(&r->words, 0), *problem = NULL;
    uid_t uid = d->uid;
    if (ctl_words_option(&r->words, "allowed-devices"))
        problem = "--allowed-devices: servers have all devices that the daemon's "
                  "CUDA_VISIBLE_DEVICES leaves";
    else if (ctl_words_option(&r->words, "locality-domains"))
        problem = "--locality-domains: devices are not divided";
    else if (!wanted_uid(r, name, &uid))
        problem = "--uid is no user's number, or neither it nor a name is there";
    else if (d->options.multiuser && uid != shared_by(d))
        problem = "all users share one server";
    else if (d->quitting)
        problem = "the daemon is about to end";
    else if (*name && ctl_name_is_good(name) && runs_by_another(d, uid, name))
        problem = "its user's server has another name, and each user has one server";
    else if (*name)
        problem = ctl_name_set(d, uid, name);
    if (!problem)
        problem = ctl_queue_start(d, uid);
    if (problem)
        ctl_reply(r, "server create: %s\n", problem);
    else
        ctl_state_save(d);
}

void ctl_v3_server_delete(struct ctl_request *r)
{
    bool force = ctl_words_option(&r->words, "force") != NULL;
    struct ctl_server *s = named_server(r);
    if (!s)
        return;
    if (!force && (s->clients_count || !gm_list_empty(&s->pending)))
        ctl_reply(r, "server delete: %s has clients; --force ends it in any case\n",
                  ctl_words_plain(&r->words, 0));
    else {
        ctl_name_drop(r->daemon, s->uid);
        ctl_state_save(r->daemon);
        ctl_server_shutdown(s, force);
    }
}

static const char *const server_columns[] = {
    "name", "uid", "pid", "status", "pipe-directory", "allowed-devices", "context-ids"
};
#define SERVER_COLUMNS GM_ARRAY_LEN(server_columns)
_Static_assert(SERVER_COLUMNS <= CTL_COLUMNS_MAX, "room");

struct server_cells {
    char name[NAME_MAX_BYTES], uid[16], pid[16];
    char devices[CTL_DEVICES_MAX * sizeof(((struct ctl_device *)0)->uuid) + 2];
    const char *cells[SERVER_COLUMNS];
};

static const char *status_of(const struct ctl_server *s)
{
    return s->state == CTL_SERVER_ACTIVE     ? "Ready"
           : s->state == CTL_SERVER_STOPPING ? "Stopping"
                                             : "Starting";
}

static void fill_server(const struct ctl_server *s, struct server_cells *out)
{
    const struct ctl_daemon *d = s->daemon;
    size_t n = 0;
    server_name(s, out->name);
    snprintf(out->uid, sizeof(out->uid), "%u", (unsigned)s->uid);
    snprintf(out->pid, sizeof(out->pid), "%d", (int)s->pid);
    snprintf(out->devices, sizeof(out->devices), "-");
    for (unsigned i = 0; i < d->devices_count && s->state == CTL_SERVER_ACTIVE; i++)
        n += (size_t)snprintf(out->devices + n, sizeof(out->devices) - n, "%s%s", i ? ";" : "",
                              d->devices[i].uuid);
    const char *cells[] = { out->name,    out->uid,          s->pid > 0 ? out->pid : "-",
                            status_of(s), d->pipe_directory, out->devices,
                            "-" };
    memcpy(out->cells, cells, sizeof(cells));
}

static void server_rows(struct ctl_listing *l)
{
    gm_list_for_each (s, &l->request->daemon->servers, struct ctl_server, link) {
        struct server_cells cells;
        fill_server(s, &cells);
        ctl_listing_row(l, cells.cells);
    }
}

void ctl_v3_server_list(struct ctl_request *r)
{
    ctl_listing(r, server_columns, SERVER_COLUMNS, server_rows);
}

static const char *set_memory(struct ctl_limits *l, const char *value)
{
    struct ctl_limits read = { .memory_count = 0 };
    char again[CTL_MEMORY_TEXT_MAX + 1];
    if (!strchr(value, '='))
        return ctl_limits_set_memory(l, "*", value) ? NULL : "a number with G, M or K";
    ctl_limits_set_memory_list(&read, value);
    ctl_limits_memory_text(&read, again);
    if (strcmp(again, value) != 0)
        return "SIZE, or DEVICE=SIZE, or several of these with commas";
    for (unsigned i = 0; i < read.memory_count; i++)
        if (!ctl_limits_set_memory(l, read.memory[i].device, read.memory[i].value))
            return "too many";
    return NULL;
}

/* All of it, or nothing and why not. */
void ctl_v3_server_set(struct ctl_request *r)
{
    const char *share = ctl_words_option(&r->words, "active-thread-percentage");
    const char *memory = ctl_words_option(&r->words, "pinned-memory-limit");
    const char *priority = ctl_words_option(&r->words, "client-priority");
    struct ctl_server *s = named_server(r);
    if (!s)
        return;
    struct ctl_limits limits = s->limits;
    const char *why = memory ? set_memory(&limits, memory) : NULL;
    if (ctl_words_option(&r->words, "locality-domains"))
        ctl_reply(r, "server set: --locality-domains: devices are not divided\n");
    else if (!share && !memory && !priority)
        ctl_reply(r, "Usage: server set NAME FIELD=VALUE...\n");
    else if (share && !ctl_limits_set_share(&limits, share))
        ctl_reply(r, "server set: active-thread-percentage is above 0, up to 100\n");
    else if (priority && !ctl_limits_set_priority(&limits, priority))
        ctl_reply(r, "server set: client-priority is 0 or 1\n");
    else if (why)
        ctl_reply(r, "server set: pinned-memory-limit is %s\n", why);
    else {
        s->limits = limits;
        ctl_server_limits_changed(s);
    }
}

/* A limit for every device is shown as it was given. */
static void reply_memory(struct ctl_request *r, const struct ctl_limits *l)
{
    char text[CTL_MEMORY_TEXT_MAX + 1];
    ctl_limits_memory_text(l, text);
    bool every = l->memory_count == 1 && strncmp(text, "*=", 2) == 0;
    ctl_reply(r, "%s\n", !*text ? "-" : every ? text + 2 : text);
}

void ctl_v3_server_get(struct ctl_request *r)
{
    const char *field = ctl_words_plain(&r->words, 1);
    const struct ctl_server *s = named_server(r);
    struct server_cells cells;
    if (!s)
        return;
    fill_server(s, &cells);
    for (unsigned i = 0; i < SERVER_COLUMNS; i++)
        if (strcmp(field, server_columns[i]) == 0) {
            ctl_reply(r, "%s\n", cells.cells[i]);
            return;
        }
    if (strcmp(field, "active-thread-percentage") == 0)
        ctl_reply(r, "%g\n", s->limits.share_pct);
    else if (strcmp(field, "client-priority") == 0)
        ctl_reply(r, "%d\n", s->limits.priority);
    else if (strcmp(field, "pinned-memory-limit") == 0)
        reply_memory(r, &s->limits);
    else
        ctl_reply(r, "server get: there is no field %s\n", field);
}

/* --- clients ---------------------------------------------------------------------------------- */

static const char *const client_fields[] = { "pid", "server", "device",  "maws-ns",
                                             "cmd", "pci-id", "linux-ns" };
#define CLIENT_COLUMNS 5 /* of them in the list */
#define CLIENT_FIELDS  GM_ARRAY_LEN(client_fields)

struct client_cells {
    char pid[16], server[NAME_MAX_BYTES], device[16], namespace[24];
    const char *cells[CLIENT_FIELDS];
};

static void fill_client(const struct ctl_request *r, const struct ctl_server *s,
                        const struct ctl_client *c, struct client_cells *out)
{
    const struct ctl_daemon *d = s->daemon;
    const char *pci = "-";
    snprintf(out->pid, sizeof(out->pid), "%u", c->key);
    server_name(s, out->server);
    snprintf(out->device, sizeof(out->device), "-");
    if (c->contexts_count) {
        snprintf(out->device, sizeof(out->device), "%u", c->contexts[0].device);
        if (c->contexts[0].device < d->devices_count)
            pci = d->devices[c->contexts[0].device].pci;
    }
    snprintf(out->namespace, sizeof(out->namespace), "-");
    if (c->pid_namespace)
        snprintf(out->namespace, sizeof(out->namespace), "%llu",
                 (unsigned long long)c->pid_namespace);
    const char *command = ctl_request_may(r, c->uid) ? c->command : "-";
    const char *cells[] = { out->pid, out->server, out->device,   "default",
                            command,  pci,         out->namespace };
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
            if ((all || c->contexts_count) && (!name || strcmp(name, cells.server) == 0))
                ctl_listing_row(l, cells.cells);
        }
}

void ctl_v3_client_list(struct ctl_request *r)
{
    const char *name = ctl_words_option(&r->words, "server");
    if (name && !find_server(r->daemon, name))
        ctl_reply(r, "Server %s not found\n", name);
    else
        ctl_listing(r, client_fields, CLIENT_COLUMNS, client_rows);
}

/* The client that the first word names, and its server; replies if there is none. */
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

static void device_rows(struct ctl_listing *l)
{
    const struct ctl_daemon *d = l->request->daemon;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        for (unsigned i = 0; i < d->devices_count && s->state == CTL_SERVER_ACTIVE; i++) {
            const struct ctl_device *device = &d->devices[i];
            char ordinal[16], name[NAME_MAX_BYTES], size[16] = "-", chunks[16] = "-";
            snprintf(ordinal, sizeof(ordinal), "%u", i);
            if (device->parts.multiprocessors) {
                snprintf(size, sizeof(size), "%u", device->parts.multiprocessors);
                snprintf(chunks, sizeof(chunks), "%u", device->parts.groups);
            }
            server_name(s, name);
            const char *cells[] = { ordinal,      name, device->pci, device->uuid,
                                    device->name, size, chunks,      "N/A" };
            ctl_listing_row(l, cells);
        }
}

void ctl_v3_device_list(struct ctl_request *r)
{
    static const char *const names[] = { "Ordinal", "Server",    "PCI ID",       "Device UUID",
                                         "Name",    "Total SMs", "Total Chunks", "Attributes" };
    ctl_listing(r, names, GM_ARRAY_LEN(names), device_rows);
}
