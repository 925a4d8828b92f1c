#include "fake.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"

static uint64_t param(const struct soft_block *b, int i)
{
    uint64_t v;
    memcpy(&v, b->params + 8 * i, 8);
    return v;
}

static _Atomic uint64_t *word(uint64_t address)
{
    return (_Atomic uint64_t *)(uintptr_t)address;
}

uint64_t fake_process_cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * GM_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static enum soft_outcome spin(const struct soft_code *code, struct soft_block *b)
{
    uint64_t end = gm_now_ns() + param(b, 0);
    while (gm_now_ns() < end)
        gm_cpu_relax();
    return SOFT_DONE;
}

static enum soft_outcome add(const struct soft_code *code, struct soft_block *b)
{
    atomic_fetch_add_explicit(word(param(b, 0)), 1, memory_order_relaxed);
    return SOFT_DONE;
}

static enum soft_outcome store(const struct soft_code *code, struct soft_block *b)
{
    uint64_t at = param(b, 0) + 8ull * b->block_linear;
    atomic_store_explicit(word(at), b->ctaid[0] + (uint64_t)b->nctaid[0] * b->ctaid[1],
                          memory_order_relaxed);
    return SOFT_DONE;
}

static enum soft_outcome wild(const struct soft_code *code, struct soft_block *b)
{
    if (b->block_linear == param(b, 1))
        *(volatile uint32_t *)(uintptr_t)param(b, 0) = 1;
    return SOFT_DONE;
}

__attribute__((no_sanitize("undefined"))) static enum soft_outcome
divide(const struct soft_code *code, struct soft_block *b)
{
    volatile int zero = 0;
    volatile int one = 1;
    zero = one / zero;
    return SOFT_DONE;
}

static enum soft_outcome endless(const struct soft_code *code, struct soft_block *b)
{
    volatile uint64_t now = 1;
    if (param(b, 0))
        atomic_fetch_add(word(param(b, 0)), 1);
    while (now != 0)
        now = gm_now_ns();
    return SOFT_DONE;
}

static enum soft_outcome process_clock(const struct soft_code *code, struct soft_block *b)
{
    atomic_store_explicit(word(param(b, 0)), fake_process_cpu_ns(), memory_order_relaxed);
    return SOFT_DONE;
}

static enum soft_outcome await(const struct soft_code *code, struct soft_block *b)
{
    while (atomic_load_explicit(word(param(b, 0)), memory_order_relaxed) == 0)
        gm_cpu_relax();
    return SOFT_DONE;
}

static enum soft_outcome trap(const struct soft_code *code, struct soft_block *b)
{
    b->fault_thread = 5;
    return SOFT_FAULT_TRAP;
}

static enum soft_outcome shared(const struct soft_code *code, struct soft_block *b)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i <= b->shared_mask; i++)
        seen += b->shared[i] != 0;
    memset(b->shared, 0xaa, b->shared_mask + 1);
    memset(b->local, 0xaa, 64);
    atomic_fetch_add_explicit(word(param(b, 0)), seen, memory_order_relaxed);
    return SOFT_DONE;
}

static enum soft_outcome overrun(const struct soft_code *code, struct soft_block *b)
{
    volatile uint8_t here;
    uintptr_t frame = (uintptr_t)&here;
    *(volatile uint8_t *)(frame - ((3u << 20) / 2)) = 1;
    *(volatile uint8_t *)(frame - (8u << 20)) = 1;
    return SOFT_DONE;
}

#define CODE(run)                                                                                  \
    {                                                                                              \
        .run_block = run, .local_bytes = 16, .save_bytes = 8, .tier = "fake"                       \
    }

static struct {
    const char *name;
    struct soft_code code;
    uint32_t param_bytes;
} kinds[FAKE_COUNT] = {
    [FAKE_SPIN] = { "spin", CODE(spin), 8 },
    [FAKE_ADD] = { "add", CODE(add), 8 },
    [FAKE_STORE] = { "store", CODE(store), 8 },
    [FAKE_WILD] = { "wild", CODE(wild), 16 },
    [FAKE_DIVIDE] = { "divide", CODE(divide), 0 },
    [FAKE_ENDLESS] = { "endless", CODE(endless), 8 },
    [FAKE_TRAP] = { "trap", CODE(trap), 0 },
    [FAKE_SHARED] = { "shared", CODE(shared), 8 },
    [FAKE_CLOCK] = { "clock", CODE(process_clock), 8 },
    [FAKE_AWAIT] = { "await", CODE(await), 8 },
    [FAKE_OVERRUN] = { "overrun", CODE(overrun), 0 },
};

struct dev_module *fake_module(struct rig_client *c)
{
    struct dev_module *m = soft_module_create(c->client, FAKE_COUNT);
    cr_assert_not_null(m);
    for (int i = 0; i < FAKE_COUNT; i++) {
        struct soft_kernel *k = &m->kernels[i];
        k->name = kinds[i].name;
        k->param_bytes = kinds[i].param_bytes;
        k->max_threads = 256;
        k->interpreter = &kinds[i].code;
    }
    return m;
}

uint64_t fake_launch(struct rig *r, struct rig_client *c, int stream, struct dev_module *m,
                     uint32_t function, uint32_t blocks, uint64_t p0, uint64_t p1)
{
    const uint64_t params[] = { p0, p1 };
    const struct dev_launch l = { .module = m,
                                  .function = function,
                                  .grid = { blocks, 1, 1 },
                                  .block = { 32, 1, 1 },
                                  .params = params,
                                  .params_size = sizeof(params),
                                  .more = r->more };
    return rig_launch(r, c, stream, &l);
}
