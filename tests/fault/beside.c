/*
 * What takes long for one client: a module that is compiled, memory that is pinned, an end that
 * waits for a kernel. Nobody else notices, whatever that client does meanwhile, and whatever
 * happens to the executor.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/result.h"
#include "frame.h"
#include "slow.h"
#include "transport/memfd.h"

#define SLOW HEAD ".visible .entry slow()\n{\nret;\n}\n"
#define MISPLACED                                                                                  \
    HEAD ".visible .global .align 4 .u32 count = 40;\n.visible .entry misplaced()\n{\nret;\n}\n"

static struct raw_client slow, other;
static uint64_t memory; /* the neighbour's */

static void neighbour_goes_on(void)
{
    static struct raw_client newcomer;
    goes_on(&neighbour);
    raw_work_and_check(&neighbour, memory);
    raw_client_open(&newcomer, raw_server_connect(&server, 300));
    goes_on(&newcomer);
    raw_client_close(&newcomer);
    RAW_CHECK(raw_server_says(&server, "Client process 300 disconnected"));
    raw_server_forget_log(&server);
}

/* The module's number, or 0. */
static uint32_t take_load(struct raw_client *c)
{
    struct wire_module_loaded m;
    RAW_CHECK(raw_client_receive(c) && c->packet->header.type == WIRE_MODULE_LOADED);
    wire_get_module_loaded(&c->packet->body, &m);
    RAW_CHECK((m.result == 0) == (m.module != 0));
    return m.module;
}

static void open_slow(uint32_t pid)
{
    raw_client_open(&slow, raw_server_connect(&server, pid));
}

static void end_slow(void)
{
    raw_client_close(&slow);
    raw_server_settle(&server, 1);
    raw_server_forget_log(&server);
}

/* The program's other threads go on, too, and load other modules. */
static void a_load(void)
{
    open_slow(100);
    raw_send_load(&slow, SLOW);
    int go = slow_begins();
    neighbour_goes_on();
    RAW_CHECK(!has_answer(&slow));
    goes_on(&slow);
    RAW_CHECK(!has_answer(&slow));
    let_go(go);
    uint32_t module = take_load(&slow);
    RAW_CHECK(module && raw_unload(&slow, module) == 0);
    goes_on(&slow);
    end_slow();
}

/* Its variables get their memory: code may be compiled again for that. */
static void a_place(void)
{
    open_slow(110);
    raw_send_load(&slow, MISPLACED);
    int go = slow_begins();
    neighbour_goes_on();
    goes_on(&slow);
    RAW_CHECK(!has_answer(&slow));
    let_go(go);
    uint32_t module = take_load(&slow);
    RAW_CHECK(module && raw_unload(&slow, module) == 0);
    end_slow();
}

static void an_end_during_a_load(void)
{
    open_slow(101);
    raw_send_load(&slow, SLOW);
    int go = slow_begins();
    raw_client_close(&slow);
    RAW_CHECK(raw_server_says(&server, "Client process 101 disconnected"));
    neighbour_goes_on();
    let_go(go);
    raw_server_settle(&server, 1);
    raw_server_forget_log(&server);
}

/* A wait for the client's work ends with the error at once, not when the load is over. */
static void an_error_during_a_load(void)
{
    struct wire_rec_launch nonsense = { .module = 999 };
    open_slow(102);
    raw_send_load(&slow, SLOW);
    int go = slow_begins();
    raw_post(&slow, 0, WIRE_OP_LAUNCH, &nonsense, sizeof(nonsense), NULL, 0);
    RAW_CHECK(raw_wait(&slow, 0, 1) == GM_CUDA_INVALID_HANDLE);
    while (atomic_load(&slow.shared.streams[0].completed.value) ==
           0) /* the waiters have been let go */
        (void)poll(NULL, 0, 1);
    neighbour_goes_on();
    let_go(go);
    end_slow();
}

/* Its work is not off the device before what writes to its memory is. */
static void an_error_during_a_place(void)
{
    struct wire_rec_launch nonsense = { .module = 999 };
    open_slow(111);
    raw_send_load(&slow, MISPLACED);
    int go = slow_begins();
    raw_post(&slow, 0, WIRE_OP_LAUNCH, &nonsense, sizeof(nonsense), NULL, 0);
    RAW_CHECK(raw_wait(&slow, 0, 1) == GM_CUDA_INVALID_HANDLE);
    neighbour_goes_on();
    let_go(go);
    while (atomic_load(&slow.shared.streams[0].completed.value) == 0)
        (void)poll(NULL, 0, 1);
    end_slow();
}

