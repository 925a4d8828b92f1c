/*
 * The most frequent samples, quickly: one element of a texture of one level in one or two
 * dimensions, whose channels have 32 bits and are taken as they are. What comes out is what lanes.c
 * would compute.
 */
#include <math.h>
#include <string.h>

#include "device/soft/texture/texture.h"

#define FAR 0x40000000 /* beyond every element */

bool soft_texture_is_plain(const struct soft_sampler *s)
{
    const bool words = s->t.format == DEV_FORMAT_F32 || s->t.format == DEV_FORMAT_U32 ||
                       s->t.format == DEV_FORMAT_S32;
    const bool two = s->geometry == IR_GEO_2D;
    if (!words || s->linear || s->t.levels != 1 || (s->geometry != IR_GEO_1D && !two) ||
        (s->what != IR_TEXTURE_BASE && s->what != IR_TEXTURE_LEVEL) || s->type == IR_F16 ||
        s->type == IR_F16X2)
        return false;
    return s->coordinate != IR_F32 ||
           (!(s->flags & DEV_SAMPLER_NORMALIZED) && s->address[0] == DEV_ADDRESS_CLAMP &&
            (!two || s->address[1] == DEV_ADDRESS_CLAMP));
}

/* The element of a coordinate; negative: an integer beyond the edge, where there are zeroes. */
static int64_t element(const struct soft_sampler *s, uint32_t bits, int offset, uint32_t n)
{
    if (s->coordinate != IR_F32) {
        const int64_t i = (int64_t)(int32_t)bits + offset;
        return i < n ? i : SOFT_TEXTURE_NOTHING;
    }
    float v;
    memcpy(&v, &bits, sizeof(v));
    v = v > -FAR ? v < FAR ? v : FAR : v != v ? 0 : -FAR;
    const int64_t whole = (int64_t)v, i = whole - ((float)whole > v) + offset;
    return i < 0 ? 0 : GM_MIN(i, (int64_t)n - 1);
}

bool soft_texture_plain(struct soft_sampler *s, struct soft_texture_lanes *l, unsigned lane)
{
    const struct dev_texture *t = &s->t;
    const uint32_t bytes = 4 * t->channels;
    uint32_t out[SOFT_TEXTURE_CHANNELS] = { 0 };
    const int64_t x = element(s, l->in[0][lane], (int8_t)l->in[5][lane], t->width);
    const int64_t y = s->geometry == IR_GEO_2D
                          ? element(s, l->in[1][lane], (int8_t)(l->in[5][lane] >> 8), t->height)
                          : 0;
    if (x >= 0 && y >= 0) {
        const uint64_t at = t->base + (uint64_t)t->first_layer * t->slice + (uint64_t)y * t->pitch +
                            (uint64_t)x * bytes;
        if (at - s->block->window_base > s->block->window_mask - (bytes - 1)) {
            s->fault = at;
            return false;
        }
        for (uint32_t c = 0; c < t->channels; c++)
            memcpy(&out[c], (const void *)(uintptr_t)(at + 4 * c), 4);
    }
    for (unsigned c = 0; c < SOFT_TEXTURE_CHANNELS; c++)
        l->out[c][lane] = out[c];
    return true;
}
