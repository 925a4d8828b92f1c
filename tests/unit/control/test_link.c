/*
 * What a server says over its link: believed only where it makes sense. Every message cut at every
 * length ends the server and changes nothing else.
 */
#include <criterion/criterion.h>

#include <string.h>

#include "control/command.h"
#include "control/link.h"
#include "control/process.h"

TestSuite(link, .timeout = 30);

static struct ctl_daemon d;
static struct ctl_server s;
static struct tp_packet packet;

/* A server with one client, as after the hand-over; its process does not exist and is not killed.
 */
static void prepare(enum ctl_server_state state)
{
    d = (struct ctl_daemon) { .control_log = { .fd = -1, .echo = -1 },
                              .server_log = { .fd = -1, .echo = -1 } };
    uv_loop_init(&d.loop);
    gm_list_init(&d.conns);
    gm_list_init(&d.users);
    gm_list_init(&d.servers);
    gm_list_init(&d.queue);
    gm_list_init(&d.quits);
    s = (struct ctl_server) {
        .daemon = &d, .state = state, .pid = 658, .process = -1, .killed = true
    };
    s.timer = ctl_timer_create(&d.loop, NULL, NULL);
    ctl_ration_init(&s.lines, 1000, 1000);
    gm_list_init(&s.pending);
    gm_list_init(&s.clients);
    gm_list_init(&s.asked);
    gm_list_append(&d.servers, &s.link);
    struct ctl_client *c = calloc(1, sizeof(*c));
    c->key = 669;
    gm_list_append(&s.clients, &c->link);
    s.clients_count = 1;
}

static void finish(void)
{
    gm_list_for_each_safe (c, &s.clients, struct ctl_client, link)
        free(c);
    ctl_timer_close(s.timer);
    uv_run(&d.loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&d.loop), 0);
}

/* A packet as it would come from the socket; false if the socket's end already refuses it. */
static bool deliver(const uint8_t *data, size_t size)
{
    uint32_t claimed = (uint32_t)size;
    memcpy(packet.data, data, size);
    if (size >= sizeof(struct wire_header))
        memcpy(packet.data + offsetof(struct wire_header, size), &claimed, sizeof(claimed));
    packet.size = size;
    packet.header = wire_dec_begin(&packet.body, packet.data, size);
    if (packet.body.fatal)
        return false;
    ctl_link_ops.packet(&s, &packet);
    return true;
}

static uint8_t buffer[4096];

static struct wire_enc start(void)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    return e;
}

static struct wire_enc ready(uint32_t devices)
{
    uint8_t list[512];
    struct wire_enc l, e = start();
    wire_enc_init(&l, list, sizeof(list));
    wire_put_link_device(&l, &(struct wire_link_device) { .name = "Fake\nDevice",
                                                          .uuid = { "0123456789abcdef", 16 },
                                                          .pci_bus_id = "0000:06:00.0" });
    wire_pack_link_ready(&e, 0, &(struct wire_link_ready) { devices, { list, (uint32_t)l.size } });
    return e;
}

static struct wire_enc state(uint32_t pid, uint32_t context, uint32_t value)
{
    struct wire_enc e = start();
    wire_pack_link_client_state(
        &e, 0,
        &(struct wire_link_client_state) {
            .pid = pid, .context = context, .state = value, .pid_namespace = 4026531836 });
    return e;
}

static struct wire_enc usage(uint32_t pid, uint64_t serial)
{
    uint8_t list[512];
    struct wire_enc l, e = start();
    wire_enc_init(&l, list, sizeof(list));
    wire_put_client_usage(
        &l, &(struct wire_client_usage) {
                .pid = pid, .memory_used = 5, .memory_limit = UINT64_MAX, .share_pct = 50 });
    wire_pack_link_usage(&e, serial, &(struct wire_link_usage) { { list, (uint32_t)l.size }, 1 });
    return e;
}

static bool is_killed(void)
{
    return s.state == CTL_SERVER_STOPPING || s.cause[0];
}

