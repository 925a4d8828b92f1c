/* Whose a text is, and that it is there before the kernel's completion is seen. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "transport/output.h"

TestSuite(print, .timeout = 30);

static const struct tp_wait_policy patient = { .slice_ms = 1000 };
static struct dev *d;

static struct dev_queue *queue(struct dev_client *c)
{
    return fake_queue_with_stream(c, 0, 1, 0);
}

static void begin(void)
{
    d = fake_device();
    fake_hear_output(d);
}

static const char *texts(struct dev_client *c)
{
    static char all[65536 + TP_OUTPUT_TEXT_MAX + 1];
    struct tp_input in;
    size_t size = 0, n;
    int fd;
    tp_input_init(&in, fake_session(c));
    while ((n = tp_input_take(&in, &fd, all + size)) > 0)
        cr_assert_leq(size += n, 65536);
    all[size] = '\0';
    return all;
}

static void wait_for(struct dev_queue *q, uint64_t seq)
{
    cr_assert_eq(tp_word_wait(&fake_slot(q)->completed, seq, &patient), 0);
}

Test(print, the_text_is_there_when_the_launch_is_done, .init = begin)
{
    struct dev_client *c = fake_client(d, 132, 0);
    struct dev_queue *q = queue(c);
    for (uint32_t i = 1; i <= 100; i++) {
        char want[16];
        fake_print(q, i, i);
        cuda.flush(c);
        wait_for(q, i);
        snprintf(want, sizeof(want), "%u\n", i);
        cr_assert_str_eq(texts(c), want);
    }
    fake_client_end(c);
}

Test(print, completions_go_the_short_way_when_nothing_was_printed, .init = begin)
{
    struct dev_client *c = fake_client(d, 132, 0);
    struct dev_queue *q = queue(c);
    fake_print(q, 1, 7);
    cuda.flush(c);
    wait_for(q, 1);
    cr_assert_neq(fake_last_mark(), &fake_slot(q)->completed.value, "a private word");
    fake_wait_for_output(d);
    cr_assert_eq(cuda.mark(q, 2), 0);
    cuda.flush(c);
    cr_assert_eq(fake_done(q), 2);
    cr_assert_eq(fake_last_mark(), &fake_slot(q)->completed.value);
    fake_client_end(c);
}

Test(print, programs_take_turns, .init = begin)
{
    struct dev_client *a = fake_client(d, 132, 0), *b = fake_client(d, 132, 0);
    struct dev_queue *qa = queue(a), *qb = queue(b);
    fake_hold(fake_stream(qa), true);
    fake_print(qa, 1, 11);
    cuda.flush(a);
    fake_print(qb, 1, 22); /* not its turn */
    cuda.flush(b);
    cr_assert_eq(fake_done(qb), 0);
    cr_assert_eq(fake_waiting_in(fake_stream(qb)), 0, "the driver does not have it");
    fake_expect(22, 0);
    uint32_t bell = atomic_load(&fake_session(b)->control->ring.bell);
    fake_hold(fake_stream(qa), false);
    wait_for(qa, 1);
    cr_assert_str_eq(texts(a), "11\n");
    cr_assert_str_eq(texts(b), "");
    fake_wait_for_output(d);
    cr_assert_neq(atomic_load(&fake_session(b)->control->ring.bell), bell, "it is told");
    cuda.flush(b);
    wait_for(qb, 1);
    cr_assert_str_eq(texts(b), "22\n");
    cr_assert_str_eq(texts(a), "");
    fake_client_end(a);
    fake_client_end(b);
}

Test(print, a_program_that_leaves_takes_its_turn_along, .init = begin)
{
    struct dev_client *a = fake_client(d, 132, 0), *b = fake_client(d, 132, 0);
    struct dev_queue *qa = queue(a), *qb = queue(b);
    CUstream gone = fake_stream(qa);
    fake_hold(gone, true);
    fake_print(qa, 1, 11);
    cuda.flush(a);
    fake_print(qb, 1, 22);
    fake_client_end(a);
    cuda.flush(b);
    wait_for(qb, 1);
    cr_assert_str_eq(texts(b), "22\n");
    fake_client_end(b);
}

/* A program that has an error and does not leave takes no turn any more. */
Test(print, a_program_that_is_stopped_does_not_wait_for_its_turn, .init = begin)
{
    struct dev_client *a = fake_client(d, 132, 0), *b = fake_client(d, 132, 0);
    struct dev_queue *qa = queue(a), *qb = queue(b);
    fake_hold(fake_stream(qa), true);
    fake_print(qa, 1, 11);
    cuda.flush(a);
    fake_print(qb, 1, 22);
    cuda.client_stop(b);
    fake_hold(fake_stream(qa), false);
    wait_for(qa, 1);
    fake_print(qa, 2, 12);
    cuda.flush(a);
    wait_for(qa, 2);
    cr_assert_str_eq(texts(a), "11\n12\n");
    fake_client_end(a);
    fake_client_end(b);
}

Test(print, an_endless_kernel_does_not_keep_the_turn, .init = begin)
{
    struct dev_client *a = fake_client(d, 132, 0), *b = fake_client(d, 132, 0);
    struct dev_queue *qa = queue(a), *qb = queue(b);
    fake_hold(fake_stream(qa), true);
    fake_print(qa, 1, 11);
    cuda.flush(a);
    fake_print(qb, 1, 22);
    while (atomic_load(&fake_session(b)->control->ring.bell) == 0)
        ;
    cuda.flush(b);
    wait_for(qb, 1);
    cr_assert_str_eq(texts(b), "", "it could be from either: it is in the log");
    fake_hold(fake_stream(qa), false);
    wait_for(qa, 1);
    cr_assert_str_eq(texts(a), "11\n");
    fake_client_end(a);
    fake_client_end(b);
}
