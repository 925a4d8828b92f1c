/* Graphs with conditional nodes: recorded when they first come, made where their queue is, held
 * back like any operation, made anew when what they name may have gone. */
#include <criterion/criterion.h>
#include <sched.h>

#include "fake.h"

TestSuite(graph, .timeout = 20);

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *q;
static uint64_t seq;

static void begin(void)
{
    d = fake_device();
    c = fake_client(d, 132, 0);
    seq = 0;
    q = fake_queue(c, 0, 1, 0);
}

static void end(void)
{
    fake_client_end(c);
    cr_assert_eq(fake_graphs(), 0);
}

struct graph {
    struct wire_graph_handle handles[2];
    uint32_t name; /* stands for the records */
    uint32_t kind;
};

static const struct graph taken = { { { 1, 1 }, { 1, 1 } }, 1, CU_GRAPH_COND_TYPE_IF };

static void condition(uint32_t handle, uint32_t kind, uint32_t bodies)
{
    cr_assert_eq(
        cuda.graph_condition(
            q, &(struct wire_rec_condition) { .handle = handle, .kind = kind, .bodies = bodies }),
        0);
}

static void body(uint32_t number)
{
    cr_assert_eq(cuda.graph_body(q, number), 0);
}

/* A kernel, a condition with two bodies, the first of which has a kernel, a condition and a kernel,
 * and a kernel behind. As the executor does it. True: it was known. */
static bool hand_over(const struct graph *g)
{
    const struct dev_graph graph = { .seq = ++seq, .handles = 2, .size = sizeof(*g), .records = g };
    bool known = false;
    cr_assert_eq(cuda.graph_begin(q, &graph, &known), 0);
    if (known)
        return true;
    fake_launch(q, seq, 1);
    condition(1, g->kind, 2);
    body(0);
    fake_launch(q, seq, 2);
    condition(2, CU_GRAPH_COND_TYPE_IF, 1);
    body(0);
    fake_launch(q, seq, 3);
    body(1);
    fake_launch(q, seq, 4);
    body(1);
    fake_launch(q, seq, 5);
    body(2);
    fake_launch(q, seq, 6);
    cr_assert_eq(cuda.graph_end(q), 0);
    return false;
}

static void finish(void)
{
    cuda.flush(c);
    while (cuda.backlog(c)) /* until the watch has seen it */
        sched_yield();
    cr_assert_eq(fake_done(q), seq);
}

static bool launch(const struct graph *g, const char *want)
{
    const bool known = hand_over(g);
    finish();
    cr_assert_str_eq(fake_printed(), want);
    return known;
}

Test(graph, bodies_are_where_they_belong, .init = begin, .fini = end)
{
    struct graph g = taken;
    launch(&g, "1\n2\n3\n4\n6\n");
    g.handles[1].initial = 0;
    launch(&g, "1\n2\n4\n6\n");
    g.handles[0].initial = 0;
    launch(&g, "1\n5\n6\n");
    g.kind = CU_GRAPH_COND_TYPE_SWITCH;
    g.handles[0].initial = 2;
    launch(&g, "1\n6\n");
    cr_assert_eq(fake_graphs(), 4);
}

Test(graph, is_known_when_it_comes_again, .init = begin, .fini = end)
{
    cr_assert_not(launch(&taken, "1\n2\n3\n4\n6\n"));
    for (int i = 0; i < 5; i++)
        cr_assert(launch(&taken, "1\n2\n3\n4\n6\n"));
    cr_assert_eq(fake_graphs(), 1);
    cr_assert_eq(fake_graph_launches(), 6);
    fake_modules_change(c); /* their numbers may be others' */
    cr_assert_not(launch(&taken, "1\n2\n3\n4\n6\n"));
}

Test(graph, waits_behind_a_gate, .init = begin, .fini = end)
{
    cr_assert_eq(cuda.gate(q, ++seq), 0);
    hand_over(&taken);
    hand_over(&taken);
    cuda.flush(c);
    cr_assert_str_eq(fake_printed(), "");
    cr_assert_eq(fake_graphs(), 0, "it is made when its turn comes");
    atomic_store(&fake_slot(q)->gate, 1);
    cuda.gate_moved(q);
    finish();
    cr_assert_str_eq(fake_printed(), "1\n2\n3\n4\n6\n1\n2\n3\n4\n6\n");
    cr_assert_eq(fake_graphs(), 1);
}

