/*
 * Commands about static partitions: sm_partition and lspart of NVIDIA's program, and sm-partition
 * of protocol 3.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "control/command.h"
#include "control/listing.h"
#include "control/module.h"
#include "control/partition.h"
#include "control/queue.h"
#include "control/space.h"
#include "control/state.h"

#define USAGE     "Usage: sm_partition add DEVICE CHUNKS | rm DEVICE PARTITION\n"
#define SHORTENED 12 /* characters of a UUID: "GPU-" and eight digits */

/* --- waiting for a server that knows the devices ---------------------------------------------- */

static bool is_known(const struct ctl_daemon *d)
{
    return d->devices_count && d->devices[0].parts.multiprocessors;
}

/* Whether a server that sees all devices runs or is about to start. */
static bool will_be_known(const struct ctl_daemon *d)
{
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (s->state != CTL_SERVER_STOPPING && !(s->named && *s->named->visible))
            return true;
    return false;
}

/* Puts the request off until the devices are known. Replies if they never will be. */
static void await(struct ctl_request *r, void (*again)(struct ctl_request *r))
{
    struct ctl_daemon *d = r->daemon;
    const char *problem = d->quitting ? "the daemon is about to end" : NULL;
    if (!problem && !will_be_known(d))
        problem = ctl_queue_start(d, d->uid, NULL);
    if (problem) {
        ctl_reply(r, "%s: devices are not known: %s\n", ctl_words_at(&r->words, 0), problem);
        return;
    }
    r->again = again;
    ctl_request_keep(r);
    gm_list_append(&d->part_waits, &r->link);
}

void ctl_partition_known(struct ctl_daemon *d)
{
    while (!gm_list_empty(&d->part_waits)) {
        struct ctl_request *r = gm_list_entry(d->part_waits.next, struct ctl_request, link);
        gm_list_remove(&r->link);
        if (is_known(d))
            r->again(r);
        else
            ctl_reply(r, "%s: devices are not known: no server can be started\n",
                      ctl_words_at(&r->words, 0));
        ctl_request_finish(r);
    }
}

void ctl_partition_server_gone(struct ctl_daemon *d)
{
    if (gm_list_empty(&d->servers))
        ctl_partition_known(d);
}

/* --- sm_partition ----------------------------------------------------------------------------- */

/* Makes a partition of `count` groups of the device. Replies if the device does not exist, or has
 * too few free groups. */
static struct ctl_partition *make(struct ctl_request *r, const char *device_word, uint64_t count)
{
    struct ctl_daemon *d = r->daemon;
    const struct ctl_device *device = ctl_partition_device(d, device_word);
    struct ctl_partition *p = NULL;
    if (!device)
        ctl_reply(r, "Device %s not found\n", device_word);
    else if (!device->parts.groups)
        ctl_reply(r, "Device %s cannot be partitioned\n", device_word);
    else if (!(p = ctl_partition_add(d, device, (uint32_t)count)))
        ctl_reply(r,
                  "Failed to fulfill the requested SM partition of %" PRIu64
                  " chunks, error CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION\n",
                  count);
    return p;
}

static void add(struct ctl_request *r)
{
    uint64_t count;
    if (!gm_parse_u64(ctl_words_at(&r->words, 3), UINT32_MAX, &count) || !count) {
        ctl_reply(r, USAGE);
        return;
    }
    if (!is_known(r->daemon)) {
        await(r, add);
        return;
    }
    const struct ctl_partition *p = make(r, ctl_words_at(&r->words, 2), count);
    if (!p)
        return;
    ctl_state_save(r->daemon);
    ctl_reply(r, "Partition %s/%s created\n", p->uuid, p->id);
}

static void rm(struct ctl_request *r)
{
    char word[128];
    const char *id = ctl_words_at(&r->words, 3);
    snprintf(word, sizeof(word), "%.60s/%.60s", ctl_words_at(&r->words, 2), id);
    struct ctl_partition *p = ctl_partition_find(r->daemon, word);
    if (!p) {
        ctl_reply(r, "Partition %s not found\n", id);
        return;
    }
    if (ctl_partition_clients(r->daemon, p)) {
        ctl_reply(r, "Partition %s in use. Terminate all clients before removing.\n", p->id);
        return;
    }
    ctl_reply(r, "Partition %s/%s removed\n", p->uuid, p->id);
    ctl_partition_remove(p);
}

/* Restores a partition from a line that ctl_state_save() wrote: keep UUID MULTIPROCESSORS STEP
 * GROUPS MASK [NAME SERVER]. */
