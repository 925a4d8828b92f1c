/*
 * Loads a relocatable ELF object into executable memory: the small part of a linker that compiled
 * kernels need.
 *
 * An object from gmux-jit or from the cache was made from hostile text, and is treated so. Every
 * offset and size is checked, and an object with anything but plain code and constants (writable
 * data, external symbols, unknown relocations) is refused. The memory is writable until the
 * relocations are applied, and never again.
 */
#ifndef GMUX_SOFT_LOADER_OBJECT_H
#define GMUX_SOFT_LOADER_OBJECT_H

#include "base/attr.h"

#define LOADER_CODE_MAX (64u << 20) /* bytes of code and constants of one object */

struct loader_object;

/* Loads an object. 0; -EBADMSG: the loader does not accept it, `why` says in one line what is
 * wrong; -ENOMEM. `bytes` is not needed afterwards. */
GM_MUST_CHECK int loader_object_load(const void *bytes, size_t size, struct loader_object **out,
                                     char *why, size_t why_size);

/* Unmaps the code. NULL is accepted. */
void loader_object_unload(struct loader_object *o);

/* Address of the function of that name; NULL if there is none. */
void *loader_object_function(const struct loader_object *o, const char *name);

/* Address of `size` read-only bytes under that name, aligned to 8; NULL if there are none. */
const void *loader_object_data(const struct loader_object *o, const char *name, size_t size);

/* Memory that the object takes, in bytes. */
size_t loader_object_size(const struct loader_object *o);

#endif
