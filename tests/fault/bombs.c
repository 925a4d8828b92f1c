/*
 * Modules that end the executor: at once or when another one takes over, for memory or by a
 * mistake, of two clients that load several at a time. They are refused from then on. Clients
 * beside them that were not loading anything lose nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/result.h"
#include "frame.h"
#include "transport/memfd.h"

#define INNOCENTS 12u
#define MODULES   3u
#define ATTACKERS 2u
#define AT_ONCE   4u
#define ROUNDS    3u
#define WORDS     1024u

struct innocent {
    struct raw_client client;
    uint64_t memory;
    uint32_t modules[MODULES];
    uint32_t value;
};

static struct innocent innocents[INNOCENTS];
static struct raw_client attackers[ATTACKERS];
static uint32_t next_pid = 1000;
static unsigned texts;

/* An image like no other. */
static const char *text_of(const char *entry)
{
    static char text[256];
    snprintf(text, sizeof(text), HEAD ".visible .entry %s()\n{\nret;\n}\n// %u\n", entry, texts++);
    return text;
}

static void innocent_begin(struct innocent *i, uint32_t value)
{
    raw_client_open(&i->client, raw_server_connect(&server, next_pid++));
    i->memory = raw_alloc(&i->client, WORDS * 4, WIRE_MEMORY_KIND_DEVICE, NULL);
    i->value = value;
    for (unsigned m = 0; m < MODULES; m++) {
        i->modules[m] = raw_load(&i->client, text_of("fast"), NULL);
        RAW_CHECK(i->modules[m] != 0);
    }
    RAW_CHECK(raw_wait(&i->client, 0, raw_fill(&i->client, 0, i->memory, value, WORDS)) == 0);
}

/* Nobody's work goes on while executors die over what others load, which on a busy machine takes
 * its time for each. */
static int wait_while_executors_die(struct raw_client *c, uint32_t stream, uint64_t seq)
{
    pid_t executor;
    int r;
    do {
        executor = raw_server_executor(&server);
        r = raw_wait(c, stream, seq);
    } while (r == -ETIMEDOUT && raw_server_executor(&server) != executor);
    return r;
}

static void innocent_check(struct innocent *i)
{
    const uint32_t *words = (const uint32_t *)(uintptr_t)i->memory;
    RAW_CHECK(raw_error(&i->client) == 0);
    for (unsigned w = 0; w < WORDS; w++)
        RAW_CHECK(words[w] == i->value);
    for (unsigned m = 0; m < MODULES; m++) {
        uint64_t seq = raw_launch(&i->client, 1, i->modules[m]);
        RAW_CHECK(wait_while_executors_die(&i->client, 1, seq) == 0);
    }
    raw_work_and_check(&i->client, i->memory);
    RAW_CHECK(raw_wait(&i->client, 0, raw_fill(&i->client, 0, i->memory, ++i->value, WORDS)) == 0);
}

static void check_all(void)
{
    for (unsigned i = 0; i < INNOCENTS; i++)
        innocent_check(&innocents[i]);
}

/* Its answer, whichever it is: what became of the load. */
static int take_answer(struct raw_client *c)
{
    struct wire_module_loaded m;
    RAW_CHECK(raw_client_receive(c) && c->packet->header.type == WIRE_MODULE_LOADED);
    wire_get_module_loaded(&c->packet->body, &m);
    tp_packet_finish(c->packet);
    return m.result;
}

/* All of them at once, and again, until none is left to try. */
static void bombs_beside_innocents(const char *entry)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned a = 0; a < ATTACKERS; a++)
            raw_client_open(&attackers[a], raw_server_connect(&server, next_pid++));
        for (unsigned n = 0; n < AT_ONCE; n++)
            for (unsigned a = 0; a < ATTACKERS; a++)
                raw_send_load(&attackers[a], text_of(entry));
        for (unsigned n = 0; n < AT_ONCE; n++)
            for (unsigned a = 0; a < ATTACKERS; a++)
                RAW_CHECK(take_answer(&attackers[a]) != 0);
        check_all();
        for (unsigned a = 0; a < ATTACKERS; a++)
            raw_client_close(&attackers[a]);
        raw_server_settle(&server, INNOCENTS + 1);
    }
}

/* For memory once, else twice. */
static void what_ended_one_is_refused(const char *entry, unsigned times)
{
    int result;
    char bomb[256];
    raw_client_open(&attackers[0], raw_server_connect(&server, next_pid++));
    strcpy(bomb, text_of(entry));
    for (unsigned i = 0; i < times; i++)
        RAW_CHECK(raw_load(&attackers[0], bomb, &result) == 0 && result == GM_CUDA_LAUNCH_FAILED);
    check_all(); /* the next executor is there */
    pid_t executor = raw_server_executor(&server);
    raw_server_forget_log(&server);
    RAW_CHECK(raw_load(&attackers[0], bomb, &result) == 0 && result == GM_CUDA_INVALID_IMAGE);
    RAW_CHECK(raw_server_says(&server, "has ended an executor and is refused"));
    RAW_CHECK(raw_load(&attackers[0], text_of("fast"), &result) != 0);
    RAW_CHECK(raw_server_executor(&server) == executor);
    raw_client_close(&attackers[0]);
    raw_server_settle(&server, INNOCENTS + 1);
    check_all();
}

