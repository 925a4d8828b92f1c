/* Many small images in few files, equal ones once, and nothing left when they are gone. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/store.h"

#define LARGE SRV_STORED_MAX

static struct srv_store store, other;
static unsigned left;

static void setup(void)
{
    left = 3;
    srv_store_init(&store, &left);
    srv_store_init(&other, &left);
}

static void teardown(void)
{
    srv_store_finish(&store);
    srv_store_finish(&other);
    cr_assert_eq(left, 3, "all files are closed");
}

static struct srv_stored *put(struct srv_store *s, unsigned what, size_t size)
{
    static uint8_t bytes[LARGE];
    memset(bytes, 0, size);
    memcpy(bytes, &what, sizeof(what));
    return srv_store_put(s, bytes, size);
}

static bool is(const struct srv_stored *i, unsigned what, size_t size)
{
    uint8_t bytes[LARGE], want[LARGE] = { 0 };
    memcpy(want, &what, sizeof(what));
    return i->extent.size == size &&
           pread(i->extent.fd, bytes, size, (off_t)i->extent.offset) == (ssize_t)size &&
           memcmp(bytes, want, size) == 0;
}

Test(store, equal_bytes_are_kept_once, .init = setup, .fini = teardown)
{
    struct srv_stored *a = put(&store, 1, 100), *b = put(&store, 1, 100);
    struct srv_stored *longer = put(&store, 1, 101), *differs = put(&store, 2, 100);
    struct srv_stored *hers = put(&other, 1, 100);
    cr_assert(a && a == b && longer && longer != a && differs && differs != a);
    cr_assert(hers && hers->extent.fd != a->extent.fd, "another user's");
    srv_store_drop(&store, a);
    cr_assert(is(b, 1, 100) && is(longer, 1, 101) && is(differs, 2, 100) && is(hers, 1, 100));
    srv_store_drop(&store, b);
    a = put(&store, 1, 100);
    cr_assert(a && is(a, 1, 100) && is(longer, 1, 101));
    srv_store_drop(&store, a);
    srv_store_drop(&store, longer);
    srv_store_drop(&store, differs);
    srv_store_drop(&other, hers);
}

/* Until there is no room; what is there stays as it is, and room that is given back is found. */
Test(store, has_bounds, .init = setup, .fini = teardown)
{
    enum { MOST = 3 * SRV_STORE_FILE / LARGE };
    struct srv_stored *all[MOST];
    for (unsigned i = 0; i < MOST; i++)
        cr_assert_neq(all[i] = put(&store, i, LARGE), NULL);
    cr_assert_eq(put(&store, MOST, LARGE), NULL);
    cr_assert_eq(put(&other, 0, 1), NULL, "the files are all users'");
    cr_assert_eq(put(&store, 0, LARGE), all[0], "that needs no room");
    srv_store_drop(&store, all[0]);
    srv_store_drop(&store, all[7]);
    all[7] = put(&store, MOST, LARGE);
    for (unsigned i = 0; i < MOST; i++)
        cr_assert(is(all[i], i == 7 ? MOST : i, LARGE), "%u", i);
    for (unsigned i = 0; i < MOST; i++)
        srv_store_drop(&store, all[i]);
}

Test(store, nobody_else_can_write, .init = setup, .fini = teardown)
{
    struct srv_stored *a = put(&store, 1, 100);
    const int fd = a->extent.fd;
    cr_assert_lt(pwrite(fd, "x", 1, (off_t)a->extent.offset), 0);
    cr_assert_lt(ftruncate(fd, 1), 0);
    cr_assert_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    srv_store_drop(&store, a);
}
