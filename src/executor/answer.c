/*
 * Tells the server that an order is done or that a client has failed, and wakes the main thread.
 */
#include "executor/order.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static uint8_t packet_out[32768]; /* main thread only */

int exe_order_done(struct exe_engine *e, uint64_t serial, int result)
{
    struct wire_enc enc;
    const struct wire_engine_done m = { .result = result };
    wire_enc_init(&enc, packet_out, sizeof(packet_out));
    wire_pack_engine_done(&enc, serial, &m);
    return tp_send(e->server, &enc, NULL, 0);
}

static int answer_load(struct exe_engine *e, struct exe_order *o)
{
    struct wire_enc enc;
    GM_AUTO_FREE char *log = o->info.log;
    GM_AUTO_FD int info_fd = o->info_fd;
    if (log && strlen(log) > 16384)
        log[16384] = '\0';
    const struct wire_engine_module_loaded answer = { .result = o->result,
                                                      .globals_size = o->info.globals_size,
                                                      .globals_align = o->info.globals_align,
                                                      .log = log };
    wire_enc_init(&enc, packet_out, sizeof(packet_out));
    wire_pack_engine_module_loaded(&enc, o->serial, &answer);
    return tp_send(e->server, &enc, &info_fd, o->result == 0 ? 1 : 0);
}

int exe_order_answer(struct exe_engine *e, struct exe_order *o)
{
    return o->type == WIRE_ENGINE_MODULE_LOAD ? answer_load(e, o)
                                              : exe_order_done(e, o->serial, o->result);
}

void exe_engine_wake(struct exe_engine *e)
{
    const uint64_t one = 1;
    ssize_t n = write(e->failures, &one, sizeof(one));
    (void)n; /* fails only if the counter is full, and then the main thread is woken already */
}

void exe_client_fail(struct exe_client *c, int result, uint64_t address, const char *text)
{
    uint8_t packet[1024];
    struct wire_enc e;

    if (atomic_exchange_explicit(&c->failed, true, memory_order_acq_rel))
        return;
    atomic_store_explicit(&c->leaving, true, memory_order_release);
    tp_session_fail(&c->session, (uint32_t)result, address);
    char line[512];
    snprintf(line, sizeof(line), "%s", text ? text : "");
    const struct wire_engine_client_fault m = {
        .client = c->id, .result = result, .address = address, .text = line
    };
    wire_enc_init(&e, packet, sizeof(packet));
    wire_pack_engine_client_fault(&e, 0, &m);
    /* Fails only if the server is gone, and then this process ends, too. */
    int r = tp_send(c->engine->server, &e, NULL, 0);
    (void)r;
    exe_engine_wake(c->engine);
    tp_ring_wake(&c->session.control->ring);
}
