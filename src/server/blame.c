/*
 * Finds images by size, user and a hash of their bytes; of large images parts are hashed. If no
 * image of that size is known, nothing is read.
 */
#include "server/blame.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/result.h"
#include "server/server.h"

/* How much of an image is read, since everybody waits meanwhile and many images may have the same
 * size: parts of this size, from the beginning to the end. */
#define PART_BYTES (64u << 10)
#define PARTS      8u

static uint64_t part_at(uint64_t size, unsigned i)
{
    return size <= PARTS * PART_BYTES ? (uint64_t)i * PART_BYTES
                                      : (size - PART_BYTES) * i / (PARTS - 1);
}

static bool describe(struct srv_blamed *i, uint32_t uid, struct srv_extent image)
{
    static uint8_t part[PART_BYTES];
    XXH3_state_t *state = XXH3_createState();
    bool good = state && image.size > 0 && XXH3_128bits_reset(state) == XXH_OK;
    for (unsigned n = 0; good && n < PARTS; n++) {
        const uint64_t at = part_at(image.size, n);
        const size_t size = at < image.size ? GM_MIN(sizeof(part), image.size - at) : 0;
        ssize_t got = size ? pread(image.fd, part, size, (off_t)(image.offset + at)) : 0;
        good = got >= 0 && XXH3_128bits_update(state, part, (size_t)got) == XXH_OK;
    }
    if (good) {
        XXH128_hash_t h = XXH3_128bits_digest(state);
        *i =
            (struct srv_blamed) { .uid = uid, .size = image.size, .digest = { h.low64, h.high64 } };
    }
    XXH3_freeState(state);
    return good;
}

/* Finds the image; NULL: it is not known. If none of that size is known, which is the usual case,
 * nothing is read. */
static struct srv_blamed *find(struct srv_blame *b, uint32_t uid, struct srv_extent image)
{
    struct srv_blamed i;
    bool may_be = false;
    for (unsigned n = 0; n < SRV_BLAMED_MAX; n++)
        may_be |= b->images[n].deaths && b->images[n].size == image.size && b->images[n].uid == uid;
    if (!may_be || !describe(&i, uid, image))
        return NULL;
    for (unsigned n = 0; n < SRV_BLAMED_MAX; n++) {
        struct srv_blamed *other = &b->images[n];
        if (other->deaths && other->uid == uid && other->size == i.size &&
            other->digest[0] == i.digest[0] && other->digest[1] == i.digest[1])
            return other;
    }
    return NULL;
}

void srv_blame(struct srv_blame *b, uint32_t uid, struct srv_extent image, uint64_t death,
               unsigned weight)
{
    struct srv_blamed *i = find(b, uid, image), new;
    if (!i && describe(&new, uid, image)) {
        i = &b->images[b->next++ % SRV_BLAMED_MAX];
        *i = new;
    }
    /* Several sessions may have been loading the same image. */
    if (!i || (i->deaths && i->last == death))
        return;
    i->deaths += weight;
    i->last = death;
}

void srv_acquit(struct srv_blame *b, uint32_t uid, struct srv_extent image)
{
    struct srv_blamed *known = find(b, uid, image);
    if (known)
        known->deaths = 0;
}

bool srv_is_blamed(struct srv_blame *b, uint32_t uid, struct srv_extent image)
{
    const struct srv_blamed *known = find(b, uid, image);
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
