/*
 * What modules take of the executor's memory is bounded, whatever the text is: a page of calls of
 * calls becomes hundreds of thousands of instructions. And what of the machine's memory is the
 * device's where a control group has less.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/result.h"
#include "device/cgroup.h"
#include "device/soft/soft.h"
#include "rig.h"

#define MIB  (1ull << 20)
#define MOST (128 * MIB)

static struct rig rig;
static char text[65536];

static void begin(void)
{
    setenv("GMUX_SOFT_WORKERS", "1", 1);
    setenv("GMUX_SOFT_JIT", "0", 1);
    rig_open(&rig, &gmux_device);
    rig.dev->code_max = MOST;
}
static void end(void)
{
    rig_close(&rig);
}
TestSuite(charge, .init = begin, .fini = end, .timeout = 60);

static void GM_PRINTF(1, 2) add(const char *fmt, ...)
{
    size_t at = strlen(text);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text + at, sizeof(text) - at, fmt, ap);
    va_end(ap);
    cr_assert(n > 0 && (size_t)n < sizeof(text) - at);
}

/* f0 has ten instructions, each further one calls the one before it twice. */
static void write_bomb(unsigned depth)
{
    text[0] = 0;
    add(".version 7.0\n.target sm_75\n.address_size 64\n.func f0(.reg .u64 p)\n{\n.reg .u64 v;\n");
    for (int i = 0; i < 5; i++)
        add("ld.global.u64 v, [p];\nst.global.u64 [p+%d], v;\n", 8 * i);
    add("ret;\n}\n");
    for (unsigned i = 1; i <= depth; i++)
        add(".func f%u(.reg .u64 p)\n{\ncall f%u, (p);\ncall f%u, (p);\nret;\n}\n", i, i - 1,
            i - 1);
    add(".visible .entry k(.param .u64 q)\n{\n.reg .u64 p;\nld.param.u64 p, [q];\ncall f%u, "
        "(p);\nret;\n}\n",
        depth);
}

static int load(struct rig_client *c, struct dev_module **m)
{
    struct dev_module_info info;
    int r = rig.ops->module_load(c->client, 0, text, strlen(text), WIRE_IMAGE_KIND_PTX, m, &info);
    free(info.log);
    return r;
}

static uint64_t resident(void)
{
    unsigned long pages = 0;
    GM_AUTO_FILE FILE *f = fopen("/proc/self/statm", "re");
    cr_assert(f && fscanf(f, "%*u %lu", &pages) == 1);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* In KiB. */
static unsigned long peak(void)
{
    unsigned long kib = 0;
    char line[256];
    GM_AUTO_FILE FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f))
        (void)sscanf(line, "VmHWM: %lu", &kib);
    return kib;
}

Test(charge, a_client_has_a_bound_and_leaves_room)
{
    struct rig_client *a = rig_client_add(&rig, 0, 100, 0, 1, MIB),
                      *b = rig_client_add(&rig, 1, 100, 0, 1, MIB);
    struct dev_module *modules[256];
    int n = 0, r = 0;
    write_bomb(11);
    uint64_t before = resident();
    while (n < 256 && (r = load(a, &modules[n])) == 0)
        n++;
    cr_log_info("%d modules of %zu bytes of text: %.1f MiB charged, %.1f MiB resident", n,
                strlen(text), (double)a->client->code_bytes / MIB,
                (double)(resident() - before) / MIB);
    cr_assert_eq(r, GM_CUDA_OUT_OF_MEMORY);
    cr_assert(n > 0 && a->client->code_bytes <= MOST / 2);
#ifndef __SANITIZE_ADDRESS__ /* which takes as much again */
    cr_assert_lt(resident() - before, MOST, "%llu", (unsigned long long)(resident() - before));
#endif
    struct dev_module *other;
    cr_assert_eq(load(b, &other), 0);

    /* Placed, a module takes less; unloaded, nothing. */
    uint64_t all = a->client->code_bytes;
    cr_assert_eq(rig.ops->module_place(modules[0], a->base, true), 0);
    cr_assert_lt(a->client->code_bytes, all);
    for (int i = 0; i < n; i++)
        rig.ops->module_unload(modules[i]);
    cr_assert_eq(a->client->code_bytes, 0);
    cr_assert_eq(load(a, &modules[0]), 0);
    rig_client_remove(&rig, 0);
    rig_client_remove(&rig, 1);
    cr_assert_eq(rig.dev->code_bytes, 0);
}

