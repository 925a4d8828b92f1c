/*
 * Texture and surface objects. What a program holds, and passes to kernels, is on a GPU the
 * driver's own number, elsewhere the address of a descriptor (descriptor.h); here it is found again
 * with what it was made of.
 */
#ifndef GMUX_CLIENT_MEMORY_TEXTURE_H
#define GMUX_CLIENT_MEMORY_TEXTURE_H

#include "client/stream/context.h"

/* The context ends; nothing of it runs any more. */
void rt_texture_destroy_all(struct rt_context *c);

#endif
