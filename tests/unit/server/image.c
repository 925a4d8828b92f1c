/* Images with the same bytes are kept once, and one that only looks alike is another. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/image.h"
#include "transport/memfd.h"

#define SIZE ((1u << 20) + 17) /* several slices and a bit */

static uv_loop_t loop;
static struct srv_reader reader;
static struct srv_images his, hers;

static void setup(void)
{
    cr_assert_eq(uv_loop_init(&loop), 0);
    cr_assert_eq(srv_reader_init(&reader, &loop), 0);
    srv_images_init(&his, &reader);
    srv_images_init(&hers, &reader);
}

static void teardown(void)
{
    srv_images_finish(&his);
    srv_images_finish(&hers);
    srv_reader_close(&reader);
    uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&loop), 0);
}

/* `size` bytes of one kind; one of them another. */
static void add(struct srv_images *all, struct srv_image *i, size_t size, size_t changed)
{
    uint8_t *data = malloc(size);
    memset(data, 'x', size);
    data[changed] = 'y';
    int fd = tp_memfd_from_bytes("image", data, size);
    free(data);
    cr_assert_geq(fd, 0);
    srv_image_add(all, i, fd, size);
}

static void read_all(void)
{
    uv_run(&loop, UV_RUN_DEFAULT); /* until nothing is left to do */
}

static ino_t file_of(const struct srv_image *i)
{
    struct stat st;
    cr_assert_eq(fstat(i->extent.fd, &st), 0);
    return st.st_ino;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

Test(image, kept_once, .init = setup, .fini = teardown)
{
    struct srv_image a, b, c, d, e;
    add(&his, &a, SIZE, 0);
    add(&his, &b, SIZE, 0);
    add(&his, &c, SIZE, SIZE - 1);
    add(&his, &d, SIZE - 1, 0);
    add(&hers, &e, SIZE, 0);
    cr_assert_neq(file_of(&a), file_of(&b), "nobody waits for that");
    int number = b.extent.fd;
    read_all();
    cr_assert_eq(file_of(&a), file_of(&b));
    cr_assert_eq(b.extent.fd, number);
    cr_assert_eq(fcntl(number, F_GETFD), FD_CLOEXEC);
    cr_assert(file_of(&c) != file_of(&a) && file_of(&d) != file_of(&a));
    cr_assert_neq(file_of(&e), file_of(&a), "another user's");
    srv_image_remove(&a);
    cr_assert(is_open(b.extent.fd), "somebody still uses it");
    add(&his, &a, SIZE, 0);
    read_all();
    cr_assert_eq(file_of(&a), file_of(&b));
    srv_image_remove(&a);
    srv_image_remove(&b);
    srv_image_remove(&c);
    srv_image_remove(&d);
    srv_image_remove(&e);
    /* It is longer than what is closed at once: a thread does it. */
    for (uint64_t end = gm_now_ns() + 10 * GM_NS_PER_S; is_open(number); sched_yield())
        cr_assert_lt(gm_now_ns(), end, "nobody closes it");
}

/* Two images with one digest: the bytes decide. */
Test(image, collision, .init = setup, .fini = teardown)
{
    struct srv_image a, b, like_b;
    add(&his, &a, SIZE, 1);
    add(&his, &b, SIZE, 2);
    read_all();
    /* As if the first had the second's digest. */
    gm_list_remove(&b.link);
    gm_list_remove(&a.link);
    memcpy(a.digest, b.digest, sizeof(a.digest));
    gm_list_append(&his.read[a.digest[0] % SRV_IMAGE_BUCKETS], &a.link);
    add(&his, &like_b, SIZE, 2);
    read_all();
    cr_assert_neq(file_of(&like_b), file_of(&a));
    srv_image_remove(&a);
    srv_image_remove(&b);
    srv_image_remove(&like_b);
}

/* Whichever of two equal images goes at whichever moment, the other one stays as it was, and is
 * found by a third. */
Test(image, removed_meanwhile, .init = setup, .fini = teardown)
{
    for (unsigned steps = 0; steps < 20; steps++)
        for (unsigned gone = 0; gone < 2; gone++) {
            struct srv_image i[3];
            add(&his, &i[0], SIZE, 5);
            add(&his, &i[1], SIZE, 5);
            for (unsigned s = 0; s < steps; s++)
                uv_run(&loop, UV_RUN_NOWAIT);
            srv_image_remove(&i[gone]);
            add(&his, &i[2], SIZE, 5);
            read_all();
            cr_assert_eq(file_of(&i[1 - gone]), file_of(&i[2]), "%u gone after %u steps", gone,
                         steps);
            srv_image_remove(&i[1 - gone]);
            srv_image_remove(&i[2]);
        }
}

/* One that has much to read does not keep another user waiting for all of it. */
Test(image, users_take_turns, .init = setup, .fini = teardown)
{
    struct srv_image many[8], a, b;
    for (unsigned i = 0; i < 8; i++)
        add(&his, &many[i], SIZE, i);
    add(&hers, &a, SIZE, 0);
    add(&hers, &b, SIZE, 0);
    while (file_of(&a) != file_of(&b))
        cr_assert(uv_run(&loop, UV_RUN_NOWAIT) != 0);
    cr_assert_not(gm_list_empty(&his.unread));
    for (unsigned i = 0; i < 8; i++)
        srv_image_remove(&many[i]);
    srv_image_remove(&a);
    srv_image_remove(&b);
}

Test(image, holes, .init = setup, .fini = teardown)
{
    int fd = memfd_create("holes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(fd, 1 << 22), 0);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    struct srv_image i = { 0 };
    struct stat st;
    srv_image_remove(&i); /* never added */
    srv_image_add(&his, &i, fd, 1 << 22);
    read_all();
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_eq(st.st_blocks, 0, "reading makes no pages");
    srv_image_remove(&i);
}
