/*
 * Texture and surface objects. What a program holds, and passes to kernels, is the genuine driver's own number; here it is
 * found again with what it was made of.
 */
#ifndef GMUX_CLIENT_MEMORY_TEXTURE_H
#define GMUX_CLIENT_MEMORY_TEXTURE_H

#include "client/stream/context.h"

/* The context ends; nothing of it runs any more. */
void rt_texture_destroy_all(struct rt_context *c);

#endif
