/*
 * Every message there is, in every phase of a session, from a client: what the phase allows is
 * answered, everything else ends that client's connection with one line in the log and nobody
 * else's. Then every message a client may send, cut at every length.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"
#include "sample.h"

enum phase {
    OFFERED,
    ATTACHED,
    FAILED,
    PHASES,
};

static struct raw_server server;
static uint8_t buffer[WIRE_PACKET_MAX];
static uint32_t next_pid = 1000;

static const struct {
    unsigned type;
    unsigned phases; /* bits */
    bool answer;     /* comes even to a sample's nonsense */
} allowed[] = {
    { WIRE_SESSION_WINDOW_BUSY, 1 << OFFERED, false }, /* the sample's window was never offered */
    { WIRE_SESSION_READY, 1 << OFFERED, true },
    { WIRE_CONTEXT_OPEN, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_CONTEXT_CLOSE, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_MEMORY_ALLOC, 1 << ATTACHED | 1 << FAILED, false }, /* a sample's kind is none */
    { WIRE_MEMORY_FREE, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_MEMORY_INFO, 1 << ATTACHED | 1 << FAILED, false }, /* a sample's device is none */
    { WIRE_MODULE_LOAD, 1 << ATTACHED | 1 << FAILED, false }, /* a sample's image is none */
    { WIRE_MODULE_UNLOAD, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_OBJECT_CREATE, 1 << ATTACHED | 1 << FAILED, false }, /* a sample's kind is none */
    { WIRE_OBJECT_RELEASE, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_OBJECT_EXPORT, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_OBJECT_IMPORT, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_OBJECT_ADOPT, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_RANGE_RESERVE, 1 << ATTACHED | 1 << FAILED, false }, /* here, too */
    { WIRE_RANGE_RELEASE, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_OBJECT_MAP, 1 << ATTACHED | 1 << FAILED, false }, /* a sample's access is none */
    { WIRE_OBJECT_UNMAP, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_MEMORY_SHARE, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_MEMORY_OPEN, 1 << ATTACHED | 1 << FAILED, true },
    { WIRE_ARRAY_MEMORY, 1 << ATTACHED | 1 << FAILED, false }, /* a sample's device is none */
    { WIRE_PEER_ACCESS, 1 << ATTACHED | 1 << FAILED, false },  /* here, too */
};

/* The neighbour works, whatever happened. */
static void enter(struct raw_client *c, enum phase phase, uint32_t pid)
{
    int fd = raw_server_connect(&server, pid);
    if (phase == OFFERED) {
        raw_client_wait_offer(c, fd);
        return;
    }
    raw_client_open(c, fd);
    if (phase == FAILED) {
        raw_server_terminate(&server, pid);
        while (raw_error(c) == 0)
            ;
        RAW_CHECK(raw_error(c) == 810);
    }
}

static void try_message(const struct sample *sample, enum phase phase, bool may, bool answer)
{
    static struct raw_client c;
    const struct wire_message_info *info = wire_message_info(sample->type);
    uint32_t pid = next_pid++;
    char line[128];

    enter(&c, phase, pid);
    size_t size = sample_pack(sample, SAMPLE_SOME, 99, buffer, sizeof(buffer));
    const struct wire_enc e = { .data = buffer, .size = size, .capacity = size };
    const int fds[] = { 0, 0, 0, 0 };
    RAW_CHECK(tp_send(c.fd, &e, fds, info->fds) == 0);
    bool answered = raw_client_receive(&c);
    snprintf(line, sizeof(line), "Dropping client {PID: %u, Context ID: 0} of user %u: ", pid,
             getuid());
    if (may && answer) {
        if (!answered)
            fprintf(stderr, "%s in phase %d: no answer\n", sample->name, phase);
        RAW_CHECK(answered && c.packet->header.serial == 99);
    } else {
        if (answered)
            fprintf(stderr, "%s in phase %d: answered with %u\n", sample->name, phase,
                    c.packet->header.type);
        RAW_CHECK(!answered);
        RAW_CHECK(raw_server_says(&server, line));
        RAW_CHECK((strstr(server.log, "out of place") != NULL) ==
                  (may ? false : info->sender == WIRE_CLIENT && info->receiver == WIRE_SERVER));
    }
    raw_client_close(&c);
    raw_server_forget_log(&server);
}

static void every_message_in_every_phase(void)
{
    for (size_t i = 0; i < samples_count; i++) {
        if (samples[i].type == 0)
            continue;
        for (enum phase phase = 0; phase < PHASES; phase++) {
            bool may = false;
            bool answer = false;
            for (size_t k = 0; k < GM_ARRAY_LEN(allowed); k++)
                if (allowed[k].type == samples[i].type) {
                    may = allowed[k].phases & (1u << phase);
                    answer = allowed[k].answer;
                }
            try_message(&samples[i], phase, may, answer);
        }
        raw_neighbour_check();
    }
}

static void every_message_cut_at_every_length(void)
{
    static struct raw_client c;
    for (size_t k = 0; k < GM_ARRAY_LEN(allowed); k++) {
        const struct sample *sample = NULL;
        for (size_t i = 0; i < samples_count; i++)
            if (samples[i].type == allowed[k].type)
                sample = &samples[i];
        size_t size = sample_pack(sample, SAMPLE_SOME, 99, buffer, sizeof(buffer));
        for (size_t n = 1; n < size; n++) {
            enter(&c, allowed[k].phases & (1 << OFFERED) ? OFFERED : ATTACHED, next_pid++);
            uint32_t said =
                (uint32_t)(n & 1
                               ? n
                               : size); /* with a header that says so, and with one that does not */
            memcpy(buffer + offsetof(struct wire_header, size), &said, sizeof(said));
            const struct wire_enc e = { .data = buffer, .size = n, .capacity = n };
            const int fds[] = { 0 };
            RAW_CHECK(tp_send(c.fd, &e, fds, wire_message_info(sample->type)->fds) == 0);
            RAW_CHECK(!raw_client_receive(&c));
            raw_client_close(&c);
            raw_server_forget_log(&server);
        }
        raw_neighbour_check();
    }
}

int main(void)
{
    raw_server_start(&server, "null");
    raw_neighbour_open(&server, 1);
    pid_t executor = raw_server_executor(&server);
    raw_server_settle(&server, 1);
    unsigned descriptors = raw_descriptors(server.pid);
    unsigned executors = raw_descriptors(executor);

    every_message_in_every_phase();
    every_message_cut_at_every_length();

    raw_server_settle(&server, 1);
    RAW_CHECK(raw_server_executor(&server) == executor);
    raw_expect_descriptors(server.pid, descriptors);
    raw_expect_descriptors(executor, executors);
    raw_client_close(&raw_neighbour);
    raw_server_finish(&server);
    return 0;
}
