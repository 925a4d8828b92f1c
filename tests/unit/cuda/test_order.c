/*
 * What programs do with their streams, at random, against a model: whatever is held back,
 * collected, learnt, moved elsewhere or sent on a detour on its way, each kernel and each copy
 * happens once, in the order of its stream, behind what its stream has waited for, not before its
 * gates are open; no completion is seen too early; a program has no more with the driver than that
 * holds; and when all gates are open and nothing stands still, everything completes.
 *
 * ORDER_SEEDS in the environment says how many cases; ORDER_FIRST the first one.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fake.h"

TestSuite(order, .timeout = 0);

#define CLIENTS  2u
#define EACH     3u
#define QUEUES   (CLIENTS * EACH)
#define CHANNEL  1000u /* calls of a program that the driver holds */
#define SEQ_MAX  2048u
#define STEPS    200u /* at most */
#define MODULES  2u
#define RUN_OPS  5u
#define RUN_BIT  0x8000u
#define GPU_SIDE (FAKE_GPU_BYTES / 2) /* copies' sources */

/* What has to come first: so many of each queue's kernels and copies, and of each queue the gates
 * up to this one. */
struct clock {
    uint32_t happened[QUEUES];
    uint64_t gate[QUEUES];
};

struct expected {
    uint32_t number;
    struct clock before;
};

struct model_queue {
    struct dev_queue *q;
    struct model_client *client;
    uint32_t who, device;
    uint64_t seq, completed;
    uint64_t gates[SEQ_MAX]; /* not open; from gates_open on */
    uint32_t gates_count, gates_open;
    struct expected expected[SEQ_MAX];
    uint32_t count, happened;
    uint32_t next; /* number */
    struct clock now;
    struct clock at[SEQ_MAX]; /* behind each operation */
};

struct model_client {
    struct dev_client *c;
    struct model_queue queues[EACH];
    struct fake_module *modules[MODULES];
    uint32_t generation;
    bool prints;
};

static struct dev *d;
static struct model_client clients[CLIENTS];
static uint32_t clients_count, gpus;
static struct fake_module *modules[SEQ_MAX];
static uint32_t modules_count;
static uint32_t burst = 100; /* launches at once, at most */
static uint64_t seed, state;
static bool standing; /* some stream may stand still */
static _Atomic bool at_work;

