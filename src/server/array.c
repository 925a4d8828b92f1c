/*
 * Memory of a client's arrays. The device's driver makes arrays in memory of its own, so the server
 * only keeps the charge: the client asks for an amount, and the executor holds it to what was
 * granted. A higher amount is charged before the executor is told, a lower one is given back when
 * the executor has agreed.
 */
#include <stdlib.h>

#include "base/result.h"
#include "server/send.h"
#include "server/serve.h"
#include "server/server.h"

struct array_op {
    struct srv_session *session;
    uint32_t device;
    uint64_t serial;
    uint64_t bytes;     /* the amount if the executor agrees */
    uint64_t otherwise; /* the amount if it does not */
};

/* Meanwhile the larger of the two is charged. */
static void on_told(void *arg, int result, struct tp_packet *answer)
{
    struct array_op *op = arg;
    struct srv_session *c = op->session;
    (void)answer;
    int r = srv_charge_resize(&c->arrays[op->device], result == 0 ? op->bytes : op->otherwise);
    (void)r; /* a lower amount is always granted */
    c->arrays_asked = false;
    srv_session_status(c, op->serial, result);
    free(op);
}

static int prepare(struct srv_session *c, const struct wire_array_memory *m, uint64_t serial,
                   struct array_op **out)
{
    if (c->failed)
        return c->failed;
    if (!c->server->memory_apart)
        return GM_CUDA_NOT_SUPPORTED;
    struct array_op *op = calloc(1, sizeof(*op));
    if (!op)
        return GM_CUDA_OUT_OF_MEMORY;
    struct srv_charge *arrays = &c->arrays[m->device];
    *op = (struct array_op) { c, m->device, serial, m->bytes, arrays->amount };
    if (m->bytes > arrays->amount && srv_charge_resize(arrays, m->bytes) < 0) {
        free(op);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    *out = op;
    return 0;
}

const char *srv_on_array_memory(struct srv_session *c, const struct wire_array_memory *m,
                                uint64_t serial)
{
    struct array_op *op;
    if (m->device >= c->server->devices_count)
        return "arrays of a device that there is not";
    if (c->arrays_asked)
        return "two questions about arrays at a time";
    int result = prepare(c, m, serial, &op);
    if (result != 0) {
        srv_session_status(c, serial, result);
        return NULL;
    }
    c->arrays_asked = true;
    srv_engine_array_memory(c, &(struct wire_engine_array_memory) { c->id, m->device, m->bytes },
                            on_told, op);
    return NULL;
}

void srv_arrays_replay(struct srv_session *c)
{
    for (uint32_t d = 0; d < c->server->devices_count; d++) {
        const struct wire_engine_array_memory m = { c->id, d, c->arrays[d].amount };
        if (m.bytes != 0)
            srv_engine_array_memory(c, &m, NULL, NULL);
    }
}
