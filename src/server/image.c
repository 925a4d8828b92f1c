/*
 * Images. They are read and not mapped: touching a mapped page that the sender left out would
 * allocate it, and end the server if there is no memory for it.
 */
#include "server/image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "transport/foreign.h"
#include "transport/memfd.h"

/* how much is read before the loop looks for events again: some 50 us */
#define SLICE (256u << 10)

static uint8_t slices[2][SLICE];

int srv_reader_init(struct srv_reader *r, uv_loop_t *loop)
{
    memset(r, 0, sizeof(*r));
    gm_list_init(&r->turns);
    r->files_left = SRV_STORE_FILES_ALL;
    r->state = XXH3_createState();
    if (!r->state)
        return -ENOMEM;
    uv_idle_init(loop, &r->idle);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct srv_reader *r = GM_CONTAINER_OF((uv_idle_t *)(void *)handle, struct srv_reader, idle);
    XXH3_freeState(r->state);
    r->state = NULL;
}

void srv_reader_close(struct srv_reader *r)
{
    r->image = NULL;
    uv_close((uv_handle_t *)&r->idle, on_closed);
}

/* --- reading ---------------------------------------------------------------------------------- */

static struct gm_list *bucket_of(const struct srv_image *i)
{
    return &i->among->read[i->digest[0] % SRV_IMAGE_BUCKETS];
}

static const struct srv_image *find_like(const struct srv_image *i)
{
    gm_list_for_each (other, bucket_of(i), struct srv_image, link)
        if (other->extent.size == i->extent.size &&
            memcmp(other->digest, i->digest, sizeof(i->digest)) == 0)
            return other;
    return NULL;
}

/* Begins to read the next image, if there is one. */
static void begin(struct srv_reader *r)
{
    if (gm_list_empty(&r->turns)) {
        uv_idle_stop(&r->idle);
        return;
    }
    struct srv_images *all = gm_list_entry(r->turns.next, struct srv_images, turn);
    r->image = gm_list_entry(all->unread.next, struct srv_image, link);
    r->like = NULL;
    r->at = 0;
    XXH3_128bits_reset(r->state);
    gm_list_remove(&r->image->link);
    gm_list_remove(&all->turn);
    if (!gm_list_empty(&all->unread))
        gm_list_append(&r->turns, &all->turn); /* behind the other users */
}

/* The image has been read; later ones are compared with it. */
static void end(struct srv_reader *r)
{
    gm_list_append(bucket_of(r->image), &r->image->link);
    r->image = NULL;
}

/* Lets both descriptors refer to one file. The descriptor's number stays, since requests to the
 * executor may name it. */
static void share(struct srv_image *i, const struct srv_image *like)
{
    int old = fcntl(i->extent.fd, F_DUPFD_CLOEXEC, 0);
    if (old >= 0)
        (void)dup3(like->extent.fd, i->extent.fd, O_CLOEXEC);
    tp_close_foreign(old);
}

static void hash(struct srv_reader *r, size_t n)
{
    struct srv_image *i = r->image;
    XXH3_128bits_update(r->state, slices[0], n);
    r->at += n;
    if (r->at < i->extent.size)
        return;
    XXH128_hash_t h = XXH3_128bits_digest(r->state);
    i->digest[0] = h.low64;
    i->digest[1] = h.high64;
    r->like = find_like(i);
    r->at = 0;
    if (!r->like)
        end(r);
}

static void compare(struct srv_reader *r, size_t n)
{
    if (!tp_read_at(r->like->extent.fd, r->at, slices[1], n) ||
        memcmp(slices[0], slices[1], n) != 0) {
        end(r);
        return;
    }
    r->at += n;
    if (r->at < r->image->extent.size)
        return;
    share(r->image, r->like);
    end(r);
}

static void on_idle(uv_idle_t *idle)
{
    struct srv_reader *r = GM_CONTAINER_OF(idle, struct srv_reader, idle);
    if (!r->image)
        begin(r);
    if (!r->image)
        return;
    size_t n = (size_t)GM_MIN(r->image->extent.size - r->at, (uint64_t)SLICE);
    if (!tp_read_at(r->image->extent.fd, r->at, slices[0], n))
        end(r);
    else if (r->like)
        compare(r, n);
    else
        hash(r, n);
}

/* --- images ----------------------------------------------------------------------------------- */

void srv_images_init(struct srv_images *all, struct srv_reader *r)
{
    all->reader = r;
    gm_list_init(&all->turn);
    gm_list_init(&all->unread);
    for (unsigned i = 0; i < SRV_IMAGE_BUCKETS; i++)
        gm_list_init(&all->read[i]);
    srv_store_init(&all->store, &r->files_left);
}

void srv_images_finish(struct srv_images *all)
{
    gm_list_remove(&all->turn);
    srv_store_finish(&all->store);
}

static void add_unread(struct srv_image *i)
{
    struct srv_images *all = i->among;
    gm_list_append(&all->unread, &i->link);
    if (gm_list_empty(&all->turn))
        gm_list_append(&all->reader->turns, &all->turn);
    uv_idle_start(&all->reader->idle, on_idle);
}

/* Copies it, if it is small and there is room. */
static struct srv_stored *store(struct srv_images *all, int fd, uint64_t size)
{
    _Static_assert(SRV_STORED_MAX <= SLICE, "read at once");
    return size <= SRV_STORED_MAX && tp_read_at(fd, 0, slices[0], size)
               ? srv_store_put(&all->store, slices[0], size)
               : NULL;
}

void srv_image_add(struct srv_images *all, struct srv_image *i, int fd, uint64_t size)
{
    *i = (struct srv_image) { .among = all, .extent = { .fd = fd, .size = size } };
    gm_list_init(&i->link);
    i->stored = store(all, fd, size);
    if (i->stored) {
        i->extent = i->stored->extent;
        tp_close_foreign(fd);
    } else {
        add_unread(i);
    }
}

void srv_image_remove(struct srv_image *i)
{
    if (!i->among)
        return;
    if (i->stored) {
        srv_store_drop(&i->among->store, i->stored);
        i->among = NULL;
        return;
    }
    struct srv_reader *r = i->among->reader;
    /* Another one that was read may be equal to it. */
    if (r->image && r->like == i)
        add_unread(gm_take_ptr(r->image));
    if (r->image == i)
        r->image = NULL;
    gm_list_remove(&i->link);
    if (gm_list_empty(&i->among->unread))
        gm_list_remove(&i->among->turn);
    i->extent.fd = tp_close_foreign(i->extent.fd);
    i->among = NULL;
}
