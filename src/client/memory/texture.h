/*
 * Texture and surface objects. The number that a program holds, and passes to kernels, is the
 * driver's own number on a GPU, and elsewhere the address of a descriptor (descriptor.h). Here it
 * is found again, with what it was made of.
 */
#ifndef GMUX_CLIENT_MEMORY_TEXTURE_H
#define GMUX_CLIENT_MEMORY_TEXTURE_H

#include "client/stream/context.h"

/* The context ends; nothing of it runs any more. */
void rt_texture_destroy_all(struct rt_context *c);

#endif