static void keep(struct ctl_request *r)
{
    const struct ctl_words *w = &r->words;
    struct ctl_daemon *d = r->daemon;
    uint64_t number[3];
    for (unsigned i = 0; i < GM_ARRAY_LEN(number); i++)
        if (!gm_parse_u64(ctl_words_at(w, 3 + i), UINT32_MAX, &number[i]))
            return;
    const char *name = ctl_words_at(w, 7), *server = ctl_words_at(w, 8);
    if (*name && (!ctl_name_is_good(name) || !ctl_name_is_good(server)))
        return;
    const struct ctl_parts parts = { (uint32_t)number[0], (uint32_t)number[1],
                                     (uint32_t)number[2] };
    struct ctl_partition *p = ctl_partition_restore(d, ctl_words_at(w, 2), &parts,
                                                    strtoull(ctl_words_at(w, 6), NULL, 16));
    if (!p || !*name)
        return;
    snprintf(p->name, sizeof(p->name), "%s", name);
    snprintf(p->server, sizeof(p->server), "%s", server);
}

void ctl_cmd_sm_partition(struct ctl_request *r)
{
    const struct ctl_words *w = &r->words;
    const char *verb = ctl_words_at(w, 1);
    if (r->daemon->loading && strcmp(verb, "keep") == 0)
        keep(r);
    else if (!r->daemon->options.partitions)
        ctl_reply(r, "Unknown command \"%s\"\n", ctl_words_at(w, 0));
    else if (w->count == 4 && strcmp(verb, "add") == 0)
        add(r);
    else if (w->count == 4 && strcmp(verb, "rm") == 0)
        rm(r);
    else
        ctl_reply(r, USAGE);
}

/* The layout is that of a public record of NVIDIA's tool. */
static void list(struct ctl_request *r)
{
    const struct ctl_daemon *d = r->daemon;
    static const char row[] = "%-13s %-33s %-7s %-7s %-5s %-5s %s\n";
    if (!is_known(d)) {
        await(r, list);
        return;
    }
    ctl_reply(r, row, "GPU", "Partition", "free", "used", "free", "used", "clients");
    ctl_reply(r, row, "", "", "chunks", "chunks", "SM", "SM", "");
    for (unsigned i = 0; i < d->devices_count; i++) {
        const struct ctl_device *device = &d->devices[i];
        const struct ctl_parts *parts = &device->parts;
        const uint32_t used = ctl_partition_used(d, device->uuid);
        char text[4][16], gpu[SHORTENED + 1];
        snprintf(gpu, sizeof(gpu), "%.*s", SHORTENED, device->uuid);
        snprintf(text[0], sizeof(text[0]), "%u", parts->groups - GM_MIN(used, parts->groups));
        snprintf(text[1], sizeof(text[1]), "%u", used);
        snprintf(text[2], sizeof(text[2]), "%u", parts->multiprocessors - used * parts->step);
        snprintf(text[3], sizeof(text[3]), "%u", used * parts->step);
        ctl_reply(r, row, gpu, "", text[0], text[1], text[2], text[3], "");
        gm_list_for_each (p, &d->partitions, struct ctl_partition, link)
            if (strcmp(p->uuid, device->uuid) == 0) {
                snprintf(text[1], sizeof(text[1]), "%u", ctl_partition_groups(p));
                snprintf(text[3], sizeof(text[3]), "%u", ctl_partition_groups(p) * p->parts.step);
                ctl_reply(r, row, gpu, p->id, "", text[1], "", text[3],
                          ctl_partition_clients(d, p) ? "Yes" : "No");
            }
    }
}

void ctl_cmd_lspart(struct ctl_request *r)
{
    if (r->daemon->options.partitions)
        list(r);
    else
        ctl_reply(r, "Unknown command \"lspart\"\n");
}

/* --- protocol 3 ------------------------------------------------------------------------------- */