static void pinned_memory(void)
{
    uint8_t buffer[256];
    struct wire_enc e;
    open_slow(103);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_memory_alloc(
        &e, ++slow.serial,
        &(struct wire_memory_alloc) { .size = SLOW_BYTES, .kind = WIRE_MEMORY_KIND_HOST });
    RAW_CHECK(tp_send(slow.fd, &e, NULL, 0) == 0);
    int go = slow_begins();
    neighbour_goes_on();
    RAW_CHECK(!has_answer(&slow));
    let_go(go);
    struct wire_memory_allocated m;
    RAW_CHECK(raw_client_receive(&slow) && slow.packet->header.type == WIRE_MEMORY_ALLOCATED);
    wire_get_memory_allocated(&slow.packet->body, &m);
    RAW_CHECK(m.address >= slow.window_base + slow.window_size / 2);
    memset((void *)(uintptr_t)m.address, 1, SLOW_BYTES);
    RAW_CHECK(raw_free(&slow, m.address) == 0);
    end_slow();
}

/* As a kernel has it that runs on. */
static void an_end_that_takes_long(void)
{
    open_slow(104);
    struct wire_rec_call call = { .number = 1, .function = SLOW_STOP };
    uint64_t seq = raw_post(&slow, 0, WIRE_OP_CALL, &call, sizeof(call), NULL, 0);
    RAW_CHECK(raw_wait(&slow, 0, seq) == 0);
    raw_client_close(&slow);
    int go = slow_begins();
    neighbour_goes_on();
    let_go(go);
    raw_server_settle(&server, 1);
    raw_server_forget_log(&server);
}

static void kill_executor(void)
{
    RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
    RAW_CHECK(raw_server_says(&server, "ended by signal 9"));
    raw_server_forget_log(&server);
}

/* The load is the likely cause. */
static void a_death_during_a_load(void)
{
    open_slow(105);
    raw_send_load(&slow, SLOW);
    int go = slow_begins();
    kill_executor();
    close(go);
    RAW_CHECK(take_load(&slow) == 0);
    neighbour_goes_on();
    goes_on(&slow);
    end_slow();
}

/* One of two loads may be innocent: both are tried again. */
static void a_death_during_two_loads(void)
{
    open_slow(106);
    raw_client_open(&other, raw_server_connect(&server, 107));
    raw_send_load(&slow, SLOW);
    raw_send_load(&other, SLOW);
    int go = slow_begins();
    goes_on(&slow); /* the executor has come to both */
    goes_on(&other);
    kill_executor();
    close(go);
    go = let_two_go();
    RAW_CHECK(take_load(&slow) && take_load(&other));
    close(go);
    raw_client_close(&other);
    end_slow();
}

/* Others need not wait until all that a client had is there again. */
static void a_load_for_a_second_executor(void)
{
    open_slow(108);
    raw_send_load(&slow, SLOW);
    let_go(slow_begins());
    uint32_t module = take_load(&slow);
    uint64_t own = raw_alloc(&slow, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(module && own);
    kill_executor();
    int go = slow_begins();
    neighbour_goes_on();
    let_go(go);
    RAW_CHECK(raw_wait(&slow, 0, raw_launch(&slow, 0, module)) == 0);
    raw_work_and_check(&slow, own);
    end_slow();
}

/* The executor ends with its server, whatever it is at. */
static void an_end_of_all(void)
{
    open_slow(109);
    raw_send_load(&slow, SLOW);
    int go = slow_begins();
    pid_t executor = raw_server_executor(&server);
    RAW_CHECK(kill(server.pid, SIGKILL) == 0 && waitpid(server.pid, NULL, 0) == server.pid);
    while (!raw_process_is_gone(executor))
        (void)poll(NULL, 0, 1);
    close(go);
}

int main(void)
{
    frame_begin(50);
    memory = raw_alloc(&neighbour, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    pid_t executor = raw_server_executor(&server);
    a_load();
    a_place();
    an_end_during_a_load();
    an_error_during_a_load();
    an_error_during_a_place();
    pinned_memory();
    an_end_that_takes_long();
    RAW_CHECK(raw_server_executor(&server) == executor);
    a_death_during_a_load();
    a_death_during_two_loads();
    a_load_for_a_second_executor();
    an_end_of_all();
    frame_end();
    return 0;
}
