/*
 * Reads elements of arrays: computes where an element lies, checks the address, and converts its
 * channels to floats or integers.
 */
#include "device/soft/texture/texture.h"

#include <math.h>
#include <string.h>

static float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, f = h & 0x3ff, bits;
    float v;
    if (e == 0) {
        v = (float)f * 0x1p-24f;
        return sign ? -v : v;
    }
    bits = sign | (e == 31 ? 0xffu : e + 112) << 23 | f << 13;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

uint32_t soft_texture_half(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    uint32_t sign = bits >> 16 & 0x8000, e = bits >> 23 & 0xff, f = bits & 0x7fffff;
    if (e == 0xff)
        return f ? 0x7fff : sign | 0x7c00;
    int shift = e < 113 ? 126 - (int)e : 13; /* how many bits of the fraction are lost */
    if (shift > 24)
        return sign;
    uint32_t whole = e < 113 ? f | 0x800000 : f | (e - 112) << 23;
    if (e >= 113 && e - 112 > 31)
        return sign | 0x7c00;
    uint32_t kept = whole >> shift, rest = whole & ((1u << shift) - 1), half = 1u << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    return sign | GM_MIN(kept, 0x7c00u);
}

/* Whether sRGB decoding applies to the channel. It does not to opacity, which is the fourth
 * channel, and the second one of two. */
static bool is_srgb(const struct soft_sampler *s, unsigned channel)
{
    return (s->flags & DEV_SAMPLER_SRGB) && s->t.format == DEV_FORMAT_U8 &&
           channel < (s->t.channels == 2 ? 1u : 3u);
}

/* Rounds v to that many significant bits, halves away from zero. */
static double significant(double v, unsigned bits)
{
    uint64_t all;
    unsigned drop = 53 - bits;
    memcpy(&all, &v, sizeof(all));
    if (isfinite(v))
        all = (all + (UINT64_C(1) << (drop - 1))) & ~((UINT64_C(1) << drop) - 1);
    memcpy(&v, &all, sizeof(v));
    return v;
}

static float from_srgb(float v)
{
    v = v <= 0.04045f ? v / 12.92f : powf((v + 0.055f) / 1.055f, 2.4f);
    return v < 0x1p-6f ? rintf(v * 0x1p14f) * 0x1p-14f : (float)significant((double)v, 8);
}

static uint32_t channel_bits(const uint8_t *p, uint32_t size)
{
    uint32_t word;
    uint16_t half;
    switch (size) {
    case 1:
        return *p;
    case 2:
        memcpy(&half, p, 2);
        return half;
    default:
        memcpy(&word, p, 4);
        return word;
    }
}

static uint32_t channel_whole(uint32_t format, uint32_t bits)
{
    switch (format) {
    case DEV_FORMAT_S8:
        return (uint32_t)(int8_t)bits;
    case DEV_FORMAT_S16:
        return (uint32_t)(int16_t)bits;
    default:
        return bits;
    }
}

/* The value that filters add up. Unsigned normalized integers are added as 16-bit integers,
 * everything else as it is. */
static float channel_real(uint32_t format, uint32_t bits)
{
    float v;
    switch (format) {
    case DEV_FORMAT_U8:
        return (float)(bits * 257);
    case DEV_FORMAT_U16:
        return (float)bits;
    case DEV_FORMAT_S8:
        return fmaxf((float)(int8_t)bits, -127);
    case DEV_FORMAT_S16:
        return fmaxf((float)(int16_t)bits, -32767);
    case DEV_FORMAT_F16:
        return half_to_float((uint16_t)bits);
    default:
        memcpy(&v, &bits, sizeof(v));
        return v;
    }
}

/* A sum of floats as f32. All NaNs become the same one. */
static float real_value(uint32_t format, double v)
{
    float r;
    if (isnan(v))
        memcpy(&r, &(uint32_t) { 0x7fffffff }, sizeof(r));
    else if (format == DEV_FORMAT_F16)
        r = half_to_float((uint16_t)soft_texture_half((float)significant(v, 11)));
    else
        r = (float)significant(v, 24);
    return r;
}

float soft_texture_value(const struct soft_sampler *s, unsigned channel, double sum, bool filtered)
{
    if (is_srgb(s, channel))
        return real_value(DEV_FORMAT_F16, sum);
    switch (s->t.format) {
    case DEV_FORMAT_U8:
    case DEV_FORMAT_U16:
        return (float)floor(sum + 0.5) / 65535.0f;
    case DEV_FORMAT_S8:
        return filtered ? (float)floor(sum * 32767 / 127 + 0.48) / 32767.0f : (float)sum / 127.0f;
    case DEV_FORMAT_S16:
        return (float)floor(sum + 0.5) / 32767.0f;
    default:
        return real_value(s->t.format, sum);
    }
}

static uint32_t channel_size(uint32_t format)
{
    static const uint8_t sizes[] = { 1, 2, 4, 1, 2, 4, 2, 4 };
    return sizes[format];
}

/* The border colour as the texture's format would store it. */
static float border_real(const struct soft_sampler *s, unsigned c)
{
    float v = s->border[c];
    if (is_srgb(s, c))
        return fminf(fmaxf(v, 0), 1);
    switch (s->t.format) {
    case DEV_FORMAT_U8:
        return ceilf(fminf(fmaxf(v, 0), 1) * 255 - 0.5f) * 257;
    case DEV_FORMAT_U16:
        return ceilf(fminf(fmaxf(v, 0), 1) * 65535 - 0.5f);
    case DEV_FORMAT_S8:
        return ceilf(fminf(fmaxf(v, -1), 1) * 127 - 0.5f);
    case DEV_FORMAT_S16:
        return ceilf(fminf(fmaxf(v, -1), 1) * 32767 - 0.5f);
    case DEV_FORMAT_F16:
        return half_to_float((uint16_t)soft_texture_half(v));
    default:
        return v;
    }
}

static void border(const struct soft_sampler *s, union soft_texel *out)
{
    for (unsigned c = 0; c < s->t.channels; c++) {
        if (s->integer) {
            memcpy(&out->u[c], &s->border[c], channel_size(s->t.format));
            out->u[c] = channel_whole(s->t.format, out->u[c]);
        } else {
            out->f[c] = border_real(s, c);
        }
    }
}

void soft_texture_element(struct soft_sampler *s, const struct soft_level *level, int64_t x,
                          int64_t y, int64_t z, uint32_t layer, union soft_texel *out)
{
    const struct dev_texture *t = &s->t;
    uint32_t size = channel_size(t->format), element = size * t->channels;
    memset(out, 0, sizeof(*out)); /* channels that the format does not have are zero */
    if (x < 0 || y < 0 || z < 0) {
        if (x != SOFT_TEXTURE_NOTHING && y != SOFT_TEXTURE_NOTHING && z != SOFT_TEXTURE_NOTHING)
            border(s, out);
        return;
    }
    uint64_t at = level->base + ((uint64_t)z + layer) * level->slice + (uint64_t)y * level->pitch +
                  (uint64_t)x * element;
    if (at - s->block->window_base > s->block->window_mask - (element - 1)) {
        s->fault = at;
        s->faulty = true;
        return;
    }
    const uint8_t *bytes = (const void *)(uintptr_t)at;
    for (unsigned c = 0; c < t->channels; c++) {
        uint32_t bits = channel_bits(bytes + c * size, size);
        if (s->integer) {
            out->u[c] = channel_whole(t->format, bits);
            continue;
        }
        out->f[c] = channel_real(t->format, bits);
        if (is_srgb(s, c))
            out->f[c] = from_srgb(out->f[c] / 65535.0f);
    }
}
