/*
 * One server, several users (-M), and a user whose kernels end executors when they run: modules
 * that load as any other, in many clients that wait for their turn. Nobody can say over whose work
 * an executor died where several users had some in flight; but he had each time, and the others had
 * not. Then what he still has waits, and the others go on.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/result.h"
#include "frame.h"

#define FUSES      6u
#define NEIGHBOURS 2u
/* Executors that die before it is known: with each neighbour once, and once more to be sure. */
#define DEATHS     3u
#define OPERATIONS 500u

enum { ARSONIST = 1000, NEIGHBOUR };

static struct raw_client fuses[FUSES], neighbours[NEIGHBOURS];
static uint32_t modules[FUSES];
static uint64_t memory[NEIGHBOURS];
static uint32_t next_pid = 1000;

static void neighbour_begin(unsigned i)
{
    raw_client_open(&neighbours[i], raw_server_connect_as(&server, next_pid++, NEIGHBOUR + i));
    memory[i] = raw_alloc(&neighbours[i], 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(memory[i]);
}

/* Which is in flight until it ends with an error. */
static void post_gate(struct raw_client *c)
{
    struct wire_rec_gate gate = { 0 };
    uint64_t end = gm_now_ns() + 20 * GM_NS_PER_S;
    raw_post(c, 0, WIRE_OP_GATE, &gate, sizeof(gate), NULL, 0);
    while (c->shared.streams[0].accepted != c->seq[0])
        RAW_CHECK(gm_now_ns() < end);
}

static void light(unsigned i)
{
    struct wire_rec_launch r = { .module = modules[i],
                                 .grid_x = 1,
                                 .grid_y = 1,
                                 .grid_z = 1,
                                 .block_x = 1,
                                 .block_y = 1,
                                 .block_z = 1 };
    raw_post(&fuses[i], 0, WIRE_OP_LAUNCH, &r, sizeof(r), NULL, 0);
}

static pid_t wait_for_next(pid_t executor)
{
    uint64_t end = gm_now_ns() + 20 * GM_NS_PER_S;
    pid_t now;
    while ((now = raw_server_executor(&server)) == executor || now == 0)
        RAW_CHECK(gm_now_ns() < end);
    return now;
}

int main(void)
{
    alarm(110);
    signal(SIGPIPE, SIG_IGN);
    raw_server_start_multiuser(&server, "slow");
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        neighbour_begin(i);
    for (unsigned i = 0; i < FUSES; i++) {
        raw_client_open(&fuses[i], raw_server_connect_as(&server, next_pid++, ARSONIST));
        modules[i] = raw_load(&fuses[i], HEAD ".visible .entry fuse()\n{\nret;\n}\n", NULL);
        RAW_CHECK(modules[i]);
    }
    pid_t executor = raw_server_executor(&server);
    for (unsigned n = 0; n < DEATHS; n++) {
        struct raw_client *beside = &neighbours[n % NEIGHBOURS];
        post_gate(beside);
        light(n);
        executor = wait_for_next(executor);
        RAW_CHECK(raw_wait(beside, 0, beside->seq[0]) == GM_CUDA_LAUNCH_FAILED);
        RAW_CHECK(raw_wait(&fuses[n], 0, 1) == GM_CUDA_LAUNCH_FAILED);
        raw_client_close(beside);
        neighbour_begin(n % NEIGHBOURS);
        /* So the next executor has everybody before it is tried. */
        RAW_CHECK(raw_wait(beside, 1, raw_fill(beside, 1, memory[n % NEIGHBOURS], 1, 16)) == 0);
    }
    for (unsigned i = DEATHS; i < FUSES; i++)
        light(i);
    /* He waits for a second at least. */
    const uint64_t end = gm_now_ns() + GM_NS_PER_S / 2;
    unsigned done = 0;
    for (; done < OPERATIONS && gm_now_ns() < end; done++)
        raw_work_and_check(&neighbours[done % NEIGHBOURS], memory[done % NEIGHBOURS]);
    for (unsigned i = DEATHS; i < FUSES; i++)
        RAW_CHECK(raw_error(&fuses[i]) == 0);
    RAW_CHECK(raw_server_executor(&server) == executor);
    printf("%u operations beside %u fuses\n", done, FUSES - DEATHS);
    /* What waits goes with its client. */
    for (unsigned i = 0; i < FUSES; i++)
        raw_client_close(&fuses[i]);
    raw_server_settle(&server, NEIGHBOURS);
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        raw_client_close(&neighbours[i]);
    raw_server_drain(&server);
    RAW_CHECK(raw_server_charged(&server) == 0);
    raw_server_stop(&server);
    puts("ok");
    return 0;
}
