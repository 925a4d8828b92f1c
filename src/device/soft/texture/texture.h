/*
 * What texture instructions (IR_OP_TEX) compute; interpreter and compiled code both call this.
 *
 *   lanes.c     a warp's lanes, one after the other; which levels are sampled and mixed
 *   plain.c     the most frequent samples, which need none of what follows
 *   place.c     coordinates to elements and weights: address modes, faces of cubes
 *   element.c   an element's bytes to channels
 *
 * Handles are addresses of descriptors in the client's memory (device/texture.h), and any thread of
 * the client may change them at any time. So a descriptor is copied and checked, and only the copy
 * is used. The address of each element is checked against the window. Therefore, whatever a
 * descriptor contains, a kernel reads its own client's memory or faults.
 *
 * The rules of helpers hold (exec/helpers.h).
 */
#ifndef GMUX_SOFT_TEXTURE_TEXTURE_H
#define GMUX_SOFT_TEXTURE_TEXTURE_H

#include "device/soft/exec/code.h"
#include "device/soft/ir/ir.h"
#include "device/texture.h"

#define SOFT_TEXTURE_CHANNELS 4
#define SOFT_TEXTURE_NOTHING  (-2)

/* Sources and results of the instruction, by lane. Layout is part of the ABI of compiled code. */
struct soft_texture_lanes {
    uint64_t texture[SOFT_WARP], sampler[SOFT_WARP];
    uint32_t in[6][SOFT_WARP]; /* the other sources, in the instruction's order */
    uint32_t out[SOFT_TEXTURE_CHANNELS][SOFT_WARP];
};

/* The instruction's variant in one word. */
static inline uint32_t soft_texture_form(const struct ir_instr *i)
{
    return i->mode | (uint32_t)i->mode2 << 8 | (uint32_t)i->type << 16 | (uint32_t)i->type2 << 24;
}

/* Samples for the lanes in `active`. `first`: number of lane 0's thread. Returns SOFT_DONE, or a
 * fault, which it describes in the block. */
enum soft_outcome soft_texture_run(struct soft_block *b, uint32_t form, uint32_t first,
                                   uint32_t active, struct soft_texture_lanes *l);

/* --- between the files ------------------------------------------------------------------------ */

/* The part of one instruction's work that its lanes share. */
struct soft_sampler {
    const struct soft_block *block;
    uint8_t geometry, what, type, coordinate; /* as in soft_texture_form() */
    bool integer, linear;
    struct dev_texture t; /* checked copy of the texture */
    uint32_t flags;       /* of the sampler's descriptor, checked: enum dev_sampler_flags */
    uint32_t address[3];  /* of the sampler, checked: address modes */
    float border[4];
    uint64_t fault; /* an element's address outside the window, if `faulty` */
    bool faulty;
};

/* Channels of an element: floats, or integers as they are. */
union soft_texel {
    float f[SOFT_TEXTURE_CHANNELS];
    uint32_t u[SOFT_TEXTURE_CHANNELS];
};

/* One mipmap level of a texture. */
struct soft_level {
    uint64_t base, pitch, slice;
    uint32_t width, height, depth;
};

/* Two neighbours in one dimension; `share` is the second one's weight, of 256. */
struct soft_pair {
    int64_t at[2]; /* -1: the border colour; SOFT_TEXTURE_NOTHING: zeroes */
    uint32_t share;
};

/* The elements that one sample is made of: 1, 2, 4 or 8. */
struct soft_place {
    struct soft_pair x, y, z;
    uint32_t layer;
};

/* place.c */
void soft_texture_place(const struct soft_sampler *s, const struct soft_level *level,
                        const uint32_t in[6], struct soft_place *out);
/* In one dimension, which has `n` elements; `bits`: the coordinate, `offsets`: a byte for each
 * dimension. */
void soft_texture_place_one(const struct soft_sampler *s, unsigned dimension, uint32_t bits,
                            uint32_t n, uint32_t offsets, struct soft_pair *out);
/* The face of a cube that a direction hits, and the coordinates there, 0 to 1. */
unsigned soft_texture_face(const float direction[3], float at[2]);

/* plain.c */
bool soft_texture_is_plain(const struct soft_sampler *s);
/* One lane's sample of a texture that is plain. False: its address is outside of the window. */
bool soft_texture_plain(struct soft_sampler *s, struct soft_texture_lanes *l, unsigned lane);

/* element.c */
/* Channels that the format does not have are zero. Normalized integers stay whole numbers until
 * soft_texture_value() turns their weighted mean into a fraction. */
float soft_texture_value(const struct soft_sampler *s, unsigned channel, double sum, bool filtered);
void soft_texture_element(struct soft_sampler *s, const struct soft_level *level, int64_t x,
                          int64_t y, int64_t z, uint32_t layer, union soft_texel *out);
uint32_t soft_texture_half(float v);

#endif
