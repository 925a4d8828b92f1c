/*
 * Clients of a server with two devices that name a third one, or use one that they have no context
 * on: in every request, in stream slots, in calls, in launches. Each is dropped or gets its error,
 * and a neighbour's results stay right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "raw.h"
#include "transport/memfd.h"

static struct raw_server server;
static uint32_t next_pid = 1000;
static uint8_t buffer[WIRE_PACKET_MAX];

static const char image[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n";

static void open_client(struct raw_client *c)
{
    raw_client_open(c, raw_server_connect(&server, next_pid++));
}

static struct wire_enc encoder(void)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    return e;
}

static int image_fd(void)
{
    int fd = tp_memfd_from_bytes("image", image, sizeof(image));
    RAW_CHECK(fd >= 0);
    return fd;
}

/* --- requests --------------------------------------------------------------------------------- */

enum request {
    ALLOC_DEVICE,
    ALLOC_HOST,
    INFO,
    LOAD,
    ARRAYS,
    OBJECT_DEVICE,
    OBJECT_HOST,
    PEER_DEVICE,
    PEER_PEER,
    PEER_SELF,
    PEER_SWITCH,
    REQUESTS,
};

static struct wire_enc encode(enum request what, uint32_t device)
{
    struct wire_enc e = encoder();
    switch (what) {
    case ALLOC_DEVICE:
    case ALLOC_HOST:
        wire_pack_memory_alloc(&e, 99,
                               &(struct wire_memory_alloc) { .size = 4096,
                                                             .kind = what == ALLOC_HOST
                                                                         ? WIRE_MEMORY_KIND_HOST
                                                                         : WIRE_MEMORY_KIND_DEVICE,
                                                             .device = device });
        break;
    case INFO:
        wire_pack_memory_info(&e, 99, &(struct wire_memory_info) { .device = device });
        break;
    case LOAD:
        wire_pack_module_load(&e, 99,
                              &(struct wire_module_load) { .size = sizeof(image),
                                                           .kind = WIRE_IMAGE_KIND_PTX,
                                                           .device = device });
        break;
    case ARRAYS:
        wire_pack_array_memory(&e, 99,
                               &(struct wire_array_memory) { .bytes = 4096, .device = device });
        break;
    case OBJECT_DEVICE:
    case OBJECT_HOST:
        wire_pack_object_create(
            &e, 99,
            &(struct wire_object_create) { .size = 2u << 20,
                                           .kind = what == OBJECT_HOST ? WIRE_MEMORY_KIND_HOST
                                                                       : WIRE_MEMORY_KIND_DEVICE,
                                           .device = device });
        break;
    case PEER_DEVICE:
        wire_pack_peer_access(
            &e, 99, &(struct wire_peer_access) { .device = device, .peer = 1, .enabled = 1 });
        break;
    case PEER_PEER:
        wire_pack_peer_access(
            &e, 99, &(struct wire_peer_access) { .device = 1, .peer = device, .enabled = 1 });
        break;
    case PEER_SELF:
        wire_pack_peer_access(&e, 99,
                              &(struct wire_peer_access) { .device = 1, .peer = 1, .enabled = 1 });
        break;
    default:
        wire_pack_peer_access(
            &e, 99, &(struct wire_peer_access) { .device = 0, .peer = 1, .enabled = device });
        break;
    }
    return e;
}

/* True if the host's memory, which has no device, may not have this one's number. */
static bool host_only(enum request what)
{
    return what == ALLOC_HOST || what == OBJECT_HOST;
}

static void requests(void)
{
    static const uint32_t wrong[] = { 2, 3, 15, 16, 31, 32, 0x80000000u, UINT32_MAX };
    static struct raw_client c;
    for (enum request what = 0; what < REQUESTS; what++)
        for (size_t i = 0; i < GM_ARRAY_LEN(wrong) + 1; i++) {
            uint32_t device = i < GM_ARRAY_LEN(wrong) ? wrong[i] : 1;
            if (i == GM_ARRAY_LEN(wrong) && !host_only(what))
                continue;
            open_client(&c);
            int fd = image_fd();
            struct wire_enc e = encode(what, device);
            RAW_CHECK(tp_send(c.fd, &e, &fd, what == LOAD ? 1 : 0) == 0);
            bool answered = raw_client_receive(&c);
            if (answered)
                fprintf(stderr, "request %d for device %u: answered\n", (int)what, device);
            RAW_CHECK(!answered);
            close(fd);
            raw_client_close(&c);
        }
    raw_neighbour_check();
}

static int status_of(struct raw_client *c, const struct wire_enc *e)
{
    raw_client_ask(c, e, NULL, 0);
    return raw_status(c);
}

static int open_context(struct raw_client *c, uint32_t context, uint32_t device)
{
    struct wire_enc e = encoder();
    wire_pack_context_open(&e, ++c->serial,
                           &(struct wire_context_open) { .context = context, .device = device });
    return status_of(c, &e);
}

