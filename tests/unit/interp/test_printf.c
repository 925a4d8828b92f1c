/*
 * Device printf and assert: the formatter against the host's own printf, the argument layout that
 * compilers make, wrong addresses, and the print buffer when it is full and when several threads
 * write.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/soft/exec/helpers.h"
#include "device/soft/ir/spaces.h"

static uint8_t window[4096] GM_ALIGNED(4096);
static uint8_t local_memory[32 * 256];
static uint8_t shared_memory[256];
static struct soft_helpers helpers;
static struct soft_block block;
static char taken[1 << 16];
static size_t taken_size;

static void take(void *arg, int fd, const char *text, uint32_t size)
{
    cr_assert(taken_size + size < sizeof(taken));
    memcpy(taken + taken_size, text, size);
    taken_size += size;
    taken[taken_size] = 0;
    if (arg)
        ++*(uint32_t *)arg;
}

static void begin(void)
{
    taken_size = 0;
    taken[0] = 0;
    soft_helpers_init(&helpers, soft_print_create(8192));
    cr_assert_not_null(helpers.print);
    block = (struct soft_block) {
        .ntid = { 8, 4, 1 },
        .ctaid = { 3, 1, 0 },
        .shared = shared_memory,
        .shared_mask = sizeof(shared_memory) - 1,
        .local = local_memory,
        .local_stride = 256,
        .window_base = (uint64_t)(uintptr_t)window,
        .window_mask = sizeof(window) - 1,
        .helpers = &helpers,
    };
}

static void end(void)
{
    soft_print_destroy(helpers.print);
}

TestSuite(interp_printf, .init = begin, .fini = end);

/* Puts the format in the window and the arguments in local memory of thread 5, as compilers do. */
static int32_t print(const char *format, const void *args, size_t size)
{
    memcpy(window, format, strlen(format) + 1);
    for (uint32_t k = 0; k < size; k++)
        local_memory[soft_local_place(256, 5, 16 + k)] = ((const uint8_t *)args)[k];
    int32_t r = helpers.vprintf(&block, 5, block.window_base, SOFT_LOCAL_BASE + 16);
    soft_print_drain(helpers.print, take, NULL);
    return r;
}

Test(interp_printf, integers)
{
    struct {
        int32_t a;
        uint32_t b;
        int64_t c;
        uint32_t d, e;
    } args = { -7, 0xdeadbeef, INT64_MIN, 300, 9 };
    char expected[256];
    const char *format = "%5d|%-12x|%+lld|%hhu|%03i%%\n";
    snprintf(expected, sizeof(expected), "%5d|%-12x|%+lld|%hhu|%03i%%\n", args.a, args.b,
             (long long)args.c, (unsigned char)args.d, (int)args.e);
    cr_assert_eq(print(format, &args, sizeof(args)), 5);
    cr_assert_str_eq(taken, expected);
}

Test(interp_printf, doubles_and_stars)
{
    struct {
        int32_t width, precision;
        double a, b, c;
    } args = { -12, 3, 3.14159, 1e300, -0.0 };
    char expected[1024];
    snprintf(expected, sizeof(expected), "[%*.*f] %f %g", args.width, args.precision, args.a,
             args.b, args.c);
    cr_assert_eq(print("[%*.*f] %f %g", &args, sizeof(args)), 5);
    cr_assert_str_eq(taken, expected);
}

Test(interp_printf, strings_characters_pointers)
{
    uint64_t s = block.window_base + 1000;
    memcpy(window + 1000, "hello", 6);
    struct {
        uint64_t s;
        uint64_t null;
        int32_t c;
        uint64_t p;
        uint64_t t;
    } args = { s, 0, 'x', 0xabc, s };
    cr_assert_eq(print("%s %s %3c %p %-7.2s|", &args, sizeof(args)), 5);
    cr_assert_str_eq(taken, "hello (null)   x 0xabc he     |");
}

Test(interp_printf, odd_formats)
{
    cr_assert_eq(print("100% %k %", "", 0), 0);
    cr_assert_str_eq(taken, "100%k %");
    taken_size = 0;
    int32_t big = 7;
    cr_assert_eq(print("%99999d", &big, sizeof(big)), 1);
    cr_assert_eq(taken_size, 512, "widths are bounded");
}

Test(interp_printf, long_text_is_cut)
{
    char format[3000];
    memset(format, 'a', sizeof(format) - 1);
    format[sizeof(format) - 1] = 0;
    cr_assert_eq(print(format, "", 0), 0);
    cr_assert_eq(taken_size, SOFT_PRINT_MAX);
}

