/*
 * Clients that end at random moments under load, killed, stopped or by themselves, 200 rounds of
 * them beside a neighbour whose results stay right. Afterwards nothing is left: no memory, no
 * descriptors, no charges.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"

#define ROUNDS  200u
#define SERIES  3u
#define AT_ONCE 3u
#define STOPPED 4u
#define PTX     ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"

static struct raw_server server;
static uint32_t state = 99;

/* A client's life in a process of its own: everything at once, for ever or until it has had enough.
 */
static GM_NORETURN void live(int fd, uint32_t seed)
{
    static struct raw_client c;
    uint64_t held[16] = { 0 };
    uint32_t module = 0;
    state = seed;
    unsigned rounds = raw_random(&state) % 4 == 0 ? raw_random(&state) % 200 : UINT32_MAX;
    alarm(30);
    raw_client_open(&c, fd);
    uint64_t address = raw_alloc(&c, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    for (unsigned i = 0; i < rounds; i++) {
        struct wire_rec_copy copy = {
            .dst = address + 65536, .src = address, .width = 4096, .height = 1, .depth = 1
        };
        struct wire_rec_gate gate = { 0 };
        struct wire_rec_retire retire = { 0 };
        struct wire_rec_launch launch = { .module = module,
                                          .grid_x = 1,
                                          .grid_y = 1,
                                          .grid_z = 1,
                                          .block_x = 32,
                                          .block_y = 1,
                                          .block_z = 1 };
        uint32_t stream = raw_random(&state) % 40;
        switch (raw_random(&state) % 10) {
        case 0: {
            unsigned h = raw_random(&state) % GM_ARRAY_LEN(held);
            if (held[h])
                RAW_CHECK(raw_free(&c, held[h]) == 0);
            held[h] = raw_alloc(&c, 1 + raw_random(&state) % (1 << raw_random(&state) % 23),
                                1 + raw_random(&state) % 2, NULL);
            break;
        }
        case 1:
            if (module)
                RAW_CHECK(raw_wait(&c, 50, c.seq[50]) == 0 && raw_unload(&c, module) == 0);
            module = raw_load(&c, PTX, NULL);
            RAW_CHECK(module != 0);
            break;
        case 2:
            raw_post(&c, 60, WIRE_OP_GATE, &gate, sizeof(gate), NULL,
                     0); /* most are never opened */
            if (raw_random(&state) % 2) {
                atomic_store(&c.shared.streams[60].gate, c.seq[60]);
                tp_ring_kick(&c.shared.control->ring);
            }
            break;
        case 3:
            raw_post(&c, stream, WIRE_OP_RETIRE, &retire, sizeof(retire), NULL, 0);
            break;
        case 4:
            if (module)
                raw_post(&c, 50, WIRE_OP_LAUNCH, &launch, sizeof(launch), NULL, 0);
            break;
        case 5:
            RAW_CHECK(raw_wait(&c, stream, c.seq[stream]) == 0);
            break;
        case 6:
            raw_post(&c, stream, WIRE_OP_COPY, &copy, sizeof(copy), NULL, 0);
            break;
        default:
            raw_fill(&c, stream, address, i, 1024);
            break;
        }
    }
    _exit(0);
}

static pid_t start_client(void)
{
    uint32_t seed = raw_random(&state);
    /* The number is known only after the fork, the server only knows what it is told: any will do.
     */
    int fd = raw_server_connect(&server, 1000 + raw_random(&state) % 100000);
    pid_t pid = fork();
    RAW_CHECK(pid >= 0);
    if (pid == 0) {
        close(server.link);
        close(raw_neighbour.fd);
        live(fd, seed);
    }
    close(fd);
    return pid;
}

static void reap(pid_t pid, bool killed)
{
    int status;
    RAW_CHECK(waitpid(pid, &status, 0) == pid);
    RAW_CHECK(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : killed && WTERMSIG(status) == SIGKILL);
}

static void rounds(unsigned count)
{
    pid_t clients[AT_ONCE] = { 0 };
    pid_t stopped[STOPPED] = { 0 };
    for (unsigned round = 0; round < count + AT_ONCE; round++) {
        pid_t *c = &clients[round % AT_ONCE];
        if (*c) {
            uint64_t end = gm_now_ns() + raw_random(&state) % 15000000;
            while (gm_now_ns() < end)
                raw_neighbour_check();
            if (raw_random(&state) % 4 == 0) { /* stands still for some rounds, then dies */
                kill(*c, SIGSTOP);
                pid_t *s = &stopped[raw_random(&state) % STOPPED];
                if (*s) {
                    kill(*s, SIGKILL);
                    reap(*s, true);
                }
                *s = *c;
            } else {
                kill(*c, SIGKILL);
                reap(*c, true);
            }
        }
        *c = round < count ? start_client() : 0;
        raw_neighbour_check();
        raw_server_forget_log(&server);
    }
    for (unsigned i = 0; i < STOPPED; i++)
        if (stopped[i]) {
            kill(stopped[i], SIGKILL);
            reap(stopped[i], true);
        }
    raw_server_settle(&server, 1);
}

/* What is lost with each client is lost in every series. What is made once, by a thread that had
 * not run before or code that was compiled meanwhile, is not. */
static bool grows_by(pid_t executor, unsigned count)
{
    uint64_t server_bytes = raw_private_bytes(server.pid);
    uint64_t executor_bytes = raw_private_bytes(executor);
    rounds(count);
    int64_t server_more = (int64_t)(raw_private_bytes(server.pid) - server_bytes);
    int64_t executor_more = (int64_t)(raw_private_bytes(executor) - executor_bytes);
    fprintf(stderr, "after %u more clients: server %+lld bytes, executor %+lld bytes\n", count,
            (long long)server_more, (long long)executor_more);
    return server_more >= 512 << 10 || executor_more >= 512 << 10;
}

int main(int argc, char **argv)
{
    raw_server_start(&server, argc > 1 ? argv[1] : "null");
    raw_neighbour_open(&server, 1);
    pid_t executor = raw_server_executor(&server);
    rounds(20); /* fills caches and pools */
    unsigned descriptors = raw_descriptors(server.pid);
    unsigned executors = raw_descriptors(executor);
    uint64_t charged = raw_server_charged(&server);

    unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : ROUNDS;
    bool grows = true;
    for (unsigned i = 0; i < SERIES && grows; i++)
        grows = grows_by(executor, count);
    if (!RAW_SANITIZED) /* which keep what was freed */
        RAW_CHECK(!grows);

    RAW_CHECK(raw_server_executor(&server) == executor);
    RAW_CHECK(raw_server_charged(&server) == charged);
    raw_expect_descriptors(server.pid, descriptors);
    raw_expect_descriptors(executor, executors);
    raw_neighbour_check();
    raw_client_close(&raw_neighbour);
    raw_server_finish(&server);
    return 0;
}
