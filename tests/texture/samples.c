/*
 * What kernels see through textures and surfaces, sample by sample:
 *
 *     samples N FILE            writes it, N samples of each group
 *     samples N FILE WANTED     compares with WANTED, a file that was written elsewhere, too
 *
 * A group is one kernel on one texture. Its samples depend on their number only, so that the first
 * N are the same whatever N is.
 */
#include "samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_) {                                                                                  \
            printf("Bail out! %s: %d\n", #call, (int)r_);                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static CUmodule module;
static CUdeviceptr inputs, outputs;
static unsigned count;
static FILE *out;

/* --- numbers ---------------------------------------------------------------------------------- */

static uint32_t mix(uint32_t a, uint32_t b)
{
    uint64_t x =
        (uint64_t)a * 0x9e3779b97f4a7c15u + (uint64_t)b * 0xbf58476d1ce4e5b9u + 0x94d049bb133111ebu;
    x = (x ^ x >> 31) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return (uint32_t)(x >> 32);
}

static uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

/* 0 .. 1 */
static float fraction(uint32_t a, uint32_t b)
{
    return (float)(mix(a, b) >> 8) * 0x1p-24f;
}

static const uint32_t strange[] = { 0x00000000, 0x80000000, 0x00000001, 0x7f800000, 0xff800000,
                                    0x7fc00000, 0xffc00000, 0x7f7fffff, 0xff7fffff, 0x4f000000,
                                    0xcf000000, 0x4f800000, 0x5f000000, 0x3f7fffff, 0xb3800000,
                                    0x33800000, 0x3b800000, 0xbb800000, 0x3b000000, 0x4b000000,
                                    0xcb000000, 0x3f800000, 0xbf800000, 0x40000000, 0x49742400 };

/* A coordinate for a dimension of n elements: near all of them, at their borders, at 512ths, and
 * anywhere. */
static float coordinate(uint32_t group, uint32_t i, unsigned dimension, unsigned n, bool normalized)
{
    uint32_t s = mix(group * 4 + dimension, i), kind = mix(s, 1) % 16;
    float span = (float)n + 3, v;
    if (kind == 0) {
        memcpy(&v, &strange[mix(s, 2) % (sizeof(strange) / sizeof(strange[0]))], sizeof(v));
        return v;
    }
    if (kind < 4)
        v = floorf(fraction(s, 2) * span * 2 - 3) / 2; /* borders and middles */
    else if (kind < 8)
        v = floorf((fraction(s, 2) * span - 1.5f) * 512) / 512;
    else if (kind < 10)
        v = (fraction(s, 2) - 0.5f) * span * 8;
    else
        v = fraction(s, 2) * span - 1.5f;
    if (normalized)
        v /= (float)n;
    if (kind == 3 || kind == 7) {
        uint32_t b = bits_of(v) + mix(s, 3) % 5 - 2; /* next to it */
        memcpy(&v, &b, sizeof(v));
    }
    return v;
}

/* --- groups ----------------------------------------------------------------------------------- */

typedef void fill(uint32_t group, uint32_t i, uint32_t in[SAMPLE_WORDS], const void *arg);

static uint32_t group_number;

static void group(const char *name, const char *kernel, unsigned long long handle, fill *f,
                  const void *arg, unsigned n)
{
    CUfunction function;
    uint32_t(*in)[SAMPLE_WORDS] = calloc(n, sizeof(*in)), (*got)[4] = calloc(n, sizeof(*got));
    group_number = mix((uint32_t)strlen(name), 77);
    for (const char *c = name; *c; c++)
        group_number = mix(group_number, (uint8_t)*c);
    for (uint32_t i = 0; i < n; i++)
        f(group_number, i, in[i], arg);
    CUresult r = cuModuleGetFunction(&function, module, kernel);
    if (r == CUDA_SUCCESS) {
        void *params[] = { &handle, &inputs, &outputs, &n };
        MUST(cuMemcpyHtoD(inputs, in, n * sizeof(*in)));
        MUST(cuMemsetD32(outputs, 0xa5a5a5a5, n * 4ul));
        r = cuLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
    }
    if (r == CUDA_SUCCESS)
        r = cuCtxSynchronize();
    if (r == CUDA_SUCCESS)
        r = cuMemcpyDtoH(got, outputs, n * sizeof(*got));
    fprintf(out, "%s %s %u %d\n", name, kernel, n, (int)r);
    for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++)
        fprintf(out, "%08x %08x %08x %08x\n", got[i][0], got[i][1], got[i][2], got[i][3]);
    if (r)
        printf("# %s: %d\n", name, (int)r);
    free(in);
    free(got);
}

