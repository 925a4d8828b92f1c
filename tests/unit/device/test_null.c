/* The null device, and with it the queues that all devices share. */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define MIB (1ull << 20)

static struct rig rig;

static void begin(void)
{
    rig_open(&rig, &dev_null_ops);
}
static void end(void)
{
    rig_close(&rig);
}
TestSuite(null, .init = begin, .fini = end, .timeout = 30);

Test(null, says_what_it_is)
{
    const struct dev_info *info = rig.ops->info(rig.dev, 0);
    cr_assert_str_eq(info->name, "gmux null device");
    cr_assert_eq(info->attributes[16], (int)info->multiprocessors);
    cr_assert_eq(info->attributes[10], 32);
    cr_assert_geq(info->memory_total, 64 * MIB);
    struct dev *again;
    cr_assert_eq(rig.ops->open(&again, &rig.events), 0);
    cr_assert_arr_eq(rig.ops->info(again, 0)->uuid, info->uuid, 16);
    rig.ops->close(again);
}

Test(null, registry)
{
    char why[256];
    cr_assert_eq(dev_find("null", why, sizeof(why)), &dev_null_ops);
    cr_assert_null(dev_find("../null", why, sizeof(why)));
    cr_assert_null(dev_find("nosuch", why, sizeof(why)));
    cr_assert(strstr(why, "gmux-dev-nosuch.so"), "%s", why);
}

Test(null, moves_memory)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 4 * MIB);
    rig_fill(&rig, c, 0, c->base, MIB / 4, 0xdeadbeef, 4);
    rig_fill(&rig, c, 0, c->base + 8, 3, 0x1234, 2);
    rig_fill(&rig, c, 0, c->base + 16, 3, 0x55, 1);
    rig_copy(&rig, c, 0, c->base + 2 * MIB, c->base, MIB);
    const char text[] = "hello";
    cr_assert_eq(rig.ops->write(c->queue[0], ++c->seq[0], c->base + 3 * MIB, text, sizeof(text)),
                 0);
    rig_wait(c, 0, 0);
    cr_assert_arr_eq(rig_at(c, 2 * MIB), rig_at(c, 0), MIB);
    cr_assert_eq(*(uint32_t *)rig_at(c, 2 * MIB), 0xdeadbeef);
    cr_assert_eq(*(uint16_t *)rig_at(c, 12), 0x1234);
    cr_assert_eq(*(uint8_t *)rig_at(c, 18), 0x55);
    cr_assert_str_eq(rig_at(c, 3 * MIB), text);
    cr_assert_eq(rig.ops->backlog(c->client), 0);
}

Test(null, boxes)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 4 * MIB);
    uint8_t *src = rig_at(c, 0), *dst = rig_at(c, 2 * MIB);
    for (size_t i = 0; i < 4096; i++)
        src[i] = (uint8_t)(i * 7);
    const struct wire_rec_copy r = { .dst = c->base + 2 * MIB,
                                     .src = c->base,
                                     .width = 5,
                                     .height = 3,
                                     .depth = 2,
                                     .dst_pitch = 8,
                                     .dst_slice = 64,
                                     .src_pitch = 16,
                                     .src_slice = 256 };
    cr_assert_eq(rig.ops->copy(c->queue[0], ++c->seq[0], &r), 0);
    rig_wait(c, 0, 0);
    for (size_t z = 0; z < 2; z++)
        for (size_t y = 0; y < 3; y++) {
            cr_assert_arr_eq(dst + z * 64 + y * 8, src + z * 256 + y * 16, 5);
            cr_assert_eq(dst[z * 64 + y * 8 + 5], 0);
        }
}

/* However large it is in other directions. */
Test(null, a_box_without_depth_is_nothing)
{
    const uint64_t huge = 1ull << 33;
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 4096);
    const struct wire_rec_copy r = { .dst = c->base,
                                     .src = c->base,
                                     .width = huge,
                                     .height = huge,
                                     .depth = 0,
                                     .dst_pitch = huge,
                                     .src_pitch = huge };
    cr_assert_eq(rig.ops->copy(c->queue[0], ++c->seq[0], &r), 0);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 0);
}

Test(null, host_area_is_the_upper_half)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    uint64_t host = c->base + RIG_WINDOW_SIZE / 2;
    cr_assert_eq(rig.ops->memory_map(c->client, host, MIB), 0);
    cr_assert_neq(rig.ops->memory_map(c->client, host - 4096, 8192), 0,
                  "ranges do not span both areas");
    cr_assert_neq(rig.ops->memory_map(c->client, c->base + RIG_WINDOW_SIZE - 4096, 8192), 0);
    cr_assert_neq(rig.ops->memory_map(c->client, c->base + 1, 4096), 0);
    rig_fill(&rig, c, 0, host, 16, 7, 1);
    rig_copy(&rig, c, 0, c->base, host, 16);
    rig_wait(c, 0, 0);
    cr_assert_eq(*(uint8_t *)rig_at(c, 15), 7);
}

