/*
 * Encoder and decoder of packets. All numbers little-endian; strings and byte runs are
 * length-prefixed.
 *
 * Errors are sticky: a decoder that would read out of bounds, or meets a string that is too long or
 * has a NUL inside, sets `fatal` and returns zeros from then on, so that generated code has no
 * error branches. The caller looks once, with wire_dec_finish(), and drops the peer. The same for
 * an encoder that runs out of room. A list in a message that decoded well is well formed itself:
 * its elements can be read without another look.
 *
 * Any thread; no allocation. Decoded strings and bytes point into the packet.
 */
#ifndef GMUX_WIRE_CODEC_H
#define GMUX_WIRE_CODEC_H

#include "base/attr.h"

#define WIRE_LIST_MAX   (16u << 20)
#define WIRE_PACKET_MAX 65536u /* one packet on a socket, header included */

struct wire_bytes {
    const void *data;
    uint32_t size;
};

/* First in every packet. */
struct wire_header {
    uint16_t type;
    uint16_t reserved; /* 0 */
    uint32_t size;     /* of the packet, header included */
    uint64_t serial;   /* chosen by who asks; an answer repeats it; 0: no answer expected */
};
_Static_assert(sizeof(struct wire_header) == 16, "layout");

/* First in every record of a command ring. */
struct wire_record {
    uint16_t op;    /* enum wire_op */
    uint16_t flags; /* 0 */
    uint32_t size;  /* of the record, this header included; the ring rounds up to 8 */
    uint32_t stream;
    uint32_t reserved;
    uint64_t seq; /* position in its stream, counted from 1 */
};
_Static_assert(sizeof(struct wire_record) == 24, "layout");

/* A handle of a graph with conditional nodes, as the record has it (control.api). */
struct wire_graph_handle {
    uint32_t initial;
    uint32_t assign; /* 1: each launch begins with the initial value; else 0 */
};
_Static_assert(sizeof(struct wire_graph_handle) == 8, "layout");

struct wire_enc {
    uint8_t *data;
    size_t size; /* written so far */
    size_t capacity;
    bool fatal;
};

struct wire_dec {
    const uint8_t *data;
    size_t size;
    size_t pos;
    bool fatal;
};

/* Writes into the caller's buffer, which outlives the encoder. */
void wire_enc_init(struct wire_enc *e, void *buffer, size_t capacity);
void wire_begin(struct wire_enc *e, unsigned type, uint64_t serial);
void wire_end(struct wire_enc *e);
void wire_put_u32(struct wire_enc *e, uint32_t v);
void wire_put_u64(struct wire_enc *e, uint64_t v);
void wire_put_i32(struct wire_enc *e, int32_t v);
void wire_put_f64(struct wire_enc *e, double v);
/* NULL is written as the empty string. Longer than `max` is fatal. */
void wire_put_str(struct wire_enc *e, const char *s, uint32_t max);
void wire_put_bytes(struct wire_enc *e, struct wire_bytes b, uint32_t max);

void wire_dec_init(struct wire_dec *d, const void *data, size_t size);
/* Reads the header of a packet of `size` bytes; fatal if it does not match. The body comes next. */
struct wire_header wire_dec_begin(struct wire_dec *d, const void *packet, size_t size);
uint32_t wire_get_u32(struct wire_dec *d);
uint64_t wire_get_u64(struct wire_dec *d);
int32_t wire_get_i32(struct wire_dec *d);
/* Fatal unless finite. */
double wire_get_f64(struct wire_dec *d);
const char *wire_get_str(struct wire_dec *d, uint32_t max);
struct wire_bytes wire_get_bytes(struct wire_dec *d, uint32_t max);
/* True when nothing is left to read, or nothing can be: ends loops over lists. */
bool wire_dec_end(const struct wire_dec *d);
/* True if all was well formed and nothing is left over. */
GM_MUST_CHECK bool wire_dec_finish(const struct wire_dec *d);

#endif
