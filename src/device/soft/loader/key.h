/*
 * The bytes that decide a compiled object, put together: the cache's key. Whose text it was is
 * among them: who has found a mistake in the compiler decides what comes out for his texts, and for
 * nobody else's.
 */
#ifndef GMUX_SOFT_LOADER_KEY_H
#define GMUX_SOFT_LOADER_KEY_H

#include "device/soft/loader/job.h"

/* Which gmux-jit made it: a rebuilt or updated one invalidates what the old one made. */
struct loader_helper_id {
    uint64_t size;
    uint64_t changed_ns;
};

/* malloc'ed, NULL when memory is short. */
void *loader_key_create(const struct loader_helper_id *helper, uint32_t uid, const char *text,
                        size_t text_size, const char *entry, const struct soft_job_options *options,
                        size_t *key_size);

#endif
