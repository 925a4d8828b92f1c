/*
 * Carries out a texture instruction for a warp. Lanes nearly always use the same texture, so its
 * descriptor is read once for all lanes that do.
 */
#include "device/soft/texture/texture.h"

#include <math.h>
#include <string.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#define LEVELS_MAX 32u

static float as_float(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Copies the descriptor at a handle's address. False: it is no texture descriptor, or it does not
 * lie in the client's memory. */
static bool read_descriptor(const struct soft_block *b, uint64_t handle, struct dev_texture *out)
{
    if (handle - b->window_base > b->window_mask - (sizeof(*out) - 1))
        return false;
    memcpy(out, (const void *)(uintptr_t)handle, sizeof(*out));
    return true;
}

/* All that is computed from it later stays within bounds. */
static bool is_sound(const struct dev_texture *t)
{
    return (t->kind == DEV_TEXTURE || t->kind == DEV_SURFACE) && t->format <= DEV_FORMAT_F32 &&
           (t->channels == 1 || t->channels == 2 || t->channels == 4) && t->width && t->height &&
           t->depth && t->layers && t->levels && t->levels <= LEVELS_MAX && !(t->address[0] >> 2) &&
           !(t->address[1] >> 2) && !(t->address[2] >> 2);
}

static bool set_up(struct soft_sampler *s, uint64_t texture, uint64_t sampler)
{
    struct dev_texture other;
    const struct dev_texture *from = &s->t;
    if (!read_descriptor(s->block, texture, &s->t) || !is_sound(&s->t))
        return false;
    if (sampler != texture) {
        if (!read_descriptor(s->block, sampler, &other) ||
            (other.kind != DEV_SAMPLER && other.kind != DEV_TEXTURE))
            return false;
        from = &other;
    }
    s->flags = from->sampler_flags;
    memcpy(s->border, from->border, sizeof(s->border));
    for (unsigned i = 0; i < 3; i++)
        s->address[i] = from->address[i] & 3;
    s->t.bias = from->bias;
    s->t.min_level = from->min_level;
    s->t.max_level = from->max_level;
    s->integer = s->t.format == DEV_FORMAT_U32 || s->t.format == DEV_FORMAT_S32 ||
                 (s->t.format < DEV_FORMAT_F16 && (s->flags & DEV_SAMPLER_INTEGER));
    s->linear = (s->flags & DEV_SAMPLER_LINEAR) && !s->integer && s->coordinate == IR_F32;
    return true;
}

/* --- levels ----------------------------------------------------------------------------------- */

static void find_level(const struct dev_texture *t, uint32_t number, struct soft_level *out)
{
    uint32_t element = t->element;
    *out = (struct soft_level) { t->base, t->pitch, t->slice, t->width, t->height, t->depth };
    for (uint32_t k = 0; k < number; k++) {
        out->base += out->slice * (t->flags & DEV_TEXTURE_LAYERED ? t->planes : out->depth);
        out->width = GM_MAX(out->width / 2, 1u);
        out->height = GM_MAX(out->height / 2, 1u);
        out->depth = GM_MAX(out->depth / 2, 1u);
        out->pitch = dev_array_row((uint64_t)out->width * element);
        out->slice = dev_array_plane((uint64_t)out->width * element, out->height);
    }
}

/* --- one lane --------------------------------------------------------------------------------- */

/* The weights of up to eight elements, which add up to `all` of 256. In the index of a weight bit 0
 * says which neighbour in x, bit 1 in y, bit 2 in z. Hardware splits by z, then by x, then by y,
 * and rounds to 8 bits each time. */
static void weigh(const struct soft_place *p, uint32_t all, uint32_t out[8])
{
    uint32_t behind = (p->z.share * all + 128) >> 8;
    for (unsigned k = 0; k < 8; k += 4) {
        uint32_t part = k ? behind : all - behind, right = (p->x.share * part + 128) >> 8,
                 left = part - right;
        out[k + 3] = (p->y.share * right + 128) >> 8;
        out[k + 1] = right - out[k + 3];
        out[k + 2] = (p->y.share * left + 127) >> 8;
        out[k] = left - out[k + 2];
    }
}

/* Adds the sample of one level, which counts for `all` of 256. */
static void add_level(struct soft_sampler *s, uint32_t number, uint32_t all, const uint32_t in[6],
                      double sum[SOFT_TEXTURE_CHANNELS])
{
    struct soft_level level;
    struct soft_place p;
    union soft_texel one;
    uint32_t weights[8];
    find_level(&s->t, number, &level);
    soft_texture_place(s, &level, in, &p);
    weigh(&p, all, weights);
    for (unsigned k = 0; k < 8; k++) {
        if (!weights[k])
            continue;
        soft_texture_element(s, &level, p.x.at[k & 1], p.y.at[k >> 1 & 1], p.z.at[k >> 2], p.layer,
                             &one);
        for (unsigned c = 0; c < s->t.channels; c++)
            sum[c] += weights[k] * (double)one.f[c];
    }
}

/* Fetches one element without filtering. */
static union soft_texel nearest(struct soft_sampler *s, uint32_t number, const uint32_t in[6])
{
    struct soft_level level;
    struct soft_place p;
    union soft_texel one;
    find_level(&s->t, number, &level);
    soft_texture_place(s, &level, in, &p);
    soft_texture_element(s, &level, p.x.at[0], p.y.at[0], p.z.at[0], p.layer, &one);
    for (unsigned c = 0; c < SOFT_TEXTURE_CHANNELS && !s->integer && s->t.format < DEV_FORMAT_F16;
         c++)
        one.f[c] = soft_texture_value(s, c, (double)one.f[c], false);
    return one;
}

/* The level to sample in 256ths, clamped to the levels that the texture has. */
static uint32_t choose_level(const struct soft_sampler *s, uint32_t bits)
{
    float top = (float)(s->t.levels - 1), v = 0;
    /* Hardware keeps 8 bits of each fraction. */
    if (s->what == IR_TEXTURE_LEVEL) {
        v = s->coordinate == IR_F32 ? as_float(bits) : (float)(int32_t)bits;
        v = floorf(v * 256) / 256 + truncf(s->t.bias * 256) / 256;
    }
    v = fmaxf(v, s->t.min_level);
    v = fminf(v, s->t.max_level);
    v = v > 0 ? fminf(v, top) : 0;
    return (uint32_t)(v * 256);
}

static union soft_texel sample(struct soft_sampler *s, const uint32_t in[6])
{
    uint32_t level = s->t.levels > 1 ? choose_level(s, in[4]) : 0, share = level & 255;
    bool between = (s->flags & DEV_SAMPLER_MIP_LINEAR) && !s->integer && share;
    double sum[SOFT_TEXTURE_CHANNELS] = { 0 };
    union soft_texel r = { .u = { 0 } };
    if (!between && !s->linear)
        return nearest(s, (level + 128) >> 8, in);
    if (between) {
        add_level(s, level >> 8, 256 - share, in, sum);
        add_level(s, (level >> 8) + 1, share, in, sum);
    } else {
        add_level(s, (level + 128) >> 8, 256, in, sum);
    }
    for (unsigned c = 0; c < s->t.channels; c++)
        r.f[c] = soft_texture_value(s, c, sum[c] / 256, true);
    return r;
}

/* tld4: the four elements that a linear sample would use, counter-clockwise from the lower left
 * one. */
static union soft_texel gather(struct soft_sampler *s, const uint32_t in[6])
{
    static const uint8_t order[] = { 2, 3, 1, 0 };
    struct soft_level level;
    struct soft_place p;
    union soft_texel one, all;
    unsigned channel = s->what - (unsigned)IR_TEXTURE_GATHER_R;
    s->linear = true;
    find_level(&s->t, 0, &level);
    soft_texture_place(s, &level, in, &p);
    for (unsigned k = 0; k < 4; k++) {
        soft_texture_element(s, &level, p.x.at[order[k] & 1], p.y.at[order[k] >> 1], 0, p.layer,
                             &one);
        all.u[k] = one.u[channel];
        if (!s->integer && s->t.format < DEV_FORMAT_F16)
            all.f[k] = soft_texture_value(s, channel, (double)one.f[channel], false);
    }
    return all;
}

/* The level at which one step on the screen is about one step between elements. The derivatives
 * turn a circle on the screen into an ellipse in the texture; its longer half axis decides. */
static union soft_texel find_lod(const struct soft_sampler *s, const uint32_t in[6])
{
    const uint32_t size[] = { s->t.width, s->t.height, s->t.depth };
    unsigned dimensions = s->geometry == IR_GEO_1D || s->geometry == IR_GEO_A1D   ? 1
                          : s->geometry == IR_GEO_2D || s->geometry == IR_GEO_A2D ? 2
                                                                                  : 3;
    double x = 0, y = 0, both = 0;
    for (unsigned d = 0; d < dimensions; d++) {
        double scale = s->flags & DEV_SAMPLER_NORMALIZED ? size[d] : 1;
        double by_x = (double)as_float(in[d]) * scale, by_y = (double)as_float(in[3 + d]) * scale;
        x += by_x * by_x;
        y += by_y * by_y;
        both += by_x * by_y;
    }
    double longer = (x + y) / 2 + sqrt((x - y) / 2 * ((x - y) / 2) + both * both);
    union soft_texel r = { .f = { (float)(0.5 * log2(longer)) } };
    return r;
}

/* An f32 as f16; a number that is too large becomes the largest f16. */
static uint32_t pack_half(float v)
{
    uint32_t half = soft_texture_half(v);
    return half - (isfinite(v) && (half & 0x7fff) == 0x7c00);
}

/* Packs channels into the bytes of an element; integers are clamped to the channel's range. */
static union soft_texel pack(const struct soft_sampler *s, const uint32_t in[6])
{
    static const uint8_t sizes[] = { 1, 2, 4, 1, 2, 4, 2, 4 };
    union soft_texel r = { .u = { 0 } };
    uint32_t size = sizes[s->t.format];
    for (unsigned c = 0; c < s->t.channels; c++) {
        uint32_t v = in[c];
        int32_t most = size < 4 ? (1 << (8 * size - 1)) - 1 : INT32_MAX;
        if (s->t.format == DEV_FORMAT_F16)
            v = pack_half(as_float(v));
        else if (s->t.format == DEV_FORMAT_U8 || s->t.format == DEV_FORMAT_U16)
            v = GM_MIN(v, (1u << 8 * size) - 1);
        else if (s->t.format == DEV_FORMAT_S8 || s->t.format == DEV_FORMAT_S16)
            v = (uint32_t)((int32_t)v > most ? most : GM_MAX((int32_t)v, -most - 1));
        memcpy((uint8_t *)r.u + c * size, &v, size);
    }
    return r;
}

static uint32_t converted(const struct soft_sampler *s, uint32_t bits)
{
    float v = as_float(bits);
    if (s->type == IR_F16 || s->type == IR_F16X2)
        return soft_texture_half(v);
    return bits;
}

static bool run_lane(struct soft_sampler *s, struct soft_texture_lanes *l, unsigned lane)
{
    uint32_t in[6];
    union soft_texel r;
    for (unsigned k = 0; k < 6; k++)
        in[k] = l->in[k][lane];
    s->faulty = false;
    if (s->what == IR_TEXTURE_LOD)
        r = find_lod(s, in);
    else if (s->what == IR_TEXTURE_PACK)
        r = pack(s, in);
    else if (s->what >= IR_TEXTURE_GATHER_R && s->what <= IR_TEXTURE_GATHER_A)
        r = gather(s, in);
    else
        r = sample(s, in);
    for (unsigned c = 0; c < SOFT_TEXTURE_CHANNELS; c++)
        l->out[c][lane] = converted(s, r.u[c]);
    return !s->faulty;
}

static enum soft_outcome run(struct soft_block *b, struct soft_sampler *s, uint32_t first,
                             uint32_t active, struct soft_texture_lanes *l)
{
    uint64_t texture = 0, sampler = 0;
    bool known = false, plain = false;
    for (uint32_t left = active; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        if (!known || l->texture[lane] != texture || l->sampler[lane] != sampler) {
            texture = l->texture[lane];
            sampler = l->sampler[lane];
            known = set_up(s, texture, sampler);
            plain = known && soft_texture_is_plain(s);
            s->fault = texture;
        }
        if (!known || !(plain ? soft_texture_plain(s, l, lane) : run_lane(s, l, lane))) {
            b->fault_address = s->fault;
            b->fault_thread = first + lane;
            return SOFT_FAULT_ADDRESS;
        }
    }
    return SOFT_DONE;
}

enum soft_outcome soft_texture_run(struct soft_block *b, uint32_t form, uint32_t first,
                                   uint32_t active, struct soft_texture_lanes *l)
{
    struct soft_sampler s = { .block = b,
                              .geometry = form & 255,
                              .what = form >> 8 & 255,
                              .type = form >> 16 & 255,
                              .coordinate = (uint8_t)(form >> 24) };
    /* Compiled code may make the processor flush subnormal numbers (src/jit/subnormal.c). */
#ifdef __SSE2__
    unsigned control = _mm_getcsr();
    _mm_setcsr(0x1f80);
#endif
    enum soft_outcome outcome = run(b, &s, first, active, l);
#ifdef __SSE2__
    _mm_setcsr(control);
#endif
    return outcome;
}
