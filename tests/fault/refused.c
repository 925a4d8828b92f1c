/*
 * What the device has refused a client: all is as before, and the next executor is not asked for it
 * again. And what every executor is refused.
 */
#include <signal.h>
#include <stdio.h>

#include "base/result.h"
#include "frame.h"
#include "slow.h"

#define OBJECT_BYTES (2u << 20)

static struct raw_client client;

static int map(uint32_t object, uint64_t address, uint32_t access)
{
    RAW_ASK(&client, object_map, .object = object, .access = access, .address = address,
            .size = OBJECT_BYTES);
    return raw_status(&client);
}

static uint32_t make_object(void)
{
    struct wire_object_made m;
    RAW_ASK(&client, object_create, .size = OBJECT_BYTES, .kind = WIRE_MEMORY_KIND_DEVICE);
    wire_get_object_made(&client.packet->body, &m);
    RAW_CHECK(m.result == 0);
    return m.object;
}

static uint64_t reserve(void)
{
    struct wire_memory_allocated m;
    RAW_ASK(&client, range_reserve, .size = OBJECT_BYTES, .kind = WIRE_MEMORY_KIND_DEVICE);
    wire_get_memory_allocated(&client.packet->body, &m);
    RAW_CHECK(m.result == 0);
    return m.address;
}

static void other_access(void)
{
    raw_client_open(&client, raw_server_connect(&server, 100));
    uint32_t object = make_object();
    uint64_t at = reserve();
    RAW_CHECK(map(object, at, WIRE_MEMORY_ACCESS_READ) == GM_CUDA_NOT_SUPPORTED);
    RAW_CHECK(map(object, at, WIRE_MEMORY_ACCESS_WRITE) == 0);
    RAW_CHECK(map(object, at, WIRE_MEMORY_ACCESS_READ) == GM_CUDA_NOT_SUPPORTED);
    for (unsigned i = 0; i < 2; i++) {
        RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
        RAW_CHECK(raw_server_says(&server, "takes over"));
        raw_server_forget_log(&server);
        goes_on(&client);
        RAW_CHECK(raw_wait(&client, 1, raw_fill(&client, 1, at, i, 1024)) == 0);
    }
    raw_client_close(&client);
    raw_server_settle(&server, 1);
}

/* An executor whose device needs all system calls, as NVIDIA's driver does, is not given privileges
 * all the same. */
static void no_new_privileges(void)
{
    char path[64], line[128];
    unsigned set = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)raw_server_executor(&server));
    FILE *f = fopen(path, "re");
    RAW_CHECK(f);
    while (fgets(line, sizeof(line), f))
        (void)sscanf(line, "NoNewPrivs: %u", &set);
    fclose(f);
    RAW_CHECK(set == 1);
}

int main(void)
{
    frame_begin(50);
    no_new_privileges();
    other_access();
    raw_client_close(&neighbour);
    raw_server_finish(&server);
    frame_end();
    return 0;
}
