/*
 * The software device as the executor sees it: found by name, given PTX, run. The examples' kernels
 * against the same computed here, in the interpreter; and what is said about images that cannot be
 * run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "rig.h"

#define MIB (1ull << 20)

static struct rig rig;

static void begin(void)
{
    char why[256];
    setenv("GMUX_SOFT_WORKERS", "2", 1);
    setenv("GMUX_SOFT_JIT", "0", 1);
    const struct dev_ops *ops = dev_find("soft", why, sizeof(why));
    cr_assert_not_null(ops, "%s", why);
    rig_open(&rig, ops);
}
static void end(void)
{
    rig_close(&rig);
}
TestSuite(modules, .init = begin, .fini = end, .timeout = 60);

/* Loads text and gives its globals the start of the device area. */
static struct dev_module *load(struct rig_client *c, const void *image, size_t size,
                               struct dev_module_info *info)
{
    struct dev_module *m;
    int r = rig.ops->module_load(c->client, 0, image, size, WIRE_IMAGE_KIND_PTX, &m, info);
    cr_assert_eq(r, 0, "%d: %s", r, info->log ? info->log : "");
    cr_assert_eq(rig.ops->module_place(m, c->base, true), 0);
    return m;
}

static struct dev_module *load_example(struct rig_client *c, const char *name)
{
    char path[512];
    struct dev_module_info info;
    snprintf(path, sizeof(path), "%s/%s/kernel.ptx", getenv("GMUX_EXAMPLES"), name);
    GM_AUTO_FILE FILE *f = fopen(path, "re");
    GM_AUTO_FREE char *text = malloc(MIB);
    cr_assert_not_null(f, "%s", path);
    return load(c, text, fread(text, 1, MIB, f), &info);
}

static void run(struct rig_client *c, struct dev_module *m, uint32_t grid, uint32_t block,
                const void *params, uint32_t size)
{
    const struct dev_launch l = { .module = m,
                                  .grid = { grid, 1, 1 },
                                  .block = { block, 1, 1 },
                                  .params = params,
                                  .params_size = size };
    rig_launch(&rig, c, 0, &l);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 0, "%s", c->fault_text);
}

Test(modules, vecadd)
{
    enum { N = 100003 };
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 4 * MIB);
    struct dev_module *m = load_example(c, "vecadd");
    float *x = rig_at(c, 0), *y = rig_at(c, MIB), *z = rig_at(c, 2 * MIB);
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = (float)(3 * i);
    }
    const struct {
        uint64_t x, y, z;
        uint32_t n;
    } p = { c->base, c->base + MIB, c->base + 2 * MIB, N };
    run(c, m, (N + 255) / 256, 256, &p, sizeof(p));
    for (int i = 0; i < N; i++)
        cr_assert_eq(z[i], (float)(4 * i), "%d", i);
    cr_assert_eq(z[N], 0);
}

/* Barriers, shuffles, shared memory and atomics, blocks of several sizes. */
Test(modules, reduction)
{
    enum { N = 50000 };
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 4 * MIB);
    struct dev_module *m = load_example(c, "reduction");
    float *in = rig_at(c, 0), *out = rig_at(c, MIB);
    for (int i = 0; i < N; i++)
        in[i] = 1;
    const struct {
        uint64_t in, out;
        uint32_t n;
    } p = { c->base, c->base + MIB, N };
    for (uint32_t block = 32; block <= 1024; block *= 2) {
        *out = 0;
        run(c, m, 7, block, &p, sizeof(p));
        cr_assert_eq(*out, (float)N, "blocks of %u: %f", block, (double)*out);
    }
}

