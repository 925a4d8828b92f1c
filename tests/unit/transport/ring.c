/*
 * The command ring: two threads, two processes of which one is killed, a producer that lies,
 * sleeping and waking.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/ring.h"

#define SIZE       (4 * 4096u)
#define NEAR_WRAP  0xffffe000u /* indices pass 2^32 early on */
#define DATA_MAX   WIRE_REC_WRITE_DATA_MAX
#define LONG_SLICE 20000u /* a lost wake-up shows as a test that takes this long */

struct shared {
    struct tp_ring_shared ring;
    uint8_t data[SIZE];
    _Atomic uint32_t produced;
};

union record {
    struct wire_record head;
    struct wire_rec_write write;
    uint8_t bytes[WIRE_RECORD_MAX];
};

static struct shared *make_shared(uint32_t start)
{
    struct shared *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(s, MAP_FAILED);
    atomic_store(&s->ring.head, start);
    atomic_store(&s->ring.tail, start);
    return s;
}

/* A generator of one's own, so that both sides know what the n-th record looks like. */
static uint32_t mix(uint32_t n)
{
    n ^= n >> 16;
    n *= 0x7feb352du;
    n ^= n >> 15;
    n *= 0x846ca68bu;
    return n ^ (n >> 16);
}

static uint32_t data_size(uint32_t n)
{
    uint32_t r = mix(n);
    return (r & 7) == 0 ? r % (DATA_MAX + 1) : r % 64; /* mostly short, as launches are */
}

static int produce(struct tp_ring *r, uint32_t n, const struct tp_wait_policy *policy)
{
    uint8_t data[DATA_MAX];
    uint32_t size = data_size(n);
    struct wire_rec_write head = {
        .head = { .op = WIRE_OP_WRITE,
                  .size = (uint32_t)sizeof(head) + size,
                  .stream = n & 1023,
                  .seq = n },
        .dst = mix(n),
    };
    for (uint32_t i = 0; i < size; i++)
        data[i] = (uint8_t)(n + i * 7);
    return tp_ring_write(r, &head.head, sizeof(head), data, size, policy);
}

static void check_record(const union record *r, uint32_t n)
{
    uint32_t size = data_size(n);
    cr_assert_eq(r->head.seq, n);
    cr_assert_eq(r->head.op, WIRE_OP_WRITE);
    cr_assert_eq(r->head.size, sizeof(r->write) + size);
    cr_assert_eq(r->write.dst, mix(n));
    for (uint32_t i = 0; i < size; i++)
        cr_assert_eq(r->write.data[i], (uint8_t)(n + i * 7));
}

/* --- two threads ------------------------------------------------------------------------------ */

#define THREAD_RECORDS 200000u

static const struct tp_wait_policy patient = { .spin_ns = 1000, .slice_ms = LONG_SLICE };

static void *producer_thread(void *arg)
{
    struct shared *s = arg;
    struct tp_ring r;
    tp_ring_init_producer(&r, &s->ring, s->data, SIZE);
    for (uint32_t n = 1; n <= THREAD_RECORDS; n++)
        if (produce(&r, n, &patient) != 0)
            return NULL;
    return arg;
}

Test(ring, two_threads_across_the_wrap, .timeout = 60)
{
    struct shared *s = make_shared(NEAR_WRAP);
    union record out;
    struct tp_ring r;
    pthread_t t;
    void *ok;

    tp_ring_init_consumer(&r, &s->ring, s->data, SIZE);
    cr_assert_eq(pthread_create(&t, NULL, producer_thread, s), 0);
    for (uint32_t n = 1; n <= THREAD_RECORDS;) {
        uint32_t bell = tp_ring_bell(&r);
        int got = tp_ring_peek(&r, &out, sizeof(out));
        cr_assert_geq(got, 0);
        if (got == 0) {
            if (n & 1 || !tp_ring_spin(&r, bell, 2000))
                tp_ring_wait(&r, bell, LONG_SLICE);
            continue;
        }
        check_record(&out, n);
        cr_assert_eq(tp_ring_peek(&r, &out, sizeof(out)), 1); /* looking does not consume */
        tp_ring_advance(&r);
        n++;
    }
    pthread_join(t, &ok);
    cr_assert_eq(ok, s);
    cr_assert(!tp_ring_pending(&r));
    cr_assert_eq(atomic_load(&s->ring.head), atomic_load(&s->ring.tail));
}

/* --- two processes, one of them killed -------------------------------------------------------- */

