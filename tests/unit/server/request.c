/* For how long an executor may be silent, and who is suspected when it dies. */
#include <criterion/criterion.h>

#include "server/request.h"
#include "wire/messages.h"

TestSuite(request, .timeout = 30);

#define HOUR (60 * 60 * 1000ull)

static struct gm_list sent;
static struct srv_session *const one = (struct srv_session *)(uintptr_t)8,
                                 *const two = (struct srv_session *)(uintptr_t)16;
static uint64_t serials;

static void answered(void *arg, int result, struct tp_packet *answer)
{
}

static struct srv_request *add(struct srv_session *c, const struct wire_enc *e)
{
    struct srv_request *r = srv_request_create(c, ++serials, e, NULL, 0);
    cr_assert_not_null(r);
    r->done = answered;
    gm_list_append(&sent, &r->link);
    return r;
}

static struct wire_enc encoder(void)
{
    static uint8_t buffer[256];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    return e;
}

static struct srv_request *load(struct srv_session *c)
{
    struct wire_enc e = encoder();
    wire_pack_engine_module_load(&e, 0,
                                 &(struct wire_engine_module_load) { .client = 1, .module = 1 });
    return add(c, &e);
}

static struct srv_request *unmap(struct srv_session *c)
{
    struct wire_enc e = encoder();
    wire_pack_engine_unmap(&e, 0, &(struct wire_engine_unmap) { .client = 1 });
    return add(c, &e);
}

static struct srv_request *map(struct srv_session *c, uint64_t size)
{
    struct wire_enc e = encoder();
    wire_pack_engine_map(&e, 0, &(struct wire_engine_map) { .client = 1, .size = size });
    return add(c, &e);
}

static struct srv_request *stop(struct srv_session *c)
{
    struct wire_enc e = encoder();
    wire_pack_engine_client_stop(&e, 0, &(struct wire_engine_client_stop) { .client = 1 });
    return add(c, &e);
}

static struct srv_request *removal(struct srv_session *c)
{
    struct wire_enc e = encoder();
    wire_pack_engine_client_remove(&e, 0, &(struct wire_engine_client_remove) { .client = 1 });
    return add(c, &e);
}

static void drop(struct srv_request *r)
{
    gm_list_remove(&r->link);
    free(r);
}

static void begin(void)
{
    gm_list_init(&sent);
}

static void end(void)
{
    gm_list_for_each_safe (r, &sent, struct srv_request, link)
        drop(r);
}

/* --- time ------------------------------------------------------------------------------------- */

Test(request, what_others_wait_for_is_bounded, .init = begin, .fini = end)
{
    cr_assert_eq(srv_requests_patience(&sent, 1000), 0);
    struct srv_request *first = unmap(one);
    unmap(two);
    uint64_t until = srv_requests_patience(&sent, 1000);
    cr_assert(until > 1000 && until < 1000 + HOUR);
    cr_assert_eq(srv_requests_patience(&sent, 9000), until, "its time goes on");
    drop(first);
    cr_assert_eq(srv_requests_patience(&sent, 9000), until + 8000,
                 "the next one's begins when it is its turn");
}

/* A kernel that runs for hours, and an order of its client behind it. */
Test(request, what_waits_for_its_client_has_all_the_time, .init = begin, .fini = end)
{
    struct srv_request *waits = unmap(one);
    srv_requests_patience(&sent, 1000);
    srv_request_put_off(waits, false);
    cr_assert_eq(srv_requests_patience(&sent, 1000), 0);
    struct srv_request *other = unmap(two);
    uint64_t until = srv_requests_patience(&sent, HOUR);
    cr_assert(until > HOUR, "counts from when it was asked");
    drop(other);
    cr_assert_eq(srv_requests_patience(&sent, 10 * HOUR), 0);
}

Test(request, what_is_done_beside_has_all_the_time, .init = begin, .fini = end)
{
    srv_request_put_off(load(one), true);
    cr_assert_eq(srv_requests_patience(&sent, 1000), 0);
}

/* The driver may let the others wait though the executor does not. */
Test(request, others_may_take_as_long_as_what_is_beside_them, .init = begin, .fini = end)
{
    struct srv_request *r = unmap(two);
    uint64_t alone = srv_requests_patience(&sent, 1000);
    drop(r);
    struct srv_request *beside = load(one);
    srv_request_put_off(beside, false);
    r = unmap(two);
    cr_assert_eq(srv_requests_patience(&sent, 1000), alone, "it does not run yet");
    drop(r);
    srv_request_put_off(beside, true);
    unmap(two);
    cr_assert_gt(srv_requests_patience(&sent, 1000), alone);
}

Test(request, much_memory_takes_more_time, .init = begin, .fini = end)
{
    struct srv_request *little = map(one, 4096);
    uint64_t until = srv_requests_patience(&sent, 1000);
    drop(little);
    map(one, 64ull << 30);
    cr_assert_gt(srv_requests_patience(&sent, 1000), until + 60000);
}

/* What a program that is gone leaves running is the others' burden. */
Test(request, a_stop_is_bounded_however_it_waits, .init = begin, .fini = end)
{
    struct srv_request *r = stop(one);
    uint64_t in_turn = srv_requests_patience(&sent, 1000);
    srv_request_put_off(r, false);
    uint64_t until = srv_requests_patience(&sent, 1000);
    cr_assert(until > in_turn && until < 1000 + HOUR);
    srv_request_put_off(r, true);
    cr_assert_eq(srv_requests_patience(&sent, 100000), until);
}

