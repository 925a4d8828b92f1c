/*
 * Clients that send nonsense, on the socket and in the ring, and clients that want too much. Each
 * is dropped or gets its error; a neighbour's results stay right, and nothing stays behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"
#include "sample.h"
#include "transport/memfd.h"

static struct raw_server server;
static uint32_t next_pid = 1000;
static uint32_t state = 12345;
static uint8_t buffer[WIRE_PACKET_MAX];

static void open_client(struct raw_client *c)
{
    raw_client_open(c, raw_server_connect(&server, next_pid++));
}

static void send_bytes(struct raw_client *c, size_t size)
{
    const struct wire_enc e = { .data = buffer, .size = size, .capacity = size };
    const int fd = 0;
    int r = tp_send(c->fd, &e, &fd, raw_random(&state) % 4 == 0);
    RAW_CHECK(r == 0 || r == -EPIPE || r == -ECONNRESET);
}

static void random_packets(void)
{
    static struct raw_client c;
    for (unsigned i = 0; i < 300; i++) {
        open_client(&c);
        for (unsigned k = 0; k < 1 + i % 3; k++) {
            size_t size = 1 + raw_random(&state) % (i % 10 == 0 ? 4096 : 64);
            for (size_t b = 0; b < size; b++)
                buffer[b] = (uint8_t)raw_random(&state);
            send_bytes(&c, size);
        }
        raw_client_close(&c);
    }
    raw_neighbour_check();
}

/* Right in all but a few bits. */
static void changed_packets(void)
{
    static struct raw_client c;
    for (unsigned i = 0; i < 600; i++) {
        const struct sample *s = &samples[raw_random(&state) % samples_count];
        const struct wire_message_info *info = wire_message_info(s->type);
        if (!info || info->sender != WIRE_CLIENT || info->receiver != WIRE_SERVER)
            continue;
        open_client(&c);
        size_t size = sample_pack(s, (enum sample_variant)(raw_random(&state) % SAMPLE_VARIANTS),
                                  raw_random(&state), buffer, sizeof(buffer));
        for (unsigned k = 0; k < 1 + raw_random(&state) % 3; k++)
            buffer[raw_random(&state) % size] ^= (uint8_t)(1u << raw_random(&state) % 8);
        send_bytes(&c, size);
        raw_client_close(&c);
    }
    raw_neighbour_check();
}

/* Asks and never listens: the server stops reading, and keeps serving others. */
static void deaf_client(void)
{
    static struct raw_client c;
    struct wire_enc e;
    unsigned sent = 0;
    int r = 0;
    open_client(&c);
    RAW_CHECK(fcntl(c.fd, F_SETFL, O_NONBLOCK) == 0);
    uint64_t before = raw_private_bytes(server.pid);
    for (unsigned patience = 0; patience < 20 && sent < 1000000;) {
        wire_enc_init(&e, buffer, sizeof(buffer));
        wire_pack_memory_info(&e, ++c.serial, &(struct wire_memory_info) { 0 });
        r = tp_send(c.fd, &e, NULL, 0);
        if (r == 0) {
            sent++;
            patience = 0;
            continue;
        }
        if (r != -EAGAIN)
            break; /* it was dropped */
        raw_neighbour_check();
        raw_server_charged(&server); /* it has had a turn */
        patience++;
    }
    RAW_CHECK(sent < 1000000);
    /* sanitizers keep books of what was touched */
    RAW_CHECK(raw_private_bytes(server.pid) < before + ((RAW_SANITIZED ? 16u : 1u) << 20));
    raw_neighbour_check();
    raw_client_close(&c);
}

