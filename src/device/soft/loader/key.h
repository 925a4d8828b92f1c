/*
 * The bytes that decide a compiled object, which are the cache's key. The user whose text it is
 * belongs to them: somebody who knows a mistake in the compiler can use it against the code of
 * their own texts, and nobody else's.
 */
#ifndef GMUX_SOFT_LOADER_KEY_H
#define GMUX_SOFT_LOADER_KEY_H

#include "device/soft/loader/job.h"

/* Identifies the gmux-jit that made an object: a rebuilt or updated one makes older objects
 * useless. */
struct loader_helper_id {
    uint64_t size;
    uint64_t changed_ns;
};

/* Builds a key in malloc'ed memory. NULL: no memory. */
void *loader_key_create(const struct loader_helper_id *helper, uint32_t uid, const char *text,
                        size_t text_size, const char *entry, const struct soft_job_options *options,
                        size_t *key_size);

#endif
