/*
 * The executor dies: memory stays, idle clients do not notice, busy ones get an error. The server
 * dies: its clients see the connection end and its executor ends with it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"

#define PTX ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
/* The executors here are killed by us, not for want of memory, whatever else goes on on this
 * machine. */
#define NO_VMSTAT "/dev/null"

static struct raw_server server;
static uint32_t next_pid = 1000;

static void open_client(struct raw_client *c)
{
    raw_client_open(c, raw_server_connect(&server, next_pid++));
}

static void kill_executor(pid_t pid)
{
    raw_server_forget_log(&server);
    RAW_CHECK(kill(pid, SIGKILL) == 0);
}

static void wait_for_next_executor(void)
{
    RAW_CHECK(raw_server_says(&server, "takes over device 0"));
}

/* A million elements, so that a mistake in offsets shows. */
static void write_pattern(struct raw_client *c, uint64_t address, uint32_t elements, uint32_t value)
{
    for (uint32_t part = 0; part < 8; part++)
        raw_fill(c, part % 3, address + (uint64_t)part * elements / 8 * 4, value + part,
                 elements / 8);
    for (uint32_t s = 0; s < 3; s++)
        RAW_CHECK(raw_wait(c, s, c->seq[s]) == 0);
}

static void check_pattern(uint64_t address, uint32_t elements, uint32_t value)
{
    const uint32_t *p = (const uint32_t *)(uintptr_t)address;
    for (uint32_t i = 0; i < elements; i++)
        RAW_CHECK(p[i] == value + i / (elements / 8));
}

