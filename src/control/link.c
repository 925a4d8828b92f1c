/*
 * Reads what a server says, message by message, and drops a server that says something out of
 * order. Commands that ask a server wait here for its answer, for a limited time.
 */
#include "control/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "control/log.h"
#include "control/partition.h"
#include "control/process.h"
#include "control/return.h"
#include "control/space.h"

static void on_log(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_log m;
    wire_get_link_log(&p->body, &m);
    if (wire_dec_finish(&p->body))
        ctl_server_log(s, m.line);
}

/* --- start ------------------------------------------------------------------------------------ */

static void format_uuid(char out[41], struct wire_bytes uuid)
{
    uint8_t b[16] = { 0 };
    memcpy(b, uuid.data ? uuid.data : b, GM_MIN(uuid.size, 16u));
    snprintf(out, 41, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

/* Whether the server may use only some of the devices: its description is not one of the whole
 * machine. */
static bool has_some_devices(const struct ctl_server *s)
{
    return s->named && *s->named->visible;
}

static void keep_devices(struct ctl_server *s, const struct ctl_device *devices, unsigned n)
{
    struct ctl_daemon *d = s->daemon;
    bool believed = ctl_server_believed(s);
    memcpy(s->devices, devices, n * sizeof(*devices));
    s->devices_count = n;
    if ((d->devices_believed && !believed) || has_some_devices(s))
        return;
    for (unsigned i = 0; i < n; i++) {
        const struct ctl_parts parts = d->devices[i].parts;
        const bool same = i < d->devices_count && strcmp(d->devices[i].uuid, devices[i].uuid) == 0;
        d->devices[i] = devices[i];
        d->devices[i].parts = same ? parts : (struct ctl_parts) { 0 };
    }
    d->devices_count = n;
    d->devices_believed = believed;
}

static void on_ready(struct ctl_server *s, struct tp_packet *p)
{
    struct ctl_device devices[CTL_DEVICES_MAX];
    struct wire_link_ready m;
    struct wire_dec list;
    unsigned n = 0;

    wire_get_link_ready(&p->body, &m);
    wire_dec_init(&list, m.devices_info.data, m.devices_info.size);
    while (!p->body.fatal && n < CTL_DEVICES_MAX && !wire_dec_end(&list)) {
        struct wire_link_device info;
        wire_get_link_device(&list, &info);
        struct ctl_device *device = &devices[n++];
        *device = (struct ctl_device) { .exclusive = info.exclusive != 0 };
        snprintf(device->name, sizeof(device->name), "%s", info.name);
        snprintf(device->pci, sizeof(device->pci), "%s", info.pci_bus_id);
        gm_text_clean(device->name);
        gm_text_clean(device->pci);
        format_uuid(device->uuid, info.uuid);
    }
    if (!wire_dec_finish(&p->body) || !wire_dec_finish(&list) || m.devices != n) {
        p->body.fatal = true;
        return;
    }
    s->exclusive = false;
    for (unsigned i = 0; i < n; i++)
        s->exclusive |= devices[i].exclusive;
    keep_devices(s, devices, n);
    ctl_partition_ask(s);
    ctl_server_ready(s);
    if (s->process >= 0)
        ctl_return_ready(s);
}

static void on_parts(struct ctl_server *s, struct tp_packet *p)
{
    struct ctl_daemon *d = s->daemon;
    struct ctl_parts parts[CTL_DEVICES_MAX];
    struct wire_link_parts m;
    struct wire_dec list;
    unsigned n = 0;
    wire_get_link_parts(&p->body, &m);
    wire_dec_init(&list, m.devices.data, m.devices.size);
    while (!p->body.fatal && n < CTL_DEVICES_MAX && !wire_dec_end(&list)) {
        struct wire_link_part part;
        wire_get_link_part(&list, &part);
        list.fatal |= part.groups > 64 || part.multiprocessors > UINT16_MAX ||
                      (uint64_t)part.groups * part.step > part.multiprocessors;
        parts[n++] = (struct ctl_parts) { part.multiprocessors, part.step, part.groups };
    }
    p->body.fatal = !wire_dec_finish(&p->body) || !wire_dec_finish(&list);
    if (p->body.fatal || has_some_devices(s) || n != d->devices_count ||
        (d->devices_believed && !ctl_server_believed(s)))
        return;
    for (unsigned i = 0; i < n; i++)
        d->devices[i].parts = parts[i];
    ctl_hooks.parts_known(d);
}

static void on_failed(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_failed m;
    wire_get_link_failed(&p->body, &m);
    if (!wire_dec_finish(&p->body))
        return;
    s->result = m.result;
    snprintf(s->cause, sizeof(s->cause), "%s", m.reason);
    gm_text_clean(s->cause);
}

/* --- clients ---------------------------------------------------------------------------------- */

static void set_context(struct ctl_client *c, const struct wire_link_client_state *m)
{
    unsigned i = 0;
    while (i < c->contexts_count && c->contexts[i].id != m->context)
        i++;
    if (m->state == WIRE_CLIENT_STATE_EXITED) {
        if (i < c->contexts_count)
            c->contexts[i] = c->contexts[--c->contexts_count];
        return;
    }
    if (i == CTL_CONTEXTS_MAX)
        return; /* the client has more contexts than the daemon lists */
    if (i == c->contexts_count)
        c->contexts_count++;
    c->contexts[i] = (struct ctl_context) { .id = m->context,
                                            .device = m->device,
                                            .active = m->state == WIRE_CLIENT_STATE_ACTIVE };
}

static void on_client_state(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_client_state m;
    wire_get_link_client_state(&p->body, &m);
    if (!wire_dec_finish(&p->body))
        return;
    struct ctl_client *c = ctl_server_client(s, m.pid);
    if (!c)
        return; /* only clients that this daemon handed over are listed */
    if (m.pid_namespace)
        c->pid_namespace = m.pid_namespace;
    if (m.context)
        set_context(c, &m);
    else if (m.state == WIRE_CLIENT_STATE_EXITED)
        ctl_server_client_left(s, c);
    else
        c->connected = true;
}

static void on_return_client(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_return_client m;
    wire_get_link_return_client(&p->body, &m);
    if (wire_dec_finish(&p->body) && !ctl_return_client(s, &m))
        p->body.fatal = true;
}

static void on_return_group(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_return_group m;
    wire_get_link_return_group(&p->body, &m);
    if (wire_dec_finish(&p->body) && !ctl_return_group(s, &m))
        p->body.fatal = true;
}

static void on_return_partition(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_return_partition m;
    wire_get_link_return_partition(&p->body, &m);
    struct ctl_client *c =
        wire_dec_finish(&p->body) && s->process >= 0 ? ctl_server_client(s, m.pid) : NULL;
    if (c)
        c->partition = ctl_partition_find(s->daemon, m.name);
    else
        p->body.fatal = true;
}

static void on_return_space(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_return_space m;
    wire_get_link_return_space(&p->body, &m);
    if (wire_dec_finish(&p->body) && !ctl_return_space(s, &m))
        p->body.fatal = true;
}

static void on_traits(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_traits m;
    wire_get_link_traits(&p->body, &m);
    if (!wire_dec_finish(&p->body))
        return;
    s->knows_groups = true;
    s->guarantees = m.guarantees != 0;
}

static void on_fault(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_fault m;
    wire_get_link_fault(&p->body, &m);
    if (!wire_dec_finish(&p->body))
        return;
    if (m.pid)
        ctl_log(s->daemon, "Server %d: fault of client %u: %s (error %d)", (int)s->pid, m.pid,
                m.text, m.result);
    else
        ctl_log(s->daemon, "Server %d: fault: %s (error %d)", (int)s->pid, m.text, m.result);
}

/* --- commands that ask a server --------------------------------------------------------------- */

static void give_up(struct ctl_request *r)
{
    gm_list_remove(&r->link);
    if (r->awaits == WIRE_LINK_TERMINATED)
        ctl_reply(r, "%d\n", GM_CUDA_MPS_RPC_FAILURE);
    else
        ctl_reply(r, "Server %s does not answer\n", ctl_words_at(&r->words, 1));
    ctl_request_finish(r);
}

static void on_ask_timeout(void *owner)
{
    give_up(owner);
}

void ctl_link_give_up(struct ctl_server *s)
{
    while (!gm_list_empty(&s->asked))
        give_up(gm_list_entry(s->asked.next, struct ctl_request, link));
}

static void ask(struct ctl_server *s, struct ctl_request *r, unsigned awaits,
                const struct wire_enc *e)
{
    r->server = s;
    r->awaits = awaits;
    r->timer = ctl_timer_create(&s->daemon->loop, on_ask_timeout, r);
    if (r->timer)
        ctl_timer_start(r->timer, CTL_ANSWER_MS);
    ctl_request_keep(r);
    gm_list_append(&s->asked, &r->link);
    ctl_server_send(s, e);
}

void ctl_server_terminate(struct ctl_server *s, uint32_t client, struct ctl_request *r)
{
    uint8_t buffer[64];
    struct wire_enc e;
    r->client = client;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_terminate(&e, 0, &(struct wire_link_terminate) { .pid = client });
    ask(s, r, WIRE_LINK_TERMINATED, &e);
}

static void on_terminated(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_terminated m;
    wire_get_link_terminated(&p->body, &m);
    if (!wire_dec_finish(&p->body))
        return;
    gm_list_for_each_safe (r, &s->asked, struct ctl_request, link)
        if (r->awaits == WIRE_LINK_TERMINATED && r->client == m.pid) {
            gm_list_remove(&r->link);
            ctl_reply(r, "%d\n", m.result);
            ctl_request_finish(r);
        }
}

void ctl_server_ask_usage(struct ctl_server *s, struct ctl_request *r, ctl_usage_row *row)
{
    uint8_t buffer[64];
    struct wire_enc e;
    r->row = row;
    r->serial = ++s->daemon->next_serial;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_usage_ask(&e, r->serial, &(struct wire_link_usage_ask) { 0 });
    ask(s, r, WIRE_LINK_USAGE, &e);
}

static struct ctl_request *find_serial(struct ctl_server *s, uint64_t serial)
{
    gm_list_for_each (r, &s->asked, struct ctl_request, link)
        if (r->awaits == WIRE_LINK_USAGE && r->serial == serial)
            return r;
    return NULL;
}

static void on_usage(struct ctl_server *s, struct tp_packet *p)
{
    struct wire_link_usage m;
    struct wire_dec list;
    /* NULL: the UI has been told already that no answer came */
    struct ctl_request *r = find_serial(s, p->header.serial);
    wire_get_link_usage(&p->body, &m);
    if (!wire_dec_finish(&p->body))
        return;
    wire_dec_init(&list, m.clients.data, m.clients.size);
    while (!wire_dec_end(&list)) {
        struct wire_client_usage u;
        wire_get_client_usage(&list, &u);
        const struct ctl_client *c = list.fatal ? NULL : ctl_server_client(s, u.pid);
        if (c && r)
            r->row(r, s, c, &u);
    }
    p->body.fatal = !wire_dec_finish(&list);
    if (m.last && r && !p->body.fatal) {
        gm_list_remove(&r->link);
        ctl_request_finish(r);
    }
}

/* --- what a server may say, and when ---------------------------------------------------------- */

#define STARTING (1u << CTL_SERVER_STARTING)
#define RUNNING  (1u << CTL_SERVER_ACTIVE | 1u << CTL_SERVER_STOPPING)

static const struct {
    unsigned type;
    unsigned states;
    void (*handle)(struct ctl_server *s, struct tp_packet *p);
} allowed[] = {
    { WIRE_LINK_READY, STARTING, on_ready },
    { WIRE_LINK_FAILED, STARTING, on_failed },
    { WIRE_LINK_LOG, STARTING | RUNNING, on_log },
    { WIRE_LINK_CLIENT_STATE, RUNNING, on_client_state },
    { WIRE_LINK_FAULT, RUNNING, on_fault },
    { WIRE_LINK_TERMINATED, RUNNING, on_terminated },
    { WIRE_LINK_USAGE, RUNNING, on_usage },
    { WIRE_LINK_RETURN_CLIENT, STARTING, on_return_client },
    { WIRE_LINK_TRAITS, STARTING, on_traits },
    { WIRE_LINK_RETURN_GROUP, STARTING, on_return_group },
    { WIRE_LINK_RETURN_PARTITION, STARTING, on_return_partition },
    { WIRE_LINK_RETURN_SPACE, STARTING, on_return_space },
    { WIRE_LINK_PARTS, RUNNING, on_parts },
};

static void on_packet(void *owner, struct tp_packet *p)
{
    struct ctl_server *s = owner;
    unsigned type = p->header.type;
    for (size_t i = 0; i < GM_ARRAY_LEN(allowed); i++) {
        if (allowed[i].type != type)
            continue;
        /* A server that was told to end while it was starting may still report that it is ready. */
        if (s->state == CTL_SERVER_STOPPING && allowed[i].states == STARTING)
            return;
        if (!(allowed[i].states & 1u << s->state))
            break;
        allowed[i].handle(s, p);
        if (p->body.fatal || p->fds_count)
            break;
        return;
    }
    char text[96];
    const struct wire_message_info *info = wire_message_info(type);
    snprintf(text, sizeof(text), "it sent a malformed or unexpected message %u (%s)", type,
             info ? info->name : "unknown");
    ctl_server_kill(s, text);
}

static void on_gone(void *owner, int error)
{
    struct ctl_server *s = owner;
    ctl_channel_close(s->channel);
    s->channel = NULL;
    if (error == -EBADMSG)
        ctl_server_kill(s, "it sent a malformed message");
    else
        ctl_server_link_closed(s);
}

const struct ctl_channel_ops ctl_link_ops = { .packet = on_packet, .gone = on_gone };
