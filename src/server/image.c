/*
 * An image is read and not mapped: a page that its sender left out would be made when it is touched, and kill the server if
 * there is no memory for it.
 */
#include "server/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"

#define CHUNK      (256u << 10)
#define SHARED_MAX (256u << 20) /* reading more would hold up all clients */

static uint8_t chunks[2][CHUNK];

static bool read_at(int fd, uint8_t *to, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, to + done, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool digest(struct srv_image *i)
{
    XXH3_state_t *state = XXH3_createState();
    bool good = state && XXH3_128bits_reset(state) == XXH_OK;
    for (uint64_t at = 0; at < i->size && good; at += CHUNK) {
        size_t n = (size_t)GM_MIN(i->size - at, (uint64_t)CHUNK);
        good = read_at(i->fd, chunks[0], n, at) && XXH3_128bits_update(state, chunks[0], n) == XXH_OK;
    }
    if (good) {
        XXH128_hash_t h = XXH3_128bits_digest(state);
        i->digest[0] = h.low64;
        i->digest[1] = h.high64;
    }
    XXH3_freeState(state);
    return good;
}

static bool is_same(const struct srv_image *a, const struct srv_image *b)
{
    if (a->size != b->size || memcmp(a->digest, b->digest, sizeof(a->digest)) != 0)
        return false;
    for (uint64_t at = 0; at < a->size; at += CHUNK) {
        size_t n = (size_t)GM_MIN(a->size - at, (uint64_t)CHUNK);
        if (!read_at(a->fd, chunks[0], n, at) || !read_at(b->fd, chunks[1], n, at) ||
            memcmp(chunks[0], chunks[1], n) != 0)
            return false;
    }
    return true;
}

struct srv_image *srv_image_get(struct gm_list *images, int fd, uint64_t size)
{
    struct srv_image *mine = calloc(1, sizeof(*mine));
    if (!mine) {
        gm_close(fd);
        return NULL;
    }
    *mine = (struct srv_image) { .users = 1, .size = size, .fd = fd };
    gm_list_init(&mine->link);
    if (size > SHARED_MAX || !digest(mine))
        return mine;
    gm_list_for_each (i, images, struct srv_image, link)
        if (is_same(i, mine)) {
            srv_image_put(mine);
            i->users++;
            return i;
        }
    gm_list_append(images, &mine->link);
    return mine;
}

void srv_image_put(struct srv_image *i)
{
    if (!i || --i->users > 0)
        return;
    gm_list_remove(&i->link);
    gm_close(i->fd);
    free(i);
}
