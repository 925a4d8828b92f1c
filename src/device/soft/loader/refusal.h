/*
 * What the cache has in an object's place where there is none to be had: why, so that no process
 * tries again. It ends with the compiler that said so, as that is part of the key.
 */
#ifndef GMUX_SOFT_LOADER_REFUSAL_H
#define GMUX_SOFT_LOADER_REFUSAL_H

#include <string.h>

#include "device/soft/loader/job.h"

#define LOADER_REFUSAL_MARK "gmux: no object: " /* no object begins so */

struct loader_refusal {
    char mark[sizeof(LOADER_REFUSAL_MARK)];
    char reason[SOFT_JOB_REASON_MAX];
};

/* `why` gets the reason. False: these bytes are something else. */
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
