/*
 * A client's contexts. All of them share the session's streams and memory; here they are names, counted and logged as
 * MPS does: context 0 is the process, 1, 2 .. its contexts.
 */
#include <stdlib.h>

#include "base/result.h"
#include "server/server.h"

static struct srv_context *find_context(struct srv_session *c, uint32_t id)
{
    gm_list_for_each (x, &c->contexts, struct srv_context, link)
        if (x->id == id)
            return x;
    return NULL;
}

static void context_destroy(struct srv_session *c, struct srv_context *x)
{
    struct srv_server *s = c->server;
    s->contexts_count--;
    srv_say(s, "Client {PID: %u, Context ID: %u} exiting. Number of active client contexts is %u.", c->pid, x->id,
            s->contexts_count);
    srv_link_client_state(c, x->id, WIRE_CLIENT_STATE_EXITED);
    srv_charge_release(&x->charge);
    gm_list_remove(&x->link);
    free(x);
}

void srv_contexts_end(struct srv_session *c)
{
    gm_list_for_each_safe (x, &c->contexts, struct srv_context, link) {
        /* The spelling is what people's scripts look for. */
        srv_say(c->server,
                "Server failed to recevie command with status 806, assuming client {PID: %u, Context ID: %u} exit",
                c->pid, x->id);
        context_destroy(c, x);
    }
}

static int open_context(struct srv_session *c, const struct wire_context_open *m)
{
    struct srv_server *s = c->server;
    char uuid[SRV_UUID_TEXT];
    if (c->failed)
        return c->failed;
    if (m->context == 0 || find_context(c, m->context))
        return GM_CUDA_INVALID_VALUE;
    if (m->device != 0)
        return GM_CUDA_INVALID_DEVICE;
    struct srv_context *x = calloc(1, sizeof(*x));
    if (!x || srv_charge(&x->charge, &c->account, SRV_CONTEXTS, 1) < 0) {
        free(x);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    x->id = m->context;
    gm_list_append(&c->contexts, &x->link);
    s->contexts_count++;
    srv_uuid_text(uuid, s->device.uuid.data);
    srv_say(s, "Device %s (uuid %s) is associated", s->device.name, uuid);
    srv_say(s, "Status of client {PID: %u, Context ID: %u} is ACTIVE", c->pid, x->id);
    srv_link_client_state(c, x->id, WIRE_CLIENT_STATE_ACTIVE);
    return 0;
}

const char *srv_on_context_open(struct srv_session *c, struct tp_packet *p)
{
    struct wire_context_open m;
    wire_get_context_open(&p->body, &m);
    srv_session_status(c, p->header.serial, open_context(c, &m));
    return NULL;
}

const char *srv_on_context_close(struct srv_session *c, struct tp_packet *p)
{
    struct wire_context_close m;
    wire_get_context_close(&p->body, &m);
    struct srv_context *x = find_context(c, m.context);
    if (x)
        context_destroy(c, x);
    srv_session_status(c, p->header.serial, x ? 0 : GM_CUDA_INVALID_CONTEXT);
    return NULL;
}