/* An unknown device is an answer here, as it is to a program. */
static void contexts(void)
{
    static struct raw_client c;
    open_client(&c);
    RAW_CHECK(open_context(&c, 1, 2) == 101);
    RAW_CHECK(open_context(&c, 1, 32) == 101);
    RAW_CHECK(open_context(&c, 1, UINT32_MAX) == 101);
    RAW_CHECK(open_context(&c, 1, 1) == 0);
    RAW_CHECK(open_context(&c, 1, 0) != 0); /* its number is taken */
    RAW_CHECK(open_context(&c, 2, 0) == 0);
    raw_client_close(&c);
    raw_neighbour_check();
}

/* Access of a device that there is not, and access of a kind that there is not. */
static void kinds_of_access(void)
{
    static const uint32_t wrong[] = { 0, 2, 3u << 4, 1u << 4 | 3, 2u << 2, 3u << 30, UINT32_MAX };
    static struct raw_client c;
    for (size_t i = 0; i < GM_ARRAY_LEN(wrong); i++) {
        open_client(&c);
        struct wire_enc e = encoder();
        wire_pack_object_map(
            &e, 99,
            &(struct wire_object_map) {
                .object = 1, .access = wrong[i], .address = c.window_base, .size = 2u << 20 });
        RAW_CHECK(tp_send(c.fd, &e, NULL, 0) == 0);
        RAW_CHECK(!raw_client_receive(&c));
        raw_client_close(&c);
    }
    raw_neighbour_check();
}

/* --- the ring --------------------------------------------------------------------------------- */

static uint32_t load(struct raw_client *c, uint32_t device)
{
    struct wire_module_loaded m;
    int fd = image_fd();
    struct wire_enc e = encoder();
    wire_pack_module_load(&e, ++c->serial,
                          &(struct wire_module_load) { .size = sizeof(image),
                                                       .kind = WIRE_IMAGE_KIND_PTX,
                                                       .device = device });
    raw_client_ask(c, &e, &fd, 1);
    close(fd);
    RAW_CHECK(c->packet->header.type == WIRE_MODULE_LOADED);
    wire_get_module_loaded(&c->packet->body, &m);
    RAW_CHECK(m.result == 0);
    return m.module;
}

static int launch(struct raw_client *c, uint32_t stream, uint32_t module)
{
    return raw_wait(c, stream, raw_launch(c, stream, module));
}

static void slots(void)
{
    static const uint32_t wrong[] = { 1 /* no context there */, 2, 16, 32, UINT32_MAX };
    static struct raw_client c;
    for (size_t i = 0; i < GM_ARRAY_LEN(wrong); i++) {
        open_client(&c);
        atomic_store(&c.shared.streams[3].device, wrong[i]);
        RAW_CHECK(raw_wait(&c, 3, raw_fill(&c, 3, c.window_base, 1, 1)) == 101);
        raw_client_close(&c);
    }
    raw_neighbour_check();
}

/* The device of a number is read once: who changes it later changes nothing, and launches go where
 * the stream is. */
static void a_stream_stays(void)
{
    static struct raw_client c;
    open_client(&c);
    RAW_CHECK(open_context(&c, 1, 1) == 0);
    uint32_t here = load(&c, 0), there = load(&c, 1);
    atomic_store(&c.shared.streams[1].device, 1);
    RAW_CHECK(launch(&c, 0, here) == 0);
    RAW_CHECK(launch(&c, 1, there) == 0);
    atomic_store(&c.shared.streams[1].device, 7);
    RAW_CHECK(launch(&c, 1, there) == 0);
    struct wire_rec_retire r = { 0 };
    RAW_CHECK(raw_wait(&c, 1, raw_post(&c, 1, WIRE_OP_RETIRE, &r, sizeof(r), NULL, 0)) == 0);
    atomic_store(&c.shared.streams[1].device, 0);
    RAW_CHECK(launch(&c, 1, there) == 0);
    RAW_CHECK(launch(&c, 1, here) != 0); /* the other device's */
    raw_client_close(&c);
    raw_neighbour_check();
}

static void calls(void)
{
    static const uint32_t wrong[] = { 1, 2, 16, 32, UINT32_MAX };
    static struct raw_client c;
    open_client(&c);
    for (uint64_t n = 1; n <= GM_ARRAY_LEN(wrong); n++) {
        struct wire_rec_call r = { .number = n,
                                   .function = WIRE_CALL_LIMIT_RAISE,
                                   .device = wrong[n - 1] };
        raw_post(&c, 0, WIRE_OP_CALL, &r, sizeof(r), NULL, 0);
        RAW_CHECK(tp_word_wait(&c.shared.control->replied, n,
                               &(struct tp_wait_policy) { .slice_ms = 100 }) == 0);
        RAW_CHECK(c.shared.reply->result != 0 && c.shared.reply->size == 0);
    }
    RAW_CHECK(raw_error(&c) == 0);
    raw_client_close(&c);
    raw_neighbour_check();
}