static void random_ring(void)
{
    static struct raw_client c;
    for (unsigned i = 0; i < 150; i++) {
        open_client(&c);
        struct tp_ring_shared *s = &c.shared.control->ring;
        uint8_t *data = c.shared.ring_data;
        for (size_t b = 0; b < 16384; b++)
            data[b] = (uint8_t)(i % 2 ? raw_random(&state) : raw_random(&state) % 12 == 0);
        atomic_store(&s->tail, i % 3 ? raw_random(&state) % 16384 : raw_random(&state));
        tp_ring_kick(s);
        if (atomic_load(&s->tail) != 0) {
            RAW_CHECK(raw_wait(&c, raw_random(&state) % TP_STREAMS, 1u << 30) > 0);
            RAW_CHECK(raw_error(&c) != 0);
        }
        raw_client_close(&c);
    }
    raw_neighbour_check();
}

/* Records that are well formed and mean nothing good: addresses, sizes, streams and modules at
 * random. */
static void random_records(void)
{
    static struct raw_client c;
    static union {
        struct wire_record head;
        uint64_t words[(WIRE_RECORD_MAX + 7) / 8];
    } r;
    for (unsigned i = 0; i < 200; i++) {
        open_client(&c);
        uint64_t address = raw_alloc(&c, 65536, WIRE_MEMORY_KIND_DEVICE, NULL);
        for (unsigned k = 0; k < 200 && raw_error(&c) == 0; k++) {
            const struct sample_record *kind =
                &sample_records[raw_random(&state) % sample_records_count];
            for (size_t w = 3; w < GM_ARRAY_LEN(r.words); w++) {
                uint32_t how = raw_random(&state) % 4;
                r.words[w] = how == 0   ? raw_random(&state) % 4
                             : how == 1 ? address + raw_random(&state) % 65536
                                        : (uint64_t)raw_random(&state) << raw_random(&state) % 40;
            }
            size_t extra = kind->variable ? raw_random(&state) % (kind->variable + 1) : 0;
            raw_post(&c, raw_random(&state) % 8, kind->op, &r, kind->fixed + extra, NULL, 0);
        }
        if (i % 10 == 0)
            raw_neighbour_check();
        raw_client_close(&c);
    }
}

/* Expects that one record fails its client with this error. */
static void expect_failure(const char *what, int result, unsigned op, void *record, size_t size,
                           uint32_t stream, int64_t skip)
{
    static struct raw_client c;
    open_client(&c);
    c.seq[stream % TP_STREAMS] += (uint64_t)skip;
    struct wire_record *head = record;
    *head = (struct wire_record) { .op = (uint16_t)op,
                                   .size = (uint32_t)size,
                                   .flags = head->flags,
                                   .stream = stream,
                                   .seq = c.seq[stream % TP_STREAMS] + 1 };
    const struct tp_wait_policy policy = { .slice_ms = 50 };
    RAW_CHECK(tp_ring_write(&c.ring, head, size, NULL, 0, &policy) == 0);
    int got = raw_wait(&c, 0, UINT64_MAX - 1);
    if (got != result)
        fprintf(stderr, "%s: error %d instead of %d\n", what, got, result);
    RAW_CHECK(got == result);
    /* The session answers on, and with the error once the server has heard of it from the executor.
     */
    int alloc;
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t address = raw_alloc(&c, 4096, WIRE_MEMORY_KIND_DEVICE, &alloc);
        if (!address)
            break;
        (void)raw_free(&c, address);
    }
    RAW_CHECK(alloc == result);
    raw_client_close(&c);
}

