/*
 * Images are compared by size, user and a hash of their bytes. Where none of that size is known,
 * nothing is read.
 */
#include "server/blame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/result.h"
#include "server/server.h"

/* Of larger ones the beginning says who they are: nobody waits for long while it is read. */
#define READ_MAX (4ull << 20)
static bool describe(struct srv_blamed *i, uint32_t uid, int fd)
{
    static uint8_t part[64u << 10];
    XXH3_state_t *state = XXH3_createState();
    struct stat st;
    uint64_t at = 0;
    bool good =
        state && fstat(fd, &st) == 0 && st.st_size > 0 && XXH3_128bits_reset(state) == XXH_OK;
    while (good && at < GM_MIN((uint64_t)st.st_size, READ_MAX)) {
        ssize_t n = pread(fd, part, sizeof(part), (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        good = n > 0 && XXH3_128bits_update(state, part, (size_t)n) == XXH_OK;
        at += good ? (uint64_t)n : 0;
    }
    if (good) {
        XXH128_hash_t h = XXH3_128bits_digest(state);
        *i = (struct srv_blamed) { .uid = uid,
                                   .size = (uint64_t)st.st_size,
                                   .digest = { h.low64, h.high64 } };
    }
    XXH3_freeState(state);
    return good;
}

/* NULL: none. Mostly there is none of that size, and nothing is read. */
static struct srv_blamed *find(struct srv_blame *b, uint32_t uid, int fd)
{
    struct srv_blamed i;
    struct stat st;
    bool may_be = false;
    if (fstat(fd, &st) < 0)
        return NULL;
    for (unsigned n = 0; n < SRV_BLAMED_MAX; n++)
        may_be |= b->images[n].deaths && b->images[n].size == (uint64_t)st.st_size &&
                  b->images[n].uid == uid;
    if (!may_be || !describe(&i, uid, fd))
        return NULL;
    for (unsigned n = 0; n < SRV_BLAMED_MAX; n++) {
        struct srv_blamed *other = &b->images[n];
        if (other->deaths && other->uid == uid && other->size == i.size &&
            other->digest[0] == i.digest[0] && other->digest[1] == i.digest[1])
            return other;
    }
    return NULL;
}

void srv_blame(struct srv_blame *b, uint32_t uid, int fd, uint64_t death, unsigned weight)
{
    struct srv_blamed *i = find(b, uid, fd), new;
    if (!i && describe(&new, uid, fd)) {
        i = &b->images[b->next++ % SRV_BLAMED_MAX];
        *i = new;
    }
    if (!i || (i->deaths && i->last == death)) /* several may have loaded it */
        return;
    i->deaths += weight;
    i->last = death;
}

void srv_acquit(struct srv_blame *b, uint32_t uid, int fd)
{
    struct srv_blamed *known = find(b, uid, fd);
    if (known)
        known->deaths = 0;
}

bool srv_is_blamed(struct srv_blame *b, uint32_t uid, int fd)
{
    const struct srv_blamed *known = find(b, uid, fd);
    return known && known->deaths >= SRV_CULPRIT;
}

uint64_t srv_oom_kills(void)
{
    const char *path = secure_getenv("GMUX_VMSTAT");
    unsigned long long kills = 0;
    char line[128];
    GM_AUTO_FILE FILE *f = fopen(path ? path : "/proc/vmstat", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "oom_kill %llu", &kills) == 1)
            break;
    return kills;
}
