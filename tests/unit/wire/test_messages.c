/*
 * Every message and struct of the specification: encoded, decoded and compared; cut at every
 * length; one byte changed at every position. What is decoded ends where a page that must not be
 * touched begins, so that one byte read too many is a crash even without a sanitizer.
 */
#include <criterion/criterion.h>

#include <sys/mman.h>

#include "sample.h"

enum { CAPACITY = 1 << 20 };

static uint8_t *guarded; /* CAPACITY bytes, then a page without access */

static void set_up(void)
{
    uint8_t *p =
        mmap(NULL, CAPACITY + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(p != MAP_FAILED);
    cr_assert_eq(mprotect(p + CAPACITY, 4096, PROT_NONE), 0);
    guarded = p;
}

TestSuite(messages, .init = set_up, .timeout = 60);

/* A copy of the first `size` bytes that ends at the guard. */
static uint8_t *at_guard(const uint8_t *data, size_t size)
{
    return memcpy(guarded + CAPACITY - size, data, size);
}

/* Packet or bare struct: does it decode to the sample? */
static bool decodes(const struct sample *s, enum sample_variant v, uint64_t serial,
                    const uint8_t *data, size_t size)
{
    struct wire_dec d;
    if (s->type) {
        struct wire_header h = wire_dec_begin(&d, data, size);
        if (h.type != s->type || h.serial != serial || h.size != size)
            return false;
    } else {
        wire_dec_init(&d, data, size);
    }
    return s->same(&d, v);
}

Test(messages, come_back_as_they_went)
{
    static uint8_t buffer[CAPACITY];
    for (size_t i = 0; i < samples_count; i++) {
        for (unsigned v = 0; v < SAMPLE_VARIANTS; v++) {
            size_t size = sample_pack(&samples[i], v, 77 + i, buffer, sizeof(buffer));
            cr_assert_gt(size, 0, "%s, variant %u: does not fit", samples[i].name, v);
            cr_assert(decodes(&samples[i], v, 77 + i, at_guard(buffer, size), size),
                      "%s, variant %u", samples[i].name, v);
        }
    }
}

Test(messages, are_known_by_their_type)
{
    static uint8_t buffer[CAPACITY];
    for (size_t i = 0; i < samples_count; i++) {
        if (!samples[i].type)
            continue;
        const struct wire_message_info *info = wire_message_info(samples[i].type);
        cr_assert(info);
        cr_assert_str_eq(info->name, samples[i].name);
        cr_assert_leq(info->fds_min, info->fds);
        for (unsigned v = 0; v < SAMPLE_VARIANTS; v++) {
            struct wire_dec d;
            size_t size = sample_pack(&samples[i], v, 1, buffer, sizeof(buffer));
            cr_assert_leq(size, WIRE_PACKET_MAX);
            (void)wire_dec_begin(&d, at_guard(buffer, size), size);
            cr_assert(info->check(&d), "%s, variant %u", samples[i].name, v);
        }
    }
    cr_assert_null(wire_message_info(0));
    cr_assert_null(wire_message_info(9999));
    cr_assert_null(wire_message_info(65535));
}

/* A body that is shorter than it says is fatal at every length; so is one byte more. */
Test(messages, cut_at_any_length_are_refused)
{
    static uint8_t buffer[CAPACITY];
    for (size_t i = 0; i < samples_count; i++) {
        for (unsigned v = 0; v < SAMPLE_VARIANTS; v++) {
            size_t whole = sample_pack(&samples[i], v, 5, buffer, sizeof(buffer));
            for (size_t size = 0; size < whole; size++) {
                uint8_t *p = at_guard(buffer, size);
                cr_assert_not(decodes(&samples[i], v, 5, p, size), "%s cut at %zu of %zu",
                              samples[i].name, size, whole);
                if (!samples[i].type || size < sizeof(struct wire_header))
                    continue;
                /* A liar says that this is all. */
                uint32_t claimed = (uint32_t)size;
                memcpy(p + offsetof(struct wire_header, size), &claimed, sizeof(claimed));
                cr_assert_not(decodes(&samples[i], v, 5, p, size),
                              "%s cut at %zu of %zu, and says so", samples[i].name, size, whole);
            }
            buffer[whole] = 0;
            uint32_t more = (uint32_t)whole + 1;
            if (samples[i].type)
                memcpy(buffer + offsetof(struct wire_header, size), &more, sizeof(more));
            cr_assert_not(decodes(&samples[i], v, 5, at_guard(buffer, whole + 1), whole + 1),
                          "%s and a byte more", samples[i].name);
        }
    }
}

/* Whatever one changed byte makes of a message: it is read within its bounds, and what the decoder
 * says is either "fatal" or strings and lists that are in bounds themselves. */
Test(messages, with_a_changed_byte_are_read_in_bounds)
{
    static const uint8_t flips[] = { 0x01, 0x80, 0xff };
    static uint8_t buffer[CAPACITY];
    for (size_t i = 0; i < samples_count; i++) {
        /* Full samples are mostly text; their structure is that of the small ones. */
        for (unsigned v = SAMPLE_ZERO; v <= SAMPLE_SOME; v++) {
            size_t size = sample_pack(&samples[i], v, 5, buffer, sizeof(buffer));
            uint8_t *p = at_guard(buffer, size);
            for (size_t at = 0; at < size; at++) {
                for (size_t f = 0; f < sizeof(flips); f++) {
                    p[at] ^= flips[f];
                    (void)decodes(&samples[i], v, 5, p, size);
                    p[at] ^= flips[f];
                }
            }
        }
    }
}

Test(messages, do_not_overflow_the_encoder)
{
    static uint8_t buffer[CAPACITY];
    for (size_t i = 0; i < samples_count; i++) {
        size_t whole = sample_pack(&samples[i], SAMPLE_SOME, 5, buffer, sizeof(buffer));
        for (size_t capacity = 0; capacity < whole; capacity++)
            cr_assert_eq(
                sample_pack(&samples[i], SAMPLE_SOME, 5, guarded + CAPACITY - capacity, capacity),
                0);
    }
}

/* The table of who may say what, and when: default no. */
Test(messages, are_allowed_in_their_phase_and_direction_only)
{
    const enum wire_party parties[] = { WIRE_CLIENT, WIRE_CONTROL, WIRE_SERVER, WIRE_EXECUTOR,
                                        WIRE_UI };
    for (unsigned type = 0; type < 300; type++) {
        const struct wire_message_info *info = wire_message_info(type);
        for (size_t from = 0; from < GM_ARRAY_LEN(parties); from++) {
            for (size_t to = 0; to < GM_ARRAY_LEN(parties); to++) {
                bool way = info && info->sender == parties[from] && info->receiver == parties[to];
                bool opening =
                    wire_message_allowed(type, parties[from], parties[to], WIRE_PHASE_OPENING);
                bool open = wire_message_allowed(type, parties[from], parties[to], WIRE_PHASE_OPEN);
                cr_assert_eq(opening || open, way);
            }
        }
    }
    cr_assert(
        wire_message_allowed(WIRE_SESSION_READY, WIRE_CLIENT, WIRE_SERVER, WIRE_PHASE_OPENING));
    cr_assert_not(
        wire_message_allowed(WIRE_SESSION_READY, WIRE_CLIENT, WIRE_SERVER, WIRE_PHASE_OPEN));
    cr_assert_not(
        wire_message_allowed(WIRE_MEMORY_ALLOC, WIRE_CLIENT, WIRE_SERVER, WIRE_PHASE_OPENING));
    cr_assert(wire_message_allowed(WIRE_MEMORY_ALLOC, WIRE_CLIENT, WIRE_SERVER, WIRE_PHASE_OPEN));
}
