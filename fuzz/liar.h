/*
 * Messages of a party that says anything: read from a fuzzer's input, well formed as far as that
 * goes, and of types that the other end takes from it. A message is a type, a serial and a kind of
 * descriptor, a byte each, then the length of its body and the body, to which zeroes are added
 * until it is well formed. In a body 0xfe and a byte stand for an address that the party was told,
 * 0xfd for a token.
 */
#ifndef GMUX_FUZZ_LIAR_H
#define GMUX_FUZZ_LIAR_H

#include <string.h>

#include "wire/messages.h"

#define LIAR_TOKEN_BYTES 32u
#define LIAR_ZEROES      128u /* that are added at most */

struct liar_words {
    const uint64_t *addresses;
    unsigned addresses_count;
    const uint8_t *token;
};

struct liar_message {
    unsigned type;
    struct wire_enc packet;
    uint8_t data[16 + 255 * (LIAR_TOKEN_BYTES + 4) + LIAR_ZEROES];
};

static const uint8_t *liar_input;
static size_t liar_left;

static inline uint8_t liar_take(void)
{
    if (liar_left == 0)
        return 0;
    liar_left--;
    return *liar_input++;
}

static inline unsigned liar_types(enum wire_party sender, enum wire_party receiver,
                                  uint8_t types[256])
{
    unsigned n = 0;
    for (unsigned t = 0; t < 256; t++) {
        const struct wire_message_info *info = wire_message_info(t);
        if (info && info->sender == sender && info->receiver == receiver)
            types[n++] = (uint8_t)t;
    }
    return n;
}

static inline size_t liar_body(uint8_t *body, const struct liar_words *words)
{
    size_t size = 0;
    for (unsigned n = liar_take(); n && liar_left; n--) {
        uint8_t byte = liar_take();
        if (byte == 0xfe) {
            memcpy(body + size, &words->addresses[liar_take() % words->addresses_count], 8);
            size += 8;
        } else if (byte == 0xfd) {
            const uint32_t length = LIAR_TOKEN_BYTES;
            memcpy(body + size, &length, 4);
            memcpy(body + size + 4, words->token, LIAR_TOKEN_BYTES);
            size += 4 + LIAR_TOKEN_BYTES;
        } else {
            body[size++] = byte;
        }
    }
    return size;
}

/* The kind of descriptor. */
static inline unsigned liar_message(struct liar_message *m, enum wire_party sender,
                                    enum wire_party receiver, const struct liar_words *words)
{
    uint8_t types[256];
    m->type = types[liar_take() % liar_types(sender, receiver, types)];
    const uint64_t serial = liar_take();
    const unsigned kind = liar_take();
    memset(m->data, 0, sizeof(m->data));
    uint8_t *body = m->data + sizeof(struct wire_header);
    size_t size = liar_body(body, words);
    struct wire_dec d;
    wire_dec_init(&d, body, size + LIAR_ZEROES);
    (void)wire_message_info(m->type)->check(&d);
    if (!d.fatal && d.pos > size)
        size = d.pos;
    const struct wire_header h = { .type = (uint16_t)m->type,
                                   .size = (uint32_t)(sizeof(h) + size),
                                   .serial = serial };
    memcpy(m->data, &h, sizeof(h));
    m->packet = (struct wire_enc) { .data = m->data, .size = h.size, .capacity = sizeof(m->data) };
    return kind;
}

#endif
