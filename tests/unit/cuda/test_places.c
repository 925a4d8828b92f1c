/* Where clients' streams live: groups of multiprocessors, bands of priorities, and changes on the
 * way. */
#include <criterion/criterion.h>
#include <sched.h>

#include "fake.h"

TestSuite(places, .timeout = 20);

static struct dev_queue *queue(struct dev_client *c, uint32_t number, int priority)
{
    return fake_queue_with_stream(c, 0, number, priority);
}

Test(places, what_is_said_of_the_device)
{
    const struct dev_info *info = fake_info(fake_device());
    cr_assert_eq(info->multiprocessors_step, 8);
    cr_assert_eq(info->multiprocessors_shared, 120);
    cr_assert_eq(info->priorities, 6, "the driver's");
    cr_assert_eq(info->limits[CU_LIMIT_STACK_SIZE], fake_stack());
    cr_assert_eq(info->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT], 2048);
}

Test(places, clients_do_not_overlap_while_there_is_room)
{
    struct dev *d = fake_device();
    struct dev_client *c[4];
    struct dev_queue *q[3];
    uint64_t used = 0;
    for (int i = 0; i < 3; i++) {
        c[i] = fake_client(d, 40, 0);
        q[i] = queue(c[i], 1, 0);
        uint64_t groups = fake_stream_groups(fake_stream(q[i]));
        cr_assert_eq(__builtin_popcountll(groups), 5);
        cr_assert_eq(groups & used, 0);
        used |= groups;
    }
    c[3] = fake_client(d, 64, 0); /* no room: anywhere */
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(queue(c[3], 1, 0)))), 8);
    fake_client_end(c[3]);
    uint64_t freed = fake_stream_groups(fake_stream(q[1]));
    fake_client_end(c[1]);
    c[1] = fake_client(d, 40, 0);
    cr_assert_eq(fake_stream_groups(fake_stream(queue(c[1], 1, 0))), freed);
    cr_assert_eq(fake_greens(), 3);
    for (int i = 0; i < 3; i++)
        fake_client_end(c[i]);
    cr_assert_eq(fake_greens(), 0);
}

Test(places, without_a_limit_there_is_no_green_context)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 132, 0);
    cr_assert_eq(fake_stream_groups(fake_stream(queue(c, 1, 0))), 0);
    cr_assert_eq(fake_greens(), 0);
    fake_client_end(c);
}

Test(places, what_is_never_for_the_gpu_needs_no_stream)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 132, 0);
    struct dev_queue *q;
    q = fake_queue(c, 0, 1, 0);
    cr_assert_eq(cuda.mark(q, 1), 0);
    cr_assert_eq(fake_done(q), 1, "at once");
    cr_assert_null(fake_stream(q));
    cr_assert_eq(cuda.backlog(c), 0);
    cr_assert_eq(cuda.stamp(q, 2, 0), 0);
    cuda.flush(c);
    fake_hold(fake_stream(q), true);
    cr_assert_eq(cuda.mark(q, 3), 0);
    cuda.flush(c);
    cr_assert_eq(fake_done(q), 2, "in its stream's order from then on");
    fake_hold(fake_stream(q), false);
    cr_assert_eq(fake_done(q), 3);
    fake_client_end(c);
}

Test(places, a_client_that_is_below_normal_comes_after_everybody)
{
    struct dev *d = fake_device();
    struct dev_client *normal = fake_client(d, 132, 0), *low = fake_client(d, 132, 1);
    cr_assert_eq(fake_stream_priority(fake_stream(queue(normal, 1, 0))), -2);
    cr_assert_eq(fake_stream_priority(fake_stream(queue(normal, 2, -3))), -5);
    cr_assert_eq(fake_stream_priority(fake_stream(queue(normal, 3, -100))), -5);
    cr_assert_eq(fake_stream_priority(fake_stream(queue(normal, 4, 100))), -2);
    cr_assert_eq(fake_stream_priority(fake_stream(queue(low, 1, 0))), 0);
    cr_assert_eq(fake_stream_priority(fake_stream(queue(low, 2, -1))), -1);
    cr_assert_eq(fake_stream_priority(fake_stream(queue(low, 3, INT32_MIN))), -1);
}

