/* Queues, copies, faults and stopping on the software device, with kernels that are C functions. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/soft/exec/worker.h"
#include "fake.h"

#define MIB (1ull << 20)

static struct rig rig;

static void begin(void)
{
    setenv("GMUX_SOFT_WORKERS", "2", 1);
    setenv("GMUX_SOFT_JIT", "0", 1);
    rig_open(&rig, &gmux_device);
}
static void end(void)
{
    rig_close(&rig);
}
TestSuite(soft, .init = begin, .fini = end, .timeout = 60);

#ifdef __x86_64__

static uint8_t left[32 * 64];

#define LOAD(n)  "vmovdqu " #n "*32(%0), %%ymm" #n "\n\t"
#define STORE(n) "vmovdqu %%ymm" #n ", " #n "*32(%0)\n\t"
#define ALL(what)                                                                                  \
    what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) what(9) what(10)       \
        what(11) what(12) what(13) what(14) what(15)
#define LOAD_UPPER(n)  "vmovdqu64 " #n "*64(%0), %%zmm" #n "\n\t"
#define STORE_UPPER(n) "vmovdqu64 %%zmm" #n ", " #n "*64(%0)\n\t"
#define ALL_UPPER(what)                                                                            \
    what(16) what(17) what(18) what(19) what(20) what(21) what(22) what(23) what(24) what(25)      \
        what(26) what(27) what(28) what(29) what(30) what(31)

__attribute__((target("avx"))) static void lower_registers(bool clear)
{
    __asm__ volatile(ALL(LOAD)::"r"(left)
                     : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    if (clear)
        soft_registers_clear();
    __asm__ volatile(ALL(STORE)::"r"(left) : "memory");
}

__attribute__((target("avx512f"))) static void upper_registers(bool clear)
{
    __asm__ volatile(ALL_UPPER(LOAD_UPPER)::"r"(left) : "memory");
    if (clear)
        soft_registers_clear();
    __asm__ volatile(ALL_UPPER(STORE_UPPER)::"r"(left) : "memory");
}

static unsigned count_left(void (*registers)(bool clear), bool clear)
{
    unsigned n = 0;
    memset(left, 0xa5, sizeof(left));
    registers(clear);
    size_t first = registers == lower_registers ? 0 : sizeof(left) / 2;
    size_t end = registers == lower_registers ? 16 * 32 : sizeof(left);
    for (size_t i = first; i < end; i++)
        n += left[i] == 0xa5;
    return n;
}

Test(registers, of_the_last_client_are_cleared)
{
    if (__builtin_cpu_supports("avx")) {
        cr_assert_geq(count_left(lower_registers, false),
                      16 * 16); /* calls may clear the upper halves */
        cr_assert_eq(count_left(lower_registers, true), 0);
    }
    if (__builtin_cpu_supports("avx512f")) {
        cr_assert_eq(count_left(upper_registers, false), 16 * 64);
        cr_assert_eq(count_left(upper_registers, true), 0);
    }
}

#endif

Test(soft, every_block_once)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 8 * MIB);
    struct dev_module *m = fake_module(c);
    const uint64_t *at = rig_at(c, 0);
    const uint64_t params[] = { c->base };
    for (uint32_t round = 0; round < 5; round++) {
        const struct dev_launch l = { .module = m,
                                      .function = FAKE_STORE,
                                      .grid = { 1000, 7 + round, 10 },
                                      .block = { 32, 2, 1 },
                                      .params = params,
                                      .params_size = sizeof(params) };
        rig_fill(&rig, c, 0, c->base, 2 * MIB, 0xffffffff, 4);
        rig_launch(&rig, c, 0, &l);
        rig_wait(c, 0, 0);
        uint64_t plane = 1000ull * (7 + round);
        for (uint64_t i = 0; i < plane * 10; i++)
            cr_assert_eq(at[i], i % plane, "block %llu", (unsigned long long)i);
        cr_assert_eq(at[plane * 10], UINT64_MAX);
    }
}