Test(ring, a_killed_producer_leaves_whole_records, .timeout = 60)
{
    for (uint32_t round = 0; round < 60; round++) {
        struct shared *s = make_shared(NEAR_WRAP);
        union record out;
        struct tp_ring r;
        pid_t pid = fork();
        if (pid == 0) {
            tp_ring_init_producer(&r, &s->ring, s->data, SIZE);
            for (uint32_t n = 1;; n++)
                if (produce(&r, n, &patient) != 0)
                    _exit(1);
        }
        tp_ring_init_consumer(&r, &s->ring, s->data, SIZE);
        uint32_t kill_at = mix(round) % 3000;
        uint32_t n = 1;
        bool killed = false;
        for (;;) {
            int got = tp_ring_peek(&r, &out, sizeof(out));
            cr_assert_geq(got, 0, "round %u", round);
            if (got == 1) {
                check_record(&out, n++);
                tp_ring_advance(&r);
            }
            if (!killed && n >= kill_at) {
                kill(pid, SIGKILL);
                cr_assert_eq(waitpid(pid, NULL, 0), pid);
                killed = true;
            } else if (killed && got == 0) {
                break;
            }
        }
        munmap(s, sizeof(*s));
    }
}

struct watched {
    pid_t pid;
};

static int child_is_dead(void *arg)
{
    struct watched *w = arg;
    return waitpid(w->pid, NULL, WNOHANG) == w->pid ? -EPIPE : 0;
}

Test(ring, a_killed_consumer_ends_the_producers_wait_and_another_takes_over, .timeout = 60)
{
    for (uint32_t round = 0; round < 30; round++) {
        struct shared *s = make_shared(NEAR_WRAP);
        union record out;
        struct tp_ring r;
        uint32_t die_at = 1 + mix(round) % 500;
        pid_t pid = fork();
        if (pid == 0) {
            tp_ring_init_consumer(&r, &s->ring, s->data, SIZE);
            for (uint32_t n = 1;;) {
                uint32_t bell = tp_ring_bell(&r);
                if (tp_ring_peek(&r, &out, sizeof(out)) != 1) {
                    tp_ring_wait(&r, bell, LONG_SLICE);
                    continue;
                }
                if (n++ == die_at)
                    kill(getpid(), SIGKILL);
                tp_ring_advance(&r);
            }
        }
        struct watched w = { pid };
        const struct tp_wait_policy watching = { .slice_ms = 10,
                                                 .watchdog = child_is_dead,
                                                 .arg = &w };
        tp_ring_init_producer(&r, &s->ring, s->data, SIZE);
        uint32_t n = 1;
        while (produce(&r, n, &watching) == 0)
            n++;
        cr_assert_geq(n, die_at);
        /* Everything that was written and not consumed is there for the next one. */
        struct tp_ring second;
        tp_ring_init_consumer(&second, &s->ring, s->data, SIZE);
        for (uint32_t i = die_at; i < n; i++) {
            cr_assert_eq(tp_ring_peek(&second, &out, sizeof(out)), 1);
            check_record(&out, i);
            tp_ring_advance(&second);
        }
        cr_assert_eq(tp_ring_peek(&second, &out, sizeof(out)), 0);
        munmap(s, sizeof(*s));
    }
}

/* --- a producer that lies --------------------------------------------------------------------- */

static int peek_after(uint32_t tail, const struct wire_record *head)
{
    struct shared *s = make_shared(NEAR_WRAP);
    union record out;
    struct tp_ring r;
    memcpy(s->data + (NEAR_WRAP & (SIZE - 1)), head, sizeof(*head));
    tp_ring_init_consumer(&r, &s->ring, s->data, SIZE);
    atomic_store(&s->ring.tail, tail);
    int got = tp_ring_peek(&r, &out, sizeof(out));
    munmap(s, sizeof(*s));
    return got;
}

Test(ring, hostile_indices)
{
    const struct wire_record good = { .op = WIRE_OP_MARK, .size = sizeof(good), .seq = 1 };
    cr_assert_eq(peek_after(NEAR_WRAP, &good), 0);
    cr_assert_eq(peek_after(NEAR_WRAP + sizeof(good), &good), 1);
    cr_assert_eq(peek_after(NEAR_WRAP + SIZE, &good), 1);
    cr_assert_eq(peek_after(NEAR_WRAP + SIZE + 8, &good), -EBADMSG);
    cr_assert_eq(peek_after(NEAR_WRAP - 8, &good), -EBADMSG);
    cr_assert_eq(peek_after(NEAR_WRAP + 8, &good), -EBADMSG);
    cr_assert_eq(peek_after(NEAR_WRAP + 23, &good), -EBADMSG);
    cr_assert_eq(peek_after(0, &good), 1); /* 8 KiB ahead, across the wrap */
    cr_assert_eq(peek_after(0x7fffffff, &good), -EBADMSG);
}

