/*
 * Shared memory by descriptor: what is accepted as a memfd, and as a session; the 64-bit wait word.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/memfd.h"
#include "transport/names.h"
#include "transport/session.h"

/* --- memfd ------------------------------------------------------------------------------------ */

Test(memfd, what_we_make_passes)
{
    int fd = tp_memfd_create("test", 12345);
    cr_assert_geq(fd, 0);
    cr_assert_eq(tp_memfd_check(fd, 12345, false), 0);
    cr_assert_eq(tp_memfd_check(fd, 12345, true), -EBADMSG, "writable");
    cr_assert_eq(tp_memfd_check(fd, 12344, false), -EBADMSG);
    cr_assert_eq(tp_memfd_check(fd, 12346, false), -EBADMSG);
    cr_assert_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    cr_assert_eq(ftruncate(fd, 1), -1);
    cr_assert_eq(ftruncate(fd, 99999), -1);
    close(fd);
}

Test(memfd, bytes_are_read_only)
{
    int fd = tp_memfd_from_bytes("test", "hello", 6);
    cr_assert_geq(fd, 0);
    cr_assert_eq(tp_memfd_check(fd, 6, true), 0);
    cr_assert_eq(tp_memfd_check(fd, 6, false), 0);
    cr_assert_eq(write(fd, "x", 1), -1);
    cr_assert_null(tp_memfd_map(fd, 6, true));
    char *p = tp_memfd_map(fd, 6, false);
    cr_assert_not_null(p);
    cr_assert_str_eq(p, "hello");
    munmap(p, 6);
    close(fd);
}

/* The kernel ends a process that makes a file larger than it may, also one in memory. */
Test(memfd, others_can_only_read_a_part_of_it)
{
    enum { PAGE = 4096 };
    void *bytes;
    int fd = tp_memfd_create_for_readers("test", 3 * PAGE, &bytes);
    cr_assert_geq(fd, 0);
    cr_assert_null(tp_memfd_map(fd, PAGE, true));
    memcpy((uint8_t *)bytes + PAGE, "hello", 5);
    uint8_t *part = tp_memfd_map_extent(fd, PAGE, 5), *again;
    cr_assert_not_null(part);
    again = mremap(part, 0, 5, MREMAP_MAYMOVE); /* as the device does that keeps an image */
    cr_assert_neq(again, MAP_FAILED);
    memcpy((uint8_t *)bytes + PAGE, "other", 5);
    cr_assert(memcmp(part, "hello", 5) == 0 && memcmp(again, "hello", 5) == 0,
              "it stays as it was");
    cr_assert_eq(tp_memfd_check_extent(fd, 0, 3 * PAGE), 0);
    cr_assert_eq(tp_memfd_check_extent(fd, 2 * PAGE, PAGE), 0);
    cr_assert_eq(tp_memfd_check_extent(fd, 2 * PAGE, PAGE + 1), -EBADMSG);
    cr_assert_eq(tp_memfd_check_extent(fd, PAGE, UINT64_MAX), -EBADMSG);
    cr_assert_eq(tp_memfd_check_extent(fd, UINT64_MAX, 1), -EBADMSG);
    cr_assert_eq(tp_memfd_check_extent(STDIN_FILENO, 0, 1), -EBADMSG);
    int writable = tp_memfd_create("test", PAGE),
        bytes_only = tp_memfd_from_bytes("test", "hello", 6);
    cr_assert_eq(tp_memfd_check_extent(writable, 0, PAGE), -EBADMSG);
    cr_assert_eq(tp_memfd_check_extent(bytes_only, 0, 6), 0);
    munmap(part, 5);
    munmap(again, 5);
    munmap(bytes, 3 * PAGE);
    close(writable);
    close(bytes_only);
    close(fd);
}

Test(memfd, a_limit_of_file_sizes_is_an_error)
{
    static const char bytes[5000];
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit) { 4096, 1 << 20 }), 0);
    cr_assert_eq(tp_memfd_create("test", 4097), -EFBIG);
    cr_assert_geq(tp_memfd_create("test", 4096), 0);
    cr_assert_eq(tp_memfd_from_bytes("test", bytes, sizeof(bytes)), -EFBIG);
    cr_assert_geq(tp_memfd_from_bytes("test", bytes, 4096), 0);
    tp_files_of_any_size();
    cr_assert_geq(tp_memfd_create("test", 1 << 20), 0);
    cr_assert_geq(tp_memfd_from_bytes("test", bytes, sizeof(bytes)), 0);
}

