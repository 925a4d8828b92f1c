/*
 * Memory with two homes: one is this process, the other one an ordinary array, at which the test
 * looks as a device would. Skipped where the system does not let us see accesses.
 */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "client/memory/pages.h"
#include "client/memory/userfault.h"
#include "client/stream/coherence.h"

#define SIZE (2600u << 10) /* 40 pieces and a part of one */

static uint8_t *const base = (uint8_t *)0x510000000000;
static _Atomic uint8_t there[2 * SIZE];
static atomic_bool works, broken;
static atomic_uint put_calls, get_calls, told; /* told: rt_pages_stale while bytes are fetched */
static atomic_size_t got;

static int put(uint64_t address, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    size_t at = address - (uintptr_t)base;
    for (size_t i = 0; i < size; i++)
        there[at + i] = from[i];
    put_calls++;
    return broken ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static int settle(void)
{
    return CUDA_SUCCESS;
}

static int get(void *bytes, uint64_t address, size_t size)
{
    uint8_t *to = bytes;
    size_t at = address - (uintptr_t)base;
    told = rt_pages_stale;
    get_calls++;
    got += size;
    for (size_t i = 0; i < size; i++)
        to[i] = there[at + i];
    return broken ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static bool busy(void)
{
    return works;
}

static atomic_bool ends; /* what runs will end */
static _Atomic uint64_t waited, waits;

static bool rest(uint64_t ns)
{
    if (!works)
        return true;
    waited += ns;
    waits++;
    while (ends && works)
        sched_yield();
    return !works;
}

static const struct rt_pages_device device = {
    .put = put, .settle = settle, .get = get, .busy = busy, .rest = rest
};

static void map(uint8_t *at)
{
    cr_assert_eq(rt_pages_add((uintptr_t)at, SIZE), 0);
}

static void setup(void)
{
    int r = rt_pages_open(&device, (uintptr_t)base, 2 * SIZE);
    if (r < 0)
        cr_skip_test("userfaultfd: %s", strerror(-r));
    alarm(60);
    map(base);
}

TestSuite(pages, .init = setup);

/* What a kernel does: all that the host has is there before. */
static void work_enters(void)
{
    cr_assert_eq(rt_pages_release(), CUDA_SUCCESS);
    cr_assert_eq(rt_pages_here, 0);
}

Test(pages, new_memory_is_zero_and_nothing_is_fetched)
{
    for (size_t i = 0; i < SIZE; i++)
        there[i] = 7; /* the device's own zeros are not asked for */
    for (size_t i = 0; i < SIZE; i++)
        cr_assert_eq(base[i], 0);
}

Test(pages, what_the_host_wrote_is_there_when_work_enters)
{
    for (size_t i = 0; i < SIZE; i++)
        base[i] = (uint8_t)(i * 31);
    work_enters();
    for (size_t i = 0; i < SIZE; i++)
        cr_assert_eq(there[i], (uint8_t)(i * 31));
}

Test(pages, what_the_device_wrote_is_seen_here)
{
    work_enters();
    for (size_t i = 0; i < SIZE; i++)
        there[i] = (uint8_t)(i * 13);
    for (size_t i = 0; i < SIZE; i++)
        cr_assert_eq(base[i], (uint8_t)(i * 13));
    work_enters();
    there[5] = 99;
    cr_assert_eq(base[5], 99);
}

/* This feature came with what the pager needs. */
static bool pages_can_be_read_only(void)
{
    struct uffdio_api api = { .api = UFFD_API };
    int fd = rt_userfault_open(O_NONBLOCK);
    bool can = ioctl(fd, UFFDIO_API, &api) == 0 && api.features & UFFD_FEATURE_WP_UNPOPULATED;
    close(fd);
    return can;
}

Test(pages, what_was_only_read_does_not_go_back)
{
    if (!pages_can_be_read_only())
        cr_skip_test("before Linux 6.4 it goes back");
    work_enters();
    there[0] = 3;
    put_calls = 0;
    cr_assert_eq(base[0], 3);
    there[1] = 4; /* by work that entered before; and the host has the piece */
    work_enters();
    cr_assert_eq(put_calls, 0);
    cr_assert_eq(there[1], 4);
}

/* A thread that goes through memory waits a few times, one that jumps about gets only what it
 * touches. */
Test(pages, more_is_fetched_for_who_goes_through_it)
{
    work_enters();
    for (size_t i = 0; i < SIZE; i += RT_PAGE)
        cr_assert_eq(base[i], 0);
    cr_assert_leq(get_calls, 10);
    cr_assert_eq(got, SIZE);
    work_enters();
    got = 0;
    get_calls = 0;
    for (size_t i = SIZE; i > 300u << 10; i -= 300u << 10)
        cr_assert_eq(base[i - 1], 0);
    cr_assert_leq(got, get_calls * (64u << 10));
}

Test(pages, system_calls_reach_it)
{
    static uint8_t bytes[SIZE];
    work_enters();
    for (size_t i = 0; i < SIZE; i++)
        there[i] = (uint8_t)(i * 17);
    int fd = memfd_create("file", MFD_CLOEXEC);
    cr_assert_eq(write(fd, base, SIZE), SIZE); /* all of it is there: the kernel waits for us */
    cr_assert_eq(pread(fd, bytes, SIZE, 0), SIZE);
    for (size_t i = 0; i < SIZE; i++)
        cr_assert_eq(bytes[i], (uint8_t)(i * 17));
    work_enters();
    memset(bytes, 42, SIZE);
    cr_assert_eq(pwrite(fd, bytes, SIZE, 0), SIZE);
    cr_assert_eq(pread(fd, base, SIZE, 0), SIZE);
    work_enters();
    cr_assert_eq(there[SIZE - 1], 42);
    close(fd);
}

/* Both write the same piece, but not the same byte. */
Test(pages, both_may_write_at_once)
{
    work_enters();
    works = true;
    for (unsigned round = 1; round < 20; round++) {
        cr_assert_eq(base[100], (uint8_t)(round - 1)); /* fetched while work runs */
        base[100] = (uint8_t)round;
        base[300] = (uint8_t)round;
        for (size_t i = 0; i < SIZE; i++)
            if (i != 100 && i != 300)
                there[i] = (uint8_t)(i + round);
        work_enters();
        cr_assert_eq(there[100], (uint8_t)round);
        cr_assert_eq(there[300], (uint8_t)round);
        for (size_t i = 0; i < SIZE; i++)
            cr_assert(i == 100 || i == 300 || there[i] == (uint8_t)(i + round));
        cr_assert_eq(base[101], (uint8_t)(101 + round));
    }
}

#define ADDS 3000u

static void *adds(void *arg GM_UNUSED)
{
    _Atomic uint32_t *word = (_Atomic uint32_t *)(uintptr_t)there; /* NOLINT */
    for (unsigned i = 0; i < ADDS; i++) {
        atomic_fetch_add(word, 1);
        sched_yield();
    }
    works = false;
    return NULL;
}

/* The host's operations come after those of the work that was under way. */
Test(pages, atomic_operations_of_both_on_one_word)
{
    _Atomic uint32_t *word = (_Atomic uint32_t *)(void *)base;
    pthread_t thread;
    ends = true;
    for (uint32_t round = 1; round <= 3; round++) {
        work_enters();
        works = true;
        cr_assert_eq(pthread_create(&thread, NULL, adds, NULL), 0);
        for (unsigned i = 0; i < ADDS; i++)
            atomic_fetch_add(word, 1);
        pthread_join(thread, NULL);
        cr_assert_eq(atomic_load(word), 2 * ADDS * round);
    }
}

/* Work that does not end, perhaps because it waits for the host, is waited for less and less. */
Test(pages, patience_ends)
{
    work_enters();
    works = true;
    (void)*(volatile uint8_t *)base;
    const uint64_t first = waited;
    cr_assert_gt(first, 0);
    for (unsigned i = 0; i < 20; i++) {
        work_enters();
        (void)*(volatile uint8_t *)base;
    }
    cr_assert_gt(waits, 20);
    cr_assert_lt(waited, 2 * first);
}

/* Work may be done while a piece is fetched: who learns that then has to know of the piece. */
Test(pages, stale_before_it_is_fetched)
{
    work_enters();
    works = true;
    cr_assert_eq(base[0], 0);
    cr_assert_eq(told, 1);
    cr_assert_eq(rt_pages_release(), CUDA_SUCCESS);
    cr_assert_eq(rt_pages_stale, 0);
    works = false;
    cr_assert_eq(base[0], 0);
    cr_assert_eq(rt_pages_stale, 0);
}

/* Nobody calls anything: each waits for the other's byte. */
static void *answers(void *arg GM_UNUSED)
{
    for (unsigned i = 1; i <= 20; i++) {
        while (there[8] != i)
            sched_yield();
        there[9] = (uint8_t)i;
    }
    return NULL;
}

Test(pages, who_polls_sees_it)
{
    pthread_t thread;
    work_enters();
    works = true;
    cr_assert_eq(pthread_create(&thread, NULL, answers, NULL), 0);
    for (unsigned i = 1; i <= 20; i++) {
        *(volatile uint8_t *)&base[8] = (uint8_t)i;
        while (*(volatile uint8_t *)&base[9] != i)
            sched_yield();
    }
    pthread_join(thread, NULL);
}

#define WRITERS 4u
#define EACH    4000u

static atomic_uint at_work;

static void *counts(void *arg)
{
    volatile uint32_t *mine = (volatile uint32_t *)(void *)base + (uintptr_t)arg;
    for (unsigned i = 0; i < EACH; i++)
        for (unsigned k = 0; k < 8; k++)
            mine[k * (SIZE / 8 / sizeof(*mine))]++;
    at_work--;
    return NULL;
}

/* Work enters while threads write: none of what they write is lost. */
Test(pages, writers_and_releases)
{
    pthread_t threads[WRITERS];
    at_work = WRITERS;
    for (uintptr_t i = 0; i < WRITERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, counts, (void *)i), 0);
    while (at_work) {
        works = !works;
        cr_assert_eq(rt_pages_release(), CUDA_SUCCESS);
    }
    for (uintptr_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    for (uintptr_t i = 0; i < WRITERS; i++)
        for (unsigned k = 0; k < 8; k++)
            cr_assert_eq(((uint32_t *)(void *)base)[i + k * (SIZE / 8 / 4)], EACH);
    work_enters();
}

Test(pages, several)
{
    map(base + SIZE);
    base[SIZE - 1] = 1;
    base[SIZE] = 2;
    work_enters();
    cr_assert_eq(there[SIZE - 1], 1);
    cr_assert_eq(there[SIZE], 2);
    cr_assert(!rt_pages_remove((uintptr_t)base + RT_PAGE));
    base[3] = 3;
    cr_assert(rt_pages_remove((uintptr_t)base));
    cr_assert(!rt_pages_remove((uintptr_t)base));
    cr_assert_eq(base[SIZE], 2);
    cr_assert_eq(there[3], 0);
    base[3] = 4; /* ordinary memory now */
    work_enters();
    cr_assert_eq(there[3], 0);
    cr_assert(rt_pages_remove((uintptr_t)base + SIZE));
    cr_assert_eq(rt_pages_here, 0);
}

/* The device is gone: the program gets what it has here, else zeros, and nobody waits for ever. */
Test(pages, a_device_that_fails)
{
    base[0] = 9;
    broken = true;
    cr_assert_eq(rt_pages_release(), CUDA_ERROR_UNKNOWN);
    cr_assert_eq(base[0], 9);
    base[0] = 10;
    broken = false;
    work_enters();
    cr_assert_eq(there[0], 10);
    there[0] = 11;
    broken = true;
    cr_assert_eq(base[0], 0);
}

/* A child has none of it. */
Test(pages, fork)
{
    cr_assert_eq(madvise(base, SIZE, MADV_DONTFORK), 0);
    base[0] = 1;
    pid_t child = fork();
    if (child == 0) {
        rt_pages_forget();
        _exit(rt_pages_open(&device, (uintptr_t)base, 2 * SIZE) == 0 && rt_pages_here == 0 ? 0 : 1);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    work_enters();
    cr_assert_eq(there[0], 1);
}
