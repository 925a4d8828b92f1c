/*
 * Images that ended executors: which are taken for one, and that little is read to tell, however
 * large they are.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/blame.h"
#include "server/request.h"

#define SMALL    ((off_t)300 << 10)
#define LARGE    ((off_t)64 << 20)
#define STEP     ((off_t)32 << 10)
#define READ_MAX ((off_t)1 << 20)

enum { USER = 1000, OTHER };

/* With one byte at each of two places that is not zero. */
static struct srv_extent image(off_t size, off_t at, char byte)
{
    int fd = memfd_create("image", MFD_CLOEXEC);
    cr_assert(fd >= 0 && ftruncate(fd, size) == 0);
    cr_assert(pwrite(fd, "x", 1, 0) == 1 && pwrite(fd, &byte, 1, at) == 1);
    return (struct srv_extent) { fd, 0, (uint64_t)size };
}

static void differ(off_t size, off_t at)
{
    struct srv_blame b = { 0 };
    struct srv_extent bad = image(size, at, 'b'), like = image(size, at, 'b'),
                      other = image(size, at, 'o'), longer = image(size + 1, at, 'b');
    srv_blame(&b, USER, bad, 1, SRV_CULPRIT);
    cr_assert(srv_is_blamed(&b, USER, bad) && srv_is_blamed(&b, USER, like));
    cr_assert(!srv_is_blamed(&b, USER, other) && !srv_is_blamed(&b, USER, longer));
    cr_assert(!srv_is_blamed(&b, OTHER, bad));
    srv_acquit(&b, USER, like);
    cr_assert(!srv_is_blamed(&b, USER, bad));
    close(bad.fd);
    close(like.fd);
    close(other.fd);
    close(longer.fd);
}

Test(blame, each_byte_counts)
{
    for (off_t at = 1; at < SMALL; at = at * 3 + 1)
        differ(SMALL, at);
    differ(SMALL, SMALL - 1);
}

Test(blame, both_ends_of_a_large_one_count)
{
    differ(LARGE, 1);
    differ(LARGE, LARGE - 1);
    differ(LARGE + 12345, LARGE + 12344);
}

/* Differences at so many places, spread evenly, that are seen tell how much of an image is read. */
Test(blame, of_a_large_one_a_small_part_is_read)
{
    struct srv_blame b = { 0 };
    struct srv_extent bad = image(LARGE, 1, 0), other = image(LARGE, 1, 0);
    off_t seen = 0;
    srv_blame(&b, USER, bad, 1, SRV_CULPRIT);
    for (off_t at = STEP / 2; at < LARGE; at += STEP) {
        cr_assert(pwrite(other.fd, "o", 1, at) == 1);
        seen += !srv_is_blamed(&b, USER, other);
        cr_assert(pwrite(other.fd, "", 1, at) == 1);
    }
    cr_assert(seen > 0 && seen * STEP <= READ_MAX, "%lld KiB", (long long)(seen * STEP >> 10));
    close(bad.fd);
    close(other.fd);
}