static void records_out_of_order(void)
{
    struct wire_rec_mark mark = { 0 };
    struct wire_rec_wait wait = { 0 };
    struct wire_rec_stamp stamp = { 0 };
    struct wire_rec_launch launch = {
        .module = 5, .grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 1
    };
    expect_failure("a gap", 1, WIRE_OP_MARK, &mark, sizeof(mark), 0, 1);
    expect_failure("the past", 1, WIRE_OP_MARK, &mark, sizeof(mark), 0, -1);
    expect_failure("stream number", 1, WIRE_OP_MARK, &mark, sizeof(mark), TP_STREAMS, 0);
    expect_failure("stream number", 1, WIRE_OP_MARK, &mark, sizeof(mark), UINT32_MAX, 0);
    mark.head.flags = 1;
    expect_failure("flags", 1, WIRE_OP_MARK, &mark, sizeof(mark), 0, 0);
    wait.other = 1;
    wait.other_seq = 1;
    expect_failure("wait for the future", 1, WIRE_OP_WAIT, &wait, sizeof(wait), 0, 0);
    wait.other = 0;
    expect_failure("wait for itself", 1, WIRE_OP_WAIT, &wait, sizeof(wait), 0, 0);
    wait.other = TP_STREAMS;
    wait.other_seq = 0;
    expect_failure("wait for no stream", 1, WIRE_OP_WAIT, &wait, sizeof(wait), 0, 0);
    stamp.event = TP_EVENTS;
    expect_failure("stamp of no event", 1, WIRE_OP_STAMP, &stamp, sizeof(stamp), 0, 0);
    expect_failure("launch of no module", 400, WIRE_OP_LAUNCH, &launch, sizeof(launch), 0, 0);
    launch.attributes = 1;
    expect_failure("attributes that are not there", 1, WIRE_OP_LAUNCH, &launch, sizeof(launch), 0,
                   0);
    launch.attributes = UINT32_MAX;
    expect_failure("attributes without end", 1, WIRE_OP_LAUNCH, &launch, sizeof(launch), 0, 0);
    struct wire_rec_call call = { .number = 2, .function = WIRE_CALL_FUNCTION_FIND };
    expect_failure("a call too early", 1, WIRE_OP_CALL, &call, sizeof(call), 0, 0);
    call.number = UINT64_MAX;
    expect_failure("the last call of all", 1, WIRE_OP_CALL, &call, sizeof(call), 0, 0);
    raw_neighbour_check();
}

/* Runs whose members are not what runs have, or not as many as they say. */
static void broken_runs(void)
{
    struct {
        struct wire_rec_run run;
        union {
            struct wire_record head;
            struct wire_rec_fill fill;
            struct wire_rec_mark mark;
        } member[2];
    } r, good;
    const size_t fill = sizeof(struct wire_rec_fill), one = sizeof(r.run) + fill;
    memset(&good, 0, sizeof(good));
    good.run.count = 1;
    good.member[0].head = (struct wire_record) { .op = WIRE_OP_FILL, .size = (uint32_t)fill };

    r = good;
    expect_failure("a run of none", 1, WIRE_OP_RUN, &r, sizeof(r.run), 0, 0);
    r = good, r.run.count = 0;
    expect_failure("a run that counts none", 1, WIRE_OP_RUN, &r, one, 0, 0);
    r = good, r.run.count = 2;
    expect_failure("a run that counts more", 1, WIRE_OP_RUN, &r, one, 0, 0);
    r = good, r.run.count = UINT32_MAX;
    expect_failure("a run that counts for ever", 1, WIRE_OP_RUN, &r, one, 0, 0);
    r = good, r.run.reserved = 1;
    expect_failure("a run with something reserved", 1, WIRE_OP_RUN, &r, one, 0, 0);
    r = good;
    expect_failure("a run that is cut", 1, WIRE_OP_RUN, &r, one - 8, 0, 0);
    r = good;
    expect_failure("a run with half a head behind it", 1, WIRE_OP_RUN, &r,
                   one + sizeof(struct wire_record) / 2, 0, 0);
    r = good, r.member[0].head.size--;
    expect_failure("a member that is too short", 1, WIRE_OP_RUN, &r, one, 0, 0);
    r = good, r.member[0].head.size = UINT32_MAX;
    expect_failure("a member without end", 1, WIRE_OP_RUN, &r, one, 0, 0);
    r = good, r.member[0].head.seq = 1;
    expect_failure("a member with a number", 1, WIRE_OP_RUN, &r, one, 0, 0);
    r = good, r.member[0].head.stream = 1;
    expect_failure("a member with a stream", 1, WIRE_OP_RUN, &r, one, 0, 0);
    const uint16_t others[] = { 0,
                                WIRE_OP_WRITE,
                                WIRE_OP_WAIT,
                                WIRE_OP_STAMP,
                                WIRE_OP_GATE,
                                WIRE_OP_MARK,
                                WIRE_OP_RETIRE,
                                WIRE_OP_CALL,
                                WIRE_OP_RUN,
                                UINT16_MAX };
    for (unsigned i = 0; i < GM_ARRAY_LEN(others); i++) {
        r = good, r.member[0].head.op = others[i];
        expect_failure("a member that is not for runs", 1, WIRE_OP_RUN, &r, one, 0, 0);
    }
    raw_neighbour_check();
}