Test(soft, launches_and_copies_in_order)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 2, 64 * MIB);
    struct dev_module *m = fake_module(c);
    uint64_t *at = rig_at(c, 0);
    for (int i = 0; i < 200; i++) {
        fake_launch(&rig, c, 0, m, FAKE_ADD, 10, c->base, 0);
        rig_copy(&rig, c, 0, c->base + 8 + 8 * (uint64_t)i, c->base, 8);
        if (i % 50 == 0) { /* large enough to be a task */
            rig_fill(&rig, c, 0, c->base + MIB, 4 * MIB, (uint32_t)i, 4);
            rig_copy(&rig, c, 0, c->base + 32 * MIB, c->base + MIB, 16 * MIB);
            rig_fill(&rig, c, 0, c->base + MIB, 4 * MIB, 0, 4);
        }
        rig_wait_op(&rig, c, 1, 0, c->seq[0]);
        fake_launch(&rig, c, 1, m, FAKE_ADD, 1, c->base + 8 + 8 * (uint64_t)i, 0);
    }
    rig_wait(c, 1, 0);
    rig_wait(c, 0, 0);
    for (uint64_t i = 0; i < 200; i++)
        cr_assert_eq(at[1 + i], (i + 1) * 10 + 1);
    const uint32_t *copied = rig_at(c, 32 * MIB);
    for (uint64_t i = 0; i < 4 * MIB; i++)
        cr_assert_eq(copied[i], 150);
    cr_assert_eq(rig.ops->backlog(c->client), 0);
}

Test(soft, gates_and_stamps)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    struct dev_module *m = fake_module(c);
    rig_stamp(&rig, c, 0, 0);
    fake_launch(&rig, c, 0, m, FAKE_SPIN, 4, 2000000, 0);
    rig_stamp(&rig, c, 0, 1);
    uint64_t gate = rig_gate(&rig, c, 0);
    fake_launch(&rig, c, 0, m, FAKE_ADD, 3, c->base, 0);
    rig_wait(c, 0, gate - 1);
    uint64_t took =
        atomic_load(&c->session.events[1].time_ns) - atomic_load(&c->session.events[0].time_ns);
    cr_assert_geq(took, 3900000, "4 blocks of 2 ms on 2 workers took %llu ns",
                  (unsigned long long)took);
    while (atomic_load(&c->session.streams[0].arrived) != gate)
        gm_cpu_relax();
    cr_assert_eq(*(uint64_t *)rig_at(c, 0), 0);
    rig_open_gate(&rig, c, 0, gate);
    rig_wait(c, 0, 0);
    cr_assert_eq(*(uint64_t *)rig_at(c, 0), 3);
}

Test(soft, launches_are_checked)
{
    static const struct {
        struct dev_launch l;
        int result;
    } wrong[] = {
        { { .function = 99, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } }, 400 },
        { { .function = FAKE_DIVIDE, .grid = { 0, 1, 1 }, .block = { 1, 1, 1 } }, 1 },
        { { .function = FAKE_DIVIDE, .grid = { 1, 1, 1 }, .block = { 1, 0, 1 } }, 1 },
        { { .function = FAKE_DIVIDE, .grid = { 1, 65536, 1 }, .block = { 1, 1, 1 } }, 1 },
        { { .function = FAKE_DIVIDE, .grid = { 1, 1, 1 }, .block = { 1, 1, 65 } }, 1 },
        { { .function = FAKE_DIVIDE, .grid = { 1, 1, 1 }, .block = { 257, 1, 1 } }, 701 },
        { { .function = FAKE_DIVIDE,
            .grid = { 1, 1, 1 },
            .block = { 1, 1, 1 },
            .shared_bytes = 97 << 10 },
          701 },
        { { .function = FAKE_ADD, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params_size = 4 },
          1 },
    };
    static const uint8_t params[8];
    for (int i = 0; i < (int)GM_ARRAY_LEN(wrong); i++) {
        struct rig_client *c = rig_client_add(&rig, i, 100, 0, 1, 0);
        struct dev_launch l = wrong[i].l;
        l.module = fake_module(c);
        l.params = params;
        rig_launch(&rig, c, 0, &l);
        rig_wait(c, 0, 0);
        cr_assert_eq(atomic_load(&c->fault), wrong[i].result, "case %d: %d %s", i,
                     atomic_load(&c->fault), c->fault_text);
    }
}

