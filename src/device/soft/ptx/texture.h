/*
 * What instructions on textures (texture.c) and on surfaces (surface.c) have in common.
 */
#ifndef GMUX_SOFT_PTX_TEXTURE_H
#define GMUX_SOFT_PTX_TEXTURE_H

#include "device/soft/ptx/expand.h"
#include "device/texture.h"

struct ptx_geometry {
    const char *word;
    uint8_t geometry; /* enum ir_geometry */
    uint8_t dimensions;
    bool layered;
};

/* Takes .1d to .acube; NULL: there is none of them. */
const struct ptx_geometry *ptx_x_take_geometry(struct ptx_expand *x);
/* Takes a handle: a register, a parameter, or the name of a reference. */
struct ir_src ptx_x_handle(struct ptx_expand *x);
/* Takes {layer, x, y, z}, as far as the geometry has them. Gives x, y, z and the layer; 0: there is
 * none. */
void ptx_x_coordinates(struct ptx_expand *x, const struct ptx_geometry *g, enum ir_type type,
                       struct ir_src out[4]);
/* Loads a field of the descriptor that the handle points to. */
struct ir_src ptx_x_field32(struct ptx_expand *x, struct ir_src handle, size_t offset);
struct ir_src ptx_x_field64(struct ptx_expand *x, struct ir_src handle, size_t offset);

#endif
