/*
 * The fake server's socket thread and its device thread. Nothing here is careful: it is the client
 * that is tested.
 */
#include "fake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/result.h"
#include "transport/memfd.h"

void fake_send(int fd, const struct wire_enc *e, const int *fds, unsigned fds_count)
{
    int r = tp_send(fd, e, fds, fds_count);
    (void)r; /* a client that is gone is what some tests are about */
}

static void *fake_main(void *arg)
{
    struct fake *f = arg;
    for (;;) {
        GM_AUTO_FD int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL;
        f->connections++;
        if (tp_recv(fd, &f->packet) <= 0)
            continue;
        wire_get_hello(&f->packet.body, &f->hello);
        snprintf(f->command, sizeof(f->command), "%s", f->hello.command ? f->hello.command : "");
        f->serve(f, fd);
    }
}

void fake_start(struct fake *f, void (*serve)(struct fake *f, int fd), void *arg)
{
    char path[128];
    memset(f, 0, sizeof(*f));
    f->serve = serve;
    f->arg = arg;
    strcpy(f->directory, "/tmp/gmux-fake-XXXXXX");
    assert(mkdtemp(f->directory));
    snprintf(path, sizeof(path), "%s/control", f->directory);
    f->listener = tp_listen(path);
    assert(f->listener >= 0);
    setenv("CUDA_MPS_PIPE_DIRECTORY", f->directory, 1);
    setenv("GMUX_GENUINE_LIBCUDA", "none", 1);
    setenv("GMUX_LIBEXECDIR", "/nonexistent", 1);
    int r = pthread_create(&f->thread, NULL, fake_main, f);
    assert(r == 0);
}

static size_t encode_device(uint8_t *out, size_t size)
{
    static int32_t attributes[160];
    static const uint8_t uuid[16] = { 1, 2, 3 };
    struct wire_enc e;
    for (unsigned i = 1; i <= 4; i++)
        attributes[i] = 1024;
    attributes[5] = attributes[6] = attributes[7] = 65535;
    attributes[8] = 49152;
    attributes[10] = 32;
    wire_enc_init(&e, out, size);
    wire_put_device(&e, &(struct wire_device) { .name = "gmux fake device",
                                                .uuid = { uuid, 16 },
                                                .memory_total = 1 << 30,
                                                .multiprocessors = 8,
                                                .multiprocessors_granted = 3,
                                                .attributes = { attributes, sizeof(attributes) } });
    return e.size;
}

