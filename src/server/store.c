/*
 * A file is a region of the range allocator, so that it goes when nothing is left in it. The
 * addresses of the regions are those at which the files are mapped here.
 */
#include "server/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "transport/memfd.h"

void srv_store_init(struct srv_store *s, unsigned *left)
{
    *s = (struct srv_store) { .left = left };
    /* An executor maps whole pages. */
    srv_ranges_init(&s->ranges, (uint64_t)sysconf(_SC_PAGESIZE));
    for (unsigned i = 0; i < SRV_STORE_BUCKETS; i++)
        gm_list_init(&s->stored[i]);
}

void srv_store_finish(struct srv_store *s)
{
    srv_ranges_finish(&s->ranges);
}

/* --- files ------------------------------------------------------------------------------------ */

static void file_close(struct srv_store *s, struct srv_store_file *f)
{
    munmap(f->bytes, SRV_STORE_FILE);
    f->bytes = NULL;
    f->fd = gm_close(f->fd);
    ++*s->left;
}

/* The file that is mapped at this address; there is one. */
static struct srv_store_file *file_at(struct srv_store *s, uint64_t address)
{
    struct srv_store_file *f = s->files;
    while (address - (uintptr_t)f->bytes >= SRV_STORE_FILE)
        f++;
    return f;
}

static bool file_open(struct srv_store *s)
{
    unsigned n = 0;
    void *bytes;
    while (n < SRV_STORE_FILES && s->files[n].bytes)
        n++;
    if (n == SRV_STORE_FILES || *s->left == 0)
        return false;
    int fd = tp_memfd_create_for_readers("gmux-images", SRV_STORE_FILE, &bytes);
    if (fd < 0)
        return false;
    s->files[n] = (struct srv_store_file) { bytes, fd };
    --*s->left;
    if (srv_ranges_add(&s->ranges, (uintptr_t)bytes, SRV_STORE_FILE) == 0)
        return true;
    file_close(s, &s->files[n]);
    return false;
}

static struct srv_block *room_for(struct srv_store *s, size_t size)
{
    struct srv_block *b = srv_ranges_alloc(&s->ranges, size, 1);
    return b || !file_open(s) ? b : srv_ranges_alloc(&s->ranges, size, 1);
}

static void give_back(struct srv_store *s, struct srv_block *b)
{
    struct srv_block *whole = srv_ranges_free(&s->ranges, b);
    if (!whole)
        return;
    struct srv_store_file *f = file_at(s, whole->address);
    srv_ranges_remove(&s->ranges, whole);
    file_close(s, f);
}

/* --- what is kept ----------------------------------------------------------------------------- */

static void *bytes_of(const struct srv_block *b)
{
    return (void *)(uintptr_t)b->address; /* NOLINT(performance-no-int-to-ptr) */
}

static struct srv_stored *find(const struct srv_store *s, XXH128_hash_t h, const void *bytes,
                               size_t size)
{
    gm_list_for_each (i, &s->stored[h.low64 % SRV_STORE_BUCKETS], struct srv_stored, link)
        if (i->extent.size == size && i->digest[0] == h.low64 && i->digest[1] == h.high64 &&
            memcmp(bytes_of(i->block), bytes, size) == 0)
            return i;
    return NULL;
}

struct srv_stored *srv_store_put(struct srv_store *s, const void *bytes, size_t size)
{
    const XXH128_hash_t h = XXH3_128bits(bytes, size);
    struct srv_stored *i = find(s, h, bytes, size);
    if (i) {
        i->users++;
        return i;
    }
    struct srv_block *b = room_for(s, size);
    if (!b)
        return NULL;
    i = calloc(1, sizeof(*i));
    if (!i) {
        give_back(s, b);
        return NULL;
    }
    const struct srv_store_file *f = file_at(s, b->address);
    memcpy(bytes_of(b), bytes, size);
    *i = (struct srv_stored) { .extent = { f->fd, b->address - (uintptr_t)f->bytes, size },
                               .block = b,
                               .digest = { h.low64, h.high64 },
                               .users = 1 };
    gm_list_append(&s->stored[h.low64 % SRV_STORE_BUCKETS], &i->link);
    return i;
}

void srv_store_drop(struct srv_store *s, struct srv_stored *i)
{
    if (--i->users > 0)
        return;
    give_back(s, i->block);
    gm_list_remove(&i->link);
    free(i);
}