/* A user with many clients has no more than a user with one. */
Test(charge, a_user_has_a_bound_and_leaves_room)
{
    struct dev_module *m;
    write_bomb(8);
    rig.uid = 1000;
    for (int i = 1; i <= 4; i++) {
        struct rig_client *c = rig_client_add(&rig, i, 100, 0, 1, MIB);
        for (unsigned n = 0; n < 1000 && load(c, &m) == 0; n++)
            ;
    }
    const uint64_t taken = rig.dev->code_bytes;
    cr_log_info("four clients of one user: %.1f of %.1f MiB", (double)taken / MIB,
                (double)MOST / MIB);
    cr_assert(taken > MOST / 2 && taken <= MOST / 4 * 3);
    struct rig_client *one = rig_client_add(&rig, 5, 100, 0, 1, MIB);
    unsigned more = 0;
    while (more < 1000 && load(one, &m) == 0)
        more++;
    cr_assert_leq(rig.dev->code_bytes, MOST / 4 * 3);
    rig.uid = 1001;
    struct rig_client *other = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    const uint64_t before = rig.dev->code_bytes;
    for (unsigned n = 0; n < 1000 && load(other, &m) == 0; n++)
        ;
    cr_assert_gt(rig.dev->code_bytes - before, MOST / 16);
    for (int i = 1; i <= 5; i++)
        rig_client_remove(&rig, i);
    cr_assert_eq(rig.dev->code_bytes, other->client->code_bytes);
    rig_client_remove(&rig, 0);
    cr_assert_eq(rig.dev->code_bytes, 0);
    cr_assert(gm_list_empty(&rig.dev->users));
}

/* While it is parsed nothing is charged yet, so the text has a bound of its own. */
Test(charge, a_little_text_does_not_become_a_lot)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    struct dev_module *m;
    for (unsigned depth = 12; depth <= 60; depth += 4) {
        write_bomb(depth);
        if (load(c, &m) == 0) /* its functions are not copied but called */
            rig.ops->module_unload(m);
    }
    const unsigned long peak_kib = peak();
    cr_log_info("at most %lu MiB resident", peak_kib >> 10);
    cr_assert(peak_kib > 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    cr_assert_lt(peak_kib, 200u << 10);
#endif
}

/* On a small device there is room for less of it. */
Test(charge, a_small_device_parses_less)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    struct dev_module *m;
    rig.dev->code_max = 32 * MIB;
    strcpy(text, ".version 7.0\n.target sm_75\n.address_size 64\n.func f(.reg .u64 p)\n{\n");
    for (unsigned i = 0; i < 400; i++) /* so few that it is copied */
        add("st.u64 [p], p;\n");
    add("ret;\n}\n.visible .entry k()\n{\n");
    for (unsigned i = 0; i < 2500; i++)
        add("call f, (0);\n");
    add("ret;\n}\n");
    cr_assert_eq(load(c, &m), GM_CUDA_OUT_OF_MEMORY);
    const unsigned long peak_kib = peak();
    cr_log_info("at most %lu MiB resident", peak_kib >> 10);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    cr_assert_lt(peak_kib, 64u << 10);
#endif
    rig_client_remove(&rig, 0);
}

static void *load_bombs(void *client)
{
    for (unsigned i = 0; i < 2; i++) {
        struct dev_module *m;
        if (load(client, &m) == 0)
            rig.ops->module_unload(m);
    }
    return NULL;
}

