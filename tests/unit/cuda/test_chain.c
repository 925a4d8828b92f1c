/* Rows of launches: handed over together, in order, each once; one by one where the driver will not
 * have them so. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"

TestSuite(chain, .timeout = 20);

static struct dev *d;
static struct dev_client *c;
static struct dev_queue *q, *other;
static uint64_t seq;
static uint32_t next, printed;

static void begin(void)
{
    d = fake_device();
    c = fake_client(d, 132, 0);
    seq = 0;
    next = printed = 1;
    q = fake_queue(c, 0, 1, 0);
    other = fake_queue(c, 0, 2, 0);
}

static void end(void)
{
    fake_client_end(c);
    cr_assert_eq(fake_graphs(), 0);
}

static void launches(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        fake_launch_one_of_many(q, ++seq, next++);
}

/* So many have happened since it was looked last, in order. */
static void happened(unsigned count)
{
    const char *at = fake_printed();
    for (unsigned i = 0; i < count; i++) {
        unsigned number = 0;
        cr_assert_eq(sscanf(at, "%u", &number), 1, "%u of %u", i, count);
        cr_assert_eq(number, printed++);
        at = strchr(at, '\n') + 1;
    }
    cr_assert_str_eq(at, "");
}

static void all_of_it(unsigned count)
{
    cuda.flush(c);
    happened(count);
    while (cuda.backlog(c)) /* until the watch has seen it */
        sched_yield();
    cr_assert_eq(fake_done(q), seq);
}

/* Enough for graphs of both lengths. */
static void get_used_to_it(void)
{
    for (int i = 0; i < 8; i++) {
        launches(20);
        all_of_it(20);
    }
    cr_assert_eq(fake_graphs(), 2);
}

Test(chain, one_launch_goes_by_itself, .init = begin, .fini = end)
{
    for (unsigned i = 0; i < 100; i++) {
        fake_launch(q, ++seq, next++);
        happened(1);
    }
    all_of_it(0);
    cr_assert_eq(fake_graphs(), 0);
}

Test(chain, rows_become_graphs, .init = begin, .fini = end)
{
    launches(3);
    happened(0);
    all_of_it(3);
    get_used_to_it();
    unsigned before = fake_graph_launches();
    launches(16);
    happened(16);
    launches(16 + 4 + 3);
    all_of_it(23);
    cr_assert_eq(fake_graph_launches() - before, 3);
    cr_assert_eq(fake_graphs(), 2);
}

/* A graph's node would keep the clusters of the kernel that it had before. */
Test(chain, kernels_in_clusters_go_by_themselves, .init = begin, .fini = end)
{
    get_used_to_it();
    unsigned before = fake_graph_launches();
    for (unsigned i = 0; i < 20; i++)
        fake_launch_as(
            q, ++seq,
            &(struct fake_kernel) { .number = next++, .more = true, .in_clusters = true });
    happened(20);
    launches(4);
    fake_launch_as(q, ++seq,
                   &(struct fake_kernel) { .number = next++, .more = true, .in_clusters = true });
    happened(5);
    cr_assert_eq(fake_graph_launches() - before, 1);
    all_of_it(0);
}

Test(chain, whatever_else_comes_is_behind_it, .init = begin, .fini = end)
{
    get_used_to_it();
    launches(5);
    cr_assert_eq(cuda.mark(q, ++seq), 0);
    happened(5);
    launches(2);
    cr_assert_eq(cuda.copy(q, ++seq, &(struct wire_rec_copy) { .width = 0 }), 0); /* of nothing */
    happened(2);
    launches(2);
    cr_assert_eq(cuda.wait(other, 1, q, seq), 0);
    happened(2);
    all_of_it(0);
}

/* What was held back may begin a row, and somebody else be held back until that is handed over. */
Test(chain, a_client_that_waits_for_it_goes_on, .init = begin, .fini = end)
{
    cr_assert_eq(cuda.gate(other, 1), 0);
    cr_assert_eq(cuda.wait(q, ++seq, other, 1), 0);
    launches(1);
    cr_assert_eq(cuda.gate(q, ++seq), 0);
    cr_assert_eq(cuda.wait(other, 2, q, seq), 0);
    fake_launch_one_of_many(other, 3, 2);
    cr_assert_eq(cuda.wait(q, ++seq, other, 3), 0);
    next = 3;
    launches(1);
    cuda.flush(c);
    happened(0);
    atomic_store(&fake_slot(other)->gate, 1);
    cuda.gate_moved(other);
    cuda.flush(c);
    happened(1);
    atomic_store(&fake_slot(q)->gate, 3);
    cuda.gate_moved(q);
    all_of_it(2);
}

