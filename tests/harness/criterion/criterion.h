/*
 * Stands in for Criterion in builds with the thread sanitizer, under which the real one does not
 * start (it wants memory at addresses that the sanitizer has taken). The part of its interface that
 * our tests use; each test in a process of its own, one after the other. An argument is a substring
 * of the tests to run.
 */
#ifndef TEST_HARNESS_CRITERION_H
#define TEST_HARNESS_CRITERION_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct harness_options {
    void (*init)(void);
    void (*fini)(void);
    double timeout;
    const char *description;
    bool disabled;
    int signal;
    int exit_code;
};

struct harness_test {
    const char *suite, *name;
    void (*run)(void);
    struct harness_options options;
    struct harness_test *next;
};

struct harness_suite {
    const char *name;
    struct harness_options options;
    struct harness_suite *next;
};

extern struct harness_test *harness_tests;
extern struct harness_suite *harness_suites;
void harness_fail(const char *file, int line, const char *what, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

#define Test(suite_, name_, ...)                                                                   \
    static void harness_run_##suite_##_##name_(void);                                              \
    __attribute__((constructor)) static void harness_add_##suite_##_##name_(void)                  \
    {                                                                                              \
        static struct harness_test t = {                                                           \
            #suite_, #name_, harness_run_##suite_##_##name_, { __VA_ARGS__ }, NULL                 \
        };                                                                                         \
        t.next = harness_tests;                                                                    \
        harness_tests = &t;                                                                        \
    }                                                                                              \
    static void harness_run_##suite_##_##name_(void)

#define TestSuite(name_, ...)                                                                      \
    __attribute__((constructor)) static void harness_suite_##name_(void)                           \
    {                                                                                              \
        static struct harness_suite s = { #name_, { __VA_ARGS__ }, NULL };                         \
        s.next = harness_suites;                                                                   \
        harness_suites = &s;                                                                       \
    }                                                                                              \
    _Static_assert(1, "")

#define harness_check(ok, what, ...)                                                               \
    do {                                                                                           \
        if (!(ok))                                                                                 \
            harness_fail(__FILE__, __LINE__, what, " " __VA_ARGS__);                               \
    } while (0)

#define cr_assert(x, ...)            harness_check(x, #x, __VA_ARGS__)
#define cr_assert_eq(a, b, ...)      harness_check((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...)     harness_check((a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...)      harness_check((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...)     harness_check((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...)      harness_check((a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...)     harness_check((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_not(x, ...)        harness_check(!(x), "not " #x, __VA_ARGS__)
#define cr_assert_null(a, ...)       harness_check((a) == NULL, #a " == NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...)   harness_check((a) != NULL, #a " != NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)  harness_check(strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) harness_check(strcmp(a, b) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)                                                             \
    harness_check(memcmp(a, b, n) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...)                                                           \
    harness_check((a) - (b) < (e) && (b) - (a) < (e), #a " is about " #b, __VA_ARGS__)
#define cr_assert_fail(...) harness_fail(__FILE__, __LINE__, "fail", " " __VA_ARGS__)
#define cr_fail             cr_assert_fail
/* Criterion goes on after these; here the test ends. */
#define cr_expect        cr_assert
#define cr_expect_eq     cr_assert_eq
#define cr_expect_leq    cr_assert_leq
#define cr_expect_null   cr_assert_null
#define cr_expect_str_eq cr_assert_str_eq
#define cr_skip_test(...)                                                                          \
    do {                                                                                           \
        cr_log_info("skipped: " __VA_ARGS__);                                                      \
        return;                                                                                    \
    } while (0)
#define cr_log_info(...)                                                                           \
    do {                                                                                           \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
    } while (0)

#endif