static struct ctl_partition *named(const struct ctl_daemon *d, const char *name)
{
    gm_list_for_each (p, &d->partitions, struct ctl_partition, link)
        if (*p->name && strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

/* Whether a program has a context that began without a partition: it would run on the
 * multiprocessors of those that have one. */
static bool is_busy(const struct ctl_daemon *d)
{
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        gm_list_for_each (c, &s->clients, struct ctl_client, link)
            if (c->contexts_count && !c->partition)
                return true;
    return false;
}

void ctl_v3_partition_create(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    const char *name = ctl_words_plain(&r->words, 0);
    const char *server = ctl_words_option(&r->words, "server");
    const char *device = ctl_words_option(&r->words, "device");
    const char *chunks = ctl_words_option(&r->words, "chunks");
    const char *rest = ctl_words_option(&r->words, "include-remainder");
    const char *problem = NULL;
    uint64_t count = 0;
    uid_t uid;
    if (!server || !device || !chunks)
        problem = "--server=, --device= and --chunks= are needed";
    else if (!ctl_name_is_good(name))
        problem = "a name has lowercase letters, digits and '_', up to 64";
    else if (named(d, name))
        problem = "there is one of that name";
    else if (!ctl_named_find(d, server) && !ctl_name_is_user(server, &uid))
        problem = "there is no such server";
    else if (!gm_parse_u64(chunks, UINT32_MAX, &count) || !count)
        problem = "--chunks= is a number above 0";
    else if (rest && strcmp(rest, "false") != 0 && strcmp(rest, "0") != 0)
        problem = "--include-remainder: what is left over of a device is in no chunk";
    else if (is_busy(d))
        problem = "there are programs that run without a partition";
    if (problem) {
        ctl_reply(r, "sm-partition create: %s\n", problem);
        return;
    }
    if (!is_known(d)) {
        await(r, ctl_v3_partition_create);
        return;
    }
    struct ctl_partition *p = make(r, device, count);
    if (!p)
        return;
    snprintf(p->name, sizeof(p->name), "%s", name);
    snprintf(p->server, sizeof(p->server), "%s", server);
    ctl_state_save(d);
    ctl_reply(r,
              "SM partition '%s' created on device %s (sm-count=%u)\n"
              "CUDA_MPS_SM_PARTITION=%s/%s\n",
              p->name, p->uuid, ctl_partition_groups(p) * p->parts.step, p->uuid, p->id);
}

/* Whether the request means this partition. The options --server= and --device= narrow the choice
 * if they are given. */
static bool is_meant(struct ctl_request *r, const struct ctl_partition *p)
{
    const char *server = ctl_words_option(&r->words, "server");
    const char *device = ctl_words_option(&r->words, "device");
    const struct ctl_device *of = device ? ctl_partition_device(r->daemon, device) : NULL;
    return (!server || strcmp(server, p->server) == 0) &&
           (!device || strncmp(p->uuid, of ? of->uuid : device, sizeof(p->uuid) - 1) == 0);
}

void ctl_v3_partition_delete(struct ctl_request *r)
{
    const char *name = ctl_words_plain(&r->words, 0);
    struct ctl_partition *p = named(r->daemon, name);
    if (!p || !is_meant(r, p)) {
        ctl_reply(r, "SM partition '%s' not found\n", name);
        return;
    }
    if (ctl_partition_clients(r->daemon, p)) {
        ctl_reply(r, "sm-partition delete: %s has clients\n", name);
        return;
    }
    ctl_reply(r, "SM partition '%s' deleted from device %s\n", p->name, p->uuid);
    ctl_partition_remove(p);
    ctl_state_save(r->daemon);
}

static bool has_server(const struct ctl_daemon *d, const struct ctl_partition *p)
{
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (s->state == CTL_SERVER_ACTIVE && (!*p->server || strcmp(s->name, p->server) == 0))
            return true;
    return false;
}

static void partition_row(struct ctl_listing *l, const char *server, const char *uuid,
                          const char *name, uint32_t chunks, uint32_t size, const char *status,
                          const char *id)
{
    char text[2][16];
    snprintf(text[0], sizeof(text[0]), "%u", chunks);
    snprintf(text[1], sizeof(text[1]), "%u", size);
    const char *cells[] = { server, uuid, name, text[0], text[1], *name == '-' ? "-" : "false",
                            status, id };
    ctl_listing_row(l, cells);
}

/* Lists the partitions, and with --all also the groups of each device that belong to no
 * partition. */
static void partition_rows(struct ctl_listing *l)
{
    struct ctl_request *r = l->request;
    const struct ctl_daemon *d = r->daemon;
    gm_list_for_each (p, &d->partitions, struct ctl_partition, link) {
        const uint32_t n = ctl_partition_groups(p);
        if (is_meant(r, p))
            partition_row(l, *p->server ? p->server : "-", p->uuid, *p->name ? p->name : "-", n,
                          n * p->parts.step, has_server(d, p) ? "created" : "configured", p->id);
    }
    if (!ctl_words_option(&r->words, "all") || ctl_words_option(&r->words, "server"))
        return;
    for (unsigned i = 0; i < d->devices_count; i++) {
        const struct ctl_device *device = &d->devices[i];
        const uint32_t used = GM_MIN(ctl_partition_used(d, device->uuid), device->parts.groups);
        const uint32_t left = device->parts.groups - used;
        if (left)
            partition_row(l, "-", device->uuid, "-", left, left * device->parts.step, "unallocated",
                          "-");
    }
}

void ctl_v3_partition_list(struct ctl_request *r)
{
    static const char *const names[] = { "server", "device",      "name",
                                         "chunks", "sm-count",    "include-remainder",
                                         "status", "visible-uuid" };
    ctl_listing(r, names, GM_ARRAY_LEN(names), partition_rows);
}