/* Somebody else's kernel runs for hours: the driver waits for that, and nobody for the driver. */
Test(request, a_removal_beside_the_rest_has_all_the_time, .init = begin, .fini = end)
{
    struct srv_request *r = removal(one);
    cr_assert_gt(srv_requests_patience(&sent, 1000), 1000, "in its turn the main thread has it");
    srv_request_put_off(r, false);
    cr_assert_eq(srv_requests_patience(&sent, HOUR), 0);
    srv_request_put_off(r, true);
    cr_assert_eq(srv_requests_patience(&sent, 2 * HOUR), 0);
    struct srv_request *other = unmap(two);
    uint64_t until = srv_requests_patience(&sent, 3 * HOUR);
    cr_assert(until > 3 * HOUR && until < 4 * HOUR, "others are waited for as ever");
    drop(other);
    struct srv_request *stopped = stop(two);
    srv_request_put_off(stopped, true);
    until = srv_requests_patience(&sent, 3 * HOUR);
    cr_assert(until > 3 * HOUR && until < 4 * HOUR, "what runs of others, too");
}

/* --- order ------------------------------------------------------------------------------------ */

Test(request, answers_come_in_order_but_for_what_is_put_off, .init = begin, .fini = end)
{
    struct srv_request *a = load(one), *b = unmap(two), *c = unmap(two);
    cr_assert_eq(srv_requests_current(&sent), a);
    cr_assert_eq(srv_requests_find(&sent, a->serial), a);
    cr_assert_null(srv_requests_find(&sent, b->serial));
    srv_request_put_off(a, true);
    cr_assert_eq(srv_requests_find(&sent, a->serial), a);
    cr_assert_eq(srv_requests_find(&sent, b->serial), b);
    cr_assert_null(srv_requests_find(&sent, c->serial));
    cr_assert_null(srv_requests_find(&sent, c->serial + 1));
}

Test(request, what_was_not_sent_is_neither_answered_nor_suspected, .init = begin, .fini = end)
{
    struct srv_request *first = load(one), *second = load(two);
    srv_request_put_off(first, false);
    second->unsent = true;
    cr_assert_eq(srv_requests_current(&sent), second); /* the executor should have taken it */
    cr_assert_null(srv_requests_find(&sent, second->serial));
    srv_requests_accuse(&sent, false, false);
    cr_assert_eq(first->suspected + second->suspected, 0);
    second->unsent = false;
    cr_assert_eq(srv_requests_find(&sent, second->serial), second);
    srv_requests_accuse(&sent, false, false);
    cr_assert_eq(second->suspected, SRV_CULPRIT);
}

Test(request, settled_is_who_has_restored_all, .init = begin, .fini = end)
{
    struct srv_request *r = load(one);
    r->done = NULL;
    cr_assert_not(srv_requests_are_settled(&sent));
    srv_request_put_off(r, true);
    cr_assert_not(srv_requests_are_settled(&sent));
    r->done = answered;
    cr_assert(srv_requests_are_settled(&sent));
}

/* --- suspicion -------------------------------------------------------------------------------- */

Test(request, a_load_alone_is_to_blame, .init = begin, .fini = end)
{
    struct srv_request *r = load(one), *waits = load(two), *behind = unmap(two);
    srv_request_put_off(r, true);
    srv_request_put_off(waits, false);
    gm_list_remove(&behind->link);
    srv_requests_accuse(&sent, false, false);
    gm_list_append(&sent, &behind->link);
    cr_assert_geq(r->suspected, SRV_CULPRIT);
    cr_assert_eq(waits->suspected, 0);
}

Test(request, of_several_none_is_to_blame_at_once, .init = begin, .fini = end)
{
    struct srv_request *a = load(one), *b = load(two);
    srv_request_put_off(a, true);
    srv_request_put_off(b, true);
    srv_requests_accuse(&sent, false, false);
    cr_assert_lt(a->suspected, SRV_CULPRIT);
    cr_assert_lt(b->suspected, SRV_CULPRIT);
    srv_requests_accuse(&sent, false, false);
    cr_assert_geq(a->suspected, SRV_CULPRIT);
}

Test(request, a_repeat_is_to_blame_if_its_client_was_told_again_alone, .init = begin, .fini = end)
{
    struct srv_request *r = load(one);
    r->done = NULL;
    srv_requests_accuse(&sent, true, false);
    cr_assert_lt(r->suspected, SRV_CULPRIT);
    r->suspected = 0;
    srv_requests_accuse(&sent, false, true);
    cr_assert_geq(r->suspected, SRV_CULPRIT);
}

Test(request, where_memory_was_short_all_new_loads_are_to_blame, .init = begin, .fini = end)
{
    struct srv_request *a = load(one), *b = load(two), *again = load(two);
    again->done = NULL;
    srv_request_put_off(a, true);
    srv_request_put_off(b, true);
    srv_request_put_off(again, true);
    srv_requests_accuse(&sent, true, false);
    cr_assert_geq(a->suspected, SRV_CULPRIT);
    cr_assert_geq(b->suspected, SRV_CULPRIT);
    cr_assert_lt(again->suspected, SRV_CULPRIT);
}

Test(request, other_than_loads_are_tried_twice, .init = begin, .fini = end)
{
    struct srv_request *r = unmap(one);
    srv_requests_accuse(&sent, false, false);
    cr_assert_lt(r->suspected, SRV_CULPRIT);
    srv_requests_accuse(&sent, false, false);
    cr_assert_geq(r->suspected, SRV_CULPRIT);
}
