/*
 * The most frequent samples, quickly: one element of a texture of one level in one or two
 * dimensions, whose channels have 32 bits and are taken as they are, and no border. What comes out
 * is what lanes.c would compute.
 */
#include <string.h>

#include "device/soft/texture/texture.h"

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
           (s->address[0] != DEV_ADDRESS_BORDER && (!two || s->address[1] != DEV_ADDRESS_BORDER));
}

bool soft_texture_plain(struct soft_sampler *s, struct soft_texture_lanes *l, unsigned lane)
{
    const struct dev_texture *t = &s->t;
    const uint32_t bytes = 4 * t->channels;
    uint32_t out[SOFT_TEXTURE_CHANNELS] = { 0 };
    struct soft_pair column, row = { .share = 0 };
    soft_texture_place_one(s, 0, l->in[0][lane], t->width, l->in[5][lane], &column);
    if (s->geometry == IR_GEO_2D)
        soft_texture_place_one(s, 1, l->in[1][lane], t->height, l->in[5][lane], &row);
    const int64_t x = column.at[0], y = row.at[0];
    if (x >= 0 && y >= 0) { /* else an integer beyond the edge, where there are zeroes */
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
