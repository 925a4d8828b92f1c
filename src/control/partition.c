/*
 * A partition is a mask of the groups of a device. A new one takes the lowest groups that are free,
 * as NVIDIA's tool does.
 */
#include "control/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "control/process.h"

#define GROUPS_MAX 64u

bool ctl_partitions_hold(const struct ctl_daemon *d)
{
    return d->options.partitions || !gm_list_empty(&d->partitions) ||
           !gm_list_empty(&d->part_waits); /* a command that makes one is waiting */
}

struct ctl_device *ctl_partition_device(struct ctl_daemon *d, const char *uuid)
{
    struct ctl_device *found = NULL;
    size_t n = strlen(uuid);
    uint64_t ordinal;
    if (d->devices_count && gm_parse_u64(uuid, d->devices_count - 1, &ordinal))
        return &d->devices[ordinal];
    for (unsigned i = 0; i < d->devices_count && n; i++)
        if (strncmp(d->devices[i].uuid, uuid, n) == 0) {
            if (found)
                return NULL;
            found = &d->devices[i];
        }
    return found;
}

struct ctl_partition *ctl_partition_find(const struct ctl_daemon *d, const char *word)
{
    size_t n = strcspn(word, "/");
    gm_list_for_each (p, &d->partitions, struct ctl_partition, link)
        if (n && word[n] && strncmp(p->uuid, word, n) == 0 && strcmp(p->id, word + n + 1) == 0)
            return p;
    return NULL;
}

static uint64_t taken(const struct ctl_daemon *d, const char *uuid)
{
    uint64_t all = 0;
    gm_list_for_each (p, &d->partitions, struct ctl_partition, link)
        if (strcmp(p->uuid, uuid) == 0)
            all |= p->groups;
    return all;
}

/* Makes the partition's id from the groups that it has. So each id is different, and the next
 * daemon makes the same one. */
static void write_id(struct ctl_partition *p)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t rest = p->groups;
    for (unsigned i = 0; i < CTL_PARTITION_ID_MAX; i++) {
        p->id[i] = digits[rest & 63];
        rest >>= 6;
    }
}

struct ctl_partition *ctl_partition_restore(struct ctl_daemon *d, const char *uuid,
                                            const struct ctl_parts *parts, uint64_t groups)
{
    const uint64_t all = parts->groups < GROUPS_MAX ? (1ull << parts->groups) - 1 : UINT64_MAX;
    if (!groups || (groups & ~all) || (groups & taken(d, uuid)) || !parts->step ||
        strlen(uuid) > 40)
        return NULL;
    struct ctl_partition *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    snprintf(p->uuid, sizeof(p->uuid), "%s", uuid);
    p->parts = *parts;
    p->groups = groups;
    write_id(p);
    gm_list_append(&d->partitions, &p->link);
    return p;
}

struct ctl_partition *ctl_partition_add(struct ctl_daemon *d, const struct ctl_device *device,
                                        uint32_t count)
{
    const uint64_t used = taken(d, device->uuid);
    uint64_t groups = 0;
    for (uint32_t i = 0; i < device->parts.groups && count; i++)
        if (!(used >> i & 1)) {
            groups |= 1ull << i;
            count--;
        }
    return count ? NULL : ctl_partition_restore(d, device->uuid, &device->parts, groups);
}

void ctl_partition_remove(struct ctl_partition *p)
{
    gm_list_remove(&p->link);
    free(p);
}

unsigned ctl_partition_clients(const struct ctl_daemon *d, const struct ctl_partition *p)
{
    unsigned n = 0;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        gm_list_for_each (c, &s->clients, struct ctl_client, link)
            n += c->partition == p;
    return n;
}

uint32_t ctl_partition_groups(const struct ctl_partition *p)
{
    return (uint32_t)__builtin_popcountll(p->groups);
}

uint32_t ctl_partition_used(const struct ctl_daemon *d, const char *uuid)
{
    return (uint32_t)__builtin_popcountll(taken(d, uuid));
}

void ctl_partition_tell(struct ctl_server *s, struct ctl_client *c, const char *word)
{
    struct ctl_daemon *d = s->daemon;
    uint8_t buffer[256];
    char name[128] = "";
    struct wire_enc e;
    if (!ctl_partitions_hold(d))
        return;
    struct ctl_partition *p = ctl_partition_find(d, word);
    if (p && (!*p->server || strcmp(p->server, s->name) == 0))
        c->partition = p;
    if (c->partition)
        snprintf(name, sizeof(name), "%s/%s", p->uuid, p->id);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_client_partition(
        &e, 0,
        &(struct wire_link_client_partition) {
            .pid = c->key, .name = name, .groups = c->partition ? p->groups : 0 });
    ctl_server_send(s, &e);
}

void ctl_partition_ask(struct ctl_server *s)
{
    uint8_t buffer[64];
    struct wire_enc e;
    if (!s->daemon->options.partitions && !s->daemon->options.modules)
        return;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_parts_ask(&e, 0, &(struct wire_link_parts_ask) { 0 });
    ctl_server_send(s, &e);
}

void ctl_partitions_free(struct ctl_daemon *d)
{
    gm_list_for_each_safe (p, &d->partitions, struct ctl_partition, link)
        ctl_partition_remove(p);
}
