/*
 * Commands about clients and devices.
 */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "control/command.h"
#include "control/conn.h"
#include "control/link.h"

void ctl_cmd_get_client_list(struct ctl_request *r)
{
    const char *word = ctl_words_at(&r->words, 1);
    struct ctl_server *s = ctl_server_find(r->daemon, word);
    if (!s) {
        ctl_reply(r, "Server %s not found\n", word);
        return;
    }
    gm_list_for_each (c, &s->clients, struct ctl_client, link)
        if (c->connected)
            ctl_reply(r, "%u\n", c->key);
}

/* Parses "0000:06:00.0" into its four parts. All are 0 if the text is something else. */
static void split_pci(const char *pci, unsigned part[4])
{
    char rest;
    if (sscanf(pci, "%8x:%2x:%2x.%2x%c", &part[0], &part[1], &part[2], &part[3], &rest) != 4)
        memset(part, 0, 4 * sizeof(part[0]));
}

static void reply_users_of(struct ctl_request *r, struct ctl_server *s, uint32_t device)
{
    gm_list_for_each (c, &s->clients, struct ctl_client, link)
        for (unsigned i = 0; i < c->contexts_count; i++)
            if (c->contexts[i].device == device)
                ctl_reply(r, "%u.%u\n", c->key, c->contexts[i].id);
}

/* Returns the server's number for a device. A server that may use only some devices numbers those
 * by itself. */
static uint32_t number_in(const struct ctl_server *s, const char *uuid)
{
    uint32_t i = 0;
    while (i < s->devices_count && strcmp(s->devices[i].uuid, uuid) != 0)
        i++;
    return i;
}

void ctl_cmd_get_device_client_list(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    const char *word = ctl_words_at(&r->words, 1);
    struct ctl_server *only = *word ? ctl_server_find(d, word) : NULL;
    if (*word && !only) {
        ctl_reply(r, "Server %s not found\n", word);
        return;
    }
    for (uint32_t device = 0; device < d->devices_count; device++) {
        size_t before = r->reply.size;
        unsigned pci[4];
        split_pci(d->devices[device].pci, pci);
        ctl_reply(r, "[%u] %02x:%02x.%x, %s\n", device, pci[1], pci[2], pci[3],
                  d->devices[device].name);
        size_t heading = r->reply.size;
        gm_list_for_each (s, &d->servers, struct ctl_server, link)
            if (!only || only == s)
                reply_users_of(r, s, number_in(s, d->devices[device].uuid));
        if (r->reply.size == heading) /* A device that nobody uses is not listed. */
            ctl_text_cut(&r->reply, before);
    }
}

/* --- ps --------------------------------------------------------------------------------------- */

static void reply_ps_row(struct ctl_request *r, const struct ctl_server *s,
                         const struct ctl_client *c, const struct ctl_context *context)
{
    char id[16], server[16], device[32], namespace[24], pid[16];
    snprintf(pid, sizeof(pid), "%u", c->key);
    snprintf(id, sizeof(id), "%u", context ? context->id : 0);
    snprintf(server, sizeof(server), "%d", (int)s->pid);
    if (context &&
        context->device < s->devices_count) /* enough of the UUID to tell devices apart */
        snprintf(device, sizeof(device), "%.22s", s->devices[context->device].uuid);
    else
        snprintf(device, sizeof(device), "-");
    if (c->pid_namespace)
        snprintf(namespace, sizeof(namespace), "%llu", (unsigned long long)c->pid_namespace);
    else
        snprintf(namespace, sizeof(namespace), "-");
    ctl_reply(r, "%-9s %-9s %-14s %-25s %-14s %-15s\n", pid, id, server, device, namespace,
              ctl_request_may(r, c->uid) ? c->command
                                         : "-"); /* a user may not see what others have started */
}

static void reply_ps_server(struct ctl_request *r, struct ctl_server *s)
{
    gm_list_for_each (c, &s->clients, struct ctl_client, link) {
        for (unsigned i = 0; i < c->contexts_count; i++)
            reply_ps_row(r, s, c, &c->contexts[i]);
        if (c->connected && !c->contexts_count)
            reply_ps_row(r, s, c, NULL);
    }
}

void ctl_cmd_ps(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    const char *word = ctl_words_after(&r->words, "-p");
    struct ctl_server *only = word ? ctl_server_find(d, word) : NULL;
    if (word && !only) {
        /* NVIDIA's program prints the line twice, and an empty line after it. */
        ctl_reply(r, "Server %s not found\nServer %s not found\n\n", word, word);
        return;
    }
    if (gm_list_empty(&d->servers)) {
        ctl_reply(r, "Server not found\n");
        return;
    }
    ctl_reply(r, "%-9s %-9s %-14s %-25s %-14s %-15s\n", "PID", "ID", "SERVER", "DEVICE",
              "NAMESPACE", "COMMAND");
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (!only || only == s)
            reply_ps_server(r, s);
}

void ctl_cmd_terminate_client(struct ctl_request *r)
{
    const char *server_word = ctl_words_at(&r->words, 1);
    const char *client_word = ctl_words_at(&r->words, 2);
    struct ctl_server *s = ctl_server_find(r->daemon, server_word);
    uint64_t client;
    if (!s)
        ctl_reply(r, "Server %s not found\nServer %s not found!\n1\n", server_word, server_word);
    else if (!gm_parse_u64(client_word, UINT32_MAX, &client) ||
             !ctl_server_client(s, (uint32_t)client))
        ctl_reply(r, "Client %s not found!\n1\n", client_word);
    else if (!ctl_request_may(r, ctl_server_client(s, (uint32_t)client)->uid))
        ctl_reply(r, "Client %s is another user's\n", client_word);
    else
        ctl_server_terminate(s, (uint32_t)client, r);
}

/* --- device_query ----------------------------------------------------------------------------- */

static void reply_device(struct ctl_request *r, unsigned ordinal, const struct ctl_device *device,
                         bool csv)
{
    char number[16], pci_text[40];
    unsigned pci[4];
    split_pci(device->pci, pci);
    snprintf(number, sizeof(number), "%u", ordinal);
    snprintf(pci_text, sizeof(pci_text), "%04x:%02x.%02x.%02x", pci[0], pci[1], pci[2], pci[3]);
    ctl_reply(r, csv ? "%s,%s,%s,%s,%s\n" : "%-16s%-15s%-42s%-34s%s\n", number, pci_text,
              device->uuid, device->name, "N/A");
}

void ctl_cmd_device_query(struct ctl_request *r)
{
    struct ctl_daemon *d = r->daemon;
    bool csv = ctl_words_have(&r->words, "--csv");
    for (unsigned i = 1; i < r->words.count; i++)
        if (strcmp(r->words.word[i], "--csv") != 0 && !ctl_server_find(d, r->words.word[i])) {
            ctl_reply(r, "Server %s not found\n", r->words.word[i]);
            return;
        }
    ctl_reply(r, "Default\n");
    ctl_reply(r, csv ? "%s,%s,%s,%s,%s\n" : "%-16s%-15s%-42s%-34s%s\n", "Device Ordinal", "PCI IDs",
              "UUID", "Name", "Attributes");
    for (unsigned i = 0; i < d->devices_count; i++)
        reply_device(r, i, &d->devices[i], csv);
}
