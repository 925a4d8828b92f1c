/*
 * Images that ended executors: which are taken for one, and that to look takes no time worth
 * mentioning, however large they are.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "server/blame.h"
#include "server/request.h"

#define SMALL ((off_t)300 << 10)
#define LARGE ((off_t)64 << 20)
#define READ  (4u << 20)
#define LOOKS 32u

enum { USER = 1000, OTHER };

/* With one byte at each of two places that is not zero. */
static int image(off_t size, off_t at, char byte)
{
    int fd = memfd_create("image", MFD_CLOEXEC);
    cr_assert(fd >= 0 && ftruncate(fd, size) == 0);
    cr_assert(pwrite(fd, "x", 1, 0) == 1 && pwrite(fd, &byte, 1, at) == 1);
    return fd;
}

static void differ(off_t size, off_t at)
{
    struct srv_blame b = { 0 };
    int bad = image(size, at, 'b'), like = image(size, at, 'b'), other = image(size, at, 'o'),
        longer = image(size + 1, at, 'b');
    srv_blame(&b, USER, bad, 1, SRV_CULPRIT);
    cr_assert(srv_is_blamed(&b, USER, bad) && srv_is_blamed(&b, USER, like));
    cr_assert(!srv_is_blamed(&b, USER, other) && !srv_is_blamed(&b, USER, longer));
    cr_assert(!srv_is_blamed(&b, OTHER, bad));
    srv_acquit(&b, USER, like);
    cr_assert(!srv_is_blamed(&b, USER, bad));
    close(bad);
    close(like);
    close(other);
    close(longer);
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

static double worked_s(void)
{
    struct timespec t;
    cr_assert(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

Test(blame, takes_a_part_of_what_it_takes_to_read_it)
{
    static uint8_t bytes[READ];
    struct srv_blame b = { 0 };
    int bad = image(LARGE, 1, 'b'), other = image(LARGE, 1, 'o');
    srv_blame(&b, USER, bad, 1, SRV_CULPRIT);
    double begin = worked_s();
    for (unsigned i = 0; i < LOOKS; i++)
        cr_assert_eq(pread(other, bytes, READ, 0), READ);
    const double reading = worked_s() - begin;
    begin = worked_s();
    for (unsigned i = 0; i < LOOKS; i++)
        cr_assert(!srv_is_blamed(&b, USER, other));
    const double looking = worked_s() - begin;
    cr_assert_lt(4 * looking, reading, "%.1f ms, %.1f to read 4 MiB", looking * 1e3 / LOOKS,
                 reading * 1e3 / LOOKS);
    close(bad);
    close(other);
}