Test(interp_printf, wrong_addresses)
{
    cr_assert_eq(helpers.vprintf(&block, 5, 0, 0), -1);
    cr_assert_eq(helpers.vprintf(&block, 5, 0x1234, 0), SOFT_HELPER_FAULT);
    cr_assert_eq(block.fault_address, 0x1234);
    cr_assert_eq(block.fault_thread, 5);
    memcpy(window, "%d", 3);
    cr_assert_eq(helpers.vprintf(&block, 6, block.window_base, SOFT_LOCAL_BASE + 253),
                 SOFT_HELPER_FAULT);
    cr_assert_eq(block.fault_address, SOFT_LOCAL_BASE + 253);
    memset(window, 'a', sizeof(window)); /* no end inside the window: cut before it runs out */
    cr_assert_eq(helpers.vprintf(&block, 6, block.window_base + sizeof(window) - 10, 0),
                 SOFT_HELPER_FAULT);
}

Test(interp_printf, assert_text)
{
    memcpy(window, "x > 0", 6);
    memcpy(window + 16, "kernel.cu", 10);
    memcpy(window + 32, "f", 2);
    helpers.assert_fail(&block, 13, block.window_base, block.window_base + 16, 42,
                        block.window_base + 32);
    soft_print_drain(helpers.print, take, NULL);
    cr_assert_str_eq(
        taken, "kernel.cu:42: f: block: [3,1,0], thread: [5,1,0] Assertion `x > 0` failed.\n");
    cr_assert_eq(block.fault_thread, 13);
}

Test(interp_printf, full_buffer_drops)
{
    char text[1000];
    uint32_t count = 0, kept = 0;
    memset(text, 'z', sizeof(text));
    for (int i = 0; i < 20; i++)
        kept += soft_print_append(helpers.print, 1, text, sizeof(text));
    cr_assert_eq(kept, 8);
    cr_assert_eq(soft_print_drain(helpers.print, take, &count), 12);
    cr_assert_eq(count, kept);
    cr_assert(soft_print_append(helpers.print, 1, text, 10));
    cr_assert_eq(soft_print_drain(helpers.print, take, &count), 0);
    cr_assert_eq(count, kept + 1);
}

/* Writers put lines "w<number> <serial>"; the reader must see each writer's serials in order, none
 * torn. */
static void *writer(void *arg)
{
    uint32_t number = *(uint32_t *)arg;
    for (uint32_t i = 0; i < 20000; i++) {
        char line[64];
        int n = snprintf(line, sizeof(line), "w%u %u %.*s", number, i, (int)(i % 23),
                         "abcdefghijklmnopqrstuvwxyz");
        while (!soft_print_append(helpers.print, 1, line, (uint32_t)n))
            sched_yield();
    }
    return NULL;
}

static uint32_t next_serial[3];

static void check_line(void *arg, int fd, const char *text, uint32_t size)
{
    uint32_t number, serial;
    int used;
    cr_assert_eq(sscanf(text, "w%u %u %n", &number, &serial, &used), 2, "%s", text);
    cr_assert_lt(number, 3);
    cr_assert_eq(next_serial[number]++, serial);
    cr_assert_eq(size - (uint32_t)used, serial % 23);
}

Test(interp_printf, three_writers_one_reader)
{
    pthread_t threads[3];
    uint32_t numbers[3] = { 0, 1, 2 };
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, writer, &numbers[i]), 0);
    while (next_serial[0] + next_serial[1] + next_serial[2] < 60000) {
        soft_print_drain(helpers.print, check_line, NULL);
        sched_yield();
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

/* None has more than a few texts that nobody has taken: there is always room, however long ago a
 * writer looked where it is. */
#define CAREFUL 6
#define TEXTS   40000
static _Atomic uint32_t texts_taken[CAREFUL], texts_refused;

static void take_one(void *arg, int fd, const char *text, uint32_t size)
{
    texts_taken[text[0] - '0']++;
}

static void *careful_writer(void *arg)
{
    uint32_t number = *(uint32_t *)arg;
    const char text = (char)('0' + number);
    for (uint32_t i = 0; i < TEXTS; i++) {
        while (i - texts_taken[number] > 40)
            sched_yield();
        if (!soft_print_append(helpers.print, 1, &text, 1)) {
            texts_refused++;
            texts_taken[number]++;
        }
    }
    return NULL;
}

static bool all_taken(void)
{
    for (int i = 0; i < CAREFUL; i++)
        if (texts_taken[i] < TEXTS)
            return false;
    return true;
}

Test(interp_printf, nothing_is_refused_while_there_is_room)
{
    pthread_t threads[CAREFUL];
    uint32_t numbers[CAREFUL];
    for (uint32_t i = 0; i < CAREFUL; i++) {
        numbers[i] = i;
        cr_assert_eq(pthread_create(&threads[i], NULL, careful_writer, &numbers[i]), 0);
    }
    while (!all_taken()) {
        soft_print_drain(helpers.print, take_one, NULL);
        sched_yield();
    }
    for (int i = 0; i < CAREFUL; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(texts_refused, 0);
}