Test(memfd, a_mapping_that_may_write_keeps_it_from_being_sealed)
{
    int fd = memfd_create("test", MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(fd, 4096), 0);
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(p, MAP_FAILED);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    cr_assert_eq(tp_memfd_check(fd, 4096, true), -EBADMSG);
}

Test(memfd, what_others_make_does_not)
{
    static const int seals[] = { 0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE,
                                 F_SEAL_SHRINK | F_SEAL_WRITE };
    for (size_t i = 0; i < GM_ARRAY_LEN(seals); i++) {
        int fd = memfd_create("test", MFD_ALLOW_SEALING);
        cr_assert_eq(ftruncate(fd, 4096), 0);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
        cr_assert_eq(tp_memfd_check(fd, 4096, false), -EBADMSG, "seals %#x", seals[i]);
        close(fd);
    }
    int pipes[2];
    cr_assert_eq(pipe(pipes), 0);
    cr_assert_eq(tp_memfd_check(pipes[0], 0, false), -EBADMSG);
    int file = open("/proc/self/exe", O_RDONLY);
    cr_assert_eq(tp_memfd_check(file, (uint64_t)lseek(file, 0, SEEK_END), true), -EBADMSG);
    cr_assert_eq(tp_memfd_check(-1, 0, false), -EBADMSG);
    int huge = memfd_create("test", MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (huge >= 0 && ftruncate(huge, 2 << 20) == 0 &&
        fcntl(huge, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        cr_assert_eq(tp_memfd_check(huge, 2 << 20, false), -EBADMSG);
}

Test(memfd, impossible_sizes)
{
    cr_assert_lt(tp_memfd_create("test", UINT64_MAX), 0);
    cr_assert_lt(tp_memfd_create("test", (uint64_t)INT64_MAX + 1), 0);
}

/* --- session ---------------------------------------------------------------------------------- */

static int attach_with(const struct tp_session_header *h, uint64_t said_size)
{
    struct tp_session s;
    int fd = tp_session_create();
    cr_assert_geq(fd, 0);
    cr_assert_eq(pwrite(fd, h, sizeof(*h), 0), sizeof(*h));
    int r = tp_session_attach(&s, fd, said_size);
    if (r == 0)
        tp_session_detach(&s);
    close(fd);
    return r;
}

static struct tp_session_header good_header(void)
{
    struct tp_session_header h;
    int fd = tp_session_create();
    cr_assert_eq(pread(fd, &h, sizeof(h), 0), sizeof(h));
    close(fd);
    return h;
}

Test(session, what_the_server_makes_is_accepted)
{
    struct tp_session s;
    int fd = tp_session_create();
    cr_assert_eq(tp_session_attach(&s, fd, TP_SESSION_SIZE), 0);
    cr_assert_eq(s.streams_count, TP_STREAMS);
    cr_assert_eq(s.events_count, TP_EVENTS);
    cr_assert_eq(s.ring_size, TP_RING_BYTES);
    cr_assert_eq((uintptr_t)s.control % GM_CACHELINE, 0);
    cr_assert_eq((uintptr_t)s.streams % GM_CACHELINE, 0);
    cr_assert_eq((char *)s.ring_data + s.ring_size, (char *)s.reply);
    cr_assert_eq((char *)(s.reply + 1), (char *)s.output);
    cr_assert_eq((char *)s.output + TP_OUTPUT_BYTES, (char *)s.parts);
    cr_assert_eq((char *)&s.parts[TP_PARTS], (char *)s.names);
    cr_assert_eq((char *)s.names + TP_NAMES_BYTES, (char *)s.base + s.size);
    tp_session_detach(&s);
    tp_session_detach(&s);
}

/* --- names ------------------------------------------------------------------------------------ */

static void attach(struct tp_session *s)
{
    int fd = tp_session_create();
    cr_assert_eq(tp_session_attach(s, fd, TP_SESSION_SIZE), 0);
    close(fd);
}

Test(names, come_back_in_order)
{
    static struct tp_name n;
    static char longest[TP_NAME_MAX + 2];
    struct tp_session s;
    uint32_t at = 0, count = 0;
    attach(&s);
    memset(longest, 'x', sizeof(longest) - 1);
    cr_assert_not(tp_names_add(&s, 1, 0, longest));
    longest[TP_NAME_MAX] = '\0';
    cr_assert_not(tp_names_next(&s, &at, &n));
    cr_assert(tp_names_add(&s, 1, 0, "kernel"));
    cr_assert(tp_names_add(&s, 7, 3, ""));
    while (tp_names_add(&s, 2, count, longest))
        count++;
    cr_assert_gt(count, 1000);
    cr_assert(tp_names_next(&s, &at, &n) && n.module == 1 && n.index == 0 &&
              strcmp(n.text, "kernel") == 0);
    cr_assert(tp_names_next(&s, &at, &n) && n.module == 7 && n.index == 3 && *n.text == '\0');
    for (uint32_t i = 0; i < count; i++)
        cr_assert(tp_names_next(&s, &at, &n) && n.index == i && strcmp(n.text, longest) == 0);
    cr_assert_not(tp_names_next(&s, &at, &n));
    tp_session_detach(&s);
}

/* The words are the client's: whatever stands there, the reader stays within the area and comes to
 * an end. */
Test(names, forged)
{
    static struct tp_name n;
    struct tp_session s;
    attach(&s);
    cr_assert(tp_names_add(&s, 1, 0, "kernel"));
    static const uint32_t words[] = { 0, 1, 4097, 0x7fffffff, 0xfffffff0, 0xffffffff };
    for (size_t i = 0; i < GM_ARRAY_LEN(words); i++)
        for (size_t k = 0; k < GM_ARRAY_LEN(words); k++) {
            uint32_t at = 0, rounds = 0;
            memcpy(s.names + 8, &words[i], 4);
            atomic_store(&s.control->names_used, words[k]);
            while (tp_names_next(&s, &at, &n) && rounds < TP_NAMES_BYTES)
                rounds++;
            cr_assert_lt(rounds, TP_NAMES_BYTES);
            cr_assert_leq(at, TP_NAMES_BYTES);
        }
    tp_session_detach(&s);
}

Test(session, each_field_of_the_header_matters)
{
    /* Values that are never right, for each field in turn. */
    static const uint64_t wrong[] = {
        0, 1, 63, 4096, 0x7fffffff, 0x80000000, 0xffffffc0, 0xffffffff
    };
    struct tp_session_header good = good_header();
    cr_assert_eq(attach_with(&good, TP_SESSION_SIZE), 0);
#define TRY(field)                                                                                 \
    for (size_t i = 0; i < GM_ARRAY_LEN(wrong); i++) {                                             \
        struct tp_session_header h = good;                                                         \
        h.field = (__typeof__(h.field))wrong[i];                                                   \
        cr_assert_eq(attach_with(&h, TP_SESSION_SIZE), -EBADMSG, #field " = %#lx",                 \
                     (unsigned long)wrong[i]);                                                     \
    }
    TRY(magic)
    TRY(size)
    TRY(streams_at)
    TRY(events_at)
    TRY(ring_at)
    TRY(reply_at)
    TRY(reply_size)
    TRY(output_at)
    TRY(parts_at)
    TRY(parts)
    TRY(names_at)
    TRY(names_size)
    TRY(output_size)
#undef TRY
    struct tp_session_header h = good;
    h.version = TP_SESSION_VERSION + 1;
    cr_assert_eq(attach_with(&h, TP_SESSION_SIZE), -EBADMSG);
    static const uint32_t wrong_counts[] = { 0, TP_EVENTS + 1, 0x7fffffff, 0x80000000, 0xffffffff };
    for (size_t i = 0; i < GM_ARRAY_LEN(wrong_counts); i++) {
        h = good;
        h.streams = wrong_counts[i];
        cr_assert_eq(attach_with(&h, TP_SESSION_SIZE), -EBADMSG);
        h = good;
        h.events = wrong_counts[i];
        cr_assert_eq(attach_with(&h, TP_SESSION_SIZE), -EBADMSG);
        h = good;
        h.ring_size = wrong_counts[i];
        cr_assert_eq(attach_with(&h, TP_SESSION_SIZE), -EBADMSG);
    }
    /* More streams than a reader has places for, although they would fit the memory. */
    h = good;
    h.streams = TP_STREAMS + 1;
    h.events_at += sizeof(struct tp_stream_slot);
    h.events -= 8;
    cr_assert_eq(attach_with(&h, TP_SESSION_SIZE), -EBADMSG);
    /* Tables that overlap; a ring that is no power of two, or shorter than two records. */
    h = good;
    h.events_at = h.streams_at;
    cr_assert_eq(attach_with(&h, TP_SESSION_SIZE), -EBADMSG);
    h = good;
    h.ring_size -= 8;
    cr_assert_eq(attach_with(&h, TP_SESSION_SIZE), -EBADMSG);
    h = good;
    h.ring_size = 4096;
    cr_assert_eq(attach_with(&h, TP_SESSION_SIZE), -EBADMSG);
    cr_assert_eq(attach_with(&good, TP_SESSION_SIZE + 4096), -EBADMSG);
    cr_assert_eq(attach_with(&good, 0), -EBADMSG);
}

Test(session, random_headers_are_refused_or_safe)
{
    uint32_t state = 1;
    for (unsigned i = 0; i < 3000; i++) {
        struct tp_session_header h = good_header();
        uint8_t *bytes = (uint8_t *)&h;
        for (unsigned k = 0; k < 1 + i % 4; k++) {
            state = state * 1664525u + 1013904223u;
            bytes[(state >> 8) % sizeof(h)] = (uint8_t)(state >> 24);
        }
        int fd = tp_session_create();
        struct tp_session s;
        cr_assert_eq(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
        if (tp_session_attach(&s, fd, TP_SESSION_SIZE) == 0) {
            cr_assert_leq(s.streams_count, TP_STREAMS);
            cr_assert_leq(s.events_count, TP_EVENTS);
            cr_assert_leq((char *)&s.streams[s.streams_count], (char *)s.base + s.size);
            cr_assert_leq((char *)&s.events[s.events_count], (char *)s.base + s.size);
            cr_assert_leq((char *)s.ring_data + s.ring_size, (char *)s.output);
            cr_assert_leq((char *)s.output + TP_OUTPUT_BYTES, (char *)s.parts);
            cr_assert_leq((char *)&s.parts[TP_PARTS], (char *)s.base + s.size);
            tp_session_detach(&s);
        }
        close(fd);
    }
}

Test(session, the_first_error_stays)
{
    struct tp_session s;
    int fd = tp_session_create();
    cr_assert_eq(tp_session_attach(&s, fd, TP_SESSION_SIZE), 0);
    cr_assert(tp_session_fail(&s, 700, 0x1000));
    cr_assert(!tp_session_fail(&s, 719, 0x2000));
    cr_assert_eq(atomic_load(&s.control->error), 700);
    cr_assert_eq(atomic_load(&s.control->fault_address), 0x1000);
}

/* --- wait word -------------------------------------------------------------------------------- */

static struct tp_session waited;

static void *wait_for_stream(void *arg)
{
    const struct tp_wait_policy policy = { .slice_ms = 20000 };
    uint32_t *stream = arg;
    *stream = (uint32_t)tp_word_wait(&waited.streams[*stream].completed, 1, &policy);
    return NULL;
}

Test(session, released_waiters_return, .timeout = 10)
{
    pthread_t t[4];
    uint32_t streams[4] = { 0, 5, 500, TP_STREAMS - 1 };
    int fd = tp_session_create();
    cr_assert_eq(tp_session_attach(&waited, fd, TP_SESSION_SIZE), 0);
    for (unsigned i = 0; i < 4; i++) {
        uint32_t n = streams[i];
        cr_assert_eq(pthread_create(&t[i], NULL, wait_for_stream, &streams[i]), 0);
        while (atomic_load(&waited.streams[n].completed.sleepers) == 0)
            sched_yield();
    }
    tp_session_fail(&waited, 719, 0);
    tp_session_release_waiters(&waited);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
        cr_assert_eq(streams[i], 0);
    }
}

static struct tp_word ping, pong;

static void *echo(void *arg)
{
    const struct tp_wait_policy policy = { .spin_ns = 500, .slice_ms = 20000 };
    for (uint64_t n = 1; n <= 20000; n++) {
        if (tp_word_wait(&ping, n, &policy) != 0)
            return arg;
        tp_word_publish(&pong, n);
    }
    return NULL;
}

Test(word, no_wake_up_is_lost, .timeout = 15)
{
    const struct tp_wait_policy policy = { .slice_ms = 20000 };
    pthread_t t;
    cr_assert_eq(pthread_create(&t, NULL, echo, NULL), 0);
    for (uint64_t n = 1; n <= 20000; n++) {
        tp_word_publish(&ping, n);
        cr_assert_eq(tp_word_wait(&pong, n, &policy), 0);
    }
    pthread_join(t, NULL);
    cr_assert_eq(atomic_load(&ping.sleepers), 0);
    cr_assert_eq(atomic_load(&pong.sleepers), 0);
}

static int gives_up(void *arg)
{
    unsigned *calls = arg;
    return ++*calls == 3 ? 806 : 0;
}

Test(word, the_watchdog_ends_a_wait)
{
    unsigned calls = 0;
    struct tp_word w = { 0 };
    const struct tp_wait_policy policy = { .slice_ms = 1, .watchdog = gives_up, .arg = &calls };
    cr_assert_eq(tp_word_wait(&w, 1, &policy), 806);
    cr_assert_eq(calls, 3);
    cr_assert_eq(atomic_load(&w.sleepers), 0);
    cr_assert_eq(tp_word_wait(&w, 0, &policy), 0);
}
