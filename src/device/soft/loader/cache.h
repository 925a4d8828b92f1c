/*
 * Compiled objects on disk, one file per object, shared by all processes of a user.
 *
 * A file is named by a hash of its key, the bytes that decide the code (text, options, CPU,
 * versions), and contains the whole key. A look-up compares it, so a collision of hashes,
 * accidental or deliberate, is a miss and never gives another program's code. Files appear by
 * rename, so they are complete or not there. A damaged file is a miss and is removed. The directory
 * must belong to this user alone (owner, mode 0700), since anybody who can write there could run
 * code here; another directory is not used.
 */
#ifndef GMUX_SOFT_LOADER_CACHE_H
#define GMUX_SOFT_LOADER_CACHE_H

#include "base/attr.h"

struct loader_cache;

/* Opens the directory and creates it if it is missing. NULL: GMUX_CACHE_DIR, $XDG_CACHE_HOME/gmux
 * or ~/.cache/gmux. `owner`, if not 0, is the user that this process, which is root now, will have
 * become when it uses the cache: then a subdirectory for that user alone is opened. 0; -ENOENT: the
 * name is empty (no cache wanted) or there is no place for one; -EPERM: others have access to the
 * directory; other -errno. */
GM_MUST_CHECK int loader_cache_open(struct loader_cache **out, const char *directory,
                                    uint64_t max_bytes, uint32_t owner);
void loader_cache_close(struct loader_cache *c);

/* Reads the object stored under the key into malloc'ed memory, or -ENOENT. Any thread. */
GM_MUST_CHECK int loader_cache_get(struct loader_cache *c, const void *key, size_t key_size,
                                   void **object, size_t *size);

/* Stores an object, and removes the longest unused ones when the cache has grown over its limit. 0
 * or -errno. Any thread. */
int loader_cache_put(struct loader_cache *c, const void *key, size_t key_size, const void *object,
                     size_t size);

/* Removes an entry if it is there. Any thread. */
void loader_cache_remove(struct loader_cache *c, const void *key, size_t key_size);

/* For tests: the size of a file's name, 32 hexadecimal digits and ".o". */
#define LOADER_CACHE_NAME_SIZE 40
void loader_cache_name(const void *key, size_t key_size, char name[LOADER_CACHE_NAME_SIZE]);

#endif