static uint32_t any(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static struct model_queue *queue_of(uint32_t who)
{
    return &clients[who / EACH].queues[who % EACH];
}

static struct tp_stream_slot *slot_of(const struct model_queue *m)
{
    return &fake_session(m->client->c)->streams[1 + m->who % EACH];
}

/* --- the model -------------------------------------------------------------------------------- */

static void merge(struct clock *into, const struct clock *from)
{
    for (uint32_t i = 0; i < QUEUES; i++) {
        into->happened[i] = GM_MAX(into->happened[i], from->happened[i]);
        into->gate[i] = GM_MAX(into->gate[i], from->gate[i]);
    }
}

static void expect(struct model_queue *m, uint32_t number)
{
    cr_assert_lt(m->count, SEQ_MAX);
    m->expected[m->count++] = (struct expected) { number, m->now };
    m->now.happened[m->who]++;
}

/* The operation with the next sequence number is as the model has it now. */
static uint64_t taken(struct model_queue *m)
{
    m->at[++m->seq] = m->now;
    cr_assert_lt(m->seq, SEQ_MAX - RUN_OPS);
    return m->seq;
}

static bool is_behind(const struct clock *what)
{
    for (uint32_t i = 0; i < clients_count * EACH; i++) {
        const struct model_queue *m = queue_of(i);
        if (m->happened < what->happened[i] || atomic_load(&slot_of(m)->gate) < what->gate[i])
            return false;
    }
    return true;
}

static void look(void)
{
    const uint32_t *numbers;
    uint64_t completed[QUEUES];
    for (uint32_t i = 0; i < clients_count * EACH; i++)
        completed[i] = atomic_load(&slot_of(queue_of(i))->completed.value);
    unsigned count = fake_happened(&numbers);
    for (unsigned i = 0; i < count; i++) {
        cr_assert_lt(numbers[i] >> 16, clients_count * EACH, "seed %lu: %x", seed, numbers[i]);
        struct model_queue *m = queue_of(numbers[i] >> 16);
        cr_assert_lt(m->happened, m->count, "seed %lu: %x happened, and nothing was to", seed,
                     numbers[i]);
        const struct expected *e = &m->expected[m->happened];
        cr_assert_eq(e->number, numbers[i], "seed %lu: %x happened, %x was to", seed, numbers[i],
                     e->number);
        cr_assert(is_behind(&e->before), "seed %lu: %x happened too early", seed, numbers[i]);
        m->happened++;
    }
    for (uint32_t i = 0; i < clients_count * EACH; i++) {
        struct model_queue *m = queue_of(i);
        cr_assert_leq(completed[i], m->seq, "seed %lu: stream %u", seed, i);
        cr_assert_geq(completed[i], m->completed, "seed %lu: stream %u goes back", seed, i);
        cr_assert(is_behind(&m->at[completed[i]]), "seed %lu: stream %u completes too early", seed,
                  i);
        m->completed = completed[i];
    }
}

/* The ring has run dry: what has nothing to wait for is with the driver, and done where nothing
 * stands still. */
static void flush(struct model_client *c)
{
    cuda.flush(c->c);
    look();
    for (uint32_t i = 0; !standing && !c->prints && i < EACH; i++) {
        const struct model_queue *m = &c->queues[i];
        cr_assert(m->happened == m->count || !is_behind(&m->expected[m->happened].before),
                  "seed %lu: %x does not happen", seed, m->expected[m->happened].number);
        cr_assert(m->completed == m->seq || !is_behind(&m->at[m->completed + 1]),
                  "seed %lu: stream %u does not complete", seed, m->who);
    }
}

/* --- operations ------------------------------------------------------------------------------- */

static uint32_t number_for(struct model_queue *m)
{
    return m->who << 16 | m->next++;
}

static struct fake_module *module_new(void)
{
    cr_assert_lt(modules_count, GM_ARRAY_LEN(modules));
    return modules[modules_count++] = fake_module(false, false);
}

/* As the main thread does it. */
static void module_change(struct model_client *c)
{
    struct fake_module **m = &c->modules[any(MODULES)];
    fake_module_unload(c->c, *m);
    *m = module_new();
    c->generation++;
}

static uint64_t piece(uint32_t device)
{
    return FAKE_WINDOW + device * (uint64_t)FAKE_GPU_BYTES;
}

static uint32_t any_device(const struct model_queue *m)
{
    return any(3) ? m->device : any(gpus);
}

static void copy_as(struct model_queue *m, uint64_t seq, uint32_t number, uint32_t to,
                    uint32_t from)
{
    const struct wire_rec_copy r = { .dst = piece(to) + number,
                                     .src = piece(from) + GPU_SIDE,
                                     .width = 4,
                                     .height = 1,
                                     .depth = 1 };
    cr_assert_eq(cuda.copy(m->q, seq, &r), 0);
}

static void fill_as(struct model_queue *m, uint64_t seq, uint32_t number, uint32_t to)
{
    const struct wire_rec_fill r = {
        .dst = piece(to) + number, .width = 1, .height = 1, .element_size = 4
    };
    cr_assert_eq(cuda.fill(m->q, seq, &r), 0);
}

static void launch(struct model_queue *m, bool more)
{
    const bool prints = m->client->prints && any(4) == 0;
    const struct fake_kernel k = { .number = number_for(m),
                                   .module = prints ? NULL : m->client->modules[any(MODULES)],
                                   .prints = prints,
                                   .more = more,
                                   .attribute = any(16) == 0 };
    expect(m, k.number);
    fake_launch_as(m->q, taken(m), &k);
}

static void transfer(struct model_queue *m)
{
    uint32_t number = number_for(m), what = any(3);
    uint32_t to = any_device(m), from = any_device(m);
    expect(m, number);
    if (what == 0)
        copy_as(m, taken(m), number, to, from);
    else if (what == 1)
        fill_as(m, taken(m), number, to);
    else
        cr_assert_eq(cuda.write(m->q, taken(m), piece(to) + number, "text", 4), 0);
}

static void wait_for_other(struct model_queue *m)
{
    struct model_queue *other = &m->client->queues[any(EACH)];
    if (other == m)
        return;
    uint64_t seq = any(3) ? other->seq : any((uint32_t)other->seq + 1);
    merge(&m->now, &other->at[seq]);
    cr_assert_eq(cuda.wait(m->q, taken(m), other->q, seq), 0);
}

static void gate(struct model_queue *m)
{
    m->gates[m->gates_count++] = m->seq + 1;
    m->now.gate[m->who] = m->seq + 1;
    cr_assert_eq(cuda.gate(m->q, taken(m)), 0);
}

/* As a program's host function has it: not before the stream has come there. */
static void open_gate(struct model_queue *m)
{
    if (m->gates_open == m->gates_count ||
        atomic_load(&slot_of(m)->arrived) < m->gates[m->gates_open])
        return;
    atomic_store(&slot_of(m)->gate, m->gates[m->gates_open++]);
    cuda.gate_moved(m->q);
}

/* Its operation at `at`; the same each time. */
static void run_operation(struct model_queue *m, uint32_t which, uint32_t at, uint64_t seq)
{
    uint32_t number = m->who << 16 | RUN_BIT | which * RUN_OPS | at;
    if (which == 2 && at == 1)
        fill_as(m, seq, number, m->device);
    else if (which == 3 && at == 1)
        copy_as(m, seq, number, m->device, m->device);
    else if (which == 4 && at == 1)
        copy_as(m, seq, number, m->device,
                any_device(m) == m->device ? m->device : (m->device + 1) % gpus);
    else
        fake_launch_as(m->q, seq,
                       &(struct fake_kernel) { .number = number,
                                               .module = m->client->modules[which % MODULES],
                                               .more = at != RUN_OPS - 1 });
}

/* As the executor does it. */
static void run(struct model_queue *m)
{
    const uint32_t which = any(5), count = 1 + which % RUN_OPS;
    const uint32_t records[] = { m->who, which, m->client->generation };
    const struct dev_run r = {
        .seq = m->seq + 1, .count = count, .size = sizeof(records), .records = records
    };
    enum dev_run_verdict verdict = cuda.run_begin(m->q, &r);
    for (uint32_t i = 0; i < count; i++) {
        expect(m, m->who << 16 | RUN_BIT | which * RUN_OPS | i);
        taken(m);
    }
    for (uint32_t i = 0; verdict != DEV_RUN_DONE && i < count; i++) {
        run_operation(m, which, i, r.seq + i);
        if (verdict == DEV_RUN_LEARN && any(8) == 0)
            module_change(m->client); /* meanwhile */
    }
    if (verdict == DEV_RUN_LEARN && !cuda.run_end(m->q, &r))
        for (uint32_t i = 0; i < count; i++)
            run_operation(m, which, i, r.seq + i);
}

static void change_place(struct model_client *c)
{
    if (atomic_load(&at_work))
        return; /* somebody else does */
    static const uint32_t shares[] = { 132, 80, 40, 16 };
    fake_share(c->c, shares[any(4)], (int)any(2));
}

static void create(struct model_queue *m)
{
    cr_assert_eq(
        cuda.queue_create(m->client->c, m->device, 1 + m->who % EACH, m->seq, -(int)any(3), &m->q),
        0);
}

/* The executor gives up a stream that the program has done with, or takes its number for another
 * one. */
static void retire(struct model_queue *m)
{
    atomic_store(&slot_of(m)->part, any(4));
    atomic_store(&slot_of(m)->priority, -(int)any(2));
    if (any(2) || cuda.backlog(m->client->c)) {
        cuda.queue_reuse(m->q);
        return;
    }
    cuda.queue_destroy(m->q);
    create(m);
}

static void stand(struct model_queue *m, bool hold)
{
    if (!hold)
        fake_let_go();
    else if (fake_stream(m->q))
        fake_hold(fake_stream(m->q), true);
    standing = hold && (standing || fake_stream(m->q));
}

static void step(void)
{
    struct model_queue *m = queue_of(any(clients_count * EACH));
    switch (any(20)) {
    case 0:
    case 1:
    case 2:
        launch(m, false);
        break;
    case 3:
    case 4:
        launch(m, true);
        break;
    case 5:
        for (uint32_t n = any(burst); n && m->seq < SEQ_MAX / 2; n--)
            launch(m, true);
        break;
    case 6:
    case 7:
        transfer(m);
        break;
    case 8:
    case 9:
    case 10:
        wait_for_other(m);
        break;
    case 11:
        gate(m);
        break;
    case 12:
        open_gate(m);
        break;
    case 13:
    case 14:
        run(m);
        break;
    case 15:
        cr_assert_eq(any(2) ? cuda.mark(m->q, taken(m)) : cuda.stamp(m->q, taken(m), 0), 0);
        break;
    case 16:
        flush(m->client);
        break;
    case 17:
        if (any(2))
            change_place(m->client);
        else if (any(2))
            module_change(m->client);
        else
            fake_memory_goes(m->client->c);
        break;
    case 18:
        stand(m, any(3) != 0);
        break;
    default:
        retire(m);
    }
}

/* --- cases ------------------------------------------------------------------------------------ */

static void describe_parts(struct dev_client *c)
{
    struct tp_part *parts = fake_session(c)->parts;
    for (uint32_t i = 1; i < 4; i++) {
        atomic_store(&parts[i].groups[0], i == 1 ? 3 : i);
        atomic_store(&parts[i].minimum, 8);
        atomic_store(&parts[i].of, i == 3 ? 1 : 0);
    }
}

static void begin(struct model_client *c, uint32_t index, bool prints)
{
    *c = (struct model_client) { .c = fake_client(d, 132, 0), .prints = prints };
    for (uint32_t i = 0; i < gpus; i++)
        fake_map(c->c, piece(i), FAKE_GPU_BYTES, i);
    describe_parts(c->c);
    for (uint32_t i = 0; i < MODULES; i++)
        c->modules[i] = module_new();
    for (uint32_t i = 0; i < EACH; i++) {
        struct model_queue *m = &c->queues[i];
        m->client = c;
        m->who = index * EACH + i;
        m->device = any(3) ? 0 : any(gpus);
        create(m);
    }
}

static bool is_done(void)
{
    for (uint32_t i = 0; i < clients_count * EACH; i++)
        if (atomic_load(&slot_of(queue_of(i))->completed.value) != queue_of(i)->seq)
            return false;
    for (uint32_t i = 0; i < clients_count; i++)
        if (cuda.backlog(clients[i].c))
            return false;
    return true;
}

static void complete(void)
{
    const uint64_t deadline = gm_now_ns() + 10 * GM_NS_PER_S;
    while (!is_done()) {
        for (uint32_t i = 0; i < clients_count * EACH; i++)
            open_gate(queue_of(i));
        for (uint32_t i = 0; i < clients_count; i++)
            flush(&clients[i]);
        cr_assert_lt(gm_now_ns(), deadline, "seed %lu: something is never done", seed);
        sched_yield();
    }
    look();
    for (uint32_t i = 0; i < clients_count * EACH; i++)
        cr_assert_eq(queue_of(i)->happened, queue_of(i)->count,
                     "seed %lu: something was never done", seed);
}

/* Ends all programs, also in the middle of their work. */
static void finish(void)
{
    const uint32_t *numbers;
    stand(NULL, false);
    if (any(4))
        complete();
    for (uint32_t i = 0; i < clients_count; i++)
        cuda.client_stop(clients[i].c);
    look();
    for (uint32_t i = 0; i < clients_count; i++) {
        for (uint32_t k = 0; k < MODULES; k++)
            fake_module_unload(clients[i].c, clients[i].modules[k]);
        fake_client_end(clients[i].c);
        cr_assert_eq(fake_happened(&numbers), 0,
                     "seed %lu: something happens when its program has been stopped", seed);
    }
    for (uint32_t i = 0; i < modules_count; i++)
        cr_assert_eq(fake_module_users(modules[i]), 0, "seed %lu: a library stays", seed);
    modules_count = 0;
    fake_forget();
}

/* What the main thread does to a client while that one's thread works. */
static void *main_thread(void *arg)
{
    static const uint32_t shares[] = { 132, 80, 40, 16 };
    struct dev_client *c = arg;
    for (unsigned i = 0; atomic_load(&at_work); i++) {
        fake_share(c, shares[i % 4], i % 3 == 0);
        if (i % 16 == 0)
            fake_modules_change(c);
        sched_yield();
    }
    return NULL;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void cases(uint32_t devices, uint32_t programs, uint64_t count, bool beside)
{
    pthread_t thread = 0;
    const uint64_t first = setting("ORDER_FIRST", 1);
    gpus = devices;
    d = fake_devices(gpus);
    fake_channel(programs * CHANNEL);
    clients_count = programs;
    if (programs > 1)
        fake_hear_output(d);
    for (seed = first; seed < first + setting("ORDER_SEEDS", count); seed++) {
        state = seed;
        for (uint32_t i = 0; i < programs; i++)
            begin(&clients[i], i, programs > 1);
        atomic_store(&at_work, beside);
        if (beside)
            cr_assert_eq(pthread_create(&thread, NULL, main_thread, clients[0].c), 0);
        for (uint32_t n = any(STEPS); n; n--) {
            step();
            look();
        }
        if (atomic_exchange(&at_work, false))
            pthread_join(thread, NULL);
        finish();
    }
}

Test(order, one_gpu)
{
    cases(1, 1, 300, false);
}

Test(order, several_gpus)
{
    cases(3, 1, 300, false);
}

Test(order, programs_that_print)
{
    cases(1, 2, 100, false);
}

/* More operations than the driver is to have, of which many stand still. */
Test(order, much_at_once)
{
    burst = SEQ_MAX / 2;
    cases(1, 1, 300, false);
}

Test(order, much_at_once_on_several_gpus)
{
    burst = SEQ_MAX / 2;
    cases(3, 2, 100, false);
}

Test(order, beside_the_main_thread)
{
    cases(2, 1, 50, true);
}