static void set_mine(bool is_there)
{
    const char *path = getenv("GMUX_MINE");
    int fd = is_there ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    RAW_CHECK(is_there ? fd >= 0 && close(fd) == 0 : unlink(path) == 0);
}

/* They are loaded, and end the next executor. */
static void mines_beside_innocents(void)
{
    for (unsigned a = 0; a < ATTACKERS; a++) {
        raw_client_open(&attackers[a], raw_server_connect(&server, next_pid++));
        RAW_CHECK(raw_load(&attackers[a], text_of("mine"), NULL) != 0);
    }
    set_mine(true);
    RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
    check_all();
    for (unsigned a = 0; a < ATTACKERS; a++) {
        while (raw_error(&attackers[a]) == 0) /* its turn comes; alarm() bounds that */
            raw_server_read(&server, 200);
        RAW_CHECK(raw_error(&attackers[a]) == GM_CUDA_LAUNCH_FAILED);
        raw_client_close(&attackers[a]);
    }
    set_mine(false);
    raw_server_settle(&server, INNOCENTS + 1);
}

/* It ends the next executor before anybody's work has gone on, unless that has waited for a
 * second. */
static void slow_mine_beside_waiting_work(void)
{
    struct raw_client *owner = &attackers[0], *waiting = &attackers[1];
    raw_client_open(owner, raw_server_connect(&server, next_pid++));
    raw_client_open(waiting, raw_server_connect(&server, next_pid++));
    uint64_t memory = raw_alloc(waiting, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    _Atomic uint32_t *word = (_Atomic uint32_t *)(uintptr_t)memory;
    raw_send_load(owner, HEAD ".visible .entry slow()\n{\nret;\n}\n"
                              ".visible .entry mine()\n{\nret;\n}\n");
    let_go(slow_begins());
    RAW_CHECK(take_answer(owner) == 0);
    set_mine(true);
    RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
    int go = slow_begins();
    uint64_t begin = gm_now_ns();
    struct wire_rec_wait_value r = { .address = memory, .value = 1, .width = 4 };
    uint64_t seq = raw_post(waiting, 0, WIRE_OP_WAIT_VALUE, &r, sizeof(r), NULL, 0);
    RAW_CHECK(raw_alloc(&neighbour, 16 << 20, WIRE_MEMORY_KIND_HOST, NULL) != 0);
    pid_t executor = raw_server_executor(&server);
    let_go(go);
    while (!raw_process_is_gone(executor))
        raw_server_read(&server, 1);
    let_go(slow_begins()); /* alone now */
    while (raw_error(owner) == 0)
        raw_server_read(&server, 200);
    bool was_in_time = gm_now_ns() - begin < GM_NS_PER_S;
    atomic_store(word, 1);
    int result = wait_while_executors_die(waiting, 0, seq);
    RAW_CHECK(result == 0 || !was_in_time);
    set_mine(false);
    raw_client_close(owner);
    raw_client_close(waiting);
    raw_server_settle(&server, INNOCENTS + 1);
}

int main(void)
{
    char mine[] = "/tmp/gmux-mine-XXXXXX";
    int fd = mkstemp(mine);
    RAW_CHECK(fd >= 0 && close(fd) == 0 && unlink(mine) == 0 && setenv("GMUX_MINE", mine, 1) == 0);
    char vmstat[] = "/tmp/gmux-vmstat-XXXXXX";
    fd = mkstemp(vmstat);
    RAW_CHECK(fd >= 0 && close(fd) == 0 && setenv("GMUX_VMSTAT", vmstat, 1) == 0);
    frame_begin(110);
    for (unsigned i = 0; i < INNOCENTS; i++)
        innocent_begin(&innocents[i], i * 1000);
    check_all();
    bombs_beside_innocents("bomb");
    bombs_beside_innocents("crash");
    what_ended_one_is_refused("bomb", 1);
    what_ended_one_is_refused("crash", 2);
    mines_beside_innocents();
    slow_mine_beside_waiting_work();
    for (unsigned i = 0; i < INNOCENTS; i++)
        raw_client_close(&innocents[i].client);
    raw_client_close(&neighbour);
    raw_server_finish(&server);
    unlink(vmstat);
    frame_end();
    return 0;
}