/* Graphs whose conditions and bodies are not in order; the null device runs none as a whole. */
static void graphs(void)
{
    struct {
        struct wire_rec_graph graph;
        uint64_t handle;
        struct wire_rec_condition condition;
        struct wire_rec_body body[2];
        struct wire_rec_fill fill; /* in the second */
    } r, good;
    const uint32_t fill = sizeof(good.fill), bodies = sizeof(good.body) + fill;
    memset(&good, 0, sizeof(good));
    good.graph.handles = 1;
    good.condition =
        (struct wire_rec_condition) { .head = { .op = WIRE_OP_CONDITION,
                                                .size = (uint32_t)sizeof(good.condition) + bodies },
                                      .handle = 1,
                                      .bodies = 2 };
    good.body[0].head = (struct wire_record) { .op = WIRE_OP_BODY, .size = sizeof(*good.body) };
    good.body[1].head =
        (struct wire_record) { .op = WIRE_OP_BODY, .size = (uint32_t)sizeof(*good.body) + fill };
    good.fill.head = (struct wire_record) { .op = WIRE_OP_FILL, .size = fill };

#define EXPECT(result, what) expect_failure(what, result, WIRE_OP_GRAPH, &r, sizeof(r), 0, 0)
    r = good;
    EXPECT(801, "a graph in order");
    r = good, r.graph.handles = 2;
    EXPECT(1, "a graph whose second handle is its condition");
    r = good, r.graph.handles = UINT32_MAX;
    EXPECT(1, "a graph with more handles than it has bytes");
    r = good, r.graph.reserved = 1;
    EXPECT(1, "a graph with something reserved");
    r = good, r.condition.bodies = 1;
    EXPECT(1, "a condition that counts less");
    r = good, r.condition.bodies = UINT32_MAX;
    EXPECT(1, "a condition that counts for ever");
    r = good, r.condition.reserved = 1;
    EXPECT(1, "a condition with something reserved");
    r = good, r.condition.head.size -= 8;
    EXPECT(1, "a condition that is cut");
    r = good, r.condition.head.size += 8;
    EXPECT(1, "a condition that goes on");
    r = good, r.body[0].head.op = WIRE_OP_FILL;
    EXPECT(1, "a condition with an operation");
    r = good, r.body[1].head.size += 8;
    EXPECT(1, "a body that goes on");
    r = good, r.body[1].head.size = UINT32_MAX;
    EXPECT(1, "a body without end");
    r = good, r.body[0].head.seq = 1;
    EXPECT(1, "a body with a number");
    r = good, r.fill.head.op = WIRE_OP_BODY, r.fill.head.size = sizeof(struct wire_rec_body);
    EXPECT(1, "a body in a body");
    r = good, r.fill.head.op = WIRE_OP_GATE;
    EXPECT(1, "a body with a gate");
    r = good, r.fill.head.op = WIRE_OP_GRAPH;
    EXPECT(1, "a body with a graph");
#undef EXPECT
    r = good;
    expect_failure("a condition in the ring", 1, WIRE_OP_CONDITION, &r.condition,
                   r.condition.head.size, 0, 0);
    r = good;
    expect_failure("a body in the ring", 1, WIRE_OP_BODY, &r.body[1], r.body[1].head.size, 0, 0);
    raw_neighbour_check();
}

