/*
 * From the interpreter to compiled code and to the cache on disk: results stay right while a kernel
 * goes over, faults look the same, and without a compiler everything still runs.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "device/soft/kernel.h"
#include "rig.h"

#define MIB (1ull << 20)
#define N   50000

static struct rig rig;
static char cache[] = "/tmp/gmux-test-XXXXXX";

static void begin(void)
{
    cr_assert_not_null(mkdtemp(cache));
    setenv("GMUX_CACHE_DIR", cache, 1);
    setenv("GMUX_SOFT_WORKERS", "2", 1);
    rig_open(&rig, &gmux_device);
}
static void end(void)
{
    char command[128];
    rig_close(&rig);
    snprintf(command, sizeof(command), "rm -rf %s", cache);
    cr_assert_eq(system(command), 0);
}
TestSuite(tiers, .init = begin, .fini = end, .timeout = 60);

static struct dev_module *load_file(struct rig_client *c, const char *name, const char *file)
{
    char path[512];
    struct dev_module *m;
    struct dev_module_info info;
    snprintf(path, sizeof(path), "%s/%s/%s", getenv("GMUX_EXAMPLES"), name, file);
    GM_AUTO_FILE FILE *f = fopen(path, "re");
    GM_AUTO_FREE char *text = malloc(MIB);
    cr_assert_not_null(f, "%s", path);
    size_t size = fread(text, 1, MIB, f);
    cr_assert_eq(rig.ops->module_load(c->client, 0, text, size, WIRE_IMAGE_KIND_PTX, &m, &info), 0);
    cr_assert_eq(rig.ops->module_place(m, c->base, true), 0);
    return m;
}

static struct dev_module *load(struct rig_client *c, const char *name)
{
    return load_file(c, name, "kernel.ptx");
}

/* Sums N ones with blocks of that size. */
static void reduce(struct rig_client *c, struct dev_module *m, uint32_t block)
{
    float *out = rig_at(c, MIB);
    const struct {
        uint64_t in, out;
        uint32_t n;
    } p = { c->base, c->base + MIB, N };
    const struct dev_launch l = { .module = m,
                                  .grid = { 9, 1, 1 },
                                  .block = { block, 1, 1 },
                                  .params = &p,
                                  .params_size = sizeof(p) };
    *out = 0;
    rig_launch(&rig, c, 0, &l);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 0, "%s", c->fault_text);
    cr_assert_eq(*out, (float)N, "blocks of %u: %f", block, (double)*out);
}

static struct rig_client *client(int i)
{
    struct rig_client *c = rig_client_add(&rig, i, 100, 0, 1, 2 * MIB);
    float *in = rig_at(c, 0);
    for (int n = 0; n < N; n++)
        in[n] = 1;
    return c;
}

static bool is_compiled(struct dev_module *m, uint32_t block)
{
    const uint32_t ntid[] = { block, 1, 1 };
    struct soft_kernel *k = &m->kernels[0];
    return soft_kernel_code(k, soft_kernel_variant(k, ntid)) != k->interpreter;
}

/* Launches until the compiled form has come. */
static void until_compiled(struct rig_client *c, struct dev_module *m, uint32_t block)
{
    uint64_t deadline = gm_now_ns() + 30 * GM_NS_PER_S;
    do {
        reduce(c, m, block);
        cr_assert_lt(gm_now_ns(), deadline, "no compiled code after 30 s");
    } while (!is_compiled(m, block));
    reduce(c, m, block);
}

Test(tiers, a_kernel_goes_over_to_compiled_code)
{
    struct rig_client *a = client(0), *b = client(1);
    struct dev_module *m = load(a, "reduction");
    until_compiled(a, m, 128);

    /* For the next one it is there from the first launch. */
    struct dev_module *n = load(b, "reduction");
    cr_assert_eq(is_compiled(n, 128), true);
    reduce(b, n, 128);
}