/* The number of a stream that has just gone is another one's before the queue could go. */
Test(places, a_number_that_is_used_again_has_its_own_priority)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 132, 0);
    struct dev_queue *q = queue(c, 1, 0);
    atomic_store(&fake_session(c)->streams[1].priority, -3);
    fake_hold(fake_stream(q), true);
    cr_assert_eq(cuda.stamp(q, 1, 0), 0);
    cuda.flush(c);
    cuda.queue_reuse(q);
    cr_assert_eq(fake_stream_priority(fake_stream(q)), -2, "it still has something to do");
    fake_hold(fake_stream(q), false);
    while (cuda.backlog(c)) /* until the watch has seen it */
        sched_yield();
    cuda.queue_reuse(q);
    cr_assert_eq(cuda.mark(q, 2), 0);
    cr_assert_eq(cuda.stamp(q, 3, 0), 0);
    cuda.flush(c);
    cr_assert_eq(fake_stream_priority(fake_stream(q)), -5);
    cr_assert_eq(fake_done(q), 3);
    fake_client_end(c);
}

Test(places, a_stream_moves_behind_what_it_has)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 40, 0);
    struct dev_queue *q = queue(c, 1, 0);
    CUstream first = fake_stream(q);
    fake_hold(first, true);
    cr_assert_eq(cuda.mark(q, 1), 0);
    cuda.flush(c);
    fake_share(c, 40, 0);
    cr_assert_eq(fake_greens(), 1, "nothing has changed");
    fake_share(c, 16, 0);
    cr_assert_eq(fake_greens(), 2);
    cr_assert_eq(cuda.mark(q, 2), 0);
    cuda.flush(c);
    cr_assert_neq(fake_stream(q), first);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(q))), 2);
    cr_assert_eq(fake_done(q), 0, "the new stream waits for the old one");
    fake_share(c, 132, 0); /* again, before the first move has ended */
    cr_assert_eq(cuda.mark(q, 3), 0);
    cuda.flush(c);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(q))), 2);
    cr_assert_eq(fake_greens(), 2);
    fake_hold(first, false);
    cr_assert_eq(fake_done(q), 3);
    cr_assert_eq(cuda.mark(q, 4), 0);
    cuda.flush(c);
    cr_assert_eq(fake_done(q), 4);
    cr_assert_eq(fake_stream_groups(fake_stream(q)), 0);
    cr_assert_eq(fake_greens(), 0);
    fake_client_end(c);
}

static struct dev_client *shared;
static CUstream left;

static void change_share(CUstream s)
{
    if (s == left)
        fake_share(shared, 120, 0);
}

/* The main thread gives a new share while the client's thread tidies up before it moves a stream.
 */
Test(places, a_stream_does_not_move_where_its_client_was)
{
    struct dev *d = fake_device();
    struct dev_client *c = shared = fake_client(d, 40, 0);
    struct dev_queue *q = queue(c, 1, 0);
    left = fake_stream(q);
    fake_hold(left, true);
    cr_assert_eq(cuda.stamp(q, 1, 0), 0);
    fake_share(c, 16, 0);
    cr_assert_eq(cuda.stamp(q, 2, 0), 0);
    cr_assert_neq(fake_stream(q), left);
    fake_share(c, 80, 0);
    fake_hold(left, false);
    fake_when_asked(change_share);
    cr_assert_eq(cuda.stamp(q, 3, 0), 0);
    fake_when_asked(NULL);
    cuda.flush(c);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(q))), 15);
    cr_assert_eq(fake_done(q), 3);
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

/* --- parts ------------------------------------------------------------------------------------ */

#define REST (1ull << 63) /* in the second word of groups */

static void part(struct dev_client *c, uint32_t number, uint32_t of, uint32_t minimum,
                 uint32_t wanted, uint64_t low, uint64_t high)
{
    struct tp_part *p = &fake_session(c)->parts[number];
    atomic_store(&p->groups[0], low);
    atomic_store(&p->groups[1], high);
    atomic_store(&p->of, of);
    atomic_store(&p->minimum, minimum);
    atomic_store(&p->wanted, wanted);
}

static struct dev_queue *queue_in(struct dev_client *c, uint32_t number, uint32_t part)
{
    atomic_store(&fake_session(c)->streams[number].part, part);
    return queue(c, number, 0);
}

/* What a program asks before it makes parts. */
static struct wire_call_split_is ask(struct dev_client *c, uint32_t of, uint32_t minimum,
                                     uint32_t wanted, int result)
{
    uint8_t bytes[64];
    struct wire_enc enc;
    struct wire_dec dec;
    struct wire_call_split_is is = { 0 };
    wire_enc_init(&enc, bytes, sizeof(bytes));
    wire_put_call_split(
        &enc, &(struct wire_call_split) { .of = of, .minimum = minimum, .wanted = wanted });
    wire_dec_init(&dec, bytes, enc.size);
    wire_enc_init(&enc, bytes, sizeof(bytes));
    cr_assert_eq(
        cuda.call(c,
                  &(struct dev_call) { .function = WIRE_CALL_SPLIT, .args = &dec, .reply = &enc }),
        result);
    wire_dec_init(&dec, bytes, enc.size);
    if (result == 0)
        wire_get_call_split_is(&dec, &is);
    cr_assert_not(dec.fatal);
    return is;
}

