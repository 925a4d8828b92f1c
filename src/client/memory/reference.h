/*
 * Texture and surface references: variables of a module that kernels name, and that the host binds
 * to memory. Each has room for a descriptor (device/texture.h), which is written again with every
 * change, when nothing runs that could read it. CUDA 12 has dropped them; PTX still has them.
 *
 * Any thread, but only one thread at a time uses one reference.
 */
#ifndef GMUX_CLIENT_MEMORY_REFERENCE_H
#define GMUX_CLIENT_MEMORY_REFERENCE_H

#include "client/stream/context.h"

/* The reference whose variable lies at `address`; always the same handle. CUresult. */
int rt_reference_find_texture(struct rt_context *c, uint64_t address, CUtexref *out);
int rt_reference_find_surface(struct rt_context *c, uint64_t address, CUsurfref *out);
/* Forgets the references whose variables lie in [address, address + size); size UINT64_MAX: all of
 * the context. */
void rt_reference_forget(const struct rt_context *c, uint64_t address, uint64_t size);

#endif