/* Cuts the message at every length; only the whole of it is accepted. */
static void cut(struct wire_enc e, enum ctl_server_state in)
{
    uint8_t whole[4096];
    memcpy(whole, e.data, e.size);
    for (size_t n = 0; n <= e.size; n++) {
        prepare(in);
        bool delivered = deliver(whole, n);
        cr_assert(delivered || n < sizeof(struct wire_header));
        if (delivered)
            cr_assert_eq(is_killed(), n < e.size, "%zu of %zu bytes", n, e.size);
        finish();
    }
}

Test(link, cut_at_every_length)
{
    struct wire_enc e = start();
    wire_pack_link_log(&e, 0, &(struct wire_link_log) { .line = "Server has started" });
    cut(e, CTL_SERVER_ACTIVE);
    e = start();
    wire_pack_link_fault(&e, 0, &(struct wire_link_fault) { 669, 700, "out of its window" });
    cut(e, CTL_SERVER_ACTIVE);
    e = start();
    wire_pack_link_terminated(&e, 0, &(struct wire_link_terminated) { 669, 0 });
    cut(e, CTL_SERVER_ACTIVE);
    cut(usage(669, 1), CTL_SERVER_ACTIVE);
    cut(ready(1), CTL_SERVER_STARTING);
    cut(state(669, 1, WIRE_CLIENT_STATE_ACTIVE), CTL_SERVER_ACTIVE);
}

Test(link, ready)
{
    prepare(CTL_SERVER_STARTING);
    struct wire_enc e = ready(1);
    cr_assert(deliver(e.data, e.size));
    cr_assert_eq(s.state, CTL_SERVER_ACTIVE);
    cr_assert_eq(d.devices_count, 1);
    cr_assert_str_eq(d.devices[0].name, "Fake?Device");
    cr_assert_str_eq(d.devices[0].uuid, "GPU-30313233-3435-3637-3839-616263646566");
    cr_assert(deliver(e.data, e.size));
    cr_assert(is_killed(), "ready twice");
    finish();
}

Test(link, a_wrong_number_of_devices)
{
    prepare(CTL_SERVER_STARTING);
    struct wire_enc e = ready(2);
    cr_assert(deliver(e.data, e.size));
    cr_assert(is_killed());
    cr_assert_eq(d.devices_count, 0);
    finish();
}

Test(link, why_it_failed)
{
    prepare(CTL_SERVER_STARTING);
    struct wire_enc e = start();
    wire_pack_link_failed(&e, 0, &(struct wire_link_failed) { 100, "there is\nno device" });
    cr_assert(deliver(e.data, e.size));
    cr_assert_eq(s.state, CTL_SERVER_STARTING, "its end is what counts");
    cr_assert_eq(s.result, 100);
    cr_assert_str_eq(s.cause, "there is?no device");
    finish();
}

Test(link, a_client_comes_and_goes)
{
    prepare(CTL_SERVER_ACTIVE);
    struct ctl_client *c = ctl_server_client(&s, 669);
    struct wire_enc e = state(669, 0, WIRE_CLIENT_STATE_CONNECTED);
    cr_assert(deliver(e.data, e.size));
    cr_assert(c->connected);
    cr_assert_eq(c->pid_namespace, 4026531836);
    e = state(669, 1, WIRE_CLIENT_STATE_ACTIVE);
    cr_assert(deliver(e.data, e.size));
    e = state(669, 2, WIRE_CLIENT_STATE_ACTIVE);
    cr_assert(deliver(e.data, e.size));
    e = state(669, 2, WIRE_CLIENT_STATE_INACTIVE);
    cr_assert(deliver(e.data, e.size));
    cr_assert_eq(c->contexts_count, 2);
    cr_assert(c->contexts[0].active && !c->contexts[1].active);
    e = state(669, 1, WIRE_CLIENT_STATE_EXITED);
    cr_assert(deliver(e.data, e.size));
    cr_assert_eq(c->contexts_count, 1);
    cr_assert_eq(c->contexts[0].id, 2);
    e = state(669, 0, WIRE_CLIENT_STATE_EXITED);
    cr_assert(deliver(e.data, e.size));
    cr_assert_null(ctl_server_client(&s, 669));
    cr_assert_eq(s.clients_count, 0);
    finish();
}