Test(graph, that_is_held_back_keeps_its_record, .init = begin, .fini = end)
{
    struct graph others = taken;
    cr_assert_eq(cuda.gate(q, ++seq), 0);
    hand_over(&taken);
    for (others.name = 2; others.name < 200; others.name++)
        hand_over(&others);
    fake_modules_change(c);
    atomic_store(&fake_slot(q)->gate, 1);
    cuda.gate_moved(q);
    finish();
    cr_assert_eq(fake_graph_launches(), 199);
}

Test(graph, goes_where_its_queue_goes, .init = begin, .fini = end)
{
    launch(&taken, "1\n2\n3\n4\n6\n");
    fake_share(c, 40, 0);
    cr_assert(launch(&taken, "1\n2\n3\n4\n6\n")); /* the driver looks whose it is */
    fake_need_local(d, c, 32u << 10);
    fake_need_local(d, c, 0);
    cr_assert(launch(&taken, "1\n2\n3\n4\n6\n"));
}

/* One graph of all clients' runs at a time; nothing else waits for it. */
Test(graph, of_another_client_comes_first, .init = begin, .fini = end)
{
    struct dev_client *second = fake_client(d, 132, 0);
    struct dev_queue *mine = fake_queue_with_stream(c, 0, 2, 0),
                     *others = fake_queue_with_stream(second, 0, 2, 0);
    struct graph last = taken;
    fake_hold(fake_stream(mine), true);
    q = mine;
    hand_over(&taken);
    cuda.flush(c);
    q = others;
    last.handles[0].initial = seq = 0;
    hand_over(&last);
    cuda.flush(second);
    cr_assert_str_eq(fake_printed(), "");
    fake_launch(fake_queue(second, 0, 3, 0), 1, 99);
    cuda.flush(second);
    cr_assert_str_eq(fake_printed(), "99\n");
    fake_hold(fake_stream(mine), false);
    cr_assert_str_eq(fake_printed(), "1\n2\n3\n4\n6\n1\n5\n6\n");
    fake_client_end(second);
}

/* Somebody's kernel runs on: such graphs are made and destroyed where nothing runs. */
Test(graph, is_made_beside_a_long_kernel, .init = begin, .fini = end)
{
    struct dev_client *second = fake_client(d, 132, 0);
    struct dev_queue *runs_on = fake_queue_with_stream(second, 0, 2, 0);
    struct graph other = taken;
    launch(&taken, "1\n2\n3\n4\n6\n");
    fake_hold(fake_stream(runs_on), true);
    fake_launch(runs_on, 1, 99);
    cuda.flush(second);
    fake_patience(d, 0, 0, 0);
    fake_wait_until_busy(d, FAKE_FIRST);
    launch(&taken, "1\n2\n3\n4\n6\n"); /* there is nothing to make */
    cr_assert_not(fake_is_away(c));
    fake_modules_change(c);
    for (other.name = 2; other.name < 70; other.name++)
        launch(&other, "1\n2\n3\n4\n6\n");
    cr_assert(fake_is_away(c));
    fake_hold(fake_stream(runs_on), false);
    cr_assert_str_eq(fake_printed(), "99\n");
    fake_client_end(second);
}

Test(graph, of_a_client_that_ends_meanwhile, .init = begin, .fini = end)
{
    bool known;
    cr_assert_eq(cuda.gate(q, ++seq), 0);
    hand_over(&taken);
    cuda.flush(c);
    const struct dev_graph half = { .seq = ++seq, .records = "" };
    cr_assert_eq(cuda.graph_begin(q, &half, &known), 0);
    fake_launch(q, seq, 1);
}

Test(graph, with_a_handle_that_it_has_not, .init = begin, .fini = end)
{
    const struct dev_graph graph = { .seq = ++seq, .records = "" };
    bool known;
    fake_expect_faults();
    for (uint32_t handle = 0; handle < 2; handle++) {
        cr_assert_eq(cuda.graph_begin(q, &graph, &known), 0);
        condition(handle, CU_GRAPH_COND_TYPE_IF, 1);
        body(0);
        body(1);
        cr_assert_eq(cuda.graph_end(q), 0);
        cr_assert_eq(fake_faults(), handle + 1);
        fake_modules_change(c);
    }
    cr_assert_eq(fake_graphs(), 0);
}