/* Conditions in each other, deeper than anybody needs. */
static void deep_graph(void)
{
    enum { DEEP = 300 };
    static struct {
        struct wire_rec_graph graph;
        struct {
            struct wire_rec_condition condition;
            struct wire_rec_body body;
        } level[DEEP];
    } r;
    for (size_t i = 0; i < DEEP; i++) {
        const uint32_t rest = (uint32_t)((DEEP - i) * sizeof(r.level[0]));
        r.level[i].condition = (struct wire_rec_condition) {
            .head = { .op = WIRE_OP_CONDITION, .size = rest }, .handle = 1, .bodies = 1
        };
        r.level[i].body = (struct wire_rec_body) {
            .head = { .op = WIRE_OP_BODY, .size = rest - (uint32_t)sizeof(r.level[i].condition) }
        };
    }
    expect_failure("conditions without end", 1, WIRE_OP_GRAPH, &r, sizeof(r), 0, 0);
    raw_neighbour_check();
}

static void values_of_no_kind(void)
{
    struct wire_rec_wait_value good = { .address = 0x1000, .value = 1, .width = 4 }, r;
    r = good, r.width = 2;
    expect_failure("a width that words do not have", 1, WIRE_OP_WAIT_VALUE, &r, sizeof(r), 0, 0);
    r = good, r.width = 8, r.address = 0x1004;
    expect_failure("a word across two", 1, WIRE_OP_WAIT_VALUE, &r, sizeof(r), 0, 0);
    r = good, r.compare = 4;
    expect_failure("a comparison that there is not", 1, WIRE_OP_WAIT_VALUE, &r, sizeof(r), 0, 0);
    r = good;
    expect_failure("a word outside the window", 700, WIRE_OP_WAIT_VALUE, &r, sizeof(r), 0, 0);
    r.address = UINT64_MAX - 7;
    expect_failure("a word at the end of all", 700, WIRE_OP_WAIT_VALUE, &r, sizeof(r), 0, 0);
    raw_neighbour_check();
}

/* Streams that wait for what never comes: the client's other streams go on, and it ends as any
 * other. */
