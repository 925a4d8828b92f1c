/*
 * Memory that clients share, by clients that keep to no rule: handles that are forged, stale,
 * foreign or another user's, ranges and objects in the wrong place, makers and openers that die at
 * any time, executors that are replaced. What is open stays as it was, and in the end nothing is
 * left in the server's books.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/result.h"
#include "raw.h"

#define MIB (1u << 20)

static struct raw_server server;
static uint32_t next_pid = 100;
static uint8_t buffer[WIRE_PACKET_MAX];
static uint32_t state = 4711;

static void open_client(struct raw_client *c)
{
    raw_client_open(c, raw_server_connect(&server, next_pid++));
}

/* --- requests --------------------------------------------------------------------------------- */

struct token {
    uint8_t bytes[32];
};

static int share(struct raw_client *c, uint64_t address, uint32_t object, struct token *out)
{
    struct wire_memory_shared m;
    RAW_ASK(c, memory_share, .address = address, .object = object);
    wire_get_memory_shared(&c->packet->body, &m);
    if (m.result == 0) {
        RAW_CHECK(m.token.size == sizeof(out->bytes));
        memcpy(out->bytes, m.token.data, sizeof(out->bytes));
    }
    return m.result;
}

static int open_token(struct raw_client *c, const struct token *t, uint64_t *address)
{
    struct wire_memory_opened m;
    RAW_ASK(c, memory_open, .token = { t->bytes, sizeof(t->bytes) });
    wire_get_memory_opened(&c->packet->body, &m);
    *address = m.address;
    tp_packet_finish(c->packet);
    return m.result;
}

static int unmap(struct raw_client *c, uint64_t address)
{
    RAW_ASK(c, object_unmap, .address = address);
    return raw_status(c);
}

static int map(struct raw_client *c, uint32_t object, uint64_t address, uint64_t size)
{
    RAW_ASK(c, object_map, .object = object, .access = WIRE_MEMORY_ACCESS_WRITE, .address = address,
            .size = size);
    return raw_status(c);
}

static uint32_t create(struct raw_client *c, uint64_t size, uint32_t kind, int *result)
{
    struct wire_object_made m;
    RAW_ASK(c, object_create, .size = size, .kind = kind);
    wire_get_object_made(&c->packet->body, &m);
    RAW_CHECK(c->packet->fds_count == (m.result == 0 && kind == WIRE_MEMORY_KIND_HOST));
    tp_packet_finish(c->packet);
    if (result)
        *result = m.result;
    return m.object;
}

static int release(struct raw_client *c, uint32_t object)
{
    RAW_ASK(c, object_release, .object = object);
    return raw_status(c);
}

static uint64_t reserve(struct raw_client *c, uint64_t size, uint32_t kind)
{
    struct wire_memory_allocated m;
    RAW_ASK(c, range_reserve, .size = size, .kind = kind);
    wire_get_memory_allocated(&c->packet->body, &m);
    return m.result ? 0 : m.address;
}

static int unreserve(struct raw_client *c, uint64_t address)
{
    RAW_ASK(c, range_release, .address = address);
    return raw_status(c);
}

static int export_fd(struct raw_client *c, uint32_t object)
{
    RAW_ASK(c, object_export, .object = object);
    int fd = tp_packet_take_fd(c->packet, 0);
    tp_packet_finish(c->packet);
    return fd;
}

static uint32_t import_fd(struct raw_client *c, int fd)
{
    struct wire_object_made m;
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_object_import(&e, ++c->serial, &(struct wire_object_import) { 0 });
    raw_client_ask(c, &e, &fd, 1);
    wire_get_object_made(&c->packet->body, &m);
    return m.result ? 0 : m.object;
}

/* Has the device copy one word into the client's host memory and looks at it there. */
static uint32_t word_at(struct raw_client *c, uint64_t address)
{
    uint64_t host = raw_alloc(c, 4096, WIRE_MEMORY_KIND_HOST, NULL);
    struct wire_rec_copy r = { .dst = host, .src = address, .width = 4, .height = 1, .depth = 1 };
    RAW_CHECK(host != 0);
    uint64_t seq = raw_post(c, 0, WIRE_OP_COPY, &r, sizeof(r), NULL, 0);
    RAW_CHECK(raw_wait(c, 0, seq) == 0);
    uint32_t word;
    memcpy(&word, c->host + (host - (c->window_base + c->window_size / 2)), sizeof(word));
    RAW_CHECK(raw_free(c, host) == 0);
    return word;
}

