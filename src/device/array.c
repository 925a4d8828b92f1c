/*
 * Where each level, layer and row of an array lies, computed from its description alone.
 */
#include "device/array.h"

#include <cuda.h>

#include "base/result.h"
#include "device/texture.h"

#define WIDTH_MAX (1ull << 31) /* bytes of a row, rows, planes: far above what any device has */
#define BYTES_MAX (1ull << 46)
#define PAGE      4096u

/* Compressed and planar formats are not among them. */
uint32_t dev_array_element(uint32_t format, uint32_t channels)
{
    uint32_t size;
    if (channels != 1 && channels != 2 && channels != 4)
        return 0;
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        size = 1;
        break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        size = 2;
        break;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        size = 4;
        break;
    default:
        return 0;
    }
    return size * channels;
}

static bool format_exists(uint32_t format)
{
    return format == CU_AD_FORMAT_UNORM_INT_101010_2 ||
           (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_SNORM_INT16X4);
}

static bool is_layered(const struct dev_array_shape *s)
{
    return s->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

int dev_array_check(const struct dev_array_shape *s)
{
    const uint32_t served = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                            CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                            CUDA_ARRAY3D_VIDEO_ENCODE_DECODE; /* the last one asks for nothing */
    const uint32_t others = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
    uint32_t element = dev_array_element(s->format, s->channels);
    if (s->flags & ~(served | others))
        return GM_CUDA_INVALID_VALUE;
    if ((s->flags & others) || (!element && format_exists(s->format)))
        return GM_CUDA_NOT_SUPPORTED;
    if (!element || s->width == 0 || s->width > WIDTH_MAX / element || s->height > WIDTH_MAX ||
        s->depth > WIDTH_MAX)
        return GM_CUDA_INVALID_VALUE;
    if (s->depth && !s->height && !is_layered(s))
        return GM_CUDA_INVALID_VALUE;
    if ((s->flags & CUDA_ARRAY3D_LAYERED) && !s->depth)
        return GM_CUDA_INVALID_VALUE;
    if ((s->flags & CUDA_ARRAY3D_TEXTURE_GATHER) && (!s->height || s->depth))
        return GM_CUDA_INVALID_VALUE;
    if ((s->flags & (CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED)) == CUDA_ARRAY3D_CUBEMAP &&
        s->depth != 6)
        return GM_CUDA_INVALID_VALUE;
    if ((s->flags & CUDA_ARRAY3D_CUBEMAP) &&
        (s->width != s->height || s->depth == 0 || s->depth % 6))
        return GM_CUDA_INVALID_VALUE;
    uint64_t plane, all;
    if (__builtin_mul_overflow(s->width * element, GM_MAX(s->height, (uint64_t)1), &plane) ||
        __builtin_mul_overflow(plane, GM_MAX(s->depth, (uint64_t)1), &all) || all > BYTES_MAX)
        return GM_CUDA_INVALID_VALUE;
    return s->levels <= dev_array_levels(s) ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_VALUE;
}

uint32_t dev_array_levels(const struct dev_array_shape *s)
{
    uint64_t largest = GM_MAX(s->width, s->height);
    uint32_t levels = 1;
    if (!is_layered(s))
        largest = GM_MAX(largest, s->depth);
    while (largest >>= 1)
        levels++;
    return levels;
}

void dev_array_extent(const struct dev_array_shape *s, uint32_t level, struct dev_array_extent *out)
{
    const uint64_t one = 1;
    out->width = GM_MAX(s->width >> level, one) * dev_array_element(s->format, s->channels);
    out->rows = GM_MAX(s->height >> level, one);
    out->planes = GM_MAX(is_layered(s) ? s->depth : s->depth >> level, one);
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* No overflow: a shape that was checked has BYTES_MAX bytes, and tiles make at most DEV_TILE_WIDTH
 * * DEV_TILE_ROWS times that of it. */
uint64_t dev_array_bytes(const struct dev_array_shape *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < GM_MAX(s->levels, 1u); i++) {
        struct dev_array_extent e;
        dev_array_extent(s, i, &e);
        sum += dev_array_plane(e.width, e.rows) * e.planes;
    }
    return round_up(sum, PAGE);
}

void dev_array_place(const struct dev_array_shape *s, uint32_t level, struct dev_array_place *out)
{
    struct dev_array_extent e;
    out->offset = 0;
    for (uint32_t i = 0; i < level; i++) {
        dev_array_extent(s, i, &e);
        out->offset += dev_array_plane(e.width, e.rows) * e.planes;
    }
    dev_array_extent(s, level, &e);
    out->pitch = dev_array_row(e.width);
    out->slice = dev_array_plane(e.width, e.rows);
}

static bool fits(uint64_t at, uint64_t size, uint64_t all)
{
    return at <= all && size <= all - at;
}

bool dev_array_holds(const struct dev_array_shape *s, uint32_t level, uint64_t x, uint64_t y,
                     uint64_t z, uint64_t width, uint64_t height, uint64_t depth)
{
    struct dev_array_extent e;
    dev_array_extent(s, level, &e);
    return fits(x, width, e.width) && fits(y, height, e.rows) && fits(z, depth, e.planes);
}