static void waits_for_ever(void)
{
    static struct raw_client c;
    for (unsigned round = 0; round < 3; round++) {
        open_client(&c);
        uint64_t address = raw_alloc(&c, 32u << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
        struct wire_rec_wait_value wait = {
            .address = address, .value = 1, .width = 8, .compare = 1
        };
        for (uint32_t stream = 0; stream < 40; stream++)
            raw_post(&c, stream, WIRE_OP_WAIT_VALUE, &wait, sizeof(wait), NULL, 0);
        uint64_t seq = raw_fill(&c, 50, address + 64, 7, 16);
        RAW_CHECK(raw_wait(&c, 50, seq) == 0);
        raw_neighbour_check();
        if (round == 1) { /* the word goes */
            RAW_CHECK(raw_free(&c, address) == 0);
            RAW_CHECK(raw_wait(&c, 0, UINT64_MAX - 1) == 700);
        }
        raw_client_close(&c);
    }
    raw_neighbour_check();
}

/* Calls that are well formed and ask for nonsense get an answer, and the client goes on. */
static void nonsense_calls(void)
{
    static struct raw_client c;
    open_client(&c);
    for (uint64_t n = 1; n <= 200; n++) {
        struct {
            struct wire_rec_call record;
            uint32_t args[16];
        } r = { .record = { .number = n,
                            .function = n % 3 ? (uint32_t)n % 64 : raw_random(&state),
                            .module = n % 5 ? 0 : raw_random(&state) } };
        for (unsigned i = 0; i < 16; i++)
            r.args[i] = raw_random(&state);
        raw_post(&c, 0, WIRE_OP_CALL, &r, sizeof(r.record) + (n % 17) * 4, NULL, 0);
        RAW_CHECK(tp_word_wait(&c.shared.control->replied, n,
                               &(struct tp_wait_policy) { .slice_ms = 100 }) == 0);
        RAW_CHECK(c.shared.reply->result != 0 && c.shared.reply->size == 0);
    }
    RAW_CHECK(atomic_load(&c.shared.control->error) == 0);
    raw_client_close(&c);
    raw_neighbour_check();
}

/* The flags and indices that are the executor's to write. */
static void fiddled_flags(void)
{
    static struct raw_client c;
    for (unsigned i = 0; i < 50; i++) {
        open_client(&c);
        struct tp_session_control *s = c.shared.control;
        uint64_t address = raw_alloc(&c, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
        for (unsigned k = 0; k < 100; k++) {
            raw_fill(&c, k % 3, address, k, 16);
            atomic_store(&s->ring.consumer_sleeps, raw_random(&state) & 1);
            atomic_store(&s->ring.producer_sleeps, raw_random(&state) & 1);
            atomic_fetch_add(&s->ring.bell, raw_random(&state) % 3);
            atomic_store(&c.shared.streams[k % 3].accepted, raw_random(&state));
            atomic_store(&c.shared.streams[k % 3].arrived, raw_random(&state));
            atomic_store(&c.shared.streams[k % 3].completed.value, raw_random(&state));
            atomic_store(&c.shared.streams[k % 3].completed.sleepers, raw_random(&state));
            if (k == 50)
                atomic_store(&s->ring.head, raw_random(&state));
        }
        raw_client_close(&c); /* must not take a slice of seconds */
    }
    raw_neighbour_check();
}

static void bad_images(void)
{
    static struct raw_client c;
    for (unsigned i = 0; i < 4; i++) {
        struct wire_enc e;
        int fd;
        open_client(&c);
        if (i == 0) { /* not sealed */
            fd = memfd_create("image", MFD_ALLOW_SEALING | MFD_CLOEXEC);
            RAW_CHECK(write(fd, "text", 5) == 5);
        } else if (i == 1) { /* writable */
            fd = tp_memfd_create("image", 5);
        } else if (i == 2) { /* no memory at all */
            fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        } else { /* shorter than it says */
            fd = tp_memfd_from_bytes("image", "tex", 4);
        }
        wire_enc_init(&e, buffer, sizeof(buffer));
        wire_pack_module_load(
            &e, 1, &(struct wire_module_load) { .size = 5, .kind = WIRE_IMAGE_KIND_PTX });
        RAW_CHECK(tp_send(c.fd, &e, &fd, 1) == 0);
        RAW_CHECK(!raw_client_receive(&c));
        close(fd);
        raw_client_close(&c);
    }
    open_client(&c);
    int result;
    RAW_CHECK(raw_load(&c, "this is no PTX", &result) == 0 && result != 0);
    RAW_CHECK(raw_load(&c, "", &result) == 0 && result != 0);
    raw_client_close(&c);
    raw_neighbour_check();
}

/* A header that the client changes before the executor looks at it. */
static void changed_header(void)
{
    static struct raw_client c;
    for (unsigned i = 0; i < 40; i++) {
        struct wire_enc e;
        raw_client_wait_offer(&c, raw_server_connect(&server, next_pid++));
        uint32_t word = raw_random(&state);
        RAW_CHECK(pwrite(c.fds[0], &word, sizeof(word), (off_t)(i % 10) * 4) == sizeof(word));
        wire_enc_init(&e, buffer, sizeof(buffer));
        wire_pack_session_ready(&e, 1, &(struct wire_session_ready) { 0 });
        raw_client_ask(&c, &e, NULL, 0);
        RAW_CHECK(c.packet->header.type == WIRE_STATUS);
        raw_client_close(&c);
    }
    raw_neighbour_check();
}

static void free_without_waiting(struct raw_client *c, uint64_t address)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_memory_free(&e, 0, &(struct wire_memory_free) { .address = address });
    RAW_CHECK(tp_send(c->fd, &e, NULL, 0) == 0);
}

/* All there is, given back, and all there is once more. */
static void everything_twice(struct raw_client *c, uint64_t free_bytes)
{
    int result;
    uint64_t most = raw_alloc(c, free_bytes & ~4095ull, WIRE_MEMORY_KIND_DEVICE, &result);
    RAW_CHECK(most != 0);
    RAW_CHECK(raw_alloc(c, 4096, WIRE_MEMORY_KIND_DEVICE, &result) == 0 && result == 2);
    RAW_CHECK(raw_alloc(c, 4096, WIRE_MEMORY_KIND_HOST, &result) != 0);
    /* What was just freed can be had again, without waiting for the answer in between. */
    free_without_waiting(c, most);
    most = raw_alloc(c, free_bytes & ~4095ull, WIRE_MEMORY_KIND_DEVICE, &result);
    RAW_CHECK(most != 0);
    RAW_CHECK(raw_free(c, most) == 0);
    RAW_CHECK(raw_free(c, most) == 1);
    RAW_CHECK(raw_free(c, 0) == 1);
}

static void too_much(void)
{
    static struct raw_client c;
    int result = 0;
    open_client(&c);
    uint64_t free_bytes = raw_memory_free(&c);
    RAW_CHECK(raw_alloc(&c, UINT64_MAX, WIRE_MEMORY_KIND_DEVICE, &result) == 0 && result == 2);
    RAW_CHECK(raw_alloc(&c, free_bytes + 4096, WIRE_MEMORY_KIND_DEVICE, &result) == 0 &&
              result == 2);
    RAW_CHECK(raw_alloc(&c, 0, WIRE_MEMORY_KIND_DEVICE, &result) == 0 && result == 1);
    if (!RAW_SANITIZED) /* shadow memory for all of it is too much */
        everything_twice(&c, free_bytes);
    unsigned small = 0;
    while (raw_alloc(&c, 1, WIRE_MEMORY_KIND_DEVICE, &result) != 0)
        small++;
    RAW_CHECK(result == 2 && small > 1000 && small <= 1u << 18);
    unsigned large = 0;
    raw_client_close(&c);
    open_client(&c);
    uint64_t last = 0;
    uint64_t address;
    while ((address = raw_alloc(&c, 1200000, WIRE_MEMORY_KIND_DEVICE, &result)) != 0) {
        last = address;
        large++;
    }
    RAW_CHECK(result == 2 && large > 1000 && large <= 8192);
    /* The place of one that is still being freed is waited for. */
    for (unsigned i = 0; i < 100; i++) {
        free_without_waiting(&c, last);
        last = raw_alloc(&c, 1200000, WIRE_MEMORY_KIND_DEVICE, &result);
        RAW_CHECK(last != 0);
    }
    raw_client_close(&c);
    raw_neighbour_check();
}

/* Writes to its window without having allocated anything. */
static void memory_that_it_was_not_given(void)
{
    static struct raw_client c;
    open_client(&c);
    for (uint64_t at = 0; at < 96u << 20; at += 4096)
        c.device[at] = 1;
    RAW_CHECK(!raw_client_receive(&c));
    RAW_CHECK(raw_server_says(&server, "it uses memory it was not given"));
    raw_client_close(&c);
    raw_neighbour_check();
}

int main(void)
{
    raw_server_start(&server, "null");
    raw_neighbour_open(&server, 1);
    pid_t executor = raw_server_executor(&server);
    raw_server_settle(&server, 1);
    unsigned descriptors = raw_descriptors(server.pid);
    unsigned executors = raw_descriptors(executor);

    random_packets();
    changed_packets();
    deaf_client();
    random_ring();
    random_records();
    records_out_of_order();
    broken_runs();
    graphs();
    deep_graph();
    values_of_no_kind();
    waits_for_ever();
    nonsense_calls();
    fiddled_flags();
    bad_images();
    changed_header();
    too_much();
    memory_that_it_was_not_given();

    raw_server_settle(&server, 1);
    RAW_CHECK(raw_server_executor(&server) == executor);
    raw_expect_descriptors(server.pid, descriptors);
    raw_expect_descriptors(executor, executors);
    raw_neighbour_check();
    raw_client_close(&raw_neighbour);
    raw_server_finish(&server);
    return 0;
}
