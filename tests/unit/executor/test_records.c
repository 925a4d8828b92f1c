/* What the executor makes of records before a device sees them. */
#include <criterion/criterion.h>

#include "rig.h"

TestSuite(records, .timeout = 20);

static struct rig r;
static bool all_done;

static void begin(void)
{
    rig_open(&r);
    all_done = false;
}

static void end(void)
{
    rig_close(&r);
}

static bool is_done(struct dev_queue *q)
{
    return all_done;
}

/* The completion word is the client's to forge, and so is what the device counts by it. */
Test(records, a_stream_goes_when_its_device_says_that_it_is_done, .init = begin, .fini = end)
{
    r.ops.queue_is_done = is_done;
    cr_assert_eq(rig_take_simple(&r, WIRE_OP_MARK, 5, 1), 0);
    cr_assert_eq(rig_take_simple(&r, WIRE_OP_RETIRE, 5, 2), 0);
    exe_record_reap(r.client);
    cr_assert_eq(rig_queue(5)->gone, 0);
    all_done = true;
    exe_record_reap(r.client);
    cr_assert_eq(rig_queue(5)->gone, 1);
    exe_record_reap(r.client);
    cr_assert_eq(rig_queue(5)->gone, 1);
}

Test(records, a_number_that_is_used_again_keeps_its_queue, .init = begin, .fini = end)
{
    r.ops.queue_is_done = is_done;
    cr_assert_eq(rig_take_simple(&r, WIRE_OP_RETIRE, 5, 1), 0);
    exe_record_reap(r.client);
    cr_assert_eq(rig_take_simple(&r, WIRE_OP_MARK, 5, 2), 0);
    all_done = true;
    exe_record_reap(r.client);
    cr_assert_eq(rig_queue(5)->gone, 0);
    cr_assert_eq(rig_queue(5)->reused, 1);
}

Test(records, a_queue_begins_where_its_stream_stands, .init = begin, .fini = end)
{
    atomic_store(&r.session.streams[5].completed.value, 77);
    cr_assert_eq(rig_take_simple(&r, WIRE_OP_MARK, 5, 1), 0);
    cr_assert_eq(rig_queue(5)->done, 0);
    cr_assert_eq(rig_take_simple(&r, WIRE_OP_RETIRE, 5, 2), 0);
    exe_record_reap(r.client);
    cr_assert_eq(rig_take_simple(&r, WIRE_OP_MARK, 5, 3), 0);
    cr_assert_eq(rig_queue(5)->done, 2);
}

static int call(struct dev_client *c, const struct dev_call *what)
{
    if (pthread_mutex_trylock(&r.client->modules_lock) != 0)
        return GM_CUDA_NOT_PERMITTED;
    pthread_mutex_unlock(&r.client->modules_lock);
    return GM_CUDA_SUCCESS;
}

/* The main thread wants the modules for other programs' sake, and a question may take long. */
Test(records, a_question_keeps_only_the_module_that_it_is_about, .init = begin, .fini = end)
{
    r.ops.call = call;
    cr_assert_eq(rig_call(&r, WIRE_CALL_LINK_COMPLETE, 0, 1), 0);
    cr_assert_eq(atomic_load(&r.session.control->replied.value), 1);
    cr_assert_eq(r.session.reply->result, GM_CUDA_SUCCESS);
    cr_assert_eq(rig_call(&r, WIRE_CALL_FUNCTION_FIND, 7, 2), 0);
    cr_assert_eq(r.session.reply->result, GM_CUDA_INVALID_HANDLE, "it is not there");
}