Test(ring, hostile_records)
{
    static const struct wire_record bad[] = {
        { .op = 0, .size = 24 },
        { .op = WIRE_OP_END_, .size = 24 },
        { .op = 0xffff, .size = 24 },
        { .op = WIRE_OP_MARK, .size = 0 },
        { .op = WIRE_OP_MARK, .size = 23 },
        { .op = WIRE_OP_MARK, .size = 25 },
        { .op = WIRE_OP_MARK, .size = 0xffffffff },
        { .op = WIRE_OP_MARK, .size = 0xfffffff9 }, /* rounds up to nothing */
        { .op = WIRE_OP_COPY, .size = 24 },
        { .op = WIRE_OP_LAUNCH, .size = sizeof(struct wire_rec_launch) - 1 },
        { .op = WIRE_OP_LAUNCH,
          .size = sizeof(struct wire_rec_launch) + WIRE_REC_LAUNCH_PARAMS_MAX + 1 },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(bad); i++)
        cr_assert_eq(peek_after(NEAR_WRAP + SIZE, &bad[i]), -EBADMSG, "record %zu", i);
    /* Longer than what was published. */
    const struct wire_record cut = { .op = WIRE_OP_COPY, .size = sizeof(struct wire_rec_copy) };
    cr_assert_eq(peek_after(NEAR_WRAP + 32, &cut), -EBADMSG);
}

Test(ring, every_size_and_random_contents)
{
    struct shared *s = make_shared(0);
    union record out;
    for (uint32_t i = 0; i < 200000; i++) {
        struct wire_record head = { .op = (uint16_t)(mix(i) % 12),
                                    .size = mix(i + 1) % (2 * (uint32_t)WIRE_RECORD_MAX),
                                    .seq = mix(i + 2) };
        struct tp_ring r;
        atomic_store(&s->ring.head, mix(i + 3));
        tp_ring_init_consumer(&r, &s->ring, s->data, SIZE);
        uint32_t off = r.mine & (SIZE - 1);
        for (uint32_t b = 0; b < sizeof(head); b++)
            s->data[(off + b) & (SIZE - 1)] = ((uint8_t *)&head)[b];
        atomic_store(&s->ring.tail, r.mine + mix(i + 4) % (SIZE + 64));
        int got = tp_ring_peek(&r, &out, sizeof(out));
        cr_assert(got == 0 || got == 1 || got == -EBADMSG);
        if (got == 1) {
            cr_assert_eq(memcmp(&out, &head, sizeof(head)), 0);
            cr_assert(wire_record_check(&head));
        }
    }
}

Test(ring, a_producer_notices_an_impossible_consumer)
{
    struct shared *s = make_shared(0);
    const struct tp_wait_policy policy = { .slice_ms = 10 };
    struct tp_ring r;
    int result = 0;
    tp_ring_init_producer(&r, &s->ring, s->data, SIZE);
    atomic_store(&s->ring.head, 0x1000); /* ahead of the tail */
    for (uint32_t n = 1; result == 0 && n < 10000; n++) {
        struct wire_record head = { .op = WIRE_OP_MARK, .size = sizeof(head), .seq = n };
        result = tp_ring_write(&r, &head, sizeof(head), NULL, 0, &policy);
        atomic_store(&s->ring.head, r.mine + 8);
    }
    cr_assert_eq(result, -EBADMSG);
}

/* --- sleeping and waking ---------------------------------------------------------------------- */

struct sleeper {
    struct shared *shared;
    _Atomic uint32_t orders; /* announced by kicks */
    _Atomic bool stop;
    _Atomic uint32_t seen_orders;
    uint32_t records;
};

static void *sleeping_consumer(void *arg)
{
    struct sleeper *w = arg;
    union record out;
    struct tp_ring r;
    tp_ring_init_consumer(&r, &w->shared->ring, w->shared->data, SIZE);
    while (!atomic_load(&w->stop)) {
        uint32_t bell = tp_ring_bell(&r);
        atomic_store(&w->seen_orders, atomic_load(&w->orders));
        while (tp_ring_peek(&r, &out, sizeof(out)) == 1) {
            tp_ring_advance(&r);
            w->records++;
            atomic_store(&w->shared->produced, w->records);
        }
        if (atomic_load(&w->stop))
            break;
        tp_ring_wait(&r, bell, LONG_SLICE);
    }
    return NULL;
}

