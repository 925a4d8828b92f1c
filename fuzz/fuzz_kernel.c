/*
 * A module image from a hostile program, on the software device: found, parsed, its globals placed,
 * and every kernel in it run in the interpreter, two blocks of 33 threads. Whatever the text says,
 * loading answers and launches end.
 */
#include <stdlib.h>
#include <string.h>

#include "device/soft/kernel.h"
#include "transport/memfd.h"

#define WINDOW_BASE 0x400000000000ull
#define WINDOW_SIZE (1ull << 28)
#define MAPPED      (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_fault(void *arg, struct dev_client *c, int result, uint64_t address,
                     const char *text)
{
}

static struct tp_session session;
static int device_fd, host_fd;
static struct dev *dev;

static void prepare(void)
{
    static const struct dev_events events = { .client_fault = on_fault };
    setenv("GMUX_SOFT_JIT", "0", 1);
    setenv("GMUX_SOFT_WORKERS", "1", 1);
    setenv("GMUX_SOFT_KERNEL_TIMEOUT", "0.05", 1);
    int fd = tp_session_create();
    device_fd = tp_memfd_create("device", WINDOW_SIZE / 2);
    host_fd = tp_memfd_create("host", WINDOW_SIZE / 2);
    if (fd < 0 || device_fd < 0 || host_fd < 0 ||
        tp_session_attach(&session, fd, TP_SESSION_SIZE) != 0 ||
        gmux_device.open(&dev, &events) != 0)
        abort();
}

static void run(struct dev_client *c, struct dev_module *m)
{
    static const struct tp_wait_policy policy = { .spin_ns = 100000, .slice_ms = 100 };
    uint64_t params[64];
    struct dev_queue *q;
    for (size_t i = 0; i < GM_ARRAY_LEN(params); i++)
        params[i] = WINDOW_BASE + 4096 * (i % 16);
    if (gmux_device.queue_create(c, 0, 0, 0, 0, &q) != 0)
        abort();
    uint64_t seq = 0;
    for (uint32_t k = 0; k < m->kernel_count && k < 8; k++) {
        const struct dev_launch l = { .module = m,
                                      .function = k,
                                      .grid = { 2, 1, 1 },
                                      .block = { 33, 1, 1 },
                                      .shared_bytes = 128,
                                      .params = params,
                                      .params_size = sizeof(params) };
        if (gmux_device.launch(q, ++seq, &l) != 0)
            abort();
    }
    if (tp_word_wait(&session.streams[0].completed, seq, &policy) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dev_client *c;
    struct dev_module *m;
    struct dev_module_info info;

    if (!dev)
        prepare();
    memset(session.streams, 0, sizeof(session.streams[0]));
    const struct dev_client_config config = { .id = 1,
                                              .window_base = WINDOW_BASE,
                                              .window_size = WINDOW_SIZE,
                                              .device_fd = device_fd,
                                              .host_fd = host_fd,
                                              .share_pct = 100,
                                              .session = &session };
    if (gmux_device.client_create(dev, &config, &c) != 0 ||
        gmux_device.memory_map(c, WINDOW_BASE, 2 * MAPPED) != 0)
        abort();
    if (gmux_device.module_load(c, 0, data, size, WIRE_IMAGE_KIND_PTX, &m, &info) != 0) {
        if (!info.log)
            abort();
        free(info.log);
    } else if (info.globals_size < MAPPED &&
               gmux_device.module_place(m, WINDOW_BASE + MAPPED, true) == 0) {
        run(c, m);
    }
    gmux_device.client_stop(c);
    gmux_device.client_destroy(c);
    return 0;
}
