/*
 * A client's contexts. They share the session's streams and memory; here they are names, counted
 * and logged as MPS does: context 0 is the process, 1, 2 and so on are its contexts. With a
 * client's first context on a device the executor is told that the client uses that device. It is
 * also told of peers, the devices that may touch each other's memory.
 */
#include <stdlib.h>

#include "base/result.h"
#include "server/send.h"
#include "server/serve.h"
#include "server/server.h"

static struct srv_context *find_context(struct srv_session *c, uint32_t id)
{
    gm_list_for_each (x, &c->contexts, struct srv_context, link)
        if (x->id == id)
            return x;
    return NULL;
}

static void context_free(struct srv_context *x)
{
    srv_charge_release(&x->charge);
    gm_list_remove(&x->link);
    free(x);
}

static void context_destroy(struct srv_session *c, struct srv_context *x)
{
    struct srv_server *s = c->server;
    s->contexts_count--;
    srv_say(s, "Client {PID: %u, Context ID: %u} exiting. Number of active client contexts is %u.",
            c->pid, x->id, s->contexts_count);
    srv_link_client_state(c, x->id, x->device, WIRE_CLIENT_STATE_EXITED);
    context_free(x);
}

void srv_contexts_end(struct srv_session *c)
{
    gm_list_for_each_safe (x, &c->contexts, struct srv_context, link) {
        if (x->opening)
            continue; /* wait until the executor has answered */
        /* Scripts look for this spelling. */
        srv_say(c->server,
                "Server failed to recevie command with status 806, assuming client {PID: %u, "
                "Context ID: %u} exit",
                c->pid, x->id);
        context_destroy(c, x);
    }
}

static int open_context(struct srv_session *c, const struct wire_context_open *m,
                        struct srv_context **out)
{
    if (c->failed)
        return c->failed;
    if (m->context == 0 || find_context(c, m->context))
        return GM_CUDA_INVALID_VALUE;
    if (m->device >= c->server->devices_count)
        return GM_CUDA_INVALID_DEVICE;
    const int admitted = srv_partition_admits(c, m->device);
    if (admitted) {
        srv_say(c->server, "Client {PID: %u, Context ID: %u} has no partition of device %u", c->pid,
                m->context, m->device);
        return admitted;
    }
    struct srv_context *x = calloc(1, sizeof(*x));
    if (!x || srv_charge(&x->charge, &c->account, SRV_CONTEXTS, 1) < 0) {
        free(x);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    x->session = c;
    x->id = m->context;
    x->device = m->device;
    gm_list_append(&c->contexts, &x->link);
    *out = x;
    return 0;
}

static void context_opened(struct srv_context *x)
{
    struct srv_session *c = x->session;
    struct srv_server *s = c->server;
    const struct wire_device *d = &s->devices[x->device];
    char uuid[SRV_UUID_TEXT];
    c->devices_used |= 1u << x->device;
    s->contexts_count++;
    srv_uuid_text(uuid, d->uuid.data);
    srv_say(s, "Device %s (uuid %s) is associated", d->name, uuid);
    srv_say(s, "Status of client {PID: %u, Context ID: %u} is ACTIVE", c->pid, x->id);
    srv_link_client_state(c, x->id, x->device, WIRE_CLIENT_STATE_ACTIVE);
}

static void on_device(void *arg, int result, struct tp_packet *answer)
{
    struct srv_context *x = arg;
    struct srv_session *c = x->session;
    uint64_t serial = x->serial;
    (void)answer;
    x->opening = false;
    result = c->failed ? c->failed : result;
    if (result == 0 && c->phase != SRV_DRAINING)
        context_opened(x);
    else
        context_free(x);
    srv_session_status(c, serial, result);
}

static void use_device(struct srv_session *c, uint32_t device, srv_answer_fn *done, void *arg)
{
    srv_engine_client_device(c, &(struct wire_engine_client_device) { c->id, device }, done, arg);
}

const char *srv_on_context_open(struct srv_session *c, const struct wire_context_open *m,
                                uint64_t serial)
{
    struct srv_context *x = NULL;
    int r = open_context(c, m, &x);
    /* The client's first context on that device. */
    if (r == 0 && !(c->devices_used >> x->device & 1)) {
        x->opening = true;
        x->serial = serial;
        use_device(c, x->device, on_device, x);
        return NULL;
    }
    if (r == 0)
        context_opened(x);
    srv_session_status(c, serial, r);
    return NULL;
}

const char *srv_on_context_close(struct srv_session *c, const struct wire_context_close *m,
                                 uint64_t serial)
{
    struct srv_context *x = find_context(c, m->context);
    x = x && !x->opening ? x : NULL;
    if (x)
        context_destroy(c, x);
    srv_session_status(c, serial, x ? 0 : GM_CUDA_INVALID_CONTEXT);
    return NULL;
}

/* --- peers ------------------------------------------------------------------------------------ */

struct peer_op {
    struct srv_session *session;
    uint64_t serial;
    uint32_t device, peer;
    bool enabled;
};

static void on_peer(void *arg, int result, struct tp_packet *answer)
{
    struct peer_op *op = arg;
    struct srv_session *c = op->session;
    (void)answer;
    if (result == 0 && op->enabled)
        c->peers[op->peer] |= 1u << op->device;
    else if (result == 0)
        c->peers[op->peer] &= ~(1u << op->device);
    srv_session_status(c, op->serial, result);
    free(op);
}

const char *srv_on_peer_access(struct srv_session *c, const struct wire_peer_access *m,
                               uint64_t serial)
{
    uint32_t devices = c->server->devices_count;
    if (m->device >= devices || m->peer >= devices || m->device == m->peer || m->enabled > 1)
        return "peers that there are not";
    struct peer_op *op = c->failed ? NULL : malloc(sizeof(*op));
    if (!op) {
        srv_session_status(c, serial, c->failed ? c->failed : GM_CUDA_OUT_OF_MEMORY);
        return NULL;
    }
    *op = (struct peer_op) { c, serial, m->device, m->peer, m->enabled };
    srv_engine_client_peer(
        c, &(struct wire_engine_client_peer) { c->id, m->device, m->peer, m->enabled }, on_peer,
        op);
    return NULL;
}

void srv_devices_replay(struct srv_session *c)
{
    for (uint32_t d = 1; d < c->server->devices_count; d++)
        if (c->devices_used >> d & 1)
            use_device(c, d, NULL, NULL);
    for (uint32_t peer = 0; peer < c->server->devices_count; peer++)
        for (uint32_t d = 0; d < c->server->devices_count; d++)
            if (c->peers[peer] >> d & 1)
                srv_engine_client_peer(
                    c, &(struct wire_engine_client_peer) { c->id, d, peer, true }, NULL, NULL);
}