/* --- textures --------------------------------------------------------------------------------- */

enum content { RANDOM_BITS, RAMP, NICE, WILD };

struct subject {
    CUarray_format format;
    unsigned channels;
    unsigned w, h, d; /* 0: no such dimension */
    unsigned flags, levels;
    enum content content;
    unsigned sampler; /* CU_TRSF_* */
    CUfilter_mode filter, mip_filter;
    CUaddress_mode mode;
    float bias, low, high;
    /* made of it */
    CUarray array;
    CUmipmappedArray mipmap;
    CUtexObject texture;
    CUsurfObject surface;
};

static unsigned bytes_of(CUarray_format f)
{
    switch (f) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    default:
        return 4;
    }
}

static uint32_t channel(const struct subject *s, uint32_t x, uint32_t y, uint32_t z, uint32_t level,
                        uint32_t c)
{
    uint32_t h = mix(mix(x, y), mix(z * 8 + c, level));
    float ramp = (float)(x + 64 * y + 4096 * z) + 100000.0f * (float)level;
    if (s->content == RANDOM_BITS)
        return h;
    if (s->format == CU_AD_FORMAT_HALF) /* finite */
        return (h & 0x83ff) | (8 + (h >> 16) % 14) << 10;
    if (s->content == RAMP)
        return s->format == CU_AD_FORMAT_FLOAT ? bits_of(ramp) : (uint32_t)ramp;
    if (s->format != CU_AD_FORMAT_FLOAT)
        return h;
    if (s->content == NICE)
        return bits_of(fraction(h, 1) * 2 - 1);
    return h % 4 ? strange[h / 4 % 16] : h; /* wild */
}

static void upload(const struct subject *s, CUarray a, unsigned w, unsigned h, unsigned d,
                   unsigned level)
{
    unsigned size = bytes_of(s->format), element = size * s->channels, rows = h ? h : 1,
             planes = d ? d : 1;
    uint8_t *data = malloc((size_t)w * rows * planes * element), *p = data;
    for (unsigned z = 0; z < planes; z++)
        for (unsigned y = 0; y < rows; y++)
            for (unsigned x = 0; x < w; x++)
                for (unsigned c = 0; c < s->channels; c++, p += size) {
                    uint32_t v = channel(s, x, y, z, level, c);
                    memcpy(p, &v, size);
                }
    const CUDA_MEMCPY3D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = data,
                               .srcPitch = (size_t)w * element,
                               .srcHeight = rows,
                               .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                               .dstArray = a,
                               .WidthInBytes = (size_t)w * element,
                               .Height = rows,
                               .Depth = planes };
    MUST(cuMemcpy3D(&up));
    free(data);
}

static unsigned shrunk(unsigned n, unsigned level)
{
    return n >> level ? n >> level : n ? 1 : 0;
}

static void make(struct subject *s)
{
    const CUDA_ARRAY3D_DESCRIPTOR d = { s->w, s->h, s->d, s->format, s->channels, s->flags };
    CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_ARRAY };
    bool layered = s->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    if (s->levels) {
        MUST(cuMipmappedArrayCreate(&s->mipmap, &d, s->levels));
        for (unsigned l = 0; l < s->levels; l++) {
            CUarray level;
            MUST(cuMipmappedArrayGetLevel(&level, s->mipmap, l));
            upload(s, level, shrunk(s->w, l), shrunk(s->h, l), layered ? s->d : shrunk(s->d, l), l);
        }
        r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        r.res.mipmap.hMipmappedArray = s->mipmap;
    } else {
        MUST(cuArray3DCreate(&s->array, &d));
        upload(s, s->array, s->w, s->h, s->d, 0);
        r.res.array.hArray = s->array;
    }
    const CUDA_TEXTURE_DESC t = { .addressMode = { s->mode, s->mode, s->mode },
                                  .filterMode = s->filter,
                                  .flags = s->sampler,
                                  .mipmapFilterMode = s->mip_filter,
                                  .mipmapLevelBias = s->bias,
                                  .minMipmapLevelClamp = s->low,
                                  .maxMipmapLevelClamp = s->high,
                                  .borderColor = { 0.25f, -3, 1000, 0.5f } };
    MUST(cuTexObjectCreate(&s->texture, &r, &t, NULL));
    if (s->flags & CUDA_ARRAY3D_SURFACE_LDST)
        MUST(cuSurfObjectCreate(&s->surface, &r));
}

