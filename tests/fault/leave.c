/*
 * Clients that are gone, and that the device cannot forget for as long as another one's kernel
 * runs. What others may want of theirs is given back all the same, nobody waits for the rest, and
 * the server need not see it through.
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/result.h"
#include "frame.h"
#include "slow.h"
#include "transport/memfd.h"

/* So few that 8 clients may come, and 4 be on their way out. */
#define DESCRIPTORS 128u
#define CLIENTS     8u
#define LEAVING     4u
#define ALLOCATIONS 20000u /* at first; twice as many after each try that was too slow */
#define TRIES       6u

#define WITH_VARIABLE(entry)                                                                       \
    HEAD ".visible .global .align 4 .u32 count = 40;\n.visible .entry " entry "()\n{\nret;\n}\n"

static struct raw_client gone, others[CLIENTS];

static uint64_t charged(const char *quantity)
{
    char text[64];
    snprintf(text, sizeof(text), "Charged %s: ", quantity);
    raw_server_charged(&server);
    const char *p = strstr(server.log, text);
    RAW_CHECK(p != NULL);
    return strtoull(p + strlen(text), NULL, 10);
}

/* Until it is so; the test's bound is this one's. */
static void expect(const char *quantity, uint64_t amount)
{
    while (charged(quantity) != amount)
        (void)poll(NULL, 0, 1);
}

/* A client that the device will not forget until it is let go. */
static void open_gone(uint32_t pid)
{
    struct wire_rec_call call = { .number = 1, .function = SLOW_DESTROY };
    raw_client_open(&gone, raw_server_connect(&server, pid));
    uint64_t seq = raw_post(&gone, 0, WIRE_OP_CALL, &call, sizeof(call), NULL, 0);
    RAW_CHECK(raw_wait(&gone, 0, seq) == 0);
}

/* Everything of clients that are gone has been given back. The neighbour keeps its slab. */
static void nothing_is_left(void)
{
    static const char *const quantities[] = { "device_bytes", "host_bytes", "allocations",
                                              "modules",      "objects",    "names",
                                              "leaving" };
    raw_server_settle(&server, 1);
    for (unsigned i = 0; i < GM_ARRAY_LEN(quantities); i++)
        RAW_CHECK(charged(quantities[i]) == 0);
    RAW_CHECK(charged("sessions") == 1 && charged("mappings") == 1);
}

/* All that are held. */
static void let_all_go(void)
{
    close(slow_ends_begin());
    nothing_is_left();
}

static int ask_status(struct raw_client *c, const struct wire_enc *e)
{
    struct wire_status m;
    raw_client_ask(c, e, NULL, 0);
    RAW_CHECK(c->packet->header.type == WIRE_STATUS);
    wire_get_status(&c->packet->body, &m);
    return m.result;
}

/* 4 MiB without an address, and where they are mapped. */
static uint64_t map_object(struct raw_client *c, uint32_t kind)
{
    const uint64_t size = 4 << 20;
    uint8_t buffer[128];
    struct wire_enc e;
    struct wire_object_made made;
    struct wire_memory_allocated range;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_object_create(&e, ++c->serial,
                            &(struct wire_object_create) { .kind = kind, .size = size });
    raw_client_ask(c, &e, NULL, 0);
    RAW_CHECK(c->packet->header.type == WIRE_OBJECT_MADE);
    wire_get_object_made(&c->packet->body, &made);
    RAW_CHECK(made.result == 0);
    tp_packet_finish(c->packet);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_range_reserve(&e, ++c->serial,
                            &(struct wire_range_reserve) { .kind = kind, .size = size });
    raw_client_ask(c, &e, NULL, 0);
    RAW_CHECK(c->packet->header.type == WIRE_MEMORY_ALLOCATED);
    wire_get_memory_allocated(&c->packet->body, &range);
    RAW_CHECK(range.result == 0);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_object_map(&e, ++c->serial,
                         &(struct wire_object_map) { .object = made.object,
                                                     .access = WIRE_MEMORY_ACCESS_WRITE,
                                                     .address = range.address,
                                                     .size = size });
    RAW_CHECK(ask_status(c, &e) == 0);
    return range.address;
}

static int unmap_object(struct raw_client *c, uint64_t address)
{
    uint8_t buffer[64];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_object_unmap(&e, ++c->serial, &(struct wire_object_unmap) { .address = address });
    return ask_status(c, &e);
}

