/*
 * What a texture or surface handle is on devices whose memory is ordinary memory: the address of a
 * struct dev_texture in the client's own device memory. The client writes it and kernels read it,
 * with every access checked against the client's window, so that nobody has to believe it: whatever
 * stands there, a client reaches its own memory only. It outlives an executor, as that memory does.
 *
 * A texture reference of a module is a variable of that size, and its handle is its address.
 */
#ifndef GMUX_DEVICE_TEXTURE_H
#define GMUX_DEVICE_TEXTURE_H

#include "base/attr.h"

#define DEV_TEXTURE_BYTES 256u
#define DEV_TEXTURE_ALIGN 64u

/* First word: what it is. Any other value: nothing has been bound to it. */
enum dev_texture_kind {
    DEV_TEXTURE = 0x74786574,
    DEV_SURFACE = 0x66727573,
    DEV_SAMPLER = 0x706d6173,
};

enum dev_texture_format {
    DEV_FORMAT_U8,
    DEV_FORMAT_U16,
    DEV_FORMAT_U32,
    DEV_FORMAT_S8,
    DEV_FORMAT_S16,
    DEV_FORMAT_S32,
    DEV_FORMAT_F16,
    DEV_FORMAT_F32,
};

enum dev_texture_flags {
    DEV_TEXTURE_IN_LEVELS = 1, /* rows and planes as dev_array_row() and dev_array_plane() say; else
                                  `pitch`, one level */
    DEV_TEXTURE_LAYERED = 2,   /* planes are layers: all levels have the same number */
    DEV_TEXTURE_CUBE = 4,
};

enum dev_address_mode {
    DEV_ADDRESS_WRAP,
    DEV_ADDRESS_CLAMP,
    DEV_ADDRESS_MIRROR,
    DEV_ADDRESS_BORDER
};

enum dev_sampler_flags {
    DEV_SAMPLER_LINEAR = 1,     /* filters between elements */
    DEV_SAMPLER_MIP_LINEAR = 2, /* filters between levels */
    DEV_SAMPLER_NORMALIZED = 4, /* coordinates are 0 .. 1 */
    DEV_SAMPLER_INTEGER = 8,    /* integers stay integers */
    DEV_SAMPLER_SRGB = 16,
    DEV_SAMPLER_SEAMLESS = 32, /* filters over the edges of a cube's faces */
};

/* Layout: interpreter, compiled code and clients of other processes agree on it (DEV_TEXTURE_BYTES
 * in all). */
struct dev_texture {
    uint32_t kind; /* enum dev_texture_kind */
    uint32_t format;
    uint32_t channels;     /* 1, 2, 4 */
    uint32_t element;      /* bytes of all channels */
    uint64_t base;         /* of the first level */
    uint64_t pitch, slice; /* bytes between rows and planes of the first level */
    uint32_t width, height,
        depth;    /* elements of the first level; 1 where there is no such dimension */
    uint32_t row; /* bytes of a row of the first level */
    uint32_t first_layer, layers; /* faces of cubes are layers */
    uint32_t levels;
    uint32_t flags;
    /* As kernels are told: OpenCL's numbers for the order of channels and their type; 0 where there
     * is no such dimension. */
    uint32_t order, data_type;
    uint32_t told_height, told_depth, told_layers;
    uint32_t planes; /* layers that a level has in memory, of which `layers` may be a part */
    /* The sampler. */
    uint32_t sampler_flags;
    uint32_t address[3]; /* enum dev_address_mode */
    float bias, min_level, max_level;
    float border[4];
};
_Static_assert(sizeof(struct dev_texture) <= DEV_TEXTURE_BYTES, "room for more");

/* Rows and planes of arrays begin at whole tiles, so that they take what a client is charged
 * (array.h). */
#define DEV_TILE_WIDTH 64u
#define DEV_TILE_ROWS  8u

static inline uint64_t dev_array_row(uint64_t bytes)
{
    return (bytes + DEV_TILE_WIDTH - 1) / DEV_TILE_WIDTH * DEV_TILE_WIDTH;
}

static inline uint64_t dev_array_plane(uint64_t bytes, uint64_t rows)
{
    return dev_array_row(bytes) *
           (rows > 1 ? (rows + DEV_TILE_ROWS - 1) / DEV_TILE_ROWS * DEV_TILE_ROWS : 1);
}

#endif
