/*
 * Every read goes through one function that checks the bounds, and every write through one that
 * checks the room.
 */
#include "wire/codec.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the wire format is little-endian; add swaps here");

void wire_enc_init(struct wire_enc *e, void *buffer, size_t capacity)
{
    *e = (struct wire_enc) { .data = buffer, .capacity = capacity };
}

static void put(struct wire_enc *e, const void *p, size_t n)
{
    if (e->fatal || n > e->capacity - e->size) {
        e->fatal = true;
        return;
    }
    if (n)
        memcpy(e->data + e->size, p, n);
    e->size += n;
}

void wire_begin(struct wire_enc *e, unsigned type, uint64_t serial)
{
    struct wire_header h = { .type = (uint16_t)type, .serial = serial };
    put(e, &h, sizeof(h));
}

void wire_end(struct wire_enc *e)
{
    if (e->fatal || e->size > WIRE_PACKET_MAX) {
        e->fatal = true;
        return;
    }
    uint32_t size = (uint32_t)e->size;
    memcpy(e->data + offsetof(struct wire_header, size), &size, sizeof(size));
}

void wire_put_u32(struct wire_enc *e, uint32_t v)
{
    put(e, &v, sizeof(v));
}

void wire_put_u64(struct wire_enc *e, uint64_t v)
{
    put(e, &v, sizeof(v));
}

void wire_put_i32(struct wire_enc *e, int32_t v)
{
    put(e, &v, sizeof(v));
}

void wire_put_f64(struct wire_enc *e, double v)
{
    put(e, &v, sizeof(v));
}

void wire_put_str(struct wire_enc *e, const char *s, uint32_t max)
{
    size_t n = s ? strlen(s) : 0;
    if (n > max) {
        e->fatal = true;
        return;
    }
    wire_put_u32(e, (uint32_t)n);
    put(e, n ? s : "", n + 1);
}

void wire_put_bytes(struct wire_enc *e, struct wire_bytes b, uint32_t max)
{
    if (b.size > max) {
        e->fatal = true;
        return;
    }
    wire_put_u32(e, b.size);
    put(e, b.data, b.size);
}

void wire_dec_init(struct wire_dec *d, const void *data, size_t size)
{
    *d = (struct wire_dec) { .data = data, .size = size };
}

static const void *get(struct wire_dec *d, size_t n)
{
    if (d->fatal || n > d->size - d->pos) {
        d->fatal = true;
        return NULL;
    }
    const void *p = d->data + d->pos;
    d->pos += n;
    return p;
}

struct wire_header wire_dec_begin(struct wire_dec *d, const void *packet, size_t size)
{
    struct wire_header h = { 0 };
    wire_dec_init(d, packet, size);
    const void *p = get(d, sizeof(h));
    if (p)
        memcpy(&h, p, sizeof(h));
    if (h.size != size || h.reserved != 0) {
        d->fatal = true;
        return (struct wire_header) { 0 };
    }
    return h;
}

#define GET_SCALAR(suffix, type)                                                                   \
    type wire_get_##suffix(struct wire_dec *d)                                                     \
    {                                                                                              \
        type v = 0;                                                                                \
        const void *p = get(d, sizeof(v));                                                         \
        if (p)                                                                                     \
            memcpy(&v, p, sizeof(v));                                                              \
        return v;                                                                                  \
    }
GET_SCALAR(u32, uint32_t)
GET_SCALAR(u64, uint64_t)
GET_SCALAR(i32, int32_t)

/* Neither NaN nor infinities: no number we send is one, and comparisons with limits would not catch
 * them. */
double wire_get_f64(struct wire_dec *d)
{
    double v = 0;
    const void *p = get(d, sizeof(v));
    if (p)
        memcpy(&v, p, sizeof(v));
    if (!isfinite(v)) {
        d->fatal = true;
        return 0;
    }
    return v;
}

const char *wire_get_str(struct wire_dec *d, uint32_t max)
{
    uint32_t n = wire_get_u32(d);
    if (n > max) {
        d->fatal = true;
        return "";
    }
    const char *s = get(d, (size_t)n + 1);
    if (!s)
        return "";
    if (memchr(s, '\0', (size_t)n + 1) != s + n) {
        d->fatal = true;
        return "";
    }
    return s;
}

struct wire_bytes wire_get_bytes(struct wire_dec *d, uint32_t max)
{
    uint32_t n = wire_get_u32(d);
    if (n > max) {
        d->fatal = true;
        return (struct wire_bytes) { 0 };
    }
    const void *p = get(d, n);
    return (struct wire_bytes) { p, p ? n : 0 };
}

bool wire_dec_end(const struct wire_dec *d)
{
    return d->fatal || d->pos == d->size;
}

bool wire_dec_finish(const struct wire_dec *d)
{
    return !d->fatal && d->pos == d->size;
}