/* Its memory and its place are others', at once. */
static void what_others_want(void)
{
    int result;
    open_gone(100);
    const uint64_t most = SLOW_MEMORY / 2 + (64 << 20);
    RAW_CHECK(raw_alloc(&gone, most, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    RAW_CHECK(raw_alloc(&gone, 100, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    RAW_CHECK(raw_alloc(&gone, 8 << 20, WIRE_MEMORY_KIND_HOST, NULL) != 0);
    RAW_CHECK(raw_load(&gone, WITH_VARIABLE("k"), NULL) != 0);
    (void)map_object(&gone, WIRE_MEMORY_KIND_DEVICE);
    (void)map_object(&gone, WIRE_MEMORY_KIND_HOST);
    for (unsigned i = 2; i < CLIENTS; i++)
        raw_client_open(&others[i], raw_server_connect(&server, 100 + i));
    RAW_CHECK(charged("sessions") == CLIENTS);
    RAW_CHECK(raw_alloc(&others[2], most, WIRE_MEMORY_KIND_DEVICE, &result) == 0 &&
              result == GM_CUDA_OUT_OF_MEMORY);
    raw_client_close(&gone);

    expect("sessions", CLIENTS - 1);
    RAW_CHECK(charged("leaving") == 1);
    RAW_CHECK(charged("device_bytes") == 0 && charged("modules") == 0);
    RAW_CHECK(charged("host_bytes") == 12 << 20 && charged("mappings") == 3 &&
              charged("objects") == 1);
    RAW_CHECK(charged("names") == 2); /* of the object, and where it is mapped */
    raw_client_open(&others[1], raw_server_connect(&server, 101));
    uint64_t p = raw_alloc(&others[1], most, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(p != 0);
    raw_work_and_check(&others[1], p);
    goes_on(&neighbour);
    for (unsigned i = 1; i < CLIENTS; i++)
        raw_client_close(&others[i]);
    expect("sessions", 1);
    expect("leaving", 1);
    RAW_CHECK(charged("host_bytes") == 12 << 20);
    let_all_go();
}

/* Counts the executor's threads of that name. */
static unsigned count_threads(const char *name)
{
    char path[64], line[32];
    unsigned count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)raw_server_executor(&server));
    DIR *d = opendir(path);
    RAW_CHECK(d != NULL);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char file[384];
        snprintf(file, sizeof(file), "%s/%s/comm", path, e->d_name);
        FILE *f = fopen(file, "r");
        count += f && fgets(line, sizeof(line), f) && strncmp(line, name, strlen(name)) == 0;
        if (f)
            fclose(f);
    }
    closedir(d);
    return count;
}

/* They cost something as long as they are there: beyond some they keep their places. But no
 * threads, apart from two workers that stay. */
static void many_at_once(void)
{
    for (unsigned i = 1; i <= LEAVING + 1; i++) {
        open_gone(110 + i);
        RAW_CHECK(raw_alloc(&gone, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
        raw_client_close(&gone);
        expect("device_bytes", 0);
        RAW_CHECK(charged("leaving") == (i <= LEAVING ? i : LEAVING));
        RAW_CHECK(charged("sessions") == (i <= LEAVING ? 1 : 2));
    }
    goes_on(&neighbour);
    while (count_threads("worker") > 2)
        (void)poll(NULL, 0, 1);
    let_all_go();
}

/* The program goes on for a while: it waits for nothing any more, and gives back what it likes. */
static void failed_before(void)
{
    struct wire_rec_launch nonsense = { .module = 999 };
    open_gone(120);
    uint64_t large = raw_alloc(&gone, 8 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    uint64_t small = raw_alloc(&gone, 1000, WIRE_MEMORY_KIND_DEVICE, NULL);
    uint64_t host = raw_alloc(&gone, 4 << 20, WIRE_MEMORY_KIND_HOST, NULL);
    uint64_t objects[] = { map_object(&gone, WIRE_MEMORY_KIND_DEVICE),
                           map_object(&gone, WIRE_MEMORY_KIND_HOST) };
    uint32_t module = raw_load(&gone, WITH_VARIABLE("k"), NULL);
    RAW_CHECK(large && small && host && module &&
              raw_alloc(&gone, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL));
    raw_post(&gone, 1, WIRE_OP_LAUNCH, &nonsense, sizeof(nonsense), NULL, 0);
    RAW_CHECK(raw_wait(&gone, 1, 1) == GM_CUDA_INVALID_HANDLE);
    while (atomic_load(&gone.shared.streams[1].completed.value) ==
           0) /* the waiters have been let go */
        (void)poll(NULL, 0, 1);
    RAW_CHECK(raw_server_says(&server, "gets error 400"));
    RAW_CHECK(raw_free(&gone, large) == 0 && raw_free(&gone, small) == 0 &&
              raw_unload(&gone, module) == 0);
    RAW_CHECK(raw_free(&gone, host) == 0 && raw_free(&gone, host) != 0);
    for (unsigned i = 0; i < GM_ARRAY_LEN(objects); i++)
        RAW_CHECK(unmap_object(&gone, objects[i]) == 0 && unmap_object(&gone, objects[i]) != 0);
    RAW_CHECK(charged("device_bytes") == 5 << 20 && charged("host_bytes") == 8 << 20);
    RAW_CHECK(charged("sessions") == 2);
    raw_client_close(&gone);
    expect("sessions", 1);
    RAW_CHECK(charged("device_bytes") == 0 && charged("host_bytes") == 8 << 20 &&
              charged("leaving") == 1);
    goes_on(&neighbour);
    let_all_go();
}

/* The driver is at it: what the load would have made is not made any more. */
static void in_the_middle_of_a_load(void)
{
    static const char ptx[] = WITH_VARIABLE("slow");
    uint8_t buffer[256];
    struct wire_enc e;
    GM_AUTO_FD int fd = tp_memfd_from_bytes("image", ptx, sizeof(ptx));
    open_gone(130);
    RAW_CHECK(raw_alloc(&gone, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_module_load(
        &e, ++gone.serial,
        &(struct wire_module_load) { .size = sizeof(ptx), .kind = WIRE_IMAGE_KIND_PTX });
    RAW_CHECK(tp_send(gone.fd, &e, &fd, 1) == 0);
    int go = slow_begins();
    raw_client_close(&gone);
    RAW_CHECK(raw_server_says(&server, "Client process 130 disconnected"));
    goes_on(&neighbour);
    RAW_CHECK(charged("modules") == 1);
    let_go(go);
    expect("sessions", 1);
    RAW_CHECK(charged("modules") == 0 && charged("device_bytes") == 0 && charged("leaving") == 1);
    let_all_go();
}

static void until_the_executor_dies(void)
{
    open_gone(140);
    RAW_CHECK(raw_alloc(&gone, 1 << 20, WIRE_MEMORY_KIND_HOST, NULL) != 0);
    raw_client_close(&gone);
    expect("leaving", 1);
    RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
    RAW_CHECK(raw_server_says(&server, "ended by signal 9"));
    nothing_is_left();
    goes_on(&neighbour);
}

/* So much that the server gives it back in many pieces; false: it had done so before we looked. */
static bool goes_in_pieces(unsigned allocations)
{
    open_gone(150);
    RAW_CHECK(raw_alloc(&gone, 1 << 20, WIRE_MEMORY_KIND_HOST, NULL) != 0);
    for (unsigned i = 0; i < allocations; i++)
        RAW_CHECK(raw_alloc(&gone, 512, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    const uint64_t all = charged("allocations");
    uint64_t left = all;
    raw_client_close(&gone);
    while (left == all)
        left = charged("allocations");
    return left > all - allocations;
}

/* Returns between two pieces. */
static void begin_pieces(void)
{
    static unsigned tries;
    while (!goes_in_pieces(ALLOCATIONS << tries)) {
        RAW_CHECK(++tries < TRIES);
        let_all_go();
    }
}

static void between_pieces(void)
{
    begin_pieces();
    let_all_go();
    begin_pieces();
    RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
    RAW_CHECK(raw_server_says(&server, "ended by signal 9"));
    nothing_is_left();
    goes_on(&neighbour);
}

/* Between two pieces. That nothing stays charged is what its exit status says. */
static void until_the_server_ends(void)
{
    begin_pieces();
    pid_t executor = raw_server_executor(&server);
    raw_client_close(&neighbour);
    raw_server_stop(&server);
    RAW_CHECK(raw_process_is_gone(executor));
}

/* Nor does a server stay whose daemon has died, for what a device may never forget. */
static void without_a_daemon(void)
{
    int status;
    raw_server_start(&server, "slow");
    pid_t executor = raw_server_executor(&server);
    open_gone(160);
    RAW_CHECK(raw_alloc(&gone, 1 << 20, WIRE_MEMORY_KIND_HOST, NULL) != 0);
    raw_client_close(&gone);
    expect("leaving", 1);
    close(server.link);
    RAW_CHECK(waitpid(server.pid, &status, 0) == server.pid);
    RAW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0 && raw_process_is_gone(executor));
    free(server.packet);
}

int main(void)
{
    RAW_CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit) { DESCRIPTORS, DESCRIPTORS }) == 0);
    frame_begin(50);
    pid_t executor = raw_server_executor(&server);
    goes_on(&neighbour); /* and has a slab from now on */
    what_others_want();
    many_at_once();
    failed_before();
    in_the_middle_of_a_load();
    RAW_CHECK(raw_server_executor(&server) == executor);
    until_the_executor_dies();
    between_pieces();
    until_the_server_ends();
    without_a_daemon();
    frame_end();
    return 0;
}
