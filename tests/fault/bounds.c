/*
 * Numbers at their ends: messages and records of every kind in which some words are the largest,
 * the smallest, or ones whose sum with an address or product with a size wraps. Each is answered,
 * or its sender dropped; the executor goes on, and a neighbour's results stay right.
 *
 *   bounds [DEVICE [ROUNDS [SEED]]]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "raw.h"
#include "sample.h"
#include "transport/memfd.h"

#define BYTES   65536u
#define STREAMS 3u
#define AT_ONCE 4u /* records of a client */
#define WORDS   3u /* that are at an end, of a message or record */
#define PTX                                                                                        \
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 "                \
    "p)\n{\nret;\n}\n"

static struct raw_server server;
static struct raw_client c, neighbour;
static uint32_t state, next_pid = 1000;
static uint64_t memory, host, neighbours;
static uint32_t module;

static uint32_t below(uint32_t n)
{
    return raw_random(&state) % n;
}

static uint64_t any_end(void)
{
    const uint64_t end = c.window_base + c.window_size;
    const uint64_t values[] = { 0,
                                1,
                                2,
                                4,
                                BYTES,
                                memory,
                                memory + BYTES - 4,
                                memory + BYTES,
                                host,
                                neighbours,
                                c.window_base,
                                end - 4096,
                                end - 1,
                                end,
                                0 - memory,
                                0 - memory + 1,
                                0 - c.window_base,
                                0 - end,
                                c.window_size,
                                c.window_size / 2,
                                INT32_MAX,
                                1ull << 31,
                                UINT32_MAX,
                                1ull << 32,
                                1ull << 33 | 1,
                                1ull << 47,
                                INT64_MAX,
                                1ull << 63,
                                (1ull << 63) + 1,
                                UINT64_MAX / 3,
                                UINT64_MAX / 4 + 2,
                                0 - 4096ull,
                                0 - 511ull,
                                UINT64_MAX };
    return values[below(GM_ARRAY_LEN(values))];
}

/* Some words of a body, of four bytes or eight. */
static void put_ends(uint8_t *body, size_t size)
{
    for (unsigned i = 0; i < 1 + below(WORDS); i++) {
        const uint64_t value = any_end();
        const size_t width = below(3) ? 8 : 4;
        if (size < width)
            continue;
        const size_t at = below((uint32_t)((size - width) / 4 + 1)) * 4;
        memcpy(body + at, &value, width);
    }
}

static void enter(void)
{
    raw_client_open(&c, raw_server_connect(&server, next_pid++));
    memory = raw_alloc(&c, BYTES, WIRE_MEMORY_KIND_DEVICE, NULL);
    host = raw_alloc(&c, BYTES, WIRE_MEMORY_KIND_HOST, NULL);
    module = raw_load(&c, PTX, NULL);
    RAW_CHECK(memory && host && module);
}

static void leave(void)
{
    raw_client_close(&c);
    raw_server_forget_log(&server);
}

/* --- messages --------------------------------------------------------------------------------- */

static bool is_request(const struct sample *s)
{
    const struct wire_message_info *info = s->type ? wire_message_info(s->type) : NULL;
    return info && info->sender == WIRE_CLIENT && info->receiver == WIRE_SERVER;
}

/* False: it was dropped over it. */
static bool ask(const struct sample *s)
{
    static uint8_t buffer[WIRE_PACKET_MAX];
    const int fds[] = { tp_memfd_from_bytes("image", PTX, sizeof(PTX)), 0, 0, 0 };
    size_t size =
        sample_pack(s, below(2) ? SAMPLE_ZERO : SAMPLE_SOME, ++c.serial, buffer, sizeof(buffer));
    put_ends(buffer + sizeof(struct wire_header), size - sizeof(struct wire_header));
    const struct wire_enc e = { .data = buffer, .size = size, .capacity = size };
    RAW_CHECK(fds[0] >= 0);
    bool answered = tp_send(c.fd, &e, fds, wire_message_info(s->type)->fds) == 0;
    close(fds[0]);
    answered = answered && raw_client_receive(&c);
    if (answered)
        tp_packet_finish(c.packet);
    return answered;
}

static void messages(unsigned rounds)
{
    for (size_t i = 0; i < samples_count; i++) {
        unsigned dropped = 0;
        if (!is_request(&samples[i]))
            continue;
        enter();
        for (unsigned n = 0; n < rounds; n++) {
            if (ask(&samples[i]))
                continue;
            dropped++;
            leave();
            enter();
        }
        leave();
        raw_work_and_check(&neighbour, neighbours);
        printf("%s: %u, %u dropped\n", samples[i].name, rounds, dropped);
    }
}

