/*
 * Clients that change what the executor reads while it reads it: records in the ring, the words of
 * streams, events, names, parts and of the ring itself, and data in the window. A second thread
 * turns a word to and fro, so that what is looked at twice is not the same twice. Whatever becomes
 * of such a client, the executor goes on, and a neighbour's results stay right.
 *
 *   flip [DEVICE]
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "raw.h"
#include "sample.h"

#define CLIENTS 40u
#define RECORDS 400u
#define BYTES   65536u
#define STREAMS 4u
#define TURNS   64u /* to and fro, before it is another word's turn */
#define PTX                                                                                        \
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg "    \
    ".u64 a, i;\n"                                                                                 \
    ".reg .u32 t;\nld.param.u64 a, [p];\nmov.u32 t, %tid.x;\nmul.wide.u32 i, t, 4;\nadd.u64 a, "   \
    "a, i;\n"                                                                                      \
    "st.global.u32 [a], t;\nret;\n}\n"

static struct raw_server server;
static struct raw_client neighbour;
static uint32_t next_pid = 1000;

struct flipper {
    struct raw_client client;
    uint64_t memory;
    uint32_t module;
    uint32_t state;
    pthread_t thread;
    _Atomic bool ends;
    _Atomic uint32_t written; /* of the ring, up to there */
    uint64_t flips;
};

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* --- the other thread ------------------------------------------------------------------------- */

static uint8_t *choose(struct flipper *f)
{
    const struct raw_client *c = &f->client;
    const struct tp_session *s = &c->shared;
    uint32_t r = next(&f->state), at = next(&f->state);
    switch (r % 16) {
    case 0:
        return (uint8_t *)&s->control->ring + at % sizeof(s->control->ring);
    case 1:
    case 2:
        return (uint8_t *)&s->streams[r / 16 % STREAMS] + at % sizeof(*s->streams);
    case 3:
        return (uint8_t *)&s->events[r / 16 % 8] + at % sizeof(*s->events);
    case 4:
        return s->names + at % 4096;
    case 5:
        return (uint8_t *)&s->parts[r / 16 % 4] + at % sizeof(*s->parts);
    case 6:
        return (uint8_t *)s->control + offsetof(struct tp_session_control, names_used) + at % 8;
    case 7:
        return c->device + (f->memory - c->window_base) + at % BYTES;
    default: /* what has been written last */
        return (uint8_t *)s->ring_data + (f->written - 1 - at % 1024) % s->ring_size;
    }
}

static void *flip_main(void *arg)
{
    struct flipper *f = arg;
    while (!f->ends) {
        volatile uint8_t *p = choose(f);
        const uint8_t bits =
            next(&f->state) % 4 ? (uint8_t)(1u << next(&f->state) % 8) : (uint8_t)next(&f->state);
        for (unsigned i = 0; i < TURNS; i++)
            *p = (uint8_t)(*p ^ bits);
        f->flips++;
    }
    return NULL;
}

/* --- what it hands over ----------------------------------------------------------------------- */

/* The ring's own words are not to be trusted here, either: no waiting. */
static bool post(struct flipper *f, unsigned op, void *record, size_t size)
{
    struct raw_client *c = &f->client;
    static const struct tp_wait_policy policy = { .slice_ms = 1 };
    const uint32_t stream = next(&f->state) % STREAMS;
    struct wire_record *head = record;
    head->op = (uint16_t)op;
    head->size = (uint32_t)size;
    head->stream = stream;
    head->seq = ++c->seq[stream];
    if (c->ring.size - (c->ring.mine - c->ring.theirs) < 2 * WIRE_RECORD_MAX)
        return false;
    int r = tp_ring_write(&c->ring, head, size, NULL, 0, &policy);
    f->written = c->ring.mine;
    return r == 0;
}

static bool launch(struct flipper *f)
{
    struct {
        struct wire_rec_launch r;
        uint64_t p;
    } l = { .r = { .module = f->module,
                   .grid_x = 2,
                   .grid_y = 1,
                   .grid_z = 1,
                   .block_x = 64,
                   .block_y = 1,
                   .block_z = 1 },
            .p = f->memory };
    return post(f, WIRE_OP_LAUNCH, &l, sizeof(l));
}

/* Makes a record of any kind, with numbers that mean something. */
static bool any_record(struct flipper *f)
{
    static _Thread_local union {
        struct wire_record head;
        uint64_t words[(WIRE_RECORD_MAX + 7) / 8];
    } r;
    const struct sample_record *kind = &sample_records[next(&f->state) % sample_records_count];
    memset(&r, 0, sizeof(r));
    for (size_t w = sizeof(r.head) / 8; w < (kind->fixed + 7) / 8; w++)
        r.words[w] = next(&f->state) % 3 ? f->memory + next(&f->state) % BYTES / 16 * 16
                                         : next(&f->state) % 64;
    const size_t extra = kind->variable ? next(&f->state) % (GM_MIN(kind->variable, 256u) + 1) : 0;
    return post(f, kind->op, &r, kind->fixed + extra);
}

static bool copy_or_fill(struct flipper *f)
{
    struct wire_rec_fill r = {
        .dst = f->memory, .width = 256, .height = 1, .element_size = 4, .value = 7
    };
    if (next(&f->state) % 2)
        return post(f, WIRE_OP_FILL, &r, sizeof(r));
    return any_record(f);
}

static void run(struct flipper *f, uint32_t seed)
{
    *f = (struct flipper) { .state = seed * 7919 + 1 };
    raw_client_open(&f->client, raw_server_connect(&server, next_pid++));
    f->memory = raw_alloc(&f->client, BYTES, WIRE_MEMORY_KIND_DEVICE, NULL);
    f->module = raw_load(&f->client, PTX, NULL);
    RAW_CHECK(f->memory && f->module);
    RAW_CHECK(pthread_create(&f->thread, NULL, flip_main, f) == 0);
    for (unsigned i = 0; i < RECORDS && raw_error(&f->client) == 0; i++)
        if (!(i % 3 == 0 ? launch(f) : i % 3 == 1 ? copy_or_fill(f) : any_record(f)))
            break;
    tp_ring_kick(&f->client.shared.control->ring);
    /* A message that the executor has to see to: by then it has read what there was. */
    uint64_t p = raw_alloc(&f->client, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    if (p)
        (void)raw_free(&f->client, p);
    f->ends = true;
    RAW_CHECK(pthread_join(f->thread, NULL) == 0);
    raw_client_close(&f->client);
}

int main(int argc, char **argv)
{
    static struct flipper f;
    uint64_t flips = 0;
    unsigned failed = 0;
    alarm(100);
    raw_server_start(&server, argc > 1 ? argv[1] : "null");
    raw_client_open(&neighbour, raw_server_connect(&server, 100));
    uint64_t own = raw_alloc(&neighbour, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    const pid_t executor = raw_server_executor(&server);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        run(&f, i);
        raw_work_and_check(&neighbour, own);
        flips += f.flips;
    }
    raw_server_settle(&server, 1);
    failed = server.faults;
    printf("%llu places flipped, %u clients failed over it\n", (unsigned long long)flips, failed);
    RAW_CHECK(raw_server_executor(&server) == executor);
    raw_client_close(&neighbour);
    raw_server_finish(&server);
    return 0;
}
