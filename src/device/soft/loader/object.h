/*
 * Loads a relocatable ELF object into executable memory: the small part of a linker that compiled
 * kernels need.
 *
 * The object comes from gmux-jit or from the cache, and is treated as what it is, a file made from
 * hostile text: every offset and size is checked, and whatever is not plain code and constants
 * (writable data, external symbols, unknown relocations) makes it a bad object. Memory is writable
 * until the relocations are in and never again after that.
 */
#ifndef GMUX_SOFT_LOADER_OBJECT_H
#define GMUX_SOFT_LOADER_OBJECT_H

#include "base/attr.h"

#define LOADER_CODE_MAX (64u << 20) /* bytes of code and constants of one object */

struct loader_object;

/* 0; -EBADMSG: not an object this loader accepts, `why` says what is wrong in one line; -ENOMEM.
 * `bytes` is not needed afterwards. */
GM_MUST_CHECK int loader_object_load(const void *bytes, size_t size, struct loader_object **out,
                                     char *why, size_t why_size);

/* Unmaps the code. NULL is fine. */
void loader_object_unload(struct loader_object *o);

/* Address of the function of that name, NULL if there is none. */
void *loader_object_function(const struct loader_object *o, const char *name);

/* Address of `size` read-only bytes under that name, aligned to 8, NULL if there are none. */
const void *loader_object_data(const struct loader_object *o, const char *name, size_t size);

/* Bytes of memory it occupies. */
size_t loader_object_size(const struct loader_object *o);

#endif
