/*
 * Texture and surface references: variables of a module that kernels name, which the host binds to
 * memory. Each is room for a descriptor (device/texture.h), which is written anew with every
 * change, when nothing runs that could read it. CUDA 12 has dropped them; PTX still has them.
 *
 * Any thread, but one reference is one thread's at a time.
 */
#ifndef GMUX_CLIENT_MEMORY_REFERENCE_H
#define GMUX_CLIENT_MEMORY_REFERENCE_H

#include "client/stream/context.h"

/* The reference whose variable lies at `address`: the same handle whenever it is asked for.
 * CUresult. */
int rt_reference_find_texture(struct rt_context *c, uint64_t address, CUtexref *out);
int rt_reference_find_surface(struct rt_context *c, uint64_t address, CUsurfref *out);
/* Those whose variables lie in [address, address + size) are no more; size UINT64_MAX: all of the
 * context. */
void rt_reference_forget(const struct rt_context *c, uint64_t address, uint64_t size);

#endif
