/*
 * What the cache stores in place of an object that cannot be made: the reason, so that no process
 * tries again. The key contains the compiler's identity, so the refusal ends with that compiler.
 */
#ifndef GMUX_SOFT_LOADER_REFUSAL_H
#define GMUX_SOFT_LOADER_REFUSAL_H

#include <string.h>

#include "device/soft/loader/job.h"

#define LOADER_REFUSAL_MARK "gmux: no object: " /* no object begins with these bytes */

struct loader_refusal {
    char mark[sizeof(LOADER_REFUSAL_MARK)];
    char reason[SOFT_JOB_REASON_MAX];
};

/* Whether these bytes are a refusal; `why` then gets the reason. */
static inline bool loader_is_refusal(const void *bytes, size_t size, char *why, size_t why_size)
{
    const struct loader_refusal *r = bytes;
    if (size != sizeof(*r) || memcmp(r->mark, LOADER_REFUSAL_MARK, sizeof(r->mark)) != 0)
        return false;
    size_t length = strnlen(r->reason, sizeof(r->reason));
    length = length < why_size ? length : why_size - 1;
    memcpy(why, r->reason, length);
    why[length] = 0;
    return true;
}

#endif
