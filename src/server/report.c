/*
 * What the server tells the control daemon: the lines of server.log, that the devices are ready,
 * what becomes of clients, faults. link.c has what the daemon says.
 */
#include <cuda.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "server/server.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("server");

struct wire_enc srv_encoder(struct srv_server *s)
{
    struct wire_enc e;
    wire_enc_init(&e, s->out, sizeof(s->out));
    return e;
}

void srv_say(struct srv_server *s, const char *fmt, ...)
{
    char line[1024];
    uint8_t packet[1200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    gm_text_clean(line); /* the line may quote what others said */
    gm_info(&topic, "%s", line);
    if (!s->has_link)
        return;
    /* Encoded in a buffer of its own, since lines are written while other packets are being
     * encoded. */
    const struct wire_link_log m = { line };
    struct wire_enc e;
    wire_enc_init(&e, packet, sizeof(packet));
    wire_pack_link_log(&e, 0, &m);
    srv_peer_send(&s->link, &e, NULL, 0);
}

/* The compute mode may change while we run; contexts that exist stay. */
static bool is_exclusive(const struct wire_device *d)
{
    int32_t mode = CU_COMPUTEMODE_DEFAULT;
    const size_t at = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE * sizeof(mode);
    if (d->attributes.size >= at + sizeof(mode))
        memcpy(&mode, (const uint8_t *)d->attributes.data + at, sizeof(mode));
    return mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
}

void srv_link_send(struct srv_server *s, const struct wire_enc *e)
{
    if (s->has_link)
        srv_peer_send(&s->link, e, NULL, 0);
}

void srv_link_ready(struct srv_server *s)
{
    uint8_t encoded[TP_DEVICES * 512];
    struct wire_enc list;
    wire_enc_init(&list, encoded, sizeof(encoded));
    for (uint32_t i = 0; i < s->devices_count; i++) {
        const struct wire_device *d = &s->devices[i];
        char bus[32];
        snprintf(bus, sizeof(bus), "%04x:%02x:%02x.0", d->pci_domain, d->pci_bus, d->pci_device);
        wire_put_link_device(&list, &(struct wire_link_device) { .name = d->name,
                                                                 .uuid = d->uuid,
                                                                 .pci_bus_id = bus,
                                                                 .exclusive = is_exclusive(d) });
    }
    const struct wire_link_traits traits = { .guarantees = s->guarantees };
    struct wire_enc e = srv_encoder(s);
    wire_pack_link_traits(&e, 0, &traits);
    srv_link_send(s, &e);
    const struct wire_link_ready m = { s->devices_count, { encoded, (uint32_t)list.size } };
    e = srv_encoder(s);
    wire_pack_link_ready(&e, 0, &m);
    srv_link_send(s, &e);
}

void srv_link_failed(struct srv_server *s, int result, const char *reason)
{
    char text[512];
    snprintf(text, sizeof(text), "%s", reason);
    const struct wire_link_failed m = { result, text };
    struct wire_enc e = srv_encoder(s);
    wire_pack_link_failed(&e, 0, &m);
    srv_link_send(s, &e);
}

void srv_link_client_gone(struct srv_server *s, uint32_t pid, const char *why)
{
    const struct wire_link_client_state m = { .pid = pid, .state = WIRE_CLIENT_STATE_EXITED };
    srv_say(s, "Client {PID: %u, Context ID: 0} cannot be served: %s", pid, why);
    struct wire_enc e = srv_encoder(s);
    wire_pack_link_client_state(&e, 0, &m);
    srv_link_send(s, &e);
}

void srv_link_client_state(struct srv_session *c, uint32_t context, uint32_t device, uint32_t state)
{
    const struct wire_link_client_state m = { .pid = c->pid,
                                              .context = context,
                                              .state = state,
                                              .device = device,
                                              .pid_namespace = c->pid_namespace };
    struct wire_enc e = srv_encoder(c->server);
    wire_pack_link_client_state(&e, 0, &m);
    srv_link_send(c->server, &e);
}

void srv_link_fault(struct srv_server *s, uint32_t pid, int result, const char *text)
{
    const struct wire_link_fault m = { pid, result, text };
    struct wire_enc e = srv_encoder(s);
    wire_pack_link_fault(&e, 0, &m);
    srv_link_send(s, &e);
}