static void fill(struct raw_client *c, uint64_t address, uint32_t value, uint64_t words)
{
    RAW_CHECK(raw_wait(c, 0, raw_fill(c, 0, address, value, words)) == 0);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void tokens(void)
{
    static struct raw_client a, b, stranger;
    struct token t, forged;
    uint64_t p, q;
    open_client(&a);
    open_client(&b);
    raw_client_open(&stranger, raw_server_connect_as(&server, next_pid++, getuid() + 1));
    p = raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(share(&a, p, 0, &t) == 0);
    for (unsigned bit = 0; bit < 256; bit += 7) {
        forged = t;
        forged.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        RAW_CHECK(open_token(&b, &forged, &q) == GM_CUDA_INVALID_VALUE);
    }
    RAW_CHECK(open_token(&stranger, &t, &q) == GM_CUDA_INVALID_VALUE); /* another user's */
    RAW_CHECK(open_token(&a, &t, &q) == GM_CUDA_INVALID_CONTEXT);
    RAW_ASK(&b, memory_open, .token = { t.bytes, 31 });
    struct wire_memory_opened m;
    wire_get_memory_opened(&b.packet->body, &m);
    RAW_CHECK(m.result == GM_CUDA_INVALID_VALUE);
    RAW_CHECK(share(&a, p + 512, 0, &forged) == GM_CUDA_INVALID_VALUE);
    RAW_CHECK(share(&b, p, 0, &forged) == GM_CUDA_INVALID_VALUE); /* foreign memory */
    RAW_CHECK(share(&b, 0, 1, &forged) == GM_CUDA_INVALID_VALUE);
    RAW_CHECK(raw_free(&a, p) == 0);
    RAW_CHECK(open_token(&b, &t, &q) == GM_CUDA_INVALID_VALUE); /* stale */
    raw_client_close(&a);
    raw_client_close(&b);
    raw_client_close(&stranger);
}

static void descriptors(void)
{
    static struct raw_client a, b, stranger;
    open_client(&a);
    open_client(&b);
    raw_client_open(&stranger, raw_server_connect_as(&server, next_pid++, getuid() + 1));
    uint32_t object = create(&a, 2 * MIB, WIRE_MEMORY_KIND_DEVICE, NULL);
    int fd = export_fd(&a, object);
    RAW_CHECK(fd >= 0);
    RAW_CHECK(import_fd(&stranger, fd) == 0);
    RAW_CHECK(import_fd(&b, a.fds[0]) == 0);
    RAW_CHECK(import_fd(&b, STDERR_FILENO) == 0);
    RAW_CHECK(release(&b, object) == GM_CUDA_INVALID_VALUE); /* a's name, not b's */
    uint32_t other = import_fd(&b, fd);
    RAW_CHECK(other != 0);
    RAW_CHECK(release(&a, object) == 0);
    RAW_CHECK(release(&a, object) == GM_CUDA_INVALID_VALUE);
    uint64_t at = reserve(&b, 2 * MIB, WIRE_MEMORY_KIND_DEVICE);
    RAW_CHECK(map(&b, other, at, 2 * MIB) == 0); /* it lives by b's name */
    fill(&b, at, 9, 100);
    RAW_CHECK(word_at(&b, at) == 9);
    RAW_CHECK(release(&b, other) == 0);
    RAW_CHECK(word_at(&b, at) == 9); /* and by the mapping */
    RAW_CHECK(import_fd(&a, fd) != 0);
    RAW_CHECK(unmap(&b, at) == 0);
    close(fd);
    raw_client_close(&a);
    raw_client_close(&b);
    raw_client_close(&stranger);
}

static void wrong_places(void)
{
    static struct raw_client c;
    int result;
    open_client(&c);
    uint32_t object = create(&c, 2 * MIB, WIRE_MEMORY_KIND_DEVICE, NULL);
    uint32_t host = create(&c, 4096, WIRE_MEMORY_KIND_HOST, NULL);
    uint64_t at = reserve(&c, 4 * MIB, WIRE_MEMORY_KIND_DEVICE);
    uint64_t p = raw_alloc(&c, 4 * MIB, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(object && host && at && p);
    RAW_CHECK(create(&c, 4095, WIRE_MEMORY_KIND_DEVICE, &result) == 0 &&
              result == GM_CUDA_INVALID_VALUE);
    RAW_CHECK(create(&c, 1ull << 60, WIRE_MEMORY_KIND_DEVICE, &result) == 0 &&
              result == GM_CUDA_OUT_OF_MEMORY);
    RAW_CHECK(reserve(&c, 1ull << 63, WIRE_MEMORY_KIND_DEVICE) == 0);
    RAW_CHECK(reserve(&c, UINT64_MAX, WIRE_MEMORY_KIND_HOST) == 0);
    RAW_CHECK(map(&c, object, p, 2 * MIB) != 0);            /* an allocation, no reservation */
    RAW_CHECK(map(&c, object, at + 4 * MIB, 2 * MIB) != 0); /* behind it */
    RAW_CHECK(map(&c, object, at + 3 * MIB, 2 * MIB) != 0); /* across its end */
    RAW_CHECK(map(&c, object, at + 100, 2 * MIB) != 0);     /* not on a page */
    RAW_CHECK(map(&c, object, at, 4 * MIB) != 0);           /* more than there is */
    RAW_CHECK(map(&c, host, at, 4096) != 0);                /* host memory in the device area */
    RAW_CHECK(map(&c, 777, at, 2 * MIB) != 0);
    RAW_CHECK(map(&c, object, UINT64_MAX - MIB, 2 * MIB) != 0);
    RAW_CHECK(map(&c, object, at, 2 * MIB) == 0);
    RAW_CHECK(map(&c, object, at + MIB, 2 * MIB) != 0); /* over the first */
    RAW_CHECK(map(&c, object, at + 2 * MIB, 2 * MIB) == 0);
    RAW_CHECK(unreserve(&c, at) != 0); /* something is mapped there */
    RAW_CHECK(raw_free(&c, at) != 0);
    RAW_CHECK(unmap(&c, at + MIB) != 0);
    RAW_CHECK(unmap(&c, p) != 0);
    RAW_CHECK(unmap(&c, at) == 0);
    RAW_CHECK(unmap(&c, at) != 0);
    RAW_CHECK(unmap(&c, at + 2 * MIB) == 0);
    RAW_CHECK(unreserve(&c, at + 2 * MIB) != 0);
    RAW_CHECK(unreserve(&c, at) == 0);
    RAW_CHECK(unreserve(&c, at) != 0);
    raw_client_close(&c);
}

/* With its imports open the exporter's memory stays what it was, whatever becomes of the exporter.
 */
static void outlives(bool large, bool killed)
{
    static struct raw_client a, b;
    struct token t;
    uint64_t size = large ? 3 * MIB : 4096, q, p2;
    open_client(&a);
    open_client(&b);
    uint64_t p = raw_alloc(&a, size, WIRE_MEMORY_KIND_DEVICE, NULL);
    fill(&a, p, 42, size / 4);
    RAW_CHECK(share(&a, p, 0, &t) == 0 && open_token(&b, &t, &q) == 0);
    RAW_CHECK(word_at(&b, q + size - 4) == 42);
    if (killed) {
        raw_client_close(&a);
        raw_server_settle(&server, 1);
    } else {
        RAW_CHECK(raw_free(&a, p) == 0);
        RAW_CHECK(raw_free(&a, p) == GM_CUDA_INVALID_VALUE);
        p2 = raw_alloc(&a, size, WIRE_MEMORY_KIND_DEVICE, NULL);
        fill(&a, p2, 43, size / 4);
    }
    RAW_CHECK(word_at(&b, q + size - 4) == 42);
    fill(&b, q, 44, 1);
    RAW_CHECK(word_at(&b, q) == 44);
    RAW_CHECK(unmap(&b, q) == 0);
    RAW_CHECK(unmap(&b, q) != 0);
    if (!killed)
        raw_client_close(&a);
    raw_client_close(&b);
}

/* The next executor has the same memory at the same places. */
static void executor_replaced(void)
{
    static struct raw_client a, b;
    struct token t;
    uint64_t q;
    open_client(&a);
    open_client(&b);
    uint64_t p = raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    uint32_t object = create(&a, 2 * MIB, WIRE_MEMORY_KIND_DEVICE, NULL);
    uint64_t at = reserve(&a, 2 * MIB, WIRE_MEMORY_KIND_DEVICE);
    RAW_CHECK(map(&a, object, at, 2 * MIB) == 0);
    fill(&a, p, 5, 1024);
    fill(&a, at, 6, 1024);
    RAW_CHECK(share(&a, p, 0, &t) == 0 && open_token(&b, &t, &q) == 0);
    for (unsigned i = 0; i < 2; i++) {
        pid_t executor = raw_server_executor(&server);
        RAW_CHECK(kill(executor, SIGKILL) == 0);
        RAW_CHECK(raw_server_says(&server, "takes over"));
        RAW_CHECK(word_at(&b, q) == 5 + 10 * i);
        RAW_CHECK(word_at(&a, at) == 6);
        fill(&b, q, 15, 1024);
        RAW_CHECK(word_at(&a, p) == 15);
    }
    raw_client_close(&b);
    raw_client_close(&a);
}

/* The importer is charged, so that dying exporters do not help anybody to more than the limit. */
static void charged(void)
{
    static struct raw_client a, b;
    struct token t;
    uint64_t q, before;
    raw_server_settle(&server, 0); /* what others had is back */
    open_client(&a);
    open_client(&b);
    uint64_t p = raw_alloc(&a, 8 * MIB, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(share(&a, p, 0, &t) == 0);
    before = raw_server_charged(&server);
    RAW_CHECK(open_token(&b, &t, &q) == 0);
    RAW_CHECK(raw_server_charged(&server) >= before + 8 * MIB);
    uint64_t free_before = raw_memory_free(&a);
    RAW_CHECK(raw_free(&a, p) == 0);
    RAW_CHECK(raw_memory_free(&a) == free_before); /* not yet */
    RAW_CHECK(unmap(&b, q) == 0);
    RAW_CHECK(raw_memory_free(&a) >= free_before + 8 * MIB);
    raw_client_close(&a);
    raw_client_close(&b);
}

/* --- anything goes ---------------------------------------------------------------------------- */

enum { CLIENTS = 4, THINGS = 24 };

static struct raw_client clients[CLIENTS];
static struct token known[THINGS];
static uint64_t addresses[THINGS];
static uint32_t objects[THINGS];

static void anything(struct raw_client *c)
{
    unsigned i = raw_random(&state) % THINGS;
    uint32_t kind = raw_random(&state) % 4 ? WIRE_MEMORY_KIND_DEVICE : WIRE_MEMORY_KIND_HOST;
    uint64_t size = kind == WIRE_MEMORY_KIND_HOST ? 4096
                    : raw_random(&state) % 8      ? 2 * MIB
                                                  : 1 + raw_random(&state) % (4 * MIB);
    switch (raw_random(&state) % 11) {
    case 0:
        addresses[i] =
            raw_alloc(c, raw_random(&state) % 2 ? size : 1 + raw_random(&state) % 8192, kind, NULL);
        return;
    case 1:
        (void)raw_free(c, addresses[i]);
        return;
    case 2:
    case 3:
        (void)share(c, raw_random(&state) % 4 ? addresses[i] : 0,
                    objects[raw_random(&state) % THINGS], &known[raw_random(&state) % THINGS]);
        return;
    case 4:
    case 5:
        (void)open_token(c, &known[i], &addresses[raw_random(&state) % THINGS]);
        return;
    case 6:
        (void)unmap(c, addresses[i]);
        return;
    case 7:
        objects[i] = create(c, size, kind, NULL);
        return;
    case 8:
        (void)release(c, objects[i]);
        return;
    case 9:
        (void)map(c, objects[i], addresses[raw_random(&state) % THINGS], size);
        return;
    default:
        if (raw_random(&state) % 2)
            addresses[i] = reserve(c, size, kind);
        else
            (void)unreserve(c, addresses[i]);
    }
}

static void anything_goes(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        open_client(&clients[i]);
    for (unsigned n = 0; n < 6000; n++) {
        struct raw_client *c = &clients[raw_random(&state) % CLIENTS];
        anything(c);
        if (raw_random(&state) % 200 == 0) {
            raw_client_close(c);
            open_client(c);
        }
        if (n % 2500 == 2499) {
            RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
            RAW_CHECK(raw_server_says(&server, "takes over"));
        }
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        raw_client_close(&clients[i]);
}

int main(void)
{
    raw_server_start(&server, "null");
    unsigned open_descriptors = raw_descriptors(server.pid);
    tokens();
    descriptors();
    wrong_places();
    for (unsigned i = 0; i < 4; i++) {
        raw_server_drain(&server);
        outlives(i & 1, i & 2);
    }
    executor_replaced();
    charged();
    anything_goes();
    raw_server_drain(&server);
    RAW_CHECK(raw_server_charged(&server) == 0);
    raw_expect_descriptors(server.pid, open_descriptors);
    raw_server_stop(&server);
    return 0;
}
