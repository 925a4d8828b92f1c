/*
 * The bytes that decide a compiled object, which are the cache's key. The text is in it packed,
 * since each kernel of a module has a key of its own with the whole text: a hundred kernels of a
 * large module would fill the cache with copies. The user whose text it is
 * belongs to them: somebody who knows a mistake in the compiler can use it against the code of
 * their own texts, and nobody else's.
 */
#ifndef GMUX_SOFT_LOADER_KEY_H
#define GMUX_SOFT_LOADER_KEY_H

#include <pthread.h>
#include <xxhash.h>

#include "device/soft/loader/job.h"

/* Identifies the gmux-jit that made an object: a rebuilt or updated one makes older objects
 * useless. */
struct loader_helper_id {
    uint64_t size;
    uint64_t changed_ns;
};

/* Packs texts, and keeps the last one packed: kernels of a module come one after the other. */
struct loader_packer {
    pthread_mutex_t lock; /* of the fields below */
    uint64_t seed;        /* of hashes, at random: nobody can make two texts with the same one */
    XXH128_hash_t hash;
    size_t text_size, size;
    void *packed; /* malloc'ed; NULL: there was no text yet */
};

void loader_packer_init(struct loader_packer *p);
void loader_packer_finish(struct loader_packer *p);

/* Builds a key in malloc'ed memory. NULL: no memory. Any thread. */
void *loader_key_create(struct loader_packer *p, const struct loader_helper_id *helper,
                        uint32_t uid, const char *text, size_t text_size, const char *entry,
                        const struct soft_job_options *options, size_t *key_size);

#endif