static void unmake(struct subject *s)
{
    MUST(cuTexObjectDestroy(s->texture));
    if (s->surface)
        MUST(cuSurfObjectDestroy(s->surface));
    if (s->array)
        MUST(cuArrayDestroy(s->array));
    if (s->mipmap)
        MUST(cuMipmappedArrayDestroy(s->mipmap));
}

/* Coordinates of a subject, as its sampler has them; level and derivatives. */
static void ordinary(uint32_t g, uint32_t i, uint32_t in[SAMPLE_WORDS], const void *arg)
{
    const struct subject *s = arg;
    const unsigned size[] = { s->w, s->h ? s->h : 1, s->d ? s->d : 1 };
    bool normalized = s->sampler & CU_TRSF_NORMALIZED_COORDINATES;
    for (unsigned k = 0; k < 3; k++)
        in[k] = bits_of(coordinate(g, i, k, size[k], normalized));
    if (s->flags & CUDA_ARRAY3D_CUBEMAP)
        for (unsigned k = 0; k < 3; k++)
            in[k] = bits_of(mix(g, 8 * i + k) % 8 ? fraction(g, 8 * i + k) * 4 - 2
                                                  : (float)(mix(g, i + k * 3) % 5) - 2);
    in[3] = mix(g, i * 4 + 3) % 9 ? mix(g, i * 4 + 3) % (s->d + 1) : mix(g, i) - 5;
    in[4] = bits_of(mix(g, 5 * i) % 12 ? fraction(g, i * 16 + 4) * ((float)s->levels + 2) - 1
                                       : (float)(mix(g, i) % 64) / 8 - 1);
    if (mix(g, 7 * i) % 40 == 0)
        in[4] = strange[mix(g, i) % 16];
}

static void whole(uint32_t g, uint32_t i, uint32_t in[SAMPLE_WORDS], const void *arg)
{
    const struct subject *s = arg;
    const unsigned size[] = { s->w, s->h ? s->h : 1, s->d ? s->d : 1 };
    ordinary(g, i, in, arg);
    for (unsigned k = 0; k < 3; k++)
        in[k] = mix(g + k, i) % 16 ? mix(g + k, i + 1) % (size[k] + 6) - 3 : mix(g + k, i + 2);
    in[4] = mix(g, i) % (s->levels + 3) - 1;
}

static void derivatives(uint32_t g, uint32_t i, uint32_t in[SAMPLE_WORDS], const void *arg)
{
    ordinary(g, i, in, arg);
    for (unsigned k = 4; k < 10; k++) {
        float v = (fraction(g, 32 * i + k) * 2 - 1) * exp2f(-floorf(fraction(g, 64 * i) * 10));
        if (mix(g, 96 * i + k) % 4 == 0)
            v = 0;
        if (mix(g, i) % 64 == 0)
            memcpy(&v, &strange[mix(g, i + k) % 16], 4);
        in[k] = bits_of(v);
    }
}

static void bytes(uint32_t g, uint32_t i, uint32_t in[SAMPLE_WORDS], const void *arg)
{
    const struct subject *s = arg;
    unsigned element = bytes_of(s->format) * s->channels;
    whole(g, i, in, arg);
    in[0] = (in[0] * element) & ~7u;
    for (unsigned k = 4; k < 8; k++)
        in[k] = mix(g + k, i) % 8 ? mix(g, 16 * i + k) : strange[mix(g + k, i) % 16];
}