Test(soft, faults_name_kernel_block_and_address)
{
    struct rig_client *a = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    fake_launch(&rig, a, 0, fake_module(a), FAKE_WILD, 100, a->base + MIB, 42);
    rig_wait(a, 0, 0);
    cr_assert_eq(atomic_load(&a->fault), 700);
    cr_assert_eq(atomic_load(&a->fault_address), a->base + MIB);
    char text[128];
    snprintf(text, sizeof(text), "kernel wild, block (42,0,0): illegal address 0x%llx",
             (unsigned long long)(a->base + MIB));
    cr_assert_str_eq(a->fault_text, text);

    struct rig_client *b = rig_client_add(&rig, 1, 100, 0, 1, MIB);
    fake_launch(&rig, b, 0, fake_module(b), FAKE_DIVIDE, 1, 0, 0);
    rig_wait(b, 0, 0);
    cr_assert_eq(atomic_load(&b->fault), 719);
    cr_assert_str_eq(b->fault_text, "kernel divide, block (0,0,0): arithmetic exception");

    struct rig_client *t = rig_client_add(&rig, 2, 100, 0, 1, MIB);
    fake_launch(&rig, t, 0, fake_module(t), FAKE_TRAP, 1, 0, 0);
    rig_wait(t, 0, 0);
    cr_assert_eq(atomic_load(&t->fault), 719);
    cr_assert_str_eq(t->fault_text, "kernel trap, block (0,0,0), thread (5,0,0): trap");
}

/* Behind a worker's stack is room that nobody has; the client is told nothing of where that is. */
Test(soft, a_frame_larger_than_the_stack_is_a_fault)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    fake_launch(&rig, c, 0, fake_module(c), FAKE_OVERRUN, 2, 0, 0);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 719, "%d", atomic_load(&c->fault));
    cr_assert_eq(atomic_load(&c->fault_address), 0);
    cr_assert_str_eq(c->fault_text + strlen("kernel overrun, block (0"),
                     ",0,0): more stack than there is", "%s", c->fault_text);
}

/* Faults show no address outside of the client's window. */
Test(soft, faults_show_no_address_of_the_device)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    long page = sysconf(_SC_PAGESIZE);
    void *closed = mmap(NULL, (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fake_launch(&rig, c, 0, fake_module(c), FAKE_WILD, 1, (uintptr_t)closed, 0);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 700);
    cr_assert_eq(atomic_load(&c->fault_address), 0);
    cr_assert_str_eq(c->fault_text, "kernel wild, block (0,0,0): illegal address");
    munmap(closed, (size_t)page);
}

/* A large copy is a task of the workers and faults there. */
Test(soft, copies_fault_on_workers_too)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 2, 8 * MIB);
    rig_copy(&rig, c, 0, c->base + 4 * MIB, c->base, 8 * MIB);
    rig_wait_op(&rig, c, 1, 0, 1);
    rig_wait(c, 1, 0);
    cr_assert_eq(atomic_load(&c->fault), 700);
    cr_assert_geq(atomic_load(&c->fault_address), c->base + 8 * MIB);
}

/* After each fault the culprit's waiters return, and the neighbour's results are right. */
Test(soft, neighbours_of_a_fault_are_unharmed, .timeout = 120)
{
    enum { ROUNDS = 1000 };
    struct rig_client *good = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    struct dev_module *m = fake_module(good);
    uint64_t *count = rig_at(good, 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct rig_client *bad = rig_client_add(&rig, 1, 100, 0, 2, MIB);
        struct dev_module *n = fake_module(bad);
        fake_launch(&rig, good, 0, m, FAKE_ADD, 64, good->base, 0);
        fake_launch(&rig, bad, 0, n, i % 3 ? FAKE_WILD : FAKE_DIVIDE, 50, bad->base + 2 * MIB, 25);
        fake_launch(&rig, bad, 0, n, FAKE_ADD, 50, bad->base, 0);
        rig_wait_op(&rig, bad, 1, 0, 2);
        rig_gate(&rig, bad, 1);
        rig_wait(bad, 0, 0);
        rig_wait(bad, 1, 0);
        cr_assert_eq(atomic_load(&bad->fault), i % 3 ? 700 : 719);
        cr_assert_eq(*(uint64_t *)rig_at(bad, 0), 0);
        cr_assert_eq(rig.ops->backlog(bad->client), 0);
        rig_client_remove(&rig, 1);
        rig_wait(good, 0, 0);
        cr_assert_eq(*count, 64ull * (uint64_t)(i + 1));
    }
    cr_assert_eq(atomic_load(&good->fault), 0);
}