static const char globals[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                              ".visible .global .align 4 .u32 counter = 40;\n"
                              ".visible .const .align 8 .u64 step = 2;\n"
                              ".global .align 8 .u64 where = counter;\n"
                              ".visible .entry bump()\n{\n"
                              "    .reg .u32 %r<4>;\n    .reg .u64 %d<4>;\n"
                              "    ld.global.u64 %d1, [where];\n"
                              "    ld.const.u64 %d2, [step];\n"
                              "    cvt.u32.u64 %r1, %d2;\n"
                              "    red.global.add.u32 [%d1], %r1;\n"
                              "    ret;\n}\n";

Test(modules, globals_are_placed_and_initialised)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    struct dev_module_info info;
    struct dev_module *m = load(c, globals, sizeof(globals), &info);
    struct wire_dec d, list;
    struct wire_module_info mi;
    struct wire_global_info g;
    uint64_t counter = UINT64_MAX;
    wire_dec_init(&d, info.info.data, info.info.size);
    wire_get_module_info(&d, &mi);
    cr_assert(wire_dec_finish(&d));
    wire_dec_init(&list, mi.globals.data, mi.globals.size);
    while (!wire_dec_end(&list)) {
        wire_get_global_info(&list, &g);
        if (strcmp(g.name, "counter") == 0)
            counter = g.offset;
    }
    cr_assert_lt(counter, info.globals_size);
    uint32_t *at = rig_at(c, counter);
    cr_assert_eq(*at, 40);
    run(c, m, 1, 1, NULL, 0);
    cr_assert_eq(*at, 42);

    /* A replaced executor loads the module again and finds memory as the program left it. */
    struct dev_module *again;
    cr_assert_eq(rig.ops->module_load(c->client, 0, globals, sizeof(globals), WIRE_IMAGE_KIND_PTX,
                                      &again, &info),
                 0);
    cr_assert_eq(rig.ops->module_place(again, c->base, false), 0);
    cr_assert_eq(*at, 42);
    run(c, again, 1, 1, NULL, 0);
    cr_assert_eq(*at, 44);
}

Test(modules, a_wild_kernel_is_its_clients_fault)
{
    enum { N = 1000 };
    struct rig_client *bad = rig_client_add(&rig, 0, 100, 0, 1, MIB),
                      *good = rig_client_add(&rig, 1, 100, 0, 1, MIB);
    struct dev_module *m = load_example(bad, "vecadd"), *n = load_example(good, "vecadd");
    struct {
        uint64_t x, y, z;
        uint32_t n;
    } p = { bad->base, bad->base, good->base, N };
    const struct dev_launch l = { .module = m,
                                  .grid = { 4, 1, 1 },
                                  .block = { 256, 1, 1 },
                                  .params = &p,
                                  .params_size = sizeof(p) };
    rig_launch(&rig, bad, 0, &l);
    rig_wait(bad, 0, 0);
    cr_assert_eq(atomic_load(&bad->fault), 700);
    cr_assert_geq(atomic_load(&bad->fault_address), good->base);
    cr_assert_lt(atomic_load(&bad->fault_address), good->base + 4 * N);
    cr_assert(strstr(bad->fault_text, "kernel vecadd, block ("), "%s", bad->fault_text);
    p.x = p.y = good->base;
    p.z = good->base + 8192;
    run(good, n, 4, 256, &p, sizeof(p));
}

static void refused(struct rig_client *c, const void *image, size_t size, uint32_t kind, int result,
                    const char *part)
{
    struct dev_module *m;
    struct dev_module_info info;
    cr_assert_eq(rig.ops->module_load(c->client, 0, image, size, kind, &m, &info), result);
    cr_assert_null(m);
    cr_assert_not_null(info.log);
    cr_assert(strstr(info.log, part), "%s", info.log);
    free(info.log);
}

/* Why a kernel cannot be launched may be as long as its name allows. */
Test(modules, what_a_kernel_lacks_is_long)
{
    char text[2048], name[200];
    struct dev_module_info info;
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    memset(name, 'f', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    int n =
        snprintf(text, sizeof(text),
                 ".version 7.0\n.target sm_70\n.address_size 64\n.func %s() { call %s, (); ret; }\n"
                 ".visible .entry k() { call %s, (); ret; }\n",
                 name, name, name);
    struct dev_module *m = load(c, text, (size_t)n, &info);
    rig.ops->module_unload(m);
}

Test(modules, images)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    refused(c, "garbage", 7, WIRE_IMAGE_KIND_PTX, 218, "1:1");
    static const char wrong[] =
        ".version 8.0\n.target sm_75\n.address_size 64\n.entry k()\n{\n  frob.u32 %r1;\n}\n";
    refused(c, wrong, sizeof(wrong), WIRE_IMAGE_KIND_PTX, 218, "6:");
    refused(c, "\177ELF\2\1\1            ", 20, WIRE_IMAGE_KIND_CUBIN, 209, "machine code");
    refused(c, "\177ELF\2\1\1            ", 20, WIRE_IMAGE_KIND_FATBIN, 209, "machine code");
}