/* Each x once: what one thread stores no other does. */
static void places(uint32_t g, uint32_t i, uint32_t in[SAMPLE_WORDS], const void *arg)
{
    const struct subject *s = arg;
    bytes(g, i, in, arg);
    in[0] = (i - 2) * 4;
    in[1] = in[2] = in[3] = (uint32_t)(i / (s->w + 4) + 0);
}

/* Fine steps over a few elements, to see what becomes of fractions. */
static void fine(uint32_t g, uint32_t i, uint32_t in[SAMPLE_WORDS], const void *arg)
{
    const struct subject *s = arg;
    float v = 1 + fraction(g, i) * ((float)s->w - 2);
    if (i % 2)
        v = floorf(v * 1024) / 1024;
    if (s->sampler & CU_TRSF_NORMALIZED_COORDINATES)
        v /= (float)s->w;
    memset(in, 0, SAMPLE_WORDS * 4);
    in[0] = bits_of(v);
    in[1] = in[2] = bits_of(0.5f);
}

/* --- what is looked at ------------------------------------------------------------------------ */

#define LINEAR     CU_TR_FILTER_MODE_LINEAR
#define NORMALIZED CU_TRSF_NORMALIZED_COORDINATES

static const struct {
    const char *name;
    CUarray_format format;
} formats[] = { { "u8", CU_AD_FORMAT_UNSIGNED_INT8 },   { "u16", CU_AD_FORMAT_UNSIGNED_INT16 },
                { "u32", CU_AD_FORMAT_UNSIGNED_INT32 }, { "s8", CU_AD_FORMAT_SIGNED_INT8 },
                { "s16", CU_AD_FORMAT_SIGNED_INT16 },   { "s32", CU_AD_FORMAT_SIGNED_INT32 },
                { "f16", CU_AD_FORMAT_HALF },           { "f32", CU_AD_FORMAT_FLOAT } };
static const char *const modes[] = { "wrap", "clamp", "mirror", "border" };

static void one(const char *name, const char *kernel, struct subject s, fill *f)
{
    make(&s);
    group(name, kernel, s.texture, f, &s, count);
    unmake(&s);
}

static void address_modes(void)
{
    char name[96];
    for (unsigned m = 0; m < 4; m++)
        for (unsigned n = 0; n < 2; n++)
            for (unsigned f = 0; f < 2; f++)
                for (unsigned w = 0; w < 3; w++) {
                    static const unsigned widths[] = { 16, 13, 1 };
                    struct subject s = {
                        .format = CU_AD_FORMAT_FLOAT, .channels = 1, .w = widths[w], .content = RAMP
                    };
                    s.mode = (CUaddress_mode)m;
                    s.sampler = n ? NORMALIZED : 0;
                    s.filter = f ? LINEAR : CU_TR_FILTER_MODE_POINT;
                    snprintf(name, sizeof(name), "mode-1d-%s-%s-%s-%u", modes[m],
                             n ? "norm" : "elem", f ? "linear" : "point", s.w);
                    one(name, "tex_1d_f32_f32", s, ordinary);
                    if (w != 1)
                        continue;
                    s.h = 7;
                    snprintf(name, sizeof(name), "mode-2d-%s-%s-%s", modes[m], n ? "norm" : "elem",
                             f ? "linear" : "point");
                    one(name, "tex_2d_f32_f32", s, ordinary);
                    if (!f) {
                        snprintf(name, sizeof(name), "mode-2d-%s-%s-whole", modes[m],
                                 n ? "norm" : "elem");
                        one(name, "tex_2d_f32_s32", s, whole);
                    }
                    s.flags = 0;
                    snprintf(name, sizeof(name), "offset-2d-%s-%s-%s", modes[m],
                             n ? "norm" : "elem", f ? "linear" : "point");
                    one(name, "offset_2d", s, ordinary);
                    s.d = 5;
                    snprintf(name, sizeof(name), "mode-3d-%s-%s-%s", modes[m], n ? "norm" : "elem",
                             f ? "linear" : "point");
                    one(name, "tex_3d_f32_f32", s, ordinary);
                    s.flags = CUDA_ARRAY3D_LAYERED;
                    snprintf(name, sizeof(name), "mode-a2d-%s-%s-%s", modes[m], n ? "norm" : "elem",
                             f ? "linear" : "point");
                    one(name, "tex_a2d_f32_f32", s, ordinary);
                    s.h = 0;
                    snprintf(name, sizeof(name), "mode-a1d-%s-%s-%s", modes[m], n ? "norm" : "elem",
                             f ? "linear" : "point");
                    one(name, "tex_a1d_f32_f32", s, ordinary);
                }
}

