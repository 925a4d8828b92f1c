/*
 * What executors say of their devices. The server keeps it for its lifetime: every executor has the
 * same back end.
 */
#include <string.h>

#include "server/executor.h"
#include "server/server.h"

const char *srv_executor_learn(struct srv_executor *x, const struct wire_engine_ready *m)
{
    struct srv_server *s = x->server;
    struct wire_dec list;
    uint32_t n = 0;
    if (m->devices.size > sizeof(s->device_packet))
        return "devices that are too long";
    memcpy(s->device_packet, m->devices.data, m->devices.size);
    wire_dec_init(&list, s->device_packet, m->devices.size);
    for (; n < TP_DEVICES && !wire_dec_end(&list); n++) {
        struct wire_device *d = &s->devices[n];
        wire_get_device(&list, d);
        if (list.fatal || d->uuid.size != 16)
            return "a malformed device";
        if (m->memory_apart && srv_keeper_cuda_open(n, d->uuid.data, x->why, sizeof(x->why)) < 0)
            return x->why;
    }
    if (!wire_dec_finish(&list) || n == 0)
        return "no device, or too many";
    s->memory_apart = m->memory_apart != 0;
    s->devices_count = n;
    return NULL;
}

void srv_executor_learn_traits(struct srv_executor *x, struct tp_packet *p)
{
    struct wire_engine_traits m;
    wire_get_engine_traits(&p->body, &m);
    x->server->guarantees = m.guarantees != 0;
}
