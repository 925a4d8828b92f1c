/* Whose a failed assertion is, as far as can be told, and that all that is said on standard error
 * still goes where it went. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "transport/output.h"

TestSuite(complaint, .timeout = 30);

static const char failed[] =
    "k.cu:7: void f(int): block: [0,0,0], thread: [3,0,0] Assertion `x > 0` failed.\n";
static struct dev *d;
static int before; /* what came out of the old standard error */

static void begin(void)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    before = ends[0];
    cr_assert_geq(dup2(ends[1], STDERR_FILENO), 0);
    close(ends[1]);
    d = fake_device();
    fake_hear_complaints();
}

static void say(const char *text)
{
    cr_assert_eq(write(STDERR_FILENO, text, strlen(text)), (ssize_t)strlen(text));
}

/* The client's texts, with where they are to go. */
static const char *texts(struct dev_client *c)
{
    static char all[65536 + TP_OUTPUT_TEXT_MAX + 1];
    struct tp_input in;
    size_t size = 0, n;
    int fd;
    tp_input_init(&in, fake_session(c));
    while ((n = tp_input_take(&in, &fd, all + size)) > 0) {
        cr_assert_eq(fd, 2);
        cr_assert_leq(size += n, 65536);
    }
    all[size] = '\0';
    return all;
}

static struct dev_client *client(bool busy, bool asserts, uint32_t uid)
{
    struct dev_client *c = fake_client_of(d, uid);
    struct dev_queue *q = fake_queue_with_stream(c, 0, 1, 0);
    fake_hold(fake_stream(q), busy);
    fake_launch_as(q, 1,
                   &(struct fake_kernel) { .number = 1, .module = fake_module(false, asserts) });
    cuda.flush(c);
    while (!busy && cuda.backlog(c)) /* until the watch has seen it */
        sched_yield();
    return c;
}

Test(complaint, the_one_that_had_assertions_in_flight, .init = begin)
{
    struct dev_client *idle = client(false, true, 5), *other = client(true, false, 5),
                      *c = client(true, true, 5);
    say(failed);
    fake_deliver_complaints(d);
    cr_assert_str_eq(texts(c), failed);
    cr_assert_str_eq(texts(idle), "");
    cr_assert_str_eq(texts(other), "");
}

Test(complaint, one_of_several_is_nobody, .init = begin)
{
    struct dev_client *a = client(true, true, 5), *b = client(true, true, 5);
    say(failed);
    fake_deliver_complaints(d);
    cr_assert_str_eq(texts(a), "");
    cr_assert_str_eq(texts(b), "");
}

Test(complaint, another_user_may_have_been_it, .init = begin)
{
    struct dev_client *a = client(true, true, 5), *b = client(true, false, 6);
    say(failed);
    fake_deliver_complaints(d);
    cr_assert_str_eq(texts(a), "");
    cr_assert_str_eq(texts(b), "");
}

/* Other complaints are for the log, which gets everything. */
Test(complaint, all_is_passed_on, .init = begin)
{
    static const char warning[] = "the driver has something to say\n";
    char got[sizeof(warning) + sizeof(failed)] = "";
    size_t size = 0, want = sizeof(warning) - 1 + sizeof(failed) - 1;
    struct dev_client *c = client(true, true, 5);
    say(warning);
    say(failed);
    fake_deliver_complaints(d);
    cr_assert_str_eq(texts(c), failed);
    while (size < want) {
        ssize_t n = read(before, got + size, want - size);
        cr_assert_gt(n, 0);
        size += (size_t)n;
    }
    cr_assert_eq(memcmp(got, warning, sizeof(warning) - 1), 0);
    cr_assert_eq(memcmp(got + sizeof(warning) - 1, failed, sizeof(failed) - 1), 0);
}
