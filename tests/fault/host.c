/*
 * Host memory on its way back: a free is answered at once, the executor takes its time, and a
 * client that wants the memory again meanwhile gets it when it is there.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/result.h"
#include "raw.h"

#define MOST 64u

static struct raw_server server;
static struct raw_client c;
static uint64_t held[MOST], part;

static bool has_answer(void)
{
    struct pollfd p = { .fd = c.fd, .events = POLLIN };
    return poll(&p, 1, 0) > 0;
}

static void ask_alloc(uint64_t size)
{
    uint8_t buffer[128];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_memory_alloc(
        &e, ++c.serial,
        &(struct wire_memory_alloc) { .size = size, .kind = WIRE_MEMORY_KIND_HOST });
    RAW_CHECK(tp_send(c.fd, &e, NULL, 0) == 0);
}

static struct wire_memory_allocated take_alloc(void)
{
    struct wire_memory_allocated m;
    RAW_CHECK(raw_client_receive(&c) && c.packet->header.type == WIRE_MEMORY_ALLOCATED);
    RAW_CHECK(c.packet->header.serial == c.serial);
    wire_get_memory_allocated(&c.packet->body, &m);
    return m;
}

/* All that there is, in parts. */
static unsigned take_all(void)
{
    unsigned n = 0;
    int result = 0;
    while (n < MOST && (held[n] = raw_alloc(&c, part, WIRE_MEMORY_KIND_HOST, &result)) != 0)
        n++;
    RAW_CHECK(n > 0 && n < MOST && result == GM_CUDA_OUT_OF_MEMORY);
    return n;
}

/* A page of another program's, as its events have: to let go of it is not waited for either, and it
 * stays charged as long. */
static void opened(void)
{
    static struct raw_client other;
    uint8_t token[32];
    struct wire_object_made made;
    struct wire_memory_shared shared;
    struct wire_memory_opened m;
    raw_client_open(&other, raw_server_connect(&server, 101));
    uint64_t before = raw_server_charged(&server);
    RAW_ASK(&other, object_create, .size = 4096, .kind = WIRE_MEMORY_KIND_HOST);
    wire_get_object_made(&other.packet->body, &made);
    tp_packet_finish(other.packet);
    RAW_ASK(&other, memory_share, .object = made.object);
    wire_get_memory_shared(&other.packet->body, &shared);
    RAW_CHECK(made.result == 0 && shared.result == 0 && shared.token.size == sizeof(token));
    memcpy(token, shared.token.data, sizeof(token));
    uint64_t unopened = raw_server_charged(&server);
    RAW_ASK(&c, memory_open, .token = { token, sizeof(token) });
    wire_get_memory_opened(&c.packet->body, &m);
    tp_packet_finish(c.packet);
    RAW_CHECK(m.result == 0);
    uint64_t open = raw_server_charged(&server);

    pid_t executor = raw_server_executor(&server);
    RAW_CHECK(kill(executor, SIGSTOP) == 0);
    RAW_ASK(&c, object_unmap, .address = m.address);
    RAW_CHECK(raw_status(&c) == 0);
    RAW_ASK(&c, object_unmap, .address = m.address);
    RAW_CHECK(raw_status(&c) == GM_CUDA_INVALID_VALUE);
    RAW_CHECK(raw_server_charged(&server) == open);
    RAW_CHECK(kill(executor, SIGCONT) == 0);
    while (raw_server_charged(&server) != unopened)
        (void)poll(NULL, 0, 1);
    RAW_ASK(&other, object_release, .object = made.object);
    RAW_CHECK(raw_server_charged(&server) == before);
    raw_client_close(&other);
    raw_server_settle(&server, 1);
}

int main(void)
{
    alarm(50);
    raw_server_start(&server, "null");
    raw_client_open(&c, raw_server_connect(&server, 100));
    opened();
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    part = GM_MIN(memory, c.window_size / 2) / 5 &
           ~(uint64_t)0xffff; /* of what there is, or of the addresses */
    unsigned n = take_all();
    pid_t executor = raw_server_executor(&server);
    RAW_CHECK(kill(executor, SIGSTOP) == 0);
    RAW_CHECK(raw_free(&c, held[n - 1]) == 0); /* though the executor still has it */

    ask_alloc(part);
    raw_server_charged(&server); /* the server has come to it */
    RAW_CHECK(!has_answer());
    RAW_CHECK(kill(executor, SIGCONT) == 0);
    struct wire_memory_allocated m = take_alloc();
    RAW_CHECK(m.result == 0);
    held[n - 1] = m.address;
    RAW_CHECK(raw_alloc(&c, part, WIRE_MEMORY_KIND_HOST, &m.result) == 0 &&
              m.result == GM_CUDA_OUT_OF_MEMORY);

    /* It was not enough. */
    RAW_CHECK(kill(executor, SIGSTOP) == 0);
    RAW_CHECK(raw_free(&c, held[n - 1]) == 0);
    ask_alloc(2 * part);
    raw_server_charged(&server);
    RAW_CHECK(kill(executor, SIGCONT) == 0);
    RAW_CHECK(take_alloc().result == GM_CUDA_OUT_OF_MEMORY);

    /* Nobody waits for it any more. */
    held[n - 1] = raw_alloc(&c, part, WIRE_MEMORY_KIND_HOST, NULL);
    RAW_CHECK(held[n - 1] != 0 && kill(executor, SIGSTOP) == 0);
    RAW_CHECK(raw_free(&c, held[n - 1]) == 0);
    ask_alloc(part);
    raw_server_charged(&server);
    raw_client_close(&c);
    RAW_CHECK(raw_server_says(&server, "Client process 100 disconnected"));
    RAW_CHECK(kill(executor, SIGCONT) == 0);
    raw_server_finish(&server);
    return 0;
}