static unsigned sms(const struct dev_queue *q)
{
    const struct fake_sms s = fake_stream_sms(fake_stream(q));
    return (unsigned)(__builtin_popcountll(s.words[0]) + __builtin_popcountll(s.words[1]) +
                      __builtin_popcountll(s.words[2]));
}

static bool overlap(const struct dev_queue *a, const struct dev_queue *b)
{
    const struct fake_sms s = fake_stream_sms(fake_stream(a)), t = fake_stream_sms(fake_stream(b));
    return (s.words[0] & t.words[0]) || (s.words[1] & t.words[1]) || (s.words[2] & t.words[2]);
}

/* What a program makes of its own. */
Test(places, parts_are_within_the_whole)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 40, 0);
    part(c, 1, 0, 8, 5, 0x3, 0);
    part(c, 2, 0, 8, 5, 0x1c, 0);
    struct dev_queue *all = queue(c, 1, 0), *low = queue_in(c, 2, 1), *high = queue_in(c, 3, 2),
                     *again = queue_in(c, 4, 1);
    uint64_t whole = fake_stream_groups(fake_stream(all)), a = fake_stream_groups(fake_stream(low)),
             b = fake_stream_groups(fake_stream(high));
    cr_assert_eq(ask(c, 0, 8, 0, 0).groups, 5);
    cr_assert_eq(__builtin_popcountll(whole), 5);
    cr_assert_eq(__builtin_popcountll(a), 2);
    cr_assert_eq(__builtin_popcountll(b), 3);
    cr_assert_eq(a | b, whole);
    cr_assert_eq(a & b, 0);
    cr_assert_eq(fake_stream_groups(fake_stream(again)), a);
    cr_assert_eq(fake_greens(), 3, "one for both");
    cuda.queue_destroy(low);
    cr_assert_eq(fake_greens(), 3);
    cuda.queue_destroy(again);
    cr_assert_eq(fake_greens(), 2, "nobody is in it any more");
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

/* 15 groups of 8 there are, and yet two of 64: what those leave over is not lost to larger ones. */
Test(places, halves)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, FAKE_SMS, 0);
    struct wire_call_split_is is = ask(c, 0, 64, 2, 0);
    cr_assert(is.groups == 2 && is.size == 64 && is.rest == 4);
    is = ask(c, 0, 64, 1, 0);
    cr_assert(is.groups == 1 && is.size == 64 && is.rest == 68);
    is = ask(c, 0, 1, 0, 0);
    cr_assert(is.groups == 15 && is.size == 8 && is.rest == 12);
    part(c, 1, 0, 64, 2, 1, 0);
    part(c, 2, 0, 64, 2, 2, 0);
    part(c, 3, 0, 64, 2, 3, 0);
    part(c, 4, 0, 64, 2, 0, REST);
    part(c, 5, 0, 64, 1, 0, REST);
    struct dev_queue *half = queue_in(c, 1, 1), *other = queue_in(c, 2, 2),
                     *both = queue_in(c, 3, 3), *rest = queue_in(c, 4, 4),
                     *more = queue_in(c, 5, 5);
    cr_assert_eq(sms(half), 64);
    cr_assert_eq(sms(other), 64);
    cr_assert_not(overlap(half, other));
    cr_assert_eq(sms(both), 128);
    cr_assert_eq(sms(rest), 4);
    cr_assert_not(overlap(rest, both));
    cr_assert_eq(sms(more), 68);
    cr_assert_not(overlap(more, half));
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

/* A green context's multiprocessors are split again. */
Test(places, parts_of_parts)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, FAKE_SMS, 0);
    part(c, 1, 0, 64, 1, 0, REST);
    part(c, 2, 1, 32, 1, 1, 0);
    part(c, 3, 1, 32, 1, 0, REST);
    part(c, 4, 3, 16, 2, 2, 0);
    cr_assert_eq(ask(c, 1, 32, 1, 0).rest, 36);
    cr_assert_eq(fake_greens(), 1, "for the question");
    cr_assert_eq(ask(c, 0, 8, 0, 0).groups, 15);
    cr_assert_eq(fake_greens(), 0);
    struct dev_queue *a = queue_in(c, 1, 2), *b = queue_in(c, 2, 4);
    cr_assert_eq(sms(a), 32);
    cr_assert_eq(sms(b), 16);
    cr_assert_not(overlap(a, b));
    cr_assert_eq(fake_greens(), 4, "with those that they are part of");
    cuda.queue_destroy(b);
    cr_assert_eq(fake_greens(), 2);
    cuda.queue_destroy(a);
    cr_assert_eq(fake_greens(), 0);
    fake_client_end(c);
}