static void fractions(void)
{
    static const unsigned widths[] = { 8, 13, 1000, 16384, 100000 };
    char name[96];
    for (unsigned w = 0; w < 5; w++)
        for (unsigned n = 0; n < 2; n++) {
            struct subject s = {
                .format = CU_AD_FORMAT_FLOAT, .channels = 1, .w = widths[w], .content = RAMP
            };
            s.mode = CU_TR_ADDRESS_MODE_CLAMP;
            s.sampler = n ? NORMALIZED : 0;
            s.filter = LINEAR;
            snprintf(name, sizeof(name), "fine-linear-%s-%u", n ? "norm" : "elem", s.w);
            one(name, "tex_1d_f32_f32", s, fine);
            s.filter = CU_TR_FILTER_MODE_POINT;
            snprintf(name, sizeof(name), "fine-point-%s-%u", n ? "norm" : "elem", s.w);
            one(name, "tex_1d_f32_f32", s, fine);
        }
}

static void all_formats(void)
{
    char name[96];
    for (unsigned f = 0; f < 8; f++)
        for (unsigned c = 1; c <= 4; c *= 2) {
            bool wide = f == 2 || f == 5, real = f > 5;
            struct subject s = {
                .format = formats[f].format, .channels = c, .w = 61, .h = 7, .content = NICE
            };
            s.mode = CU_TR_ADDRESS_MODE_BORDER;
            if (!wide) {
                snprintf(name, sizeof(name), "format-%s-%u-point", formats[f].name, c);
                one(name, "tex_2d_f32_f32", s, ordinary);
                s.filter = LINEAR;
                snprintf(name, sizeof(name), "format-%s-%u-linear", formats[f].name, c);
                one(name, "tex_2d_f32_f32", s, ordinary);
                snprintf(name, sizeof(name), "format-%s-%u-half", formats[f].name, c);
                one(name, "half_2d", s, ordinary);
                snprintf(name, sizeof(name), "format-%s-%u-as-u32", formats[f].name, c);
                one(name, "tex_2d_u32_f32", s, ordinary);
                s.mode = CU_TR_ADDRESS_MODE_CLAMP;
                snprintf(name, sizeof(name), "format-%s-%u-linear-clamp", formats[f].name, c);
                one(name, "tex_2d_f32_f32", s, ordinary);
                struct subject t = s;
                t.h = 0;
                snprintf(name, sizeof(name), "format-%s-%u-linear-1d", formats[f].name, c);
                one(name, "tex_1d_f32_f32", t, ordinary);
                t.h = 7, t.d = 6;
                snprintf(name, sizeof(name), "format-%s-%u-linear-3d", formats[f].name, c);
                one(name, "tex_3d_f32_f32", t, ordinary);
                s.mode = CU_TR_ADDRESS_MODE_BORDER;
            }
            s.filter = CU_TR_FILTER_MODE_POINT;
            if (!real) {
                s.sampler = CU_TRSF_READ_AS_INTEGER;
                snprintf(name, sizeof(name), "format-%s-%u-u32", formats[f].name, c);
                one(name, "tex_2d_u32_f32", s, ordinary);
                snprintf(name, sizeof(name), "format-%s-%u-s32", formats[f].name, c);
                one(name, "tex_2d_s32_s32", s, whole);
                snprintf(name, sizeof(name), "format-%s-%u-as-f32", formats[f].name, c);
                one(name, "tex_2d_f32_f32", s, ordinary);
                snprintf(name, sizeof(name), "format-%s-%u-as-half", formats[f].name, c);
                one(name, "half_2d", s, ordinary);
            }
            if (f == 0) {
                s.sampler = CU_TRSF_SRGB;
                snprintf(name, sizeof(name), "srgb-%u-point", c);
                one(name, "tex_2d_f32_f32", s, ordinary);
                s.filter = LINEAR;
                snprintf(name, sizeof(name), "srgb-%u-linear", c);
                one(name, "tex_2d_f32_f32", s, ordinary);
            }
        }
    struct subject s = {
        .format = CU_AD_FORMAT_FLOAT, .channels = 4, .w = 31, .h = 9, .content = WILD
    };
    one("wild-point", "tex_2d_f32_f32", s, ordinary);
    one("wild-half", "half_2d", s, ordinary);
    s.filter = LINEAR;
    one("wild-linear", "tex_2d_f32_f32", s, ordinary);
    s.content = RANDOM_BITS;
    one("random-linear", "tex_2d_f32_f32", s, ordinary);
    s.format = CU_AD_FORMAT_HALF;
    one("random-f16-linear", "tex_2d_f32_f32", s, ordinary);
    one("random-f16-half", "half_2d", s, ordinary);
    s.filter = CU_TR_FILTER_MODE_POINT;
    one("random-f16-point", "tex_2d_f32_f32", s, ordinary);
}

