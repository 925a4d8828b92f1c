/*
 * Queue operations with hostile arguments, on the null device: what all back ends share (queues,
 * copies, fills, waits, gates, the window). The input is a list of operations: one byte of op, one
 * of stream, then 64-bit arguments from which each takes what it needs. Addresses are small
 * numbers, taken from the start of the window; the first MiB of both areas exists. Whatever comes,
 * every operation has completed once the client is stopped.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "transport/memfd.h"

#define WINDOW_BASE 0x400000000000ull
#define WINDOW_SIZE (1ull << 28)
#define STREAMS     4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_fault(void *arg, struct dev_client *c, int result, uint64_t address,
                     const char *text)
{
    (*(int *)arg)++;
}

static struct tp_session session;
static int device_fd, host_fd;
static int faults;
static struct dev *dev;

static void prepare(void)
{
    static const struct dev_events events = { .client_fault = on_fault, .arg = &faults };
    int fd = tp_session_create();
    device_fd = tp_memfd_create("device", WINDOW_SIZE / 2);
    host_fd = tp_memfd_create("host", WINDOW_SIZE / 2);
    if (fd < 0 || device_fd < 0 || host_fd < 0 ||
        tp_session_attach(&session, fd, TP_SESSION_SIZE) != 0 ||
        dev_null_ops.open(&dev, &events) != 0)
        abort();
}

static uint64_t take(const uint8_t **data, size_t *size)
{
    uint64_t v = 0;
    size_t n = *size < 8 ? *size : 8;
    memcpy(&v, *data, n);
    *data += n;
    *size -= n;
    return v;
}

static int operate(struct dev_queue *queues[STREAMS], struct dev_queue *q, unsigned op,
                   uint64_t seq, const uint64_t a[9])
{
    const struct dev_ops *ops = &dev_null_ops;
    const struct wire_rec_copy copy = { .dst = WINDOW_BASE + a[0],
                                        .src = WINDOW_BASE + a[1],
                                        .width = a[2],
                                        .height = a[3],
                                        .depth = a[4],
                                        .dst_pitch = a[5],
                                        .dst_slice = a[6],
                                        .src_pitch = a[7],
                                        .src_slice = a[8] };
    const struct wire_rec_fill fill = { .dst = WINDOW_BASE + a[0],
                                        .pitch = a[1],
                                        .width = a[2],
                                        .height = a[3],
                                        .value = (uint32_t)a[4],
                                        .element_size = (uint32_t)a[5] };
    switch (op % 8) {
    case 0:
        return ops->copy(q, seq, &copy);
    case 1:
        return ops->fill(q, seq, &fill);
    case 2:
        return ops->write(q, seq, WINDOW_BASE + a[0], a + 1, 64);
    case 3:
        return ops->wait(q, seq, queues[a[0] % STREAMS], a[1]);
    case 4:
        return ops->stamp(q, seq, (uint32_t)a[0]);
    case 5:
        return ops->gate(q, seq);
    case 6:
        atomic_store(&session.streams[a[0] % STREAMS].gate, a[1]);
        ops->gate_moved(queues[a[0] % STREAMS]);
        return ops->mark(q, seq);
    default:
        return ops->mark(q, seq);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t arguments[8] = { 9, 6, 1, 2, 1, 0, 2, 0 };
    const struct dev_ops *ops = &dev_null_ops;
    struct dev_client *client;
    struct dev_queue *queues[STREAMS];
    uint64_t seq[STREAMS] = { 0 };

    if (!dev)
        prepare();
    memset(session.streams, 0, sizeof(session.streams[0]) * STREAMS);
    faults = 0;
    const struct dev_client_config config = { .id = 1,
                                              .window_base = WINDOW_BASE,
                                              .window_size = WINDOW_SIZE,
                                              .device_fd = device_fd,
                                              .host_fd = host_fd,
                                              .share_pct = 100,
                                              .session = &session };
    if (ops->client_create(dev, &config, &client) != 0 ||
        ops->memory_map(client, WINDOW_BASE, 1 << 20) != 0 ||
        ops->memory_map(client, WINDOW_BASE + WINDOW_SIZE / 2, 1 << 20) != 0)
        abort();
    for (uint32_t s = 0; s < STREAMS; s++)
        if (ops->queue_create(client, 0, s, 0, 0, &queues[s]) != 0)
            abort();
    while (size >= 2) {
        uint64_t a[9] = { 0 };
        unsigned op = data[0], s = data[1] % STREAMS;
        data += 2;
        size -= 2;
        for (unsigned i = 0; i < arguments[op % 8]; i++)
            a[i] = take(&data, &size);
        if (operate(queues, queues[s], op, ++seq[s], a) != 0)
            abort();
    }
    ops->client_stop(client);
    for (uint32_t s = 0; s < STREAMS; s++)
        if (atomic_load(&session.streams[s].completed.value) != seq[s])
            abort();
    if (ops->backlog(client) != 0 || faults > 1)
        abort();
    ops->client_destroy(client);
    return 0;
}
