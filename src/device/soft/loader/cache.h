/*
 * Compiled objects on disk, one file per object, shared by all processes of a user.
 *
 * A file is named by a hash of its key, the bytes that decide the code (text, options, CPU,
 * versions), and contains the key whole: a look-up compares it, so that a collision of hashes, made
 * or met, gives a miss and never another program's code. Files appear by rename, complete or not at
 * all. A file that is damaged is a miss and is removed. The directory must be ours alone (owner,
 * mode 0700); another one is not used, as anybody who writes there runs code here.
 */
#ifndef GMUX_SOFT_LOADER_CACHE_H
#define GMUX_SOFT_LOADER_CACHE_H

#include "base/attr.h"

struct loader_cache;

/* Opens the directory, made if need be; NULL: GMUX_CACHE_DIR, $XDG_CACHE_HOME/gmux, ~/.cache/gmux.
 * With `owner`, the user that this process, now root's, will have become when it uses the cache: a
 * directory in there that is his alone. 0; -ENOENT: no cache wanted (empty name) or no place for
 * one; -EPERM: not ours alone; other -errno. */
GM_MUST_CHECK int loader_cache_open(struct loader_cache **out, const char *directory,
                                    uint64_t max_bytes, uint32_t owner);
void loader_cache_close(struct loader_cache *c);

/* The object stored under the key, malloc'ed, or -ENOENT. Any thread. */
GM_MUST_CHECK int loader_cache_get(struct loader_cache *c, const void *key, size_t key_size,
                                   void **object, size_t *size);

/* Stores an object; removes the longest unused ones when the cache has grown over its limit. 0 or
 * -errno. One thread at a time. */
int loader_cache_put(struct loader_cache *c, const void *key, size_t key_size, const void *object,
                     size_t size);

/* Takes an entry out, if it is there. Any thread. */
void loader_cache_remove(struct loader_cache *c, const void *key, size_t key_size);

/* File name of a key, for tests: 32 hexadecimal digits and ".o". */
#define LOADER_CACHE_NAME_SIZE 40
void loader_cache_name(const void *key, size_t key_size, char name[LOADER_CACHE_NAME_SIZE]);

#endif