static void gathers(void)
{
    char name[96], kernel[32];
    for (unsigned c = 1; c <= 4; c *= 2)
        for (unsigned m = 0; m < 4; m++)
            for (unsigned k = 0; k < 4; k++) {
                struct subject s = {
                    .format = CU_AD_FORMAT_FLOAT, .channels = c, .w = 16, .h = 7, .content = RAMP
                };
                s.mode = (CUaddress_mode)m;
                s.sampler = m % 2 && c == 1 ? 0 : NORMALIZED;
                s.flags = CUDA_ARRAY3D_TEXTURE_GATHER;
                s.content = c == 1 ? RAMP : NICE;
                s.filter = k & 1 ? LINEAR : CU_TR_FILTER_MODE_POINT;
                snprintf(name, sizeof(name), "gather-%u-%s-%c", c, modes[m], "rgba"[k]);
                snprintf(kernel, sizeof(kernel), "gather_%c_2d", "rgba"[k]);
                one(name, kernel, s, ordinary);
            }
    struct subject s = {
        .format = CU_AD_FORMAT_UNSIGNED_INT8, .channels = 4, .w = 16, .h = 7, .content = RANDOM_BITS
    };
    s.flags = CUDA_ARRAY3D_TEXTURE_GATHER;
    s.sampler = NORMALIZED;
    one("gather-u8", "gather_g_2d", s, ordinary);
}

static void cubes(void)
{
    char name[96];
    for (unsigned f = 0; f < 2; f++)
        for (unsigned seamless = 0; seamless < 2; seamless++) {
            struct subject s = {
                .format = CU_AD_FORMAT_FLOAT, .channels = 1, .w = 8, .h = 8, .d = 6, .content = RAMP
            };
            s.flags = CUDA_ARRAY3D_CUBEMAP;
            s.filter = f ? LINEAR : CU_TR_FILTER_MODE_POINT;
            s.sampler = NORMALIZED | (seamless ? CU_TRSF_SEAMLESS_CUBEMAP : 0);
            s.mode = CU_TR_ADDRESS_MODE_CLAMP;
            snprintf(name, sizeof(name), "cube-%s%s", f ? "linear" : "point",
                     seamless ? "-seamless" : "");
            one(name, "tex_cube_f32_f32", s, ordinary);
            s.mode = CU_TR_ADDRESS_MODE_WRAP;
            snprintf(name, sizeof(name), "cube-wrap-%s%s", f ? "linear" : "point",
                     seamless ? "-seamless" : "");
            one(name, "tex_cube_f32_f32", s, ordinary);
            s.flags |= CUDA_ARRAY3D_LAYERED;
            s.d = 18;
            snprintf(name, sizeof(name), "acube-%s%s", f ? "linear" : "point",
                     seamless ? "-seamless" : "");
            one(name, "tex_acube_f32_f32", s, ordinary);
        }
}