void fake_offer(struct fake *f, int fd, uint64_t base, size_t cut)
{
    static uint8_t buffer[WIRE_PACKET_MAX];
    uint8_t device[2048];
    struct wire_enc e;
    int fds[3] = { tp_session_create(), tp_memfd_create("device", FAKE_HALF),
                   tp_memfd_create("host", FAKE_HALF) };
    assert(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
    tp_session_detach(&f->session);
    int r = tp_session_attach(&f->session, fds[0], TP_SESSION_SIZE);
    assert(r == 0);
    tp_ring_init_consumer(&f->ring, &f->session.control->ring, f->session.ring_data,
                          f->session.ring_size);
    f->next_address = base;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_session_open(
        &e, 0,
        &(struct wire_session_open) {
            .version = WIRE_VERSION,
            .features = f->features,
            .window_base = base,
            .window_size = 2 * FAKE_HALF,
            .session_size = TP_SESSION_SIZE,
            .memory_limit = 1 << 30,
            .share_pct = 33,
            .server_pid = 1,
            .driver_version = 13000,
            .device_count = 1,
            .devices = { device, (uint32_t)encode_device(device, sizeof(device)) } });
    if (cut) {
        struct wire_header h;
        memcpy(&h, buffer, sizeof(h));
        e.size = cut;
        h.size = (uint32_t)cut; /* the header fits what is sent: it is the body that is short */
        memcpy(buffer, &h, GM_MIN(sizeof(h), cut));
    }
    fake_send(fd, &e, fds, 3);
    for (int i = 0; i < 3; i++)
        gm_close(fds[i]);
}

static int module_info(bool by_name)
{
    uint8_t functions[256], globals[256], all[1024];
    static const uint32_t params[] = { 0, 8, 8, 4 };
    struct wire_enc f, g, e;
    wire_enc_init(&f, functions, sizeof(functions));
    wire_put_function_info(&f, &(struct wire_function_info) { .name = "k",
                                                              .param_bytes = 12,
                                                              .params = { params, sizeof(params) },
                                                              .max_threads = 256,
                                                              .registers = 16 });
    wire_enc_init(&g, globals, sizeof(globals));
    wire_put_global_info(&g, &(struct wire_global_info) { .name = "v", .offset = 16, .size = 4 });
    wire_enc_init(&e, all, sizeof(all));
    wire_put_module_info(&e,
                         &(struct wire_module_info) { .by_name = by_name,
                                                      .globals_size = 64,
                                                      .globals_align = 16,
                                                      .functions = { functions, (uint32_t)f.size },
                                                      .globals = { globals, (uint32_t)g.size } });
    assert(!e.fatal);
    return tp_memfd_from_bytes("info", all, e.size);
}

static void answer(struct fake *f, int fd)
{
    uint8_t buffer[4096];
    struct wire_enc e;
    GM_AUTO_FD int info = -1;
    uint64_t serial = f->packet.header.serial;
    wire_enc_init(&e, buffer, sizeof(buffer));
    switch (f->packet.header.type) {
    case WIRE_MEMORY_ALLOC: {
        struct wire_memory_alloc m;
        wire_get_memory_alloc(&f->packet.body, &m);
        uint64_t offset = m.kind == WIRE_MEMORY_KIND_HOST ? FAKE_HALF : 0;
        wire_pack_memory_allocated(
            &e, serial, &(struct wire_memory_allocated) { .address = f->next_address + offset });
        f->next_address += (m.size + 4095) & ~4095ull;
        break;
    }
    case WIRE_MEMORY_INFO:
        if (!f->info.total)
            f->info = (struct wire_memory_info_is) { .free = 1 << 20, .total = 1 << 30 };
        wire_pack_memory_info_is(&e, serial, &f->info);
        break;
    case WIRE_MODULE_LOAD:
        info = module_info(f->by_name);
        wire_pack_module_loaded(
            &e, serial,
            &(struct wire_module_loaded) {
                .module = 7 + f->modules++, .log = "fine", .globals_address = f->next_address });
        f->next_address += 4096;
        break;
    case WIRE_MODULE_UNLOAD: {
        struct wire_module_unload m;
        wire_get_module_unload(&f->packet.body, &m);
        f->unloaded = m.module;
        wire_pack_status(&e, serial, &(struct wire_status) { 0 });
        break;
    }
    default:
        wire_pack_status(&e, serial, &(struct wire_status) { 0 });
        break;
    }
    if (serial)
        fake_send(fd, &e, &info, info >= 0 ? 1 : 0);
}

void fake_answer(struct fake *f, int fd, unsigned requests)
{
    unsigned answered = 0;
    while (tp_recv(fd, &f->packet) > 0) {
        answer(f, fd);
        tp_packet_finish(&f->packet);
        if (requests && ++answered == requests)
            return;
    }
}

void fake_serve_well(struct fake *f, int fd)
{
    fake_offer(f, fd, FAKE_WINDOW, 0);
    fake_answer(f, fd, 0);
}

static void stand_at_gate(struct fake *f, const struct wire_record *r)
{
    struct tp_stream_slot *slot = &f->session.streams[r->stream];
    struct tp_word *arrivals = &f->session.control->arrivals;
    atomic_store_explicit(&slot->arrived, r->seq, memory_order_release);
    tp_word_publish(arrivals, atomic_load(&arrivals->value) + 1);
    for (;;) {
        uint32_t bell = tp_ring_bell(&f->ring);
        if (atomic_load_explicit(&slot->gate, memory_order_acquire) >= r->seq)
            return;
        tp_ring_nap(&f->ring, bell, 100 * GM_NS_PER_MS);
    }
}

static void answer_call(struct fake *f, const struct wire_rec_call *r)
{
    struct tp_reply *shared = f->session.reply;
    struct wire_dec args;
    struct wire_enc reply;
    wire_dec_init(&args, r->args, r->head.size - sizeof(*r));
    wire_enc_init(&reply, shared->bytes, sizeof(shared->bytes));
    shared->result = f->call ? f->call(r, &args, &reply) : GM_CUDA_NOT_SUPPORTED;
    shared->size = (uint32_t)reply.size;
    tp_word_publish(&f->session.control->replied, r->number);
}

static void *device_main(void *arg)
{
    static uint8_t buffer[WIRE_RECORD_MAX] GM_ALIGNED(8);
    struct wire_record *r = (struct wire_record *)(void *)buffer;
    struct fake *f = arg;
    for (;;) {
        uint32_t bell = tp_ring_bell(&f->ring);
        int found = tp_ring_peek(&f->ring, buffer, sizeof(buffer));
        assert(found >= 0);
        if (found == 0) {
            tp_ring_wait(&f->ring, bell, 100);
            continue;
        }
        tp_ring_advance(&f->ring);
        if (r->op == WIRE_OP_GATE)
            stand_at_gate(f, r);
        if (r->op == WIRE_OP_CALL)
            answer_call(f, (const struct wire_rec_call *)(const void *)buffer);
        uint64_t before = atomic_load(&f->session.streams[r->stream].completed.value);
        assert(r->seq == before + 1);
        tp_word_publish(&f->session.streams[r->stream].completed, r->seq);
    }
    return NULL;
}

void fake_device_start(struct fake *f)
{
    pthread_t thread;
    int r = pthread_create(&thread, NULL, device_main, f);
    assert(r == 0);
}