static void executor_dies(void)
{
    static struct raw_client idle, busy, late;
    enum { ELEMENTS = 1 << 20 };
    struct wire_rec_gate gate = { 0 };
    int result;

    open_client(&idle);
    uint64_t memory = raw_alloc(&idle, ELEMENTS * 4, WIRE_MEMORY_KIND_DEVICE, NULL);
    uint64_t small = raw_alloc(&idle, 1000, WIRE_MEMORY_KIND_DEVICE, NULL);
    uint64_t host = raw_alloc(&idle, 8192, WIRE_MEMORY_KIND_HOST, NULL);
    uint64_t gone = raw_alloc(&idle, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(raw_free(&idle, gone) == 0);
    uint32_t module = raw_load(&idle, PTX, &result);
    RAW_CHECK(module != 0);
    for (unsigned round = 0; round < 4; round++) {
        uint32_t value = 100 * (round + 1);
        open_client(&busy);
        write_pattern(&idle, memory, ELEMENTS, value);
        uint64_t seq = raw_fill(&idle, 0, small, value, 250);
        RAW_CHECK(raw_wait(&idle, 0, seq) == 0);
        uint64_t standing = raw_post(&busy, 7, WIRE_OP_GATE, &gate, sizeof(gate), NULL, 0);
        while (atomic_load(&busy.shared.streams[7].arrived) < standing)
            ;
        uint32_t generation = atomic_load(&idle.shared.control->generation);

        kill_executor(raw_server_executor(&server));
        if (round % 2) { /* at once, while there is none; or later */
            seq = raw_fill(&idle, 1, host, value, 2048);
            raw_launch(&idle, 4, module);
            open_client(&late);
        }
        RAW_CHECK(raw_wait(&busy, 7, standing) == 719);
        wait_for_next_executor();
        if (round % 2 == 0) {
            seq = raw_fill(&idle, 1, host, value, 2048);
            raw_launch(&idle, 4, module);
            open_client(&late);
        }
        RAW_CHECK(raw_wait(&idle, 1, seq) == 0);
        RAW_CHECK(raw_wait(&idle, 4, idle.seq[4]) == 0);
        RAW_CHECK(((uint32_t *)(uintptr_t)host)[2047] == value);
        RAW_CHECK(((uint32_t *)(uintptr_t)small)[249] == value);
        check_pattern(memory, ELEMENTS, value);
        RAW_CHECK(atomic_load(&idle.shared.control->generation) == generation + 1);
        RAW_CHECK(raw_alloc(&busy, 4096, WIRE_MEMORY_KIND_DEVICE, &result) == 0 && result == 719);
        uint64_t another = raw_alloc(&late, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
        RAW_CHECK(another != 0);
        seq = raw_fill(&late, 0, another, 3, 1024);
        RAW_CHECK(raw_wait(&late, 0, seq) == 0);
        raw_client_close(&busy);
        raw_client_close(&late);
        raw_server_settle(&server, 1);
    }
    RAW_CHECK(raw_unload(&idle, module) == 0);
    raw_launch(&idle, 4, module);
    RAW_CHECK(raw_wait(&idle, 4, idle.seq[4]) == 400);
    raw_client_close(&idle);
    raw_server_drain(&server);
    RAW_CHECK(raw_server_charged(&server) == 0);
}

static void check_answer(const char *to, int result)
{
    if (result != 0 && result != 719)
        fprintf(stderr, "%s was answered with %d\n", to, result);
    RAW_CHECK(result == 0 || result == 719);
}

/* In the middle of anything: a client either has its results or its error, and requests are
 * answered. */
static void executor_dies_at_random(void)
{
    static struct raw_client c;
    unsigned failed = 0;
    for (unsigned round = 0; round < 12; round++) {
        pid_t executor = raw_server_executor(&server);
        char ptx[256]; /* an image of its own: one over which two executors died would be refused */
        snprintf(ptx, sizeof(ptx), PTX "// %u\n", round);
        open_client(&c);
        uint64_t address = raw_alloc(&c, 1 << 16, WIRE_MEMORY_KIND_DEVICE, NULL);
        pid_t killer = fork();
        if (killer == 0) {
            uint64_t end = gm_now_ns() + round * 700000;
            while (gm_now_ns() < end)
                ;
            kill(executor, SIGKILL);
            _exit(0);
        }
        for (unsigned i = 0; i < 3000 && raw_error(&c) == 0; i++) {
            int result;
            uint64_t seq = raw_fill(&c, i % 5, address + i % 5 * 4096, i, 1024);
            if (i % 16 == 0) {
                uint64_t more = raw_alloc(&c, 1 + i * 1000, WIRE_MEMORY_KIND_DEVICE, &result);
                check_answer("an allocation", result);
                if (more)
                    RAW_CHECK(raw_free(&c, more) == 0);
            }
            if (i % 100 == 0) {
                uint32_t module = raw_load(&c, ptx, &result);
                check_answer("a load", result);
                if (module)
                    RAW_CHECK(raw_unload(&c, module) == 0);
            }
            int r = raw_wait(&c, i % 5, seq);
            RAW_CHECK(r == 0 || r == 719);
            if (r == 0)
                RAW_CHECK(((uint32_t *)(uintptr_t)address)[i % 5 * 1024 + 1023] == i);
        }
        failed += raw_error(&c) != 0;
        RAW_CHECK(waitpid(killer, NULL, 0) == killer);
        raw_client_close(&c);
        while (kill(executor, 0) == 0 && raw_server_executor(&server) == executor)
            ;
    }
    fprintf(stderr, "killed 12 times under load: the client had work in flight %u times\n", failed);
    raw_server_drain(&server);
    RAW_CHECK(raw_server_charged(&server) == 0);
}

static void server_dies(void)
{
    static struct raw_client a, b;
    struct wire_rec_gate gate = { 0 };
    open_client(&a);
    open_client(&b);
    raw_post(&b, 0, WIRE_OP_GATE, &gate, sizeof(gate), NULL, 0);
    pid_t executor = raw_server_executor(&server);
    RAW_CHECK(kill(server.pid, SIGKILL) == 0);
    RAW_CHECK(waitpid(server.pid, NULL, 0) == server.pid);
    RAW_CHECK(!raw_client_receive(&a));
    RAW_CHECK(!raw_client_receive(&b));
    uint64_t end = gm_now_ns() + 10 * GM_NS_PER_S;
    while (!raw_process_is_gone(executor))
        RAW_CHECK(gm_now_ns() < end);
    raw_client_close(&a);
    raw_client_close(&b);
}

int main(void)
{
    RAW_CHECK(setenv("GMUX_VMSTAT", NO_VMSTAT, 1) == 0);
    raw_server_start(&server, "null");
    executor_dies();
    raw_server_stop(&server);
    raw_server_start(&server, "null");
    executor_dies_at_random();
    server_dies();
    return 0;
}
