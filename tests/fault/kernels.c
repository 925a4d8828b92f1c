/*
 * Kernels that misbehave, on the soft device: one that never ends, one that writes where it may
 * not; grids of any size. Only their own client suffers, and everything about it ends within a
 * bounded time. And a module's globals outlive the executor.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"

/* Functions by index: adds one to each of 256 numbers; counts in a global and stores the count;
 * writes to an address; never ends. */
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 count = 40;\n"
    ".visible .entry add(.param .u64 p)\n{\n.reg .u64 %a<4>;\n.reg .u32 %r<4>;\n"
    "ld.param.u64 %a0, [p];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %a1, %r0, 4;\nadd.u64 %a2, %a0, "
    "%a1;\n"
    "ld.global.u32 %r1, [%a2];\nadd.u32 %r2, %r1, 1;\nst.global.u32 [%a2], %r2;\nret;\n}\n"
    ".visible .entry tick(.param .u64 p)\n{\n.reg .u64 %a<2>;\n.reg .u32 %r<4>;\n"
    "ld.param.u64 %a0, [p];\nld.global.u32 %r0, [count];\nadd.u32 %r1, %r0, 1;\nst.global.u32 "
    "[count], %r1;\n"
    "st.global.u32 [%a0], %r1;\nret;\n}\n"
    ".visible .entry poke(.param .u64 p)\n{\n.reg .u64 %a<2>;\n.reg .u32 %r<2>;\n"
    "ld.param.u64 %a0, [p];\nmov.u32 %r0, 7;\nst.global.u32 [%a0], %r0;\nret;\n}\n"
    ".visible .entry spin(.param .u64 p)\n{\nagain:\nbra again;\n}\n";

enum function {
    ADD,
    TICK,
    POKE,
    SPIN,
};

static struct raw_server server;
static struct raw_client neighbour, c;
static uint64_t numbers;
static uint32_t neighbours_module;
static uint32_t expected;
static uint32_t next_pid = 1000;

struct shape {
    uint32_t grid[3], block[3], shared;
};

static uint64_t launch_shape(struct raw_client *client, uint32_t stream, uint32_t module,
                             enum function f, const struct shape *s, uint64_t argument)
{
    struct wire_rec_launch r = { .module = module,
                                 .function = f,
                                 .grid_x = s->grid[0],
                                 .grid_y = s->grid[1],
                                 .grid_z = s->grid[2],
                                 .block_x = s->block[0],
                                 .block_y = s->block[1],
                                 .block_z = s->block[2],
                                 .shared_bytes = s->shared };
    return raw_post(client, stream, WIRE_OP_LAUNCH, &r, sizeof(r), &argument, sizeof(argument));
}

static uint64_t launch(struct raw_client *client, uint32_t stream, uint32_t module, enum function f,
                       uint32_t threads, uint64_t argument)
{
    const struct shape s = { { 1, 1, 1 }, { threads, 1, 1 }, 0 };
    return launch_shape(client, stream, module, f, &s, argument);
}

static void check_neighbour(void)
{
    uint64_t seq = launch(&neighbour, 0, neighbours_module, ADD, 256, numbers);
    RAW_CHECK(raw_wait(&neighbour, 0, seq) == 0);
    expected++;
    const uint32_t *p = (const uint32_t *)(uintptr_t)numbers;
    for (unsigned i = 0; i < 256; i++)
        RAW_CHECK(p[i] == expected);
}

static uint32_t open_with_module(void)
{
    int result;
    raw_client_open(&c, raw_server_connect(&server, next_pid++));
    uint32_t module = raw_load(&c, ptx, &result);
    RAW_CHECK(module != 0);
    return module;
}

static void a_kernel_that_never_ends(void)
{
    /* Ended by command. */
    uint32_t module = open_with_module();
    uint64_t seq = launch(&c, 0, module, SPIN, 32, 0);
    check_neighbour();
    raw_server_terminate(&server, next_pid - 1);
    RAW_CHECK(raw_wait(&c, 0, seq) == 810);
    check_neighbour();
    raw_client_close(&c);
    /* Its client hangs up. */
    for (unsigned i = 0; i < 5; i++) {
        module = open_with_module();
        for (unsigned k = 0; k < 10; k++)
            launch(&c, k % 3, module, SPIN, 64, 0);
        raw_client_close(&c);
        check_neighbour();
        raw_server_settle(&server, 1);
    }
}

static void a_kernel_that_writes_where_it_may_not(void)
{
    uint64_t addresses[] = { 0, 16, 1ull << 40, UINT64_MAX - 3, numbers, 0 };
    for (unsigned i = 0; i < GM_ARRAY_LEN(addresses); i++) {
        uint32_t module = open_with_module();
        uint64_t own = raw_alloc(&c, 8192, WIRE_MEMORY_KIND_DEVICE, NULL);
        if (i + 1 == GM_ARRAY_LEN(addresses)) /* in its window, not allocated */
            addresses[i] = c.window_base + c.window_size / 2 - 4096;
        uint64_t seq = launch(&c, 0, module, POKE, 1, own);
        RAW_CHECK(raw_wait(&c, 0, seq) == 0 && *(uint32_t *)(uintptr_t)own == 7);
        seq = launch(&c, 0, module, POKE, 1, addresses[i]);
        launch(&c, 1, module, SPIN, 32, 0);
        RAW_CHECK(raw_wait(&c, 0, seq) == 700);
        RAW_CHECK(raw_server_says(&server, "gets error 700"));
        raw_client_close(&c);
        raw_server_forget_log(&server);
        check_neighbour();
    }
    RAW_CHECK(server.faults == GM_ARRAY_LEN(addresses));
}