Test(soft, stop_ends_an_endless_kernel)
{
    struct rig_client *other = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    struct dev_module *m = fake_module(other);
    for (int i = 0; i < 5; i++) {
        struct rig_client *c = rig_client_add(&rig, 1, 100, 0, 1, MIB);
        fake_launch(&rig, c, 0, fake_module(c), FAKE_ENDLESS, 10, c->base, 0);
        while (i % 2 && atomic_load((_Atomic uint64_t *)rig_at(c, 0)) != 2)
            gm_cpu_relax(); /* until both workers are in it */
        uint64_t before = gm_now_ns();
        rig.ops->client_stop(c->client);
        uint64_t took = gm_now_ns() - before;
        cr_assert_lt(took, 2 * GM_NS_PER_S, "%llu ns",
                     (unsigned long long)took); /* 100 ms where nobody else runs */
        rig_wait(c, 0, 0);
        cr_assert_eq(atomic_load(&c->fault), 0);
        rig_client_remove(&rig, 1);
        fake_launch(&rig, other, 0, m, FAKE_ADD, 1, other->base, 0);
        rig_wait(other, 0, 0);
    }
}

/* Both workers are in blocks that never end; others still get theirs run, and a fault ends the
 * endless ones. */
Test(soft, endless_kernels_hurt_only_their_client)
{
    struct rig_client *bad = rig_client_add(&rig, 0, 100, 0, 2, MIB);
    struct rig_client *good = rig_client_add(&rig, 1, 100, 0, 1, MIB);
    struct dev_module *n = fake_module(bad), *m = fake_module(good);
    fake_launch(&rig, bad, 0, n, FAKE_ENDLESS, 10, 0, 0);
    for (int i = 0; i < 10; i++)
        fake_launch(&rig, good, 0, m, FAKE_ADD, 1000, good->base, 0);
    rig_wait(good, 0, 0);
    cr_assert_eq(*(uint64_t *)rig_at(good, 0), 10000);
    rig_fill(&rig, bad, 1, bad->base + 2 * MIB, 4, 1, 1);
    rig_wait(bad, 1, 0);
    rig_wait(bad, 0, 0);
    cr_assert_eq(atomic_load(&bad->fault), 700);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A hundred clients that never end get turns, and somebody who launches something short is served
 * in between. */
Test(soft, a_hundred_endless_kernels_hold_nobody_up)
{
    enum { BAD = 100, ROUNDS = 300 };
    uint64_t took[ROUNDS], others[ROUNDS];
    struct rig_client *good = rig_client_add(&rig, BAD, 100, 0, 1, MIB);
    struct dev_module *m = fake_module(good);
    for (int i = 0; i < BAD; i++) {
        struct rig_client *c = rig_client_add(&rig, i, 100, 0, 1, MIB);
        fake_launch(&rig, c, 0, fake_module(c), FAKE_ENDLESS, 2, c->base, 0);
    }
    for (int i = 0; i < BAD; i++)
        while (atomic_load((_Atomic uint64_t *)rig_at(&rig.clients[i], 0)) == 0)
            sched_yield(); /* the suite's time limit is the bound */
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t used = fake_process_cpu_ns(), before = gm_now_ns();
        fake_launch(&rig, good, 0, m, FAKE_CLOCK, 1, good->base, 0);
        rig_wait(good, 0, 0);
        took[i] = gm_now_ns() - before;
        others[i] = *(uint64_t *)rig_at(good, 0) - used;
    }
    qsort(others, ROUNDS, sizeof(others[0]), by_value);
    qsort(took, ROUNDS, sizeof(took[0]), by_value);
    cr_log_info("launch beside %d endless kernels: p50 %.2f ms, p99 %.2f ms, longest %.2f ms", BAD,
                (double)took[ROUNDS / 2] / 1e6, (double)took[ROUNDS * 99 / 100] / 1e6,
                (double)took[ROUNDS - 1] / 1e6);
    /* In processor time until the launch began: other programs may have the processors as well, and
     * this thread may learn late that it has ended. */
    cr_log_info("meanwhile given to the others: p50 %.2f ms, p99 %.2f ms on each of two workers",
                (double)others[ROUNDS / 2] / 2e6, (double)others[ROUNDS * 99 / 100] / 2e6);
    cr_assert_lt(others[ROUNDS * 99 / 100], 2 * 10 * GM_NS_PER_MS);
    uint64_t before = gm_now_ns();
    for (int i = 0; i < BAD; i++)
        rig_client_remove(&rig, i);
    cr_assert_lt(gm_now_ns() - before, 10 * GM_NS_PER_S);
}