/* Nor do many texts at once: they wait for each other. */
static void load_at_once(void)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    pthread_t threads[12];
    for (unsigned i = 0; i < GM_ARRAY_LEN(rig.dev->parses); i++)
        rig.dev->parses[i].most = 64 * MIB;
    for (size_t i = 0; i < GM_ARRAY_LEN(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, load_bombs, c), 0);
    for (size_t i = 0; i < GM_ARRAY_LEN(threads); i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    const unsigned long peak_kib = peak();
    cr_log_info("at most %lu MiB resident", peak_kib >> 10);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    cr_assert_lt(peak_kib, 300u << 10);
#endif
    for (unsigned i = 0; i < GM_ARRAY_LEN(rig.dev->parses); i++)
        cr_assert_eq(rig.dev->parses[i].used, 0);
}

Test(charge, much_text_at_once_does_not_become_a_lot)
{
    write_bomb(60);
    load_at_once();
}

/* Some 300 bytes of text, 48 MiB of registers. */
Test(charge, many_registers_at_once_do_not_become_a_lot)
{
    strcpy(text, ".version 7.0\n.target sm_75\n.address_size 64\n");
    for (unsigned i = 0; i < 4; i++)
        add(".visible .entry k%u()\n{\n.reg .u32 r<%s>;\nmov.u32 r1, 1;\nret;\n}\n", i,
            i % 2 ? "1000000" : " 0xf4240 ");
    load_at_once();
}

/* --- memory of blocks ------------------------------------------------------------------------- */

#define GREEDY      12u
#define BLOCKS_MOST (128 * MIB)
/* Threads that write their number all over that much local memory, and say so. */
#define TEXT_OF(bytes, end)                                                                        \
    ".version 7.0\n.target sm_75\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 q)\n{\n.reg .u64 p, a;\n.reg .u32 i, me;\n.reg .pred "          \
    "more;\n.local .b8 own[" bytes "];\n"                                                          \
    "mov.u32 me, %tid.x;\nmov.u64 a, own;\nmov.u32 i, 0;\nnext:\nst.local.u32 [a], me;\n"          \
    "add.u64 a, a, 4096;\nadd.u32 i, i, 4096;\n"                                                   \
    "setp.lt.u32 more, i, " bytes                                                                  \
    ";\n@more bra next;\nld.param.u64 p, [q];\nst.global.u32 [p], 1;\n" end "ret;\n}\n"

static void run(struct rig_client *c, const char *ptx)
{
    struct dev_module *m;
    strcpy(text, ptx);
    cr_assert_eq(load(c, &m), 0);
    cr_assert_eq(rig.ops->module_place(m, c->base + MIB / 2, true), 0);
    (void)rig_launch(&rig, c, 0,
                     &(struct dev_launch) { .module = m,
                                            .grid = { 1, 1, 1 },
                                            .block = { 256, 1, 1 },
                                            .params = &c->base,
                                            .params_size = sizeof(c->base) });
}

/* Endless kernels keep what they have begun with. */
Test(charge, blocks_of_many_clients_have_a_bound)
{
    soft_sched_bound_scratch(rig.dev->sched, BLOCKS_MOST);
    uint64_t before = resident();
    unsigned refused = 0;
    for (unsigned i = 1; i <= GREEDY; i++) {
        struct rig_client *c = rig_client_add(&rig, (int)i, 100, 0, 1, MIB);
        run(c, TEXT_OF("131072", "forever:\nbra forever;\n"));
        while (!atomic_load(&c->fault) && *(volatile uint32_t *)rig_at(c, 0) == 0)
            ;
        refused += atomic_load(&c->fault) == GM_CUDA_LAUNCH_OUT_OF_RESOURCES;
    }
    cr_log_info("%u of %u refused, %.1f MiB resident", refused, GREEDY,
                (double)(resident() - before) / MIB);
    cr_assert(refused > 0 && refused < GREEDY, "%u", refused);
    cr_assert_lt(resident() - before, BLOCKS_MOST + GREEDY * MIB);
    /* A client that comes then, and needs what most do, gets it. */
    struct rig_client *other = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    run(other, TEXT_OF("4096", ""));
    rig_wait(other, 0, 0);
    cr_assert_eq(atomic_load(&other->fault), 0, "%s", other->fault_text);
    /* When the greedy are gone a large one has room again. */
    for (unsigned i = 1; i <= GREEDY; i++)
        rig_client_remove(&rig, (int)i);
    run(other, TEXT_OF("131072", ""));
    rig_wait(other, 0, 0);
    cr_assert_eq(atomic_load(&other->fault), 0, "%s", other->fault_text);
    rig_client_remove(&rig, 0);
}