Test(link, what_a_server_says_of_strangers_is_not_kept)
{
    prepare(CTL_SERVER_ACTIVE);
    struct wire_enc e = state(1, 0, WIRE_CLIENT_STATE_CONNECTED);
    cr_assert(deliver(e.data, e.size));
    cr_assert_eq(s.clients_count, 1);
    for (uint32_t i = 1; i < 1000; i++) {
        e = state(669, i, WIRE_CLIENT_STATE_ACTIVE);
        cr_assert(deliver(e.data, e.size));
    }
    cr_assert_eq(ctl_server_client(&s, 669)->contexts_count, CTL_CONTEXTS_MAX);
    cr_assert_not(is_killed());
    finish();
}

Test(link, what_is_not_for_servers_to_say)
{
    static const unsigned types[] = { WIRE_HELLO,       WIRE_UI_COMMAND,
                                      WIRE_LINK_SETUP,  WIRE_LINK_CLIENT,
                                      WIRE_LINK_LIMITS, WIRE_STATUS,
                                      WIRE_ENGINE_DONE, 999 };
    for (size_t i = 0; i < GM_ARRAY_LEN(types); i++) {
        prepare(CTL_SERVER_ACTIVE);
        struct wire_enc e = start();
        wire_begin(&e, types[i], 0);
        wire_put_u32(&e, 0);
        wire_end(&e);
        cr_assert(deliver(e.data, e.size));
        cr_assert(is_killed(), "type %u", types[i]);
        finish();
    }
}

Test(link, log_lines_are_rationed)
{
    struct ctl_ration r;
    unsigned left_out, taken = 0;
    ctl_ration_init(&r, 10, 100);
    uint64_t now = 5000000000;
    for (int i = 0; i < 100; i++)
        taken += ctl_ration_take(&r, now, 0, &left_out);
    cr_assert_eq(taken, 10, "a burst");
    cr_assert_eq(left_out, 0);
    cr_assert_not(ctl_ration_take(&r, now + 9000000, 0, &left_out));
    cr_assert(ctl_ration_take(&r, now + 10000000, 0, &left_out), "then a hundred in a second");
    cr_assert_eq(left_out, 91);
    cr_assert_not(ctl_ration_take(&r, now + 10000000, 0, &left_out));
    cr_assert(ctl_ration_take(&r, now + 30000000, 0, &left_out));
    cr_assert_eq(left_out, 0, "told once a second");
    cr_assert(ctl_ration_take(&r, now + 3000000000, 0, &left_out));
    cr_assert_eq(left_out, 1);
    cr_assert_not(ctl_ration_take(&r, now + 3000000000, 9, &left_out), "some are reserved");
}

Test(link, usage_that_nobody_asked_for_is_no_more_than_read)
{
    prepare(CTL_SERVER_ACTIVE);
    struct wire_enc e = usage(669, 1);
    cr_assert(deliver(e.data, e.size));
    cr_assert_not(is_killed());
    finish();
}

Test(link, usage_answers_its_question_for_clients_that_are_there)
{
    prepare(CTL_SERVER_ACTIVE);
    struct ctl_request r = { .daemon = &d, .awaits = WIRE_LINK_USAGE, .serial = 7 };
    struct wire_client_usage u = {
        .pid = 669, .device = 3, .memory_used = 5, .memory_limit = UINT64_MAX, .share_pct = 50
    };
    ctl_cmd_clients_row(&r, &s, ctl_server_client(&s, 669), &u);
    cr_assert_str_eq(r.reply.data, "669\t0\t-\tstarting\t50.0\tnormal\t5\t-\t\t-\t0.0\n");
    ctl_text_cut(&r.reply, 0);
    u.memory_limit = 9;
    u.failed = 700;
    u.priority = 1;
    ctl_cmd_clients_row(&r, &s, ctl_server_client(&s, 669), &u);
    cr_assert_str_eq(r.reply.data, "669\t0\t-\tfailed\t50.0\tlow\t5\t9\t\t-\t0.0\n");
    ctl_text_finish(&r.reply);
    finish();
}