Test(null, waits_for_another_queue)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 3, MIB);
    uint64_t gate = rig_gate(&rig, c, 0);
    rig_wait_op(&rig, c, 1, 0, gate);
    rig_fill(&rig, c, 1, c->base, 4, 1, 1);
    rig_wait_op(&rig, c, 2, 1, c->seq[1]);
    rig_fill(&rig, c, 2, c->base, 4, 2, 1);
    cr_assert_eq(rig_completed(c, 1), 0);
    cr_assert_eq(rig_completed(c, 2), 0);
    cr_assert_eq(rig.ops->backlog(c->client), 5);
    cr_assert_eq(*(uint8_t *)rig_at(c, 0), 0);
    rig_open_gate(&rig, c, 0, gate);
    for (int q = 0; q < 3; q++)
        rig_wait(c, q, 0);
    cr_assert_eq(*(uint8_t *)rig_at(c, 0), 2);
    cr_assert_eq(rig.ops->backlog(c->client), 0);
}

/* The executor stops reading the ring at a number of operations, whatever these keep in memory. */
Test(null, operations_that_keep_much_count_for_several)
{
    static uint8_t bytes[32768];
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, MIB);
    uint64_t gate = rig_gate(&rig, c, 0);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(rig.ops->write(c->queue[0], ++c->seq[0], c->base, bytes, sizeof(bytes)), 0);
    cr_assert_geq(rig.ops->backlog(c->client), 10 * sizeof(bytes) / 1024);
    rig_open_gate(&rig, c, 0, gate);
    rig_wait(c, 0, 0);
    cr_assert_eq(rig.ops->backlog(c->client), 0);
}

Test(null, gate_announces_itself_once)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 2, 0);
    struct tp_session_control *control = c->session.control;
    uint64_t first = rig_gate(&rig, c, 0);
    cr_assert_eq(atomic_load(&control->arrivals.value), 1);
    cr_assert_eq(atomic_load(&c->session.streams[0].arrived), first);
    rig.ops->gate_moved(c->queue[0]);
    cr_assert_eq(atomic_load(&control->arrivals.value), 1);
    cr_assert_eq(rig_completed(c, 0), 0);
    uint64_t second = rig_gate(&rig, c, 0);
    rig_gate(&rig, c, 1);
    cr_assert_eq(atomic_load(&control->arrivals.value), 2);
    rig_open_gate(&rig, c, 0, first);
    cr_assert_eq(rig_completed(c, 0), first);
    cr_assert_eq(atomic_load(&control->arrivals.value), 3);
    cr_assert_eq(atomic_load(&c->session.streams[0].arrived), second);
    rig_open_gate(&rig, c, 0, second);
    cr_assert_eq(rig_completed(c, 0), second);
}

Test(null, stamps_in_order)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 0);
    uint64_t before = rig_stamp(&rig, c, 0, 3);
    uint64_t gate = rig_gate(&rig, c, 0);
    uint64_t after = rig_stamp(&rig, c, 0, 4);
    cr_assert_eq(atomic_load(&c->session.events[3].seq), before);
    cr_assert_eq(atomic_load(&c->session.events[4].seq), 0);
    rig_open_gate(&rig, c, 0, gate);
    cr_assert_eq(atomic_load(&c->session.events[4].seq), after);
    cr_assert_geq(atomic_load(&c->session.events[4].time_ns),
                  atomic_load(&c->session.events[3].time_ns));
}

Test(null, closing_a_queue_releases_who_waits_for_it)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 2, 0);
    rig_wait_op(&rig, c, 1, 0, 1000);
    cr_assert_eq(rig_completed(c, 1), 0);
    rig.ops->queue_destroy(c->queue[0]);
    cr_assert_eq(rig_completed(c, 1), 1);
}

Test(null, wrong_addresses_are_the_clients_fault)
{
    static const struct {
        uint64_t dst, src, size;
    } wrong[] = {
        { 0, 64, 16 },
        { 0, UINT64_MAX, 1 },
        { 0, RIG_WINDOW_SIZE, 1 },
        { RIG_WINDOW_SIZE - 8, 0, 16 },
        { 0, 0, UINT64_MAX },
    };
    for (int i = 0; i < (int)GM_ARRAY_LEN(wrong); i++) {
        struct rig_client *c = rig_client_add(&rig, i, 100, 0, 1, i == 0 ? 0 : 4096);
        rig_copy(&rig, c, 0, c->base + wrong[i].dst, c->base + wrong[i].src, wrong[i].size);
        rig_wait(c, 0, 0);
        cr_assert_eq(atomic_load(&c->fault), 700, "case %d: %d", i, atomic_load(&c->fault));
    }
}