/* A kernel that waits for another stream's: both have begun, on one worker as on many. */
Test(soft, a_kernel_may_wait_for_a_later_stream)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 2, MIB),
                      *d = rig_client_add(&rig, 1, 100, 0, 1, MIB);
    struct dev_module *m = fake_module(c);
    fake_launch(&rig, c, 0, m, FAKE_AWAIT, 2, c->base, 0);
    fake_launch(&rig, d, 0, fake_module(d), FAKE_ENDLESS, 2, 0, 0);
    fake_launch(&rig, c, 1, m, FAKE_ADD, 1, c->base, 0);
    rig_wait(c, 0, 0);
    rig_wait(c, 1, 0);
}

Test(soft, what_a_client_left_in_scratch_memory_is_wiped)
{
    struct rig_client *a = rig_client_add(&rig, 0, 100, 0, 1, MIB),
                      *b = rig_client_add(&rig, 1, 100, 0, 1, MIB);
    struct dev_module *m = fake_module(a), *n = fake_module(b);
    for (int i = 0; i < 20; i++) {
        struct rig_client *c = i % 2 ? a : b;
        const uint64_t params[] = { c->base };
        const struct dev_launch l = { .module = i % 2 ? m : n,
                                      .function = FAKE_SHARED,
                                      .grid = { 1, 1, 1 },
                                      .block = { 32, 1, 1 },
                                      .shared_bytes = 40000,
                                      .params = params,
                                      .params_size = sizeof(params) };
        rig_launch(&rig, c, 0, &l);
        rig_wait(c, 0, 0);
        if (i < 2)
            cr_assert_eq(*(uint64_t *)rig_at(c, 0), 0, "client %d found another one's data", i);
    }
}

/* A client that comes when another one has gone may get its place in our memory. */
Test(soft, what_a_client_left_is_wiped_for_those_that_come_later)
{
    for (int i = 0; i < 50; i++) {
        struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
        fake_launch(&rig, c, 0, fake_module(c), FAKE_SHARED, 1, c->base, 0);
        rig_wait(c, 0, 0);
        cr_assert_eq(*(uint64_t *)rig_at(c, 0), 0, "client %d found an earlier one's data", i);
        rig_client_remove(&rig, 0);
    }
}

Test(soft, unload_while_queued)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    struct dev_module *m = fake_module(c);
    uint64_t gate = rig_gate(&rig, c, 0);
    fake_launch(&rig, c, 0, m, FAKE_ADD, 5, c->base, 0);
    rig.ops->module_unload(m);
    rig_open_gate(&rig, c, 0, gate);
    rig_wait(c, 0, 0);
    cr_assert_eq(*(uint64_t *)rig_at(c, 0), 5);
}

static void limited(void)
{
    setenv("GMUX_SOFT_KERNEL_TIMEOUT", "0.05", 1);
    begin();
}
TestSuite(soft_limited, .init = limited, .fini = end, .timeout = 60);

Test(soft_limited, kernels_that_take_too_long_end)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    fake_launch(&rig, c, 0, fake_module(c), FAKE_ENDLESS, 1, 0, 0);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 702);
    cr_assert_str_eq(c->fault_text, "kernel endless, block (0,0,0): time limit exceeded");
}