Test(places, parts_of_a_device_without_a_limit)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, FAKE_SMS, 0);
    part(c, 1, 0, 8, 15, 0x5, 0);
    part(c, 2, 0, 8, UINT32_MAX, UINT64_MAX, UINT64_MAX);
    cr_assert_eq(fake_stream_groups(fake_stream(queue_in(c, 1, 1))), 0x5);
    cr_assert_eq(sms(queue_in(c, 2, 2)), FAKE_SMS, "no more than there are");
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

/* With the whole, and with the program's own wishes for a stream's number that is used again. */
Test(places, parts_move)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, 40, 0);
    part(c, 1, 0, 8, 5, 1, 0);
    part(c, 2, 0, 8, 10, 0x3ff, 0);
    struct dev_queue *q = queue_in(c, 1, 1);
    uint64_t before = fake_stream_groups(fake_stream(q));
    cr_assert_eq(__builtin_popcountll(before), 1);
    fake_share(c, 80, 0);
    cr_assert_eq(cuda.mark(q, 1), 0);
    cuda.flush(c);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(q))), 1);
    cr_assert_eq(cuda.mark(q, 2), 0);
    cuda.flush(c);
    atomic_store(&fake_slot(q)->part, 2);
    cuda.queue_reuse(q);
    cr_assert_eq(cuda.mark(q, 3), 0);
    cuda.flush(c);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(q))), 10);
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

static void move_to(struct dev_client *c, struct dev_queue *q, uint32_t multiprocessors,
                    uint64_t seq)
{
    fake_share(c, multiprocessors, 0);
    cr_assert_eq(cuda.mark(q, seq), 0);
    cuda.flush(c);
}

/* A share that the split does not fit into any more, or not with as many groups. */
Test(places, parts_shrink)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, FAKE_SMS, 0);
    part(c, 1, 0, 64, 2, 2, 0);
    part(c, 2, 0, 8, 15, 1u << 6 | 1u << 1, 0);
    struct dev_queue *q = queue_in(c, 1, 1), *r = queue_in(c, 2, 2);
    cr_assert_eq(sms(q), 64);
    cr_assert_eq(sms(r), 16);
    move_to(c, q, 40, 1);
    cr_assert_eq(sms(q), 40, "all that there is");
    move_to(c, r, 40, 1);
    cr_assert_eq(sms(r), 8, "the second again");
    move_to(c, q, FAKE_SMS, 2);
    move_to(c, q, FAKE_SMS, 3);
    cr_assert_eq(sms(q), 64);
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

Test(places, parts_without_number)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, FAKE_SMS, 0);
    for (uint32_t i = 1; i <= 71; i++)
        part(c, i, 0, 8, 15, i, 0);
    for (uint32_t i = 1; i <= 70; i++) /* more than are made */
        queue_in(c, i, i);
    cr_assert_leq(fake_greens(), 64);
    cr_assert_eq(fake_stream_groups(fake_stream(queue_in(c, 71, 71))), 0, "then it is all");
    fake_client_end(c);
    cr_assert_eq(fake_greens(), 0);
}

/* Session memory is the client's to write. */
Test(places, forged_parts)
{
    struct dev *d = fake_device();
    struct dev_client *c = fake_client(d, FAKE_SMS, 0);
    part(c, 1, 1, 8, 15, 1, 0); /* of itself */
    part(c, 2, 3, 8, 15, 1, 0); /* of one that is part of it */
    part(c, 3, 2, 8, 15, 1, 0);
    part(c, 4, 0, UINT32_MAX, 15, 1, 0); /* larger than the device */
    part(c, 5, 0, 8, 15, 0, 0);          /* nothing */
    part(c, 6, UINT32_MAX, 8, 15, 1, 0);
    part(c, 7, 0, 8, 15, 1, 0);
    atomic_store(&fake_session(c)->parts[7].flags, 0x80000000u);
    for (uint32_t i = 8; i < TP_PARTS; i++) /* too deep */
        part(c, i, i == 8 ? 0 : i - 1, 8, 0, 1, 0);
    const uint32_t numbers[] = { 1, 2, 3, 4, 5, 6, 7, 100, TP_PARTS - 1, TP_PARTS, UINT32_MAX };
    for (uint32_t i = 0; i < GM_ARRAY_LEN(numbers); i++)
        cr_assert_eq(sms(queue_in(c, i + 1, numbers[i])), 0, "part %u is all", numbers[i]);
    ask(c, TP_PARTS, 8, 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    ask(c, 1, 8, 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    ask(c, 0, UINT32_MAX, 0, CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(fake_greens(), 0);
    fake_client_end(c);
}