/* --- control groups --------------------------------------------------------------------------- */

static char root[] = "/tmp/gmux-cgroup-XXXXXX";

static void put(const char *name, const char *content)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *p = path + sizeof(root); (p = strchr(p, '/')); p++) {
        *p = 0;
        cr_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
        *p = '/';
    }
    GM_AUTO_FILE FILE *f = fopen(path, "we");
    cr_assert(f && fputs(content, f) >= 0, "%s", path);
}

static uint64_t limit(const char *membership)
{
    char path[256];
    put("membership", membership);
    snprintf(path, sizeof(path), "%s/membership", root);
    return dev_cgroup_memory(path, root);
}

static uint64_t device_limit(const char *device)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/membership", root);
    return dev_cgroup_device_memory(path, root, device);
}

/* The form of dmem.max is that of the kernel's document (admin-guide/cgroup-v2). */
static void device_memory(void)
{
    put("membership", "3:cpu:/x\n0::/a/b\n");
    put("a/b/dmem.max", "drm/0000:03:00.0/vram0 1073741824\ndrm/0000:06:00.0/vram0 max\n");
    cr_assert_eq(device_limit("0000:03:00.0"), 1073741824);
    cr_assert_eq(device_limit("0000:06:00.0"), UINT64_MAX);
    cr_assert_eq(device_limit("0000:07:00.0"), UINT64_MAX);
    put("a/dmem.max", "drm/0000:06:00.0/vram0 4096");
    cr_assert_eq(device_limit("0000:06:00.0"), 4096);
    put("unified/a/dmem.max", "drm/0000:06:00.0/vram0 512\nnonsense\n\n");
    cr_assert_eq(device_limit("0000:06:00.0"), 512);
    cr_assert_not(dev_cgroup_has_device_memory(root));
    put("unified/cgroup.controllers", "cpu io memory dmemory\n");
    cr_assert_not(dev_cgroup_has_device_memory(root));
    put("unified/cgroup.controllers", "cpu io memory dmem\n");
    cr_assert(dev_cgroup_has_device_memory(root));
}

Test(cgroup, the_least_limit_on_the_way_up_holds)
{
    char command[64];
    cr_assert_not_null(mkdtemp(root));
    cr_assert_eq(limit("0::/a/b\n"), UINT64_MAX);
    put("a/b/memory.max", "max\n");
    put("a/memory.max", "4096\n");
    cr_assert_eq(limit("0::/a/b\n"), 4096);
    put("a/b/memory.max", "1024\n");
    cr_assert_eq(limit("0::/a/b\n"), 1024);
    cr_assert_eq(limit("0::/a/\n"), 4096);
    cr_assert_eq(limit("0::/\n"), UINT64_MAX);
    put("memory.max", "77\n");
    cr_assert_eq(limit("0::/\n"), 77);
    cr_assert_eq(limit("0::/not/there\n"), 77);
    put("memory/x/memory.limit_in_bytes", "50\n");
    cr_assert_eq(limit("3:cpu,cpuacct:/x\n2:hugetlb,memory:/x\n0::/\n"), 50);
    cr_assert_eq(limit("2:memory_other:/x\n"), UINT64_MAX);
    cr_assert_eq(limit("0::/../../etc\nnonsense\n:\n"), UINT64_MAX);
    put("memory.max", "nonsense\n");
    cr_assert_eq(limit("0::/\n"), UINT64_MAX);
    cr_assert_eq(dev_cgroup_memory("/nonexistent", root), UINT64_MAX);
    for (const char *const *bad = (const char *const[]) { "-1\n", "12x\n", "1e9\n", "", NULL };
         *bad; bad++) {
        put("memory.max", *bad);
        cr_assert_eq(limit("0::/\n"), UINT64_MAX, "%s", *bad);
    }
    device_memory();
    snprintf(command, sizeof(command), "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}
