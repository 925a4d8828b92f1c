/*
 * The values in generated samples: recognisable, different from field to field, and at their limits
 * where that is asked for. Strings and bytes live in static buffers.
 */
#include "sample.h"

enum { FIELDS_MAX = 32 };

uint32_t sample_u32(enum sample_variant v, unsigned i)
{
    return v == SAMPLE_ZERO ? 0 : v == SAMPLE_SOME ? 0x1000 + i : UINT32_MAX - i;
}

uint64_t sample_u64(enum sample_variant v, unsigned i)
{
    return v == SAMPLE_ZERO ? 0 : v == SAMPLE_SOME ? UINT64_C(0x400000000000) + i : UINT64_MAX - i;
}

int32_t sample_i32(enum sample_variant v, unsigned i)
{
    return v == SAMPLE_ZERO ? 0 : v == SAMPLE_SOME ? -1 - (int32_t)i : INT32_MIN + (int32_t)i;
}

double sample_f64(enum sample_variant v, unsigned i)
{
    return v == SAMPLE_ZERO ? 0 : v == SAMPLE_SOME ? i + 0.5 : -1e300 * (i + 1);
}

const char *sample_str(enum sample_variant v, unsigned i, uint32_t max)
{
    static char text[FIELDS_MAX][WIRE_PACKET_MAX];
    uint32_t length = v == SAMPLE_ZERO ? 0 : v == SAMPLE_SOME ? GM_MIN(max, 5 + i) : max;
    memset(text[i], 'a' + (int)i, length);
    text[i][length] = '\0';
    return text[i];
}

struct wire_bytes sample_bytes(enum sample_variant v, unsigned i, uint32_t max)
{
    static uint8_t data[FIELDS_MAX][WIRE_PACKET_MAX];
    uint32_t size = v == SAMPLE_ZERO ? 0 : v == SAMPLE_SOME ? GM_MIN(max, 3 + i) : max;
    memset(data[i], 0x80 + (int)i, size);
    return (struct wire_bytes) { data[i], size };
}

uint32_t sample_count(enum sample_variant v, uint32_t max)
{
    return v == SAMPLE_ZERO ? 0 : v == SAMPLE_SOME ? 1 : max;
}

bool sample_same_str(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool sample_same_bytes(struct wire_bytes a, struct wire_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

size_t sample_pack(const struct sample *s, enum sample_variant v, uint64_t serial, void *buffer,
                   size_t capacity)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, capacity);
    if (s->type)
        wire_begin(&e, s->type, serial);
    s->put(&e, v);
    if (s->type)
        wire_end(&e);
    return e.fatal ? 0 : e.size;
}
