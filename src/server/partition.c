/*
 * Static partitions. The daemon says which groups a client's partition has just before it hands
 * that client over. From then on the session has them, also for an executor that takes over.
 */
#include "server/partition.h"

#include <stdio.h>
#include <string.h>

#include "base/result.h"
#include "server/serve.h"
#include "server/server.h"

#define GROUPS_MAX 64u         /* bits in a mask */
#define GROUP_BASE 0x80000000u /* above all numbers of clients' groups */

static uint32_t groups_of(const struct wire_device *d)
{
    return d->multiprocessors_step
               ? GM_MIN(d->multiprocessors_shared / d->multiprocessors_step, GROUPS_MAX)
               : 0;
}

void srv_partition_describe(struct srv_server *s)
{
    uint8_t encoded[TP_DEVICES * 16];
    struct wire_enc list;
    wire_enc_init(&list, encoded, sizeof(encoded));
    for (uint32_t i = 0; i < s->devices_count; i++) {
        const struct wire_device *d = &s->devices[i];
        wire_put_link_part(
            &list, &(struct wire_link_part) { .multiprocessors = d->multiprocessors,
                                              .step = groups_of(d) ? d->multiprocessors_step : 0,
                                              .groups = groups_of(d) });
    }
    const struct wire_link_parts m = { .devices = { encoded, (uint32_t)list.size } };
    struct wire_enc e = srv_encoder(s);
    wire_pack_link_parts(&e, 0, &m);
    srv_peer_send(&s->link, &e, NULL, 0);
}

static uint32_t device_named(const struct srv_server *s, const char *name)
{
    size_t n = strcspn(name, "/");
    for (uint32_t i = 0; i < s->devices_count; i++) {
        char text[SRV_UUID_TEXT];
        srv_uuid_text(text, s->devices[i].uuid.data);
        if (strlen(text) == n && memcmp(text, name, n) == 0)
            return i;
    }
    return TP_DEVICES;
}

void srv_partition_announce(struct srv_server *s, struct tp_packet *p)
{
    struct wire_link_client_partition m;
    wire_get_link_client_partition(&p->body, &m);
    struct srv_partition *next = &s->next_partition;
    *next = (struct srv_partition) { .pid = m.pid, .device = device_named(s, m.name) };
    snprintf(next->name, sizeof(next->name), "%s", m.name);
    if (next->device >= TP_DEVICES)
        return;
    uint32_t count = groups_of(&s->devices[next->device]);
    next->groups = count < GROUPS_MAX ? m.groups & ((1ull << count) - 1) : m.groups;
    if (!next->groups)
        next->device = TP_DEVICES;
}

void srv_partition_take(struct srv_session *c)
{
    struct srv_partition *next = &c->server->next_partition;
    if (next->pid != c->pid)
        return;
    c->partition = *next;
    next->pid = 0;
}

static bool has_one(const struct srv_session *c)
{
    return c->partition.pid && c->partition.device < TP_DEVICES;
}

void srv_partition_write(struct srv_session *c)
{
    if (!has_one(c))
        return;
    struct tp_part *part = &c->shared.parts[TP_PART_STATIC];
    atomic_store_explicit(&part->groups[0], c->partition.groups, memory_order_relaxed);
    /* the smallest groups that the device has */
    atomic_store_explicit(&part->minimum, 1, memory_order_release);
}

int srv_partition_admits(const struct srv_session *c, uint32_t device)
{
    return !c->partition.pid || device == c->partition.device
               ? GM_CUDA_SUCCESS
               : GM_CUDA_INVALID_RESOURCE_CONFIGURATION;
}

uint32_t srv_partition_size(const struct srv_session *c, uint32_t device)
{
    if (!has_one(c) || device != c->partition.device)
        return 0;
    return c->server->devices[device].multiprocessors_step *
           (uint32_t)__builtin_popcountll(c->partition.groups);
}

double srv_partition_share(const struct srv_session *c)
{
    const uint32_t device = c->partition.device;
    return has_one(c)
               ? 100.0 * srv_partition_size(c, device) / c->server->devices[device].multiprocessors
               : 0;
}

/* The partition's lowest group is unique, since partitions of a device have no group in common. */
uint32_t srv_partition_group(const struct srv_session *c)
{
    return has_one(c) ? GROUP_BASE + c->partition.device * GROUPS_MAX +
                            (uint32_t)__builtin_ctzll(c->partition.groups)
                      : 0;
}