/* Those that take sizes and addresses, with a kind that there is: nobody is dropped over that. */
static void sizes(unsigned rounds)
{
    enter();
    for (unsigned n = 0; n < rounds; n++) {
        const uint32_t kind = below(2) ? WIRE_MEMORY_KIND_DEVICE : WIRE_MEMORY_KIND_HOST;
        const uint64_t size = below(4) ? any_end() : 2 << 20, address = any_end();
        switch (below(8)) {
        case 0:
            RAW_ASK(&c, memory_alloc, .size = size, .align = any_end(), .kind = kind);
            break;
        case 1:
            RAW_ASK(&c, memory_free, .address = address);
            break;
        case 2:
            RAW_ASK(&c, object_create, .size = size, .kind = kind, .compressible = below(2));
            break;
        case 3:
            RAW_ASK(&c, range_reserve, .size = size, .align = below(2) ? any_end() : 0,
                    .kind = kind);
            break;
        case 4:
            RAW_ASK(&c, range_release, .address = address);
            break;
        case 5:
            RAW_ASK(&c, object_map, .object = below(4), .access = WIRE_MEMORY_ACCESS_WRITE,
                    .address = below(2) ? address : c.window_base + below(64) * (2u << 20),
                    .size = size);
            break;
        case 6:
            RAW_ASK(&c, object_unmap, .address = address);
            break;
        case 7:
            RAW_ASK(&c, memory_share, .address = below(2) ? address : 0, .object = below(4));
            break;
        }
        tp_packet_finish(c.packet);
        if (n % 256 == 255) { /* what it was given */
            leave();
            enter();
        }
    }
    leave();
    raw_work_and_check(&neighbour, neighbours);
}

/* --- records ---------------------------------------------------------------------------------- */

/* Posts a record of numbers that mean something, but for those at an end. */
static void post(const struct sample_record *kind)
{
    static union {
        struct wire_record head;
        uint8_t bytes[WIRE_RECORD_MAX];
        uint64_t words[WIRE_RECORD_MAX / 8];
        struct wire_rec_launch launch;
    } r;
    const size_t extra = kind->variable ? below((uint32_t)GM_MIN(kind->variable, 256u) + 1) : 0;
    const size_t head = sizeof(r.head);
    memset(&r, 0, sizeof(r));
    for (size_t w = head / 8; w < (kind->fixed + extra + 7) / 8; w++)
        r.words[w] = below(3) ? below(2) ? memory : host : below(64);
    if (kind->op == WIRE_OP_LAUNCH && below(2))
        r.launch = (struct wire_rec_launch) { .module = module,
                                              .grid_x = 1,
                                              .grid_y = 1,
                                              .grid_z = 1,
                                              .block_x = 1,
                                              .block_y = 1,
                                              .block_z = 1 };
    put_ends(r.bytes + head, kind->fixed + extra - head);
    raw_post(&c, below(STREAMS), kind->op, &r, kind->fixed + extra, NULL, 0);
}

static void records(unsigned rounds)
{
    for (size_t i = 0; i < sample_records_count; i++) {
        unsigned failed = 0;
        for (unsigned n = 0; n < rounds; n += AT_ONCE) {
            enter();
            for (unsigned k = 0; k < AT_ONCE && raw_error(&c) == 0; k++)
                post(&sample_records[i]);
            /* A message that the executor has to see to: by then it has read what there was. */
            uint64_t p = raw_alloc(&c, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
            if (p)
                (void)raw_free(&c, p);
            failed += raw_error(&c) != 0;
            leave();
        }
        raw_work_and_check(&neighbour, neighbours);
        printf("%s: %u, %u times the client failed\n", sample_records[i].name, rounds, failed);
    }
}

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100;
    state = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1;
    raw_server_start(&server, argc > 1 ? argv[1] : "null");
    raw_client_open(&neighbour, raw_server_connect(&server, 100));
    neighbours = raw_alloc(&neighbour, BYTES, WIRE_MEMORY_KIND_DEVICE, NULL);
    const pid_t executor = raw_server_executor(&server);
    messages(rounds);
    sizes(20 * rounds);
    records(rounds);
    raw_server_settle(&server, 1);
    RAW_CHECK(raw_server_executor(&server) == executor);
    raw_client_close(&neighbour);
    raw_server_finish(&server);
    return 0;
}