/* What is asked for is charged where it is. */
static void memory_of_each(void)
{
    static struct raw_client c;
    struct wire_memory_info_is before, after;
    open_client(&c);
    for (uint32_t device = 0; device < 2; device++) {
        struct wire_enc e = encode(INFO, device);
        raw_client_ask(&c, &e, NULL, 0);
        wire_get_memory_info_is(&c.packet->body, &before);
        e = encode(ALLOC_DEVICE, 1 - device);
        raw_client_ask(&c, &e, NULL, 0);
        e = encode(INFO, device);
        raw_client_ask(&c, &e, NULL, 0);
        wire_get_memory_info_is(&c.packet->body, &after);
        RAW_CHECK(before.free == after.free);
    }
    raw_client_close(&c);
}

static void post(struct raw_client *c, const struct wire_enc *e)
{
    RAW_CHECK(tp_send(c->fd, e, NULL, 0) == 0);
}

static uint64_t next_serial(struct raw_client *c)
{
    RAW_CHECK(raw_client_receive(c));
    return c->packet->header.serial;
}

static struct wire_memory_info_is answered(struct raw_client *c)
{
    struct wire_memory_info_is m;
    RAW_CHECK(c->packet->header.type == WIRE_MEMORY_INFO_IS);
    wire_get_memory_info_is(&c->packet->body, &m);
    return m;
}

static struct wire_memory_info_is info(struct raw_client *c)
{
    struct wire_enc e = encode(INFO, 0);
    raw_client_ask(c, &e, NULL, 0);
    return answered(c);
}

/* What is left is said when the device has what was given back before, and not held back by what
 * comes after. */
static void memory_on_its_way_back(void)
{
    static struct raw_client c;
    raw_server_settle(&server, 1); /* what others had has come back */
    open_client(&c);
    uint64_t before = info(&c).free, p[2];
    for (uint64_t i = 0; i < 2; i++)
        p[i] = raw_alloc(&c, 8 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    for (uint64_t i = 0; i < 2; i++) {
        struct wire_enc e = encoder();
        wire_pack_memory_free(&e, 1000 + 2 * i, &(struct wire_memory_free) { .address = p[i] });
        post(&c, &e);
        e = encoder();
        wire_pack_memory_info(&e, 1001 + 2 * i, &(struct wire_memory_info) { 0 });
        post(&c, &e);
    }
    for (uint64_t serial = 1000; serial < 1004; serial++)
        RAW_CHECK(next_serial(&c) == serial);
    RAW_CHECK(answered(&c).free == before);
    raw_client_close(&c);
}

/* Small allocations are cut from what the server has at hand. */
static void memory_at_hand(void)
{
    static struct raw_client c;
    raw_server_settle(&server, 1); /* what others had has come back */
    open_client(&c);
    uint64_t before = info(&c).free, ready = info(&c).ready;
    uint64_t p = raw_alloc(&c, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    uint64_t large = raw_alloc(&c, 8 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    struct wire_memory_info_is m = info(&c);
    RAW_CHECK(ready == 0 && m.ready == (2 << 20) - 4096);
    RAW_CHECK(m.free == before - 4096 - (8 << 20));
    RAW_CHECK(raw_free(&c, p) == 0 && raw_free(&c, large) == 0);
    m = info(&c);
    RAW_CHECK(m.free == before && m.ready == 2 << 20);
    raw_client_close(&c);
}

/* Nobody is there for the answer. */
static void asked_and_gone(void)
{
    static struct raw_client c;
    open_client(&c);
    uint64_t p = raw_alloc(&c, 8 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    struct wire_enc e = encoder();
    wire_pack_memory_free(&e, 0, &(struct wire_memory_free) { .address = p });
    post(&c, &e);
    e = encode(INFO, 0);
    post(&c, &e);
    raw_client_close(&c);
    raw_neighbour_check();
}

int main(void)
{
    setenv("GMUX_SOFT_DEVICES", "2", 1);
    raw_server_start(&server, "null");
    raw_neighbour_open(&server, 1);
    pid_t executor = raw_server_executor(&server);

    requests();
    contexts();
    kinds_of_access();
    slots();
    a_stream_stays();
    calls();
    memory_of_each();
    memory_on_its_way_back();
    memory_at_hand();
    asked_and_gone();

    raw_server_settle(&server, 1);
    RAW_CHECK(raw_server_executor(&server) == executor);
    raw_neighbour_check();
    raw_client_close(&raw_neighbour);
    raw_server_finish(&server);
    return 0;
}