Test(null, after_a_fault_everything_completes_undone)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 3, 4096);
    rig_gate(&rig, c, 0);
    rig_wait_op(&rig, c, 1, 0, 1);
    rig_fill(&rig, c, 1, c->base, 4, 9, 1);
    rig_fill(&rig, c, 2, c->base + 8192, 4, 1, 1);
    for (int q = 0; q < 3; q++)
        rig_wait(c, q, 0);
    cr_assert_eq(atomic_load(&c->fault), 700);
    cr_assert_eq(atomic_load(&c->fault_address), c->base + 8192);
    cr_assert_eq(*(uint8_t *)rig_at(c, 0), 0);
    rig_fill(&rig, c, 2, c->base, 4, 1, 1);
    rig_gate(&rig, c, 2);
    rig_wait(c, 2, 0);
    cr_assert_eq(*(uint8_t *)rig_at(c, 0), 0);
    cr_assert_eq(rig.ops->backlog(c->client), 0);
}

Test(null, unmapped_again_faults)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 8192);
    rig_fill(&rig, c, 0, c->base + 4096, 4, 1, 1);
    rig.ops->memory_unmap(c->client, c->base + 4096, 4096);
    cr_assert_eq(atomic_load(&c->fault), 0);
    rig_fill(&rig, c, 0, c->base + 4096, 4, 1, 1);
    cr_assert_eq(atomic_load(&c->fault), 700);
}

Test(null, stop_drops_everything_silently)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 2, 4096);
    rig_gate(&rig, c, 0);
    rig_fill(&rig, c, 0, c->base, 4, 1, 1);
    rig_wait_op(&rig, c, 1, 0, 2);
    rig.ops->client_stop(c->client);
    rig_wait(c, 0, 0);
    rig_wait(c, 1, 0);
    cr_assert_eq(atomic_load(&c->fault), 0);
    cr_assert_eq(*(uint8_t *)rig_at(c, 0), 0);
}

static const char text[] =
    "// .entry not_this(\n.version 8.5\n.target sm_75\n.address_size 64\n"
    ".extern .shared .align 16 .b8 dyn[];\n"
    ".global .align 4 .u32 table[4] = {1, 2, 3, 4};\n.const .f64 pi = 0d400921FB54442D18;\n"
    ".visible .entry one(.param .u64 .ptr .align 1 a, .param .u8 b, .param .align 8 .b8 c[24])\n"
    ".maxntid 256 { .reg .u32 %r<3>; .global .u32 inner; ret; }\n"
    "/* .entry nor_this( */ .entry two { ret; }\n";

Test(null, modules)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 4096);
    struct dev_module *m;
    struct dev_module_info info;
    cr_assert_eq(
        rig.ops->module_load(c->client, 0, text, sizeof(text), WIRE_IMAGE_KIND_PTX, &m, &info), 0);
    struct wire_dec d, list;
    struct wire_module_info mi;
    struct wire_function_info f;
    struct wire_global_info g;
    wire_dec_init(&d, info.info.data, info.info.size);
    wire_get_module_info(&d, &mi);
    cr_assert(wire_dec_finish(&d));
    cr_assert_eq(mi.ptx_version, 85);
    cr_assert_eq(mi.target, 75);
    wire_dec_init(&list, mi.functions.data, mi.functions.size);
    wire_get_function_info(&list, &f);
    cr_assert_str_eq(f.name, "one");
    const uint32_t layout[] = { 0, 8, 8, 1, 16, 24 };
    cr_assert_eq(f.params.size, sizeof(layout));
    cr_assert_arr_eq(f.params.data, layout, sizeof(layout));
    cr_assert_eq(f.param_bytes, 40);
    wire_get_function_info(&list, &f);
    cr_assert_str_eq(f.name, "two");
    cr_assert(wire_dec_finish(&list));
    wire_dec_init(&list, mi.globals.data, mi.globals.size);
    wire_get_global_info(&list, &g);
    cr_assert_str_eq(g.name, "table");
    cr_assert_eq(g.size, 16);
    wire_get_global_info(&list, &g);
    cr_assert_str_eq(g.name, "pi");
    cr_assert_eq(g.offset, 16);
    cr_assert_eq(g.is_const, 1);
    cr_assert(wire_dec_finish(&list));

    const struct dev_launch good = {
        .module = m, .function = 1, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }
    };
    rig_launch(&rig, c, 0, &good);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 0);
    const struct dev_launch bad = {
        .module = m, .function = 2, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }
    };
    rig_launch(&rig, c, 0, &bad);
    rig_wait(c, 0, 0);
    cr_assert_eq(atomic_load(&c->fault), 400);
    rig.ops->module_unload(m);
}

Test(null, module_text_cut_anywhere)
{
    struct rig_client *c = rig_client_add(&rig, 0, 100, 0, 1, 4096);
    for (size_t n = 0; n < sizeof(text); n++) {
        struct dev_module *m;
        struct dev_module_info info;
        char *cut = malloc(n + 1); /* exact size for the address sanitizer */
        memcpy(cut, text, n);
        if (rig.ops->module_load(c->client, 0, cut, n, WIRE_IMAGE_KIND_PTX, &m, &info) == 0)
            rig.ops->module_unload(m);
        else
            free(info.log);
        free(cut);
    }
}