Test(tiers, block_sizes_have_their_own_code)
{
    struct rig_client *c = client(0);
    struct dev_module *m = load(c, "reduction");
    for (uint32_t block = 32; block <= 1024; block *= 2)
        reduce(c, m, block);
    cr_assert_eq(m->kernels[0].variant_count, SOFT_VARIANTS);
    for (uint32_t block = 32; block <= 1024; block *= 2)
        until_compiled(c, m, block);
}

/* Each block waits for the next one, and adds one to what that has written. */
static void chain(struct rig_client *c, struct dev_module *m, uint32_t blocks)
{
    _Atomic uint32_t *out = rig_at(c, MIB);
    const uint64_t params[] = { c->base + MIB };
    const struct dev_launch l = { .module = m,
                                  .grid = { blocks, 1, 1 },
                                  .block = { 64, 1, 1 },
                                  .params = params,
                                  .params_size = sizeof(params) };
    for (uint32_t i = 0; i < blocks; i++)
        atomic_store(&out[i], 0);
    rig_launch(&rig, c, 0, &l);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 0, "%s", c->fault_text);
    for (uint32_t i = 0; i < blocks; i++)
        cr_assert_eq(atomic_load(&out[i]), blocks - i, "block %u", i);
}

Test(tiers, blocks_wait_for_later_ones)
{
    struct rig_client *c = client(0);
    struct dev_module *m = load_file(c, "../tests/ptx/waits", "later_block.ptx");
    do
        chain(c, m, 32); /* as many as are live at once with two workers */
    while (!is_compiled(m, 64));
    chain(c, m, 32);
}

Test(tiers, modules_go_while_their_code_is_being_made)
{
    struct rig_client *c = client(0);
    for (uint32_t i = 0; i < 5; i++) {
        struct dev_module *m = load(c, "reduction");
        reduce(c, m, 32 + 32 * i);
        rig.ops->module_unload(m);
    }
}

Test(tiers, faults_in_compiled_code)
{
    struct rig_client *c = client(0);
    struct dev_module *m = load(c, "reduction");
    until_compiled(c, m, 64);
    const struct {
        uint64_t in, out;
        uint32_t n;
    } p = { c->base + RIG_WINDOW_SIZE, c->base, N };
    const struct dev_launch l = { .module = m,
                                  .grid = { 2, 1, 1 },
                                  .block = { 64, 1, 1 },
                                  .params = &p,
                                  .params_size = sizeof(p) };
    rig_launch(&rig, c, 0, &l);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 700);
    cr_assert(strstr(c->fault_text, "kernel reduce_sum, block ("), "%s", c->fault_text);
    cr_assert_geq(atomic_load(&c->fault_address), c->base + RIG_WINDOW_SIZE);

    /* Inside the window, but nothing is allocated there. */
    struct rig_client *d = client(1);
    struct dev_module *n = load(d, "reduction");
    until_compiled(d, n, 64);
    const struct {
        uint64_t in, out;
        uint32_t n;
    } q = { d->base + 64 * MIB, d->base, N };
    struct dev_launch k = l;
    k.module = n;
    k.params = &q;
    rig_launch(&rig, d, 0, &k);
    rig_wait(d, 0, 0);
    cr_assert_eq(atomic_load(&d->fault), 700);
    cr_assert_geq(atomic_load(&d->fault_address), d->base + 64 * MIB);
    cr_assert_lt(atomic_load(&d->fault_address), d->base + 65 * MIB);
}

static void begin_without(void)
{
    setenv("GMUX_JIT", "/nonexistent/gmux-jit", 1);
    begin();
}

TestSuite(tiers_without, .init = begin_without, .fini = end, .timeout = 60);

Test(tiers_without, a_compiler)
{
    struct rig_client *c = client(0);
    struct dev_module *m = load(c, "reduction");
    for (uint32_t block = 32; block <= 1024; block *= 2)
        reduce(c, m, block);
    cr_assert_eq(is_compiled(m, 32), false);
}
