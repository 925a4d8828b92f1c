/* Images are kept once, and one that only looks alike is another. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <string.h>
#include <unistd.h>

#include "server/image.h"
#include "transport/memfd.h"

static struct gm_list images;

static void setup(void)
{
    gm_list_init(&images);
}

/* `size` bytes of one kind; one of them another. */
static struct srv_image *get(size_t size, size_t changed, int *fd)
{
    uint8_t *data = malloc(size);
    memset(data, 'x', size);
    data[changed] = 'y';
    *fd = tp_memfd_from_bytes("image", data, size);
    free(data);
    cr_assert_geq(*fd, 0);
    return srv_image_get(&images, *fd, size);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

Test(image, kept_once, .init = setup)
{
    const size_t size = (1u << 20) + 17; /* several chunks and a bit */
    int fds[4];
    struct srv_image *a = get(size, 0, &fds[0]);
    struct srv_image *b = get(size, 0, &fds[1]);
    cr_assert(is_open(fds[0]) && !is_open(fds[1]));
    struct srv_image *c = get(size, size - 1, &fds[2]);
    struct srv_image *d = get(size - 1, 0, &fds[3]);
    cr_assert(a == b && a != c && a != d && c != d);
    cr_assert(is_open(fds[2]) && is_open(fds[3]));
    srv_image_put(a);
    cr_assert(is_open(fds[0]), "somebody still uses it");
    srv_image_put(b);
    cr_assert_not(is_open(fds[0]));
    a = get(size, 0, &fds[0]);
    cr_assert(is_open(fds[0]), "what is gone is not found");
    srv_image_put(a);
    srv_image_put(c);
    srv_image_put(d);
    srv_image_put(NULL);
    cr_assert(gm_list_empty(&images));
}

/* Two images with one digest: the bytes decide. */
Test(image, collision, .init = setup)
{
    int fds[2];
    struct srv_image *a = get(5000, 1, &fds[0]);
    struct srv_image *b = get(5000, 2, &fds[1]);
    srv_image_put(b);
    /* As if the first had the second's digest. */
    int fd;
    b = get(5000, 2, &fd);
    memcpy(a->digest, b->digest, sizeof(a->digest));
    srv_image_put(b);
    b = get(5000, 2, &fd);
    cr_assert_neq(a, b);
}

Test(image, holes, .init = setup)
{
    int fd = memfd_create("holes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(fd, 1 << 22), 0);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    struct srv_image *i = srv_image_get(&images, fd, 1 << 22);
    struct stat st;
    cr_assert_not_null(i);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_eq(st.st_blocks, 0, "reading makes no pages");
    srv_image_put(i);
}
