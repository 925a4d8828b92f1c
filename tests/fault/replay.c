/*
 * An executor that takes over is told more than the server has descriptors to queue: of a client
 * that has one page in a thousand places.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/result.h"
#include "raw.h"

#define DESCRIPTORS 128u
#define PLACES      1000u

static struct raw_server server;
static struct raw_client greedy, failed, neighbour;

/* Where the first one is. */
static uint64_t map_everywhere(struct raw_client *c)
{
    struct wire_object_made made;
    struct wire_memory_allocated range;
    RAW_ASK(c, object_create, .kind = WIRE_MEMORY_KIND_HOST, .size = 4096);
    wire_get_object_made(&c->packet->body, &made);
    tp_packet_finish(c->packet);
    RAW_ASK(c, range_reserve, .kind = WIRE_MEMORY_KIND_HOST, .size = 4096ull * PLACES);
    wire_get_memory_allocated(&c->packet->body, &range);
    RAW_CHECK(made.result == 0 && range.result == 0);
    for (unsigned i = 0; i < PLACES; i++) {
        RAW_ASK(c, object_map, .object = made.object, .access = WIRE_MEMORY_ACCESS_WRITE,
                .address = range.address + 4096ull * i, .size = 4096);
        RAW_CHECK(raw_status(c) == 0);
    }
    return range.address;
}

int main(void)
{
    alarm(50);
    RAW_CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit) { DESCRIPTORS, DESCRIPTORS }) == 0);
    raw_server_start(&server, "null");
    raw_client_open(&greedy, raw_server_connect(&server, 100));
    raw_client_open(&failed, raw_server_connect(&server, 101));
    raw_client_open(&neighbour, raw_server_connect(&server, 102));
    uint64_t first = map_everywhere(&greedy);
    (void)map_everywhere(&failed);
    uint64_t own = raw_alloc(&neighbour, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    for (unsigned i = 0; i < 3; i++) {
        raw_server_forget_log(&server);
        RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
        RAW_CHECK(raw_server_says(&server, "takes over"));
        if (i == 1) /* while it is told */
            raw_server_terminate(&server, 101);
        pid_t executor = raw_server_executor(&server);
        raw_work_and_check(&neighbour, own);
        RAW_CHECK(raw_wait(&greedy, 0,
                           raw_fill(&greedy, 0, first + 4096ull * (PLACES - 1), i + 1, 4)) == 0);
        RAW_CHECK(raw_server_executor(&server) == executor);
    }
    RAW_CHECK(raw_error(&failed) == GM_CUDA_MPS_CLIENT_TERMINATED);
    raw_client_close(&greedy);
    raw_client_close(&failed);
    raw_client_close(&neighbour);
    raw_server_finish(&server);
    return 0;
}
