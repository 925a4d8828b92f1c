/*
 * The executor ends, as with somebody's fault, while ten programs begin. A client with nothing in
 * flight goes on, and each of them gets what it asked for or its error, all soon.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"

#define PTX     ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
#define TEN     10u
#define ROUNDS  4u
#define SOON_NS (2 * GM_NS_PER_S * (RAW_SANITIZED ? 5 : 1))

struct beginner {
    pthread_t thread;
    struct raw_client c;
    int fd;
    int error; /* what it came to; 0: all it asked for */
    uint64_t over;
};

static struct raw_server server;
static struct beginner ten[TEN];
static struct raw_client idle, busy;
static _Atomic unsigned begun; /* clients that have a module */

static int launch(struct raw_client *c, uint32_t module)
{
    return raw_wait(c, 4, raw_launch(c, 4, module));
}

static void *begin(void *arg)
{
    struct beginner *b = arg;
    raw_client_open(&b->c, b->fd);
    for (unsigned i = 0; i < 8 && b->error == 0; i++) {
        uint32_t module = raw_load(&b->c, PTX, &b->error);
        begun++;
        if (b->error == 0)
            (void)raw_alloc(&b->c, 4 << 20, WIRE_MEMORY_KIND_DEVICE, &b->error);
        if (b->error == 0)
            b->error = launch(&b->c, module);
    }
    b->over = gm_now_ns();
    return NULL;
}

/* After so many modules. */
static void fault_after(unsigned modules, uint64_t memory)
{
    struct wire_rec_gate gate = { 0 };
    raw_client_open(&busy, raw_server_connect(&server, 200));
    uint64_t standing = raw_post(&busy, 7, WIRE_OP_GATE, &gate, sizeof(gate), NULL, 0);
    while (atomic_load(&busy.shared.streams[7].arrived) < standing)
        sched_yield();
    pid_t executor = raw_server_executor(&server);
    begun = 0;
    for (uint32_t i = 0; i < TEN; i++) {
        ten[i] = (struct beginner) { .fd = raw_server_connect(&server, 300 + i) };
        RAW_CHECK(pthread_create(&ten[i].thread, NULL, begin, &ten[i]) == 0);
    }
    while (begun < modules)
        sched_yield();
    const uint64_t fault = gm_now_ns();
    RAW_CHECK(kill(executor, SIGKILL) == 0);
    RAW_CHECK(raw_wait(&busy, 7, standing) == 719);
    RAW_CHECK(gm_now_ns() - fault < SOON_NS);
    for (uint32_t i = 0; i < TEN; i++) {
        pthread_join(ten[i].thread, NULL);
        RAW_CHECK(ten[i].over < fault + SOON_NS);
        RAW_CHECK(ten[i].error == 0 || ten[i].error == 719);
    }
    raw_work_and_check(&idle, memory);
    raw_client_close(&busy);
    for (uint32_t i = 0; i < TEN; i++)
        raw_client_close(&ten[i].c);
    raw_server_settle(&server, 1);
}

int main(void)
{
    alarm(50);
    raw_server_start(&server, "null");
    raw_client_open(&idle, raw_server_connect(&server, 100));
    uint64_t memory = raw_alloc(&idle, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    raw_work_and_check(&idle, memory);
    for (unsigned round = 0; round < ROUNDS; round++)
        fault_after(round * TEN / 2, memory);
    raw_client_close(&idle);
    raw_server_finish(&server);
    puts("ok");
    return 0;
}
