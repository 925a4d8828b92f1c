#include "rig.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/memfd.h"

static void on_fault(void *arg, struct dev_client *client, int result, uint64_t address,
                     const char *text)
{
    struct rig *r = arg;
    for (int i = 0; i < RIG_CLIENTS; i++) {
        struct rig_client *c = &r->clients[i];
        if (c->client != client)
            continue;
        cr_assert_eq(atomic_load(&c->fault), 0, "a client has one fault at most");
        strncpy(c->fault_text, text, sizeof(c->fault_text) - 1);
        atomic_store(&c->fault_address, address);
        atomic_store(&c->fault, result);
    }
}

void rig_open(struct rig *r, const struct dev_ops *ops)
{
    memset(r, 0, sizeof(*r));
    r->ops = ops;
    r->events = (struct dev_events) { .client_fault = on_fault, .arg = r };
    cr_assert_eq(ops->open(&r->dev, &r->events), 0);
}

struct rig_client *rig_client_add(struct rig *r, int i, double share_pct, int priority, int queues,
                                  uint64_t mapped)
{
    struct rig_client *c = &r->clients[i];
    cr_assert_null(c->client);
    memset((char *)c + sizeof(c->client), 0, sizeof(*c) - sizeof(c->client));
    c->base = RIG_WINDOWS + (uint64_t)i * RIG_WINDOW_SIZE;
    c->session_fd = tp_session_create();
    cr_assert_geq(c->session_fd, 0);
    cr_assert_eq(tp_session_attach(&c->session, c->session_fd, TP_SESSION_SIZE), 0);
    c->device_fd = tp_memfd_create("device", RIG_WINDOW_SIZE / 2);
    c->host_fd = tp_memfd_create("host", RIG_WINDOW_SIZE / 2);
    const struct dev_client_config config = {
        .id = (uint32_t)i + 1,
        .uid = r->uid,
        .window_base = c->base,
        .window_size = RIG_WINDOW_SIZE,
        .device_fd = c->device_fd,
        .host_fd = c->host_fd,
        .share_pct = share_pct,
        .priority = priority,
        .session = &c->session,
    };
    struct dev_client *client;
    cr_assert_eq(r->ops->client_create(r->dev, &config, &client), 0);
    c->client = client;
    for (int q = 0; q < queues; q++)
        cr_assert_eq(r->ops->queue_create(c->client, 0, (uint32_t)q, 0, 0, &c->queue[q]), 0);
    if (mapped)
        cr_assert_eq(r->ops->memory_map(c->client, c->base, mapped), 0);
    return c;
}

void rig_client_remove(struct rig *r, int i)
{
    struct rig_client *c = &r->clients[i];
    if (!c->client)
        return;
    r->ops->client_stop(c->client);
    r->ops->client_destroy(c->client);
    tp_session_detach(&c->session);
    close(c->session_fd);
    close(c->device_fd);
    close(c->host_fd);
    c->client = NULL;
}

void rig_close(struct rig *r)
{
    for (int i = 0; i < RIG_CLIENTS; i++)
        rig_client_remove(r, i);
    r->ops->close(r->dev);
}

static int too_late(void *arg)
{
    const uint64_t *deadline = arg;
    return gm_now_ns() > *deadline ? 1 : 0;
}

void rig_wait(struct rig_client *c, int stream, uint64_t seq)
{
    uint64_t deadline = gm_now_ns() + 20 * GM_NS_PER_S;
    const struct tp_wait_policy policy = { .slice_ms = 100,
                                           .watchdog = too_late,
                                           .arg = &deadline };
    if (!seq)
        seq = c->seq[stream];
    cr_assert_eq(tp_word_wait(&c->session.streams[stream].completed, seq, &policy), 0,
                 "stream %d stands at %llu, waited for %llu", stream,
                 (unsigned long long)rig_completed(c, stream), (unsigned long long)seq);
}

uint64_t rig_launch(struct rig *r, struct rig_client *c, int stream, const struct dev_launch *l)
{
    uint64_t seq = ++c->seq[stream];
    cr_assert_eq(r->ops->launch(c->queue[stream], seq, l), 0);
    return seq;
}

uint64_t rig_copy(struct rig *r, struct rig_client *c, int stream, uint64_t dst, uint64_t src,
                  uint64_t size)
{
    uint64_t seq = ++c->seq[stream];
    const struct wire_rec_copy rec = {
        .dst = dst, .src = src, .width = size, .height = 1, .depth = 1
    };
    cr_assert_eq(r->ops->copy(c->queue[stream], seq, &rec), 0);
    return seq;
}

uint64_t rig_fill(struct rig *r, struct rig_client *c, int stream, uint64_t dst, uint64_t count,
                  uint32_t value, uint32_t element_size)
{
    uint64_t seq = ++c->seq[stream];
    const struct wire_rec_fill rec = {
        .dst = dst, .width = count, .height = 1, .value = value, .element_size = element_size
    };
    cr_assert_eq(r->ops->fill(c->queue[stream], seq, &rec), 0);
    return seq;
}

uint64_t rig_wait_op(struct rig *r, struct rig_client *c, int stream, int other, uint64_t other_seq)
{
    uint64_t seq = ++c->seq[stream];
    cr_assert_eq(r->ops->wait(c->queue[stream], seq, c->queue[other], other_seq), 0);
    return seq;
}

uint64_t rig_gate(struct rig *r, struct rig_client *c, int stream)
{
    uint64_t seq = ++c->seq[stream];
    cr_assert_eq(r->ops->gate(c->queue[stream], seq), 0);
    return seq;
}

uint64_t rig_stamp(struct rig *r, struct rig_client *c, int stream, uint32_t event)
{
    uint64_t seq = ++c->seq[stream];
    cr_assert_eq(r->ops->stamp(c->queue[stream], seq, event), 0);
    return seq;
}

void rig_open_gate(struct rig *r, struct rig_client *c, int stream, uint64_t seq)
{
    atomic_store(&c->session.streams[stream].gate, seq);
    r->ops->gate_moved(c->queue[stream]);
}