/* Writes one record, waits until it is consumed, again and again, at slightly different moments:
 * the consumer is about to sleep, asleep or just awake. A lost wake-up costs a slice of 20 s and
 * fails the time limit. */
Test(ring, no_wake_up_is_lost, .timeout = 30)
{
    struct sleeper w = { .shared = make_shared(NEAR_WRAP) };
    struct tp_ring r;
    pthread_t t;
    tp_ring_init_producer(&r, &w.shared->ring, w.shared->data, SIZE);
    cr_assert_eq(pthread_create(&t, NULL, sleeping_consumer, &w), 0);
    for (uint32_t n = 1; n <= 20000; n++) {
        struct wire_record head = { .op = WIRE_OP_MARK, .size = sizeof(head), .seq = n };
        cr_assert_eq(tp_ring_write(&r, &head, sizeof(head), NULL, 0, &patient), 0);
        while (atomic_load(&w.shared->produced) != n)
            sched_yield();
        for (uint32_t i = mix(n) % 200; i != 0; i--)
            gm_cpu_relax();
    }
    atomic_store(&w.stop, true);
    tp_ring_wake(&w.shared->ring);
    pthread_join(t, NULL);
    cr_assert_eq(w.records, 20000);
}

Test(ring, a_kick_returns_from_wait_and_an_order_is_not_lost, .timeout = 30)
{
    struct sleeper w = { .shared = make_shared(0) };
    pthread_t t;
    cr_assert_eq(pthread_create(&t, NULL, sleeping_consumer, &w), 0);
    for (uint32_t n = 1; n <= 5000; n++) {
        atomic_store(&w.orders, n);
        tp_ring_kick(&w.shared->ring);
        for (uint32_t i = mix(n) % 2000; i != 0; i--)
            gm_cpu_relax();
    }
    while (atomic_load(&w.seen_orders) != 5000) /* a lost one is the time limit's affair */
        sched_yield();
    atomic_store(&w.stop, true);
    tp_ring_kick(&w.shared->ring);
    pthread_join(t, NULL);
}

Test(ring, wake_does_not_trust_the_flag, .timeout = 30)
{
    struct sleeper w = { .shared = make_shared(0) };
    pthread_t t;
    cr_assert_eq(pthread_create(&t, NULL, sleeping_consumer, &w), 0);
    while (!atomic_load(&w.shared->ring.consumer_sleeps))
        sched_yield();
    atomic_store(&w.shared->ring.consumer_sleeps, 0); /* as a hostile producer would */
    atomic_store(&w.stop, true);
    tp_ring_wake(&w.shared->ring);
    pthread_join(t, NULL);
}

static void *slow_consumer(void *arg)
{
    struct sleeper *w = arg;
    union record out;
    struct tp_ring r;
    tp_ring_init_consumer(&r, &w->shared->ring, w->shared->data, SIZE);
    while (w->records < 20000) {
        if (tp_ring_peek(&r, &out, sizeof(out)) != 1)
            continue;
        /* Only once the producer sleeps for want of room, now and then. */
        while (w->records % 1000 == 500 && w->records < 19000 &&
               !atomic_load(&w->shared->ring.producer_sleeps))
            sched_yield();
        tp_ring_advance(&r);
        w->records++;
    }
    return NULL;
}

Test(ring, a_producer_without_room_is_woken, .timeout = 30)
{
    const struct tp_wait_policy sleepy = { .slice_ms = LONG_SLICE };
    struct sleeper w = { .shared = make_shared(NEAR_WRAP) };
    struct tp_ring r;
    pthread_t t;
    tp_ring_init_producer(&r, &w.shared->ring, w.shared->data, SIZE);
    cr_assert_eq(pthread_create(&t, NULL, slow_consumer, &w), 0);
    for (uint32_t n = 1; n <= 21000; n++) {
        struct wire_record head = { .op = WIRE_OP_MARK, .size = sizeof(head), .seq = n };
        if (n > 20000 &&
            atomic_load(&w.shared->ring.tail) - atomic_load(&w.shared->ring.head) > SIZE - 64)
            break; /* nobody reads any more */
        cr_assert_eq(tp_ring_write(&r, &head, sizeof(head), NULL, 0, &sleepy), 0);
    }
    pthread_join(t, NULL);
}
