/*
 * A flood of clients at a server with few descriptors: more than it takes, that leave at once or
 * stay until they are refused. Whatever there is not enough of, the server keeps its link to the
 * control daemon and those clients that it has.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "raw.h"

#define DESCRIPTORS 128u
#define FLOOD       3000u
#define HELD        64u

static struct raw_server server;
static struct raw_client neighbour, newcomer;

static void flood(unsigned held)
{
    int fds[HELD];
    for (unsigned i = 0; i < FLOOD; i++) {
        int *fd = &fds[i % HELD];
        if (held && i >= HELD)
            close(*fd);
        *fd = raw_server_connect_as(&server, 1000 + i, 1001);
        if (!held)
            close(*fd);
    }
    for (unsigned i = 0; held && i < HELD; i++)
        close(fds[i]);
}

int main(void)
{
    alarm(50);
    RAW_CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit) { DESCRIPTORS, DESCRIPTORS }) == 0);
    raw_server_start_multiuser(&server, "null");
    raw_client_open(&neighbour, raw_server_connect(&server, 100));
    uint64_t memory = raw_alloc(&neighbour, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    for (unsigned round = 0; round < 2; round++) {
        flood(round);
        raw_work_and_check(&neighbour, memory);
        raw_server_settle(&server, 1);
        raw_server_forget_log(&server);
        raw_client_open(&newcomer, raw_server_connect(&server, 101));
        raw_client_close(&newcomer);
        raw_server_settle(&server, 1);
    }
    raw_client_close(&neighbour);
    raw_server_settle(&server, 0);
    RAW_CHECK(raw_server_charged(&server) == 0);
    raw_server_stop(&server);
    return 0;
}
