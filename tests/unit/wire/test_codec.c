/*
 * The codec's own rules, which no sample of a well-behaved peer shows: stickiness, lengths that
 * lie, strings with a NUL inside, numbers that are none, lists with too many elements; and the
 * sizes of ring records.
 */
#include <criterion/criterion.h>

#include <math.h>

#include "sample.h"

TestSuite(codec, .timeout = 30);

Test(codec, errors_stick)
{
    uint8_t data[8] = { 1, 0, 0, 0, 2, 0, 0, 0 };
    struct wire_dec d;
    wire_dec_init(&d, data, sizeof(data));
    cr_assert_eq(wire_get_u32(&d), 1);
    cr_assert_eq(wire_get_u64(&d), 0);
    cr_assert(d.fatal);
    cr_assert_eq(wire_get_u32(&d), 0, "four bytes are left, but nothing is read after an error");
    cr_assert(wire_dec_end(&d), "loops end");
    cr_assert_not(wire_dec_finish(&d));
}

Test(codec, strings_are_text)
{
    struct {
        uint32_t length;
        char text[8];
    } s = { 3, "abc" };
    struct wire_dec d;
    wire_dec_init(&d, &s, 8);
    cr_assert_str_eq(wire_get_str(&d, 3), "abc");
    cr_assert(wire_dec_finish(&d));

    wire_dec_init(&d, &s, 8);
    cr_assert_str_eq(wire_get_str(&d, 2), "", "longer than allowed");
    cr_assert(d.fatal);

    s.text[1] = '\0';
    wire_dec_init(&d, &s, 8);
    cr_assert_str_eq(wire_get_str(&d, 3), "", "NUL inside");
    cr_assert(d.fatal);

    memcpy(s.text, "abcd", 4);
    wire_dec_init(&d, &s, 8);
    cr_assert_str_eq(wire_get_str(&d, 3), "", "no NUL at the end");
    cr_assert(d.fatal);

    s.length = UINT32_MAX;
    wire_dec_init(&d, &s, sizeof(s));
    cr_assert_str_eq(wire_get_str(&d, UINT32_MAX), "", "length that wraps");
    cr_assert(d.fatal);
}

Test(codec, numbers_are_finite)
{
    const double bad[] = { NAN, INFINITY, -INFINITY };
    struct wire_dec d;
    for (size_t i = 0; i < GM_ARRAY_LEN(bad); i++) {
        wire_dec_init(&d, &bad[i], sizeof(bad[i]));
        double v = wire_get_f64(&d);
        cr_assert(v >= 0 && v <= 0);
        cr_assert(d.fatal);
    }
}

Test(codec, long_strings_and_bytes_are_not_written)
{
    uint8_t buffer[64];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_put_str(&e, "abcd", 3);
    cr_assert(e.fatal);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_put_bytes(&e, (struct wire_bytes) { "abcd", 4 }, 3);
    cr_assert(e.fatal);
    wire_put_u32(&e, 1);
    cr_assert_eq(e.size, 0, "nothing is written after an error");
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_put_str(&e, NULL, 3);
    cr_assert_not(e.fatal);
    cr_assert_eq(e.size, 5);
}

Test(codec, headers_match_their_packets)
{
    uint8_t packet[64];
    struct wire_enc e;
    wire_enc_init(&e, packet, sizeof(packet));
    wire_pack_status(&e, 9, &(struct wire_status) { .result = 700 });
    struct wire_dec d;
    struct wire_header h = wire_dec_begin(&d, packet, e.size);
    cr_assert_eq(h.type, WIRE_STATUS);
    cr_assert_eq(h.serial, 9);
    cr_assert_eq(h.size, e.size);

    packet[2] = 1; /* reserved */
    h = wire_dec_begin(&d, packet, e.size);
    cr_assert(d.fatal);
    cr_assert_eq(h.type, 0);
    packet[2] = 0;
    h = wire_dec_begin(&d, packet, e.size - 1);
    cr_assert(d.fatal, "size says more than there is");
}

/* One device more than session_open allows; each is well formed. */
Test(codec, lists_have_a_maximum)
{
    static uint8_t list[4096], packet[8192];
    for (unsigned count = 16; count <= 17; count++) {
        struct wire_enc e;
        wire_enc_init(&e, list, sizeof(list));
        for (unsigned i = 0; i < count; i++)
            wire_put_device(&e, &(struct wire_device) { .name = "d" });
        cr_assert_not(e.fatal);
        const struct wire_session_open m = { .devices = { list, (uint32_t)e.size } };
        wire_enc_init(&e, packet, sizeof(packet));
        wire_pack_session_open(&e, 1, &m);
        cr_assert_not(e.fatal);
        struct wire_dec d;
        (void)wire_dec_begin(&d, packet, e.size);
        cr_assert_eq(wire_message_info(WIRE_SESSION_OPEN)->check(&d), count == 16);
    }
}

Test(codec, records_are_as_large_as_they_are)
{
    for (size_t i = 0; i < sample_records_count; i++) {
        const struct sample_record *s = &sample_records[i];
        cr_assert_str_eq(wire_record_name(s->op), s->name);
        cr_assert_eq(s->fixed % 8, 0);
        cr_assert_leq(s->fixed + s->variable, WIRE_RECORD_MAX);
        for (size_t size = 0; size <= WIRE_RECORD_MAX + 8; size++) {
            const struct wire_record r = { .op = (uint16_t)s->op, .size = (uint32_t)size };
            bool fits = size >= s->fixed && size <= s->fixed + s->variable;
            cr_assert_eq(wire_record_check(&r), fits, "%s of %zu bytes", s->name, size);
        }
        cr_assert_not(
            wire_record_check(&(struct wire_record) { .op = (uint16_t)s->op, .size = UINT32_MAX }));
        cr_assert_not(wire_record_check(&(struct wire_record) {
            .op = (uint16_t)s->op, .size = (uint32_t)s->fixed, .flags = 1 }));
        cr_assert_not(wire_record_check(&(struct wire_record) {
            .op = (uint16_t)s->op, .size = (uint32_t)s->fixed, .reserved = 1 }));
    }
    cr_assert_not(
        wire_record_check(&(struct wire_record) { .op = 0, .size = sizeof(struct wire_record) }));
    cr_assert_not(wire_record_check(
        &(struct wire_record) { .op = WIRE_OP_END_, .size = sizeof(struct wire_record) }));
    cr_assert_not(wire_record_check(
        &(struct wire_record) { .op = UINT16_MAX, .size = sizeof(struct wire_record) }));
    cr_assert_null(wire_record_name(0));
    cr_assert_null(wire_record_name(WIRE_OP_END_));
}

static int seen;

static int see_launch(void *arg, const struct wire_rec_launch *r)
{
    seen = (int)r->function;
    return *(int *)arg;
}

Test(codec, records_reach_their_function)
{
    int arg = 42;
    const struct wire_record_ops ops = { .launch = see_launch };
    const struct wire_rec_launch launch = {
        .head = { .op = WIRE_OP_LAUNCH, .size = sizeof(launch) }, .function = 7
    };
    cr_assert_eq(wire_record_dispatch(&ops, &arg, &launch.head), 42);
    cr_assert_eq(seen, 7);
    cr_assert_eq(wire_record_dispatch(&ops, &arg, &(struct wire_record) { .op = WIRE_OP_END_ }),
                 -1);
}