static void levels(void)
{
    char name[96];
    for (unsigned f = 0; f < 4; f++)
        for (unsigned v = 0; v < 4; v++) {
            struct subject s = {
                .format = CU_AD_FORMAT_FLOAT, .channels = 1, .w = 32, .content = RAMP, .levels = 5
            };
            s.filter = f & 1 ? LINEAR : CU_TR_FILTER_MODE_POINT;
            s.mip_filter = f & 2 ? LINEAR : CU_TR_FILTER_MODE_POINT;
            s.sampler = NORMALIZED;
            s.mode = CU_TR_ADDRESS_MODE_CLAMP;
            s.high = v == 2 ? 2.3f : 10;
            s.low = v == 2 ? 0.7f : 0;
            s.bias = v == 1 ? 0.6f : v == 3 ? -1.2f : 0;
            snprintf(name, sizeof(name), "level-1d-%u-%u", f, v);
            one(name, "level_1d_f32", s, ordinary);
            snprintf(name, sizeof(name), "base-1d-%u-%u", f, v);
            one(name, "tex_1d_f32_f32", s, ordinary);
            s.h = 16;
            snprintf(name, sizeof(name), "level-2d-%u-%u", f, v);
            one(name, "level_2d_f32", s, ordinary);
            snprintf(name, sizeof(name), "grad-2d-%u-%u", f, v);
            one(name, "grad_2d", s, derivatives);
            s.d = 8;
            snprintf(name, sizeof(name), "level-3d-%u-%u", f, v);
            one(name, "level_3d_f32", s, ordinary);
            snprintf(name, sizeof(name), "grad-3d-%u-%u", f, v);
            one(name, "grad_3d", s, derivatives);
            s.flags = CUDA_ARRAY3D_LAYERED;
            snprintf(name, sizeof(name), "level-a2d-%u-%u", f, v);
            one(name, "level_a2d_f32", s, ordinary);
            snprintf(name, sizeof(name), "grad-a2d-%u-%u", f, v);
            one(name, "grad_a2d", s, derivatives);
            s.h = 0;
            snprintf(name, sizeof(name), "grad-1d-%u-%u", f, v);
            s.flags = 0;
            s.d = 0;
            one(name, "grad_1d", s, derivatives);
            s = (struct subject) { .format = CU_AD_FORMAT_FLOAT,
                                   .channels = 1,
                                   .w = 16,
                                   .h = 16,
                                   .d = 6,
                                   .content = RAMP,
                                   .levels = 4,
                                   .flags = CUDA_ARRAY3D_CUBEMAP,
                                   .filter = s.filter,
                                   .mip_filter = s.mip_filter,
                                   .sampler = s.sampler,
                                   .mode = s.mode,
                                   .high = s.high,
                                   .low = s.low,
                                   .bias = s.bias };
            snprintf(name, sizeof(name), "level-cube-%u-%u", f, v);
            one(name, "level_cube_f32", s, ordinary);
            snprintf(name, sizeof(name), "grad-cube-%u-%u", f, v);
            one(name, "grad_cube", s, derivatives);
        }
    struct subject s = { .format = CU_AD_FORMAT_FLOAT,
                         .channels = 1,
                         .w = 32,
                         .content = RAMP,
                         .levels = 5,
                         .high = 9 };
    one("level-whole", "level_1d_s32", s, whole);
}

/* What is in the array afterwards, as the sum of a few words: all of it would be much. */
static void stored(const char *name, const char *kernel, struct subject s, fill *f)
{
    make(&s);
    group(name, kernel, s.surface, f, &s, count);
    unsigned element = bytes_of(s.format) * s.channels, rows = s.h ? s.h : 1,
             planes = s.d ? s.d : 1;
    size_t size = (size_t)s.w * rows * planes * element;
    uint8_t *data = calloc(size + 16, 1);
    const CUDA_MEMCPY3D down = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                 .srcArray = s.array,
                                 .dstMemoryType = CU_MEMORYTYPE_HOST,
                                 .dstHost = data,
                                 .dstPitch = (size_t)s.w * element,
                                 .dstHeight = rows,
                                 .WidthInBytes = (size_t)s.w * element,
                                 .Height = rows,
                                 .Depth = planes };
    MUST(cuMemcpy3D(&down));
    fprintf(out, "%s-after %s %zu 0\n", name, kernel, (size + 15) / 16);
    for (size_t i = 0; i < size; i += 16) {
        uint32_t w[4];
        memcpy(w, data + i, 16);
        fprintf(out, "%08x %08x %08x %08x\n", w[0], w[1], w[2], w[3]);
    }
    free(data);
    unmake(&s);
}