Test(chain, goes_with_the_place_of_its_client, .init = begin, .fini = end)
{
    get_used_to_it();
    launches(3);
    fake_share(c, 40, 0);
    launches(1);
    happened(3);
    all_of_it(1);
    for (int i = 0; i < 100; i++) {
        launches(16);
        all_of_it(16);
    }
    cr_assert_gt(fake_graphs(), 0);
    cr_assert_eq(__builtin_popcountll(fake_stream_groups(fake_stream(q))), 5);
}

Test(chain, is_made_anew_when_a_module_has_gone, .init = begin, .fini = end)
{
    get_used_to_it();
    fake_modules_change(c);
    unsigned before = fake_graph_launches();
    for (int i = 0; i < 15; i++) {
        launches(16);
        all_of_it(16);
    }
    cr_assert_eq(fake_graph_launches(), before);
    for (int i = 0; i < 5; i++) {
        launches(16);
        all_of_it(16);
    }
    cr_assert_gt(fake_graph_launches(), before);
}

/* Even graphs whose kernels need none: the fake driver fails the test if one is launched again. */
Test(chain, is_made_anew_when_local_memory_has_gone, .init = begin, .fini = end)
{
    struct dev_client *large = fake_client(d, 132, 0);
    fake_need_local(d, large, 32u << 10);
    get_used_to_it();
    fake_need_local(d, large, 0);
    cr_assert_lt(fake_local(d), 32u << 10);
    unsigned before = fake_graph_launches();
    for (int i = 0; i < 20; i++) {
        launches(16);
        all_of_it(16);
    }
    cr_assert_gt(fake_graph_launches(), before);
    fake_client_end(large);
}

Test(chain, what_is_refused_goes_one_by_one, .init = begin, .fini = end)
{
    get_used_to_it();
    fake_refuse_graphs(true);
    unsigned before = fake_graph_launches();
    for (int i = 0; i < 4; i++) {
        launches(20);
        all_of_it(20);
    }
    cr_assert_eq(fake_graph_launches(), before);
    cr_assert_eq(fake_graphs(), 0);
    fake_refuse_graphs(false);
}

Test(chain, is_dropped_with_its_queue, .init = begin, .fini = end)
{
    get_used_to_it();
    launches(3);
    cuda.queue_destroy(q);
    cr_assert_eq(fake_graphs(), 0);
    cuda.flush(c);
    happened(0);
}

Test(chain, not_every_queue_has_graphs, .init = begin, .fini = end)
{
    struct dev_queue *all[40];
    for (uint32_t i = 0; i < 40; i++) {
        all[i] = fake_queue(c, 0, 3 + i, 0);
        for (uint64_t n = 1; n <= 320; n++)
            fake_launch_one_of_many(all[i], n, next++);
        cuda.flush(c);
        happened(320);
    }
    cr_assert_leq(fake_graphs(), 32);
    cr_assert_gt(fake_graphs(), 16);
}

/* The waiting launches keep their kernels, and these go with them. */
Test(chain, what_has_lost_its_module_is_not_for_a_graph, .init = begin, .fini = end)
{
    for (int i = 0; i < 7; i++) { /* the next row would become a graph */
        launches(16);
        all_of_it(16);
    }
    struct fake_module *m = fake_module(false, false);
    for (unsigned i = 0; i < 15; i++)
        fake_launch_as(q, ++seq,
                       &(struct fake_kernel) { .number = next++, .module = m, .more = true });
    fake_module_unload(c, m);
    cr_assert_gt(fake_module_users(m), 0);
    launches(1);
    happened(16);
    cr_assert_eq(fake_module_users(m), 0);
    for (int i = 0; i < 4; i++) {
        launches(16);
        all_of_it(16);
    }
}