/* Numbers of blocks, threads and bytes whose products wrap, or are larger than there may be. */
static void shapes_that_there_are_not(void)
{
    static const struct {
        struct shape shape;
        int result;
    } cases[] = {
        { { { 0, 1, 1 }, { 1, 1, 1 }, 0 }, 1 },
        { { { 1u << 31, 1, 1 }, { 1, 1, 1 }, 0 }, 1 },
        { { { 1, 1u << 16, 1 }, { 1, 1, 1 }, 0 }, 1 },
        { { { UINT32_MAX, UINT32_MAX, UINT32_MAX }, { 1, 1, 1 }, 0 }, 1 },
        { { { 1, 1, 1 }, { 1025, 1, 1 }, 0 }, 1 },
        { { { 1, 1, 1 }, { 1024, 2, 1 }, 0 }, 701 },
        { { { 1, 1, 1 }, { 1024, 1024, 64 }, 0 }, 701 },
        { { { 1, 1, 1 }, { 1u << 16, 1u << 16, 1 }, 0 }, 1 },
        { { { 1, 1, 1 }, { 1u << 31, 2, 1 }, 0 }, 1 },
        { { { 1, 1, 1 }, { 1u << 31, 1u << 31, 4 }, 0 }, 1 },
        { { { 1, 1, 1 }, { 1, 1, UINT32_MAX }, 0 }, 1 },
        { { { 1, 1, 1 }, { 32, 1, 1 }, 1u << 30 }, 701 },
        { { { 1, 1, 1 }, { 32, 1, 1 }, UINT32_MAX }, 701 },
    };
    for (unsigned i = 0; i < GM_ARRAY_LEN(cases); i++) {
        uint32_t module = open_with_module();
        uint64_t seq = launch_shape(&c, 0, module, SPIN, &cases[i].shape, 0);
        RAW_CHECK(raw_wait(&c, 0, seq) == cases[i].result);
        raw_client_close(&c);
        check_neighbour();
    }
}

/* The largest that there may be: it never ends, and takes nothing from anybody. */
static void the_largest_grid(void)
{
    static const struct shape most = { { INT32_MAX, UINT16_MAX, UINT16_MAX }, { 1, 1, 1 }, 0 };
    uint32_t module = open_with_module();
    uint64_t own = raw_alloc(&c, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    for (unsigned i = 0; i < 16; i++)
        launch_shape(&c, i % 4, module, TICK, &most, own);
    for (unsigned i = 0; i < 100; i++)
        check_neighbour();
    RAW_CHECK(raw_error(&c) == 0);
    raw_client_close(&c);
    raw_server_settle(&server, 1);
}

static void globals_outlive_the_executor(void)
{
    static struct raw_client busy;
    uint64_t out = raw_alloc(&neighbour, 4, WIRE_MEMORY_KIND_DEVICE, NULL);
    for (uint32_t round = 0; round < 3; round++) {
        uint64_t seq = launch(&neighbour, 0, neighbours_module, TICK, 1, out);
        RAW_CHECK(raw_wait(&neighbour, 0, seq) == 0);
        RAW_CHECK(*(uint32_t *)(uintptr_t)out == 41 + round);
        uint32_t module = open_with_module();
        busy = c;
        seq = launch(&busy, 0, module, SPIN, 32, 0);
        while (atomic_load(&busy.shared.streams[0].accepted) != seq)
            ;
        pid_t executor = raw_server_executor(&server);
        raw_server_forget_log(&server);
        RAW_CHECK(kill(executor, SIGKILL) == 0);
        RAW_CHECK(raw_wait(&busy, 0, seq) == 719);
        check_neighbour();
        raw_client_close(&busy);
    }
}

int main(void)
{
    raw_server_start(&server, "soft");
    raw_client_open(&neighbour, raw_server_connect(&server, 1));
    neighbours_module = raw_load(&neighbour, ptx, NULL);
    RAW_CHECK(neighbours_module != 0);
    numbers = raw_alloc(&neighbour, 1024, WIRE_MEMORY_KIND_DEVICE, NULL);
    check_neighbour();
    pid_t executor = raw_server_executor(&server);

    a_kernel_that_never_ends();
    a_kernel_that_writes_where_it_may_not();
    shapes_that_there_are_not();
    the_largest_grid();
    raw_server_settle(&server, 1);
    RAW_CHECK(raw_server_executor(&server) == executor);
    globals_outlive_the_executor();

    raw_client_close(&neighbour);
    raw_server_finish(&server);
    return 0;
}