static void surfaces(void)
{
    static const char *const of[] = { "1d", "2d", "3d", "a1d", "a2d" };
    static const char *const beyond[] = { "clamp", "zero" };
    char name[96], kernel[32];
    for (unsigned g = 0; g < 5; g++)
        for (unsigned b = 0; b < 2; b++) {
            struct subject s = { .format = CU_AD_FORMAT_UNSIGNED_INT32,
                                 .channels = 1,
                                 .w = 16,
                                 .content = RANDOM_BITS };
            s.flags = CUDA_ARRAY3D_SURFACE_LDST | (g > 2 ? CUDA_ARRAY3D_LAYERED : 0);
            s.h = g == 0 || g == 3 ? 0 : 7;
            s.d = g >= 2 ? 5 : 0;
            s.sampler = CU_TRSF_READ_AS_INTEGER;
            snprintf(name, sizeof(name), "suld-%s-%s", of[g], beyond[b]);
            snprintf(kernel, sizeof(kernel), "suld_%s_%s", of[g], beyond[b]);
            one(name, kernel, s, bytes); /* through the texture's handle: to see what that gives */
            make(&s);
            snprintf(name, sizeof(name), "suld-%s-%s-surface", of[g], beyond[b]);
            group(name, kernel, s.surface, bytes, &s, count);
            unmake(&s);
            s.surface = 0;
            snprintf(name, sizeof(name), "sust-%s-%s", of[g], beyond[b]);
            snprintf(kernel, sizeof(kernel), "sust_%s_%s", of[g], beyond[b]);
            stored(name, kernel, s, places);
            for (unsigned f = 0; f < 8; f++) {
                struct subject t = s;
                t.format = formats[f].format;
                t.channels = 1u << (f + g) % 3;
                t.sampler = 0;
                t.content = NICE;
                snprintf(name, sizeof(name), "sustp-%s-%s-%s-%u", of[g], beyond[b], formats[f].name,
                         t.channels);
                snprintf(kernel, sizeof(kernel), "sustp_%s_%s", of[g], beyond[b]);
                stored(name, kernel, t, places);
            }
            if (g < 3) {
                snprintf(name, sizeof(name), "sured-%s-%s", of[g], beyond[b]);
                snprintf(kernel, sizeof(kernel), "sured_%s_%s", of[g], beyond[b]);
                stored(name, kernel, s, places);
            }
        }
}

static void answers(void)
{
    struct subject s = {
        .format = CU_AD_FORMAT_HALF, .channels = 2, .w = 61, .h = 7, .d = 5, .sampler = NORMALIZED
    };
    CUresult r = cuModuleLoadData(&module, sample_questions());
    fprintf(out, "questions - 0 %d\n", (int)r);
    if (r)
        return;
    count = 1;
    for (unsigned k = 0; k < 4; k++) {
        s.flags = k == 1 ? CUDA_ARRAY3D_LAYERED : k == 2 ? CUDA_ARRAY3D_SURFACE_LDST : 0;
        s.levels = k == 3 ? 3 : 0;
        s.surface = 0;
        s.array = NULL;
        s.mipmap = NULL;
        one("txq-a", "txq_a", s, ordinary);
        one("txq-b", "txq_b", s, ordinary);
        if (k == 2) {
            make(&s);
            group("suq-a", "suq_a", s.surface, ordinary, &s, count);
            unmake(&s);
        }
    }
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    char log[4096] = "";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof(log) };
    if (argc < 3 || !(out = fopen(argv[2], "w")))
        return 2;
    count = (unsigned)strtoul(argv[1], NULL, 10);
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    CUresult r = cuModuleLoadDataEx(&module, sample_kernels(), 2, options, values);
    if (r) {
        printf("Bail out! the kernels: %d %s\n", (int)r, log);
        return 1;
    }
    MUST(cuMemAlloc(&inputs, count * 4ul * SAMPLE_WORDS));
    MUST(cuMemAlloc(&outputs, count * 16ul));
    address_modes();
    fractions();
    all_formats();
    gathers();
    cubes();
    levels();
    surfaces();
    answers();
    fclose(out);
    return 0;
}
