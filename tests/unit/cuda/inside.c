/*
 * The device as tests see it, and what they ask about its insides: see fake.h. No other file of
 * these tests but the fake driver knows the device's structs.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/cuda/admit.h"
#include "device/cuda/call.h"
#include "device/cuda/client.h"
#include "device/cuda/complaint.h"
#include "device/cuda/fallback.h"
#include "device/cuda/far.h"
#include "device/cuda/graph.h"
#include "device/cuda/inflight.h"
#include "device/cuda/intake.h"
#include "device/cuda/local.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/memory.h"
#include "device/cuda/module.h"
#include "device/cuda/output.h"
#include "device/cuda/queue.h"
#include "device/cuda/settle.h"
#include "device/cuda/stream.h"
#include "fake.h"
#include "transport/memfd.h"

_Static_assert(FAKE_DEPTH == CUDA_DEPTH && FAKE_NEVER == CUDA_NEVER, "as the device has them");
_Static_assert(FAKE_FALLBACK == 1u << DEV_DEVICES, "as CUDA_GPU_BIT has it");

const struct dev_ops cuda = {
    .name = "cuda",
    .client_create = cuda_client_create,
    .client_set_share = cuda_client_set_share,
    .client_device = cuda_client_device,
    .client_peer = cuda_client_peer,
    .client_stop = cuda_client_stop,
    .client_destroy = cuda_client_destroy,
    .memory_map = cuda_memory_map,
    .memory_attach = cuda_memory_attach,
    .memory_unmap = cuda_memory_unmap,
    .array_memory = cuda_array_memory,
    .queue_create = cuda_queue_create,
    .queue_reuse = cuda_queue_reuse,
    .queue_is_done = cuda_queue_is_done,
    .queue_destroy = cuda_queue_destroy,
    .launch = cuda_launch,
    .copy = cuda_copy,
    .copy_array = cuda_copy_array,
    .write = cuda_write,
    .fill = cuda_fill,
    .wait = cuda_wait,
    .stamp = cuda_stamp,
    .gate = cuda_gate,
    .gate_moved = cuda_gate_moved,
    .wait_value = cuda_wait_value,
    .mark = cuda_mark,
    .run_begin = cuda_run_begin,
    .run_end = cuda_run_end,
    .graph_begin = cuda_graph_begin,
    .graph_condition = cuda_graph_condition,
    .graph_body = cuda_graph_body,
    .graph_end = cuda_graph_end,
    .call = cuda_call,
    .flush = cuda_flush,
    .backlog = cuda_backlog,
};

unsigned fake_count(const struct dev *d)
{
    return d->count;
}

const struct dev_info *fake_info(struct dev *d)
{
    cuda_enter(&d->gpus[0]);
    cuda_local_open(&d->gpus[0]);
    return &d->gpus[0].info;
}

void fake_enter(struct dev *d, bool fallback)
{
    cuda_enter(fallback ? &d->fallbacks[0] : &d->gpus[0]);
}

struct cuda_driver *fake_driver(struct dev *d)
{
    return &d->api;
}

/* --- clients ---------------------------------------------------------------------------------- */

static struct dev_client *client(struct dev *d, uint32_t uid, uint32_t multiprocessors,
                                 int priority)
{
    struct dev_client *c = calloc(1, sizeof(*c));
    struct dev_client_config config = { .uid = uid,
                                        .window_base = FAKE_WINDOW,
                                        .window_size = 2ull << 30,
                                        .priority = priority,
                                        .leaving = calloc(1, sizeof(*config.leaving)) };
    int fd = tp_session_create();
    config.session = calloc(1, sizeof(*config.session));
    cr_assert_eq(tp_session_attach(config.session, fd, TP_SESSION_SIZE), 0);
    close(fd);
    for (uint32_t i = 0; i < d->count; i++)
        config.multiprocessors[i] = multiprocessors;
    cuda_client_init(c, d, &config);
    for (uint32_t i = 0; i < d->count; i++) {
        c->seats[i].streams_at = (CUdeviceptr)(uintptr_t)c->session->streams;
        cr_assert_eq(cuda_fallback_seat(c, &d->gpus[i]), CUDA_SUCCESS);
    }
    cuda_client_join(c);
    return c;
}

struct dev_client *fake_client(struct dev *d, uint32_t multiprocessors, int priority)
{
    return client(d, 0, multiprocessors, priority);
}

struct dev_client *fake_client_of(struct dev *d, uint32_t uid)
{
    return client(d, uid, FAKE_SMS, 0);
}

void fake_client_end(struct dev_client *c)
{
    cuda_runs_finish(c);
    gm_list_for_each_safe (q, &c->queues, struct dev_queue, link)
        cuda_queue_destroy(q);
    cuda_capacity_collect(c, true);
    cuda_places_collect(c, true);
    cuda_objects_finish(c);
    cuda_arrays_finish(c);
    cuda_ranges_finish(c);
    cuda_output_leave(c);
    cuda_words_finish(c);
    gm_list_for_each_safe (m, &c->modules, struct dev_module, link)
        cuda_module_unload(m);
    tp_session_detach(c->session);
    free(c->session);
    free((void *)(uintptr_t)c->leaving);
    free(c);
}

void fake_leaves(struct dev_client *c)
{
    atomic_store((_Atomic bool *)(uintptr_t)c->leaving, true);
}

struct tp_session *fake_session(struct dev_client *c)
{
    return c->session;
}

void fake_share(struct dev_client *c, uint32_t multiprocessors, int priority)
{
    uint32_t all[DEV_DEVICES] = { 0 };
    for (uint32_t i = 0; i < c->dev->count; i++)
        all[i] = multiprocessors;
    cuda_client_set_share(c, 30, all, priority);
}

void *fake_limit(void *client)
{
    fake_share(client, 40, 0);
    return NULL;
}

bool fake_is_away(const struct dev_client *c)
{
    return cuda_home(c, 0)->is_fallback;
}

/* --- memory ----------------------------------------------------------------------------------- */

void fake_map(struct dev_client *c, uint64_t address, uint64_t size, uint32_t device)
{
    cr_assert_eq(cuda_memory_attach(c, address, size, -1, 0, device, 0), 0);
}

void fake_map_host(struct dev_client *c, uint64_t address, uint64_t size)
{
    int fd = tp_memfd_create("host", size);
    cr_assert_eq(cuda_memory_attach(c, address, size, fd, 0, 0, 0), 0);
    close(fd);
}

bool fake_holds(struct dev_client *c, uint64_t address, uint64_t size)
{
    return cuda_holds(c, address, size);
}

int fake_owner(struct dev_client *c, uint64_t address)
{
    const struct cuda_memory m = cuda_memory_at(c, address, 1);
    return m.gpu ? (int)m.gpu->index : FAKE_NOBODYS;
}

bool fake_may_write(struct dev_client *c, uint64_t address)
{
    return cuda_memory_at(c, address, 1).reach & 1;
}

void fake_memory_goes(struct dev_client *c)
{
    const uint64_t spare = FAKE_HOST - FAKE_GPU_BYTES;
    fake_map(c, spare, 4096, 0);
    cuda_memory_unmap(c, spare, 4096);
}

/* --- queues ----------------------------------------------------------------------------------- */

struct dev_queue *fake_queue(struct dev_client *c, uint32_t device, uint32_t number, int priority)
{
    struct dev_queue *q;
    cr_assert_eq(cuda_queue_create(c, device, number, 0, priority, &q), 0);
    return q;
}

struct dev_queue *fake_queue_with_stream(struct dev_client *c, uint32_t device, uint32_t number,
                                         int priority)
{
    struct dev_queue *q = fake_queue(c, device, number, priority);
    cuda_stream_place(q);
    return q;
}

CUstream fake_stream(const struct dev_queue *q)
{
    return q->stream;
}

struct tp_stream_slot *fake_slot(const struct dev_queue *q)
{
    return q->slot;
}

uint64_t fake_done(const struct dev_queue *q)
{
    return atomic_load(&q->slot->completed.value);
}

bool fake_queue_is_away(const struct dev_queue *q)
{
    return q->gpu->is_fallback;
}

bool fake_is_over(struct dev_queue *q)
{
    return cuda_queue_is_over(q);
}

bool fake_is_seen(struct dev_queue *q)
{
    struct dev *d = q->client->dev;
    pthread_mutex_lock(&d->lock);
    bool seen = q->seen == q->marked;
    pthread_mutex_unlock(&d->lock);
    return seen;
}

bool fake_is_watched(struct dev_queue *q)
{
    struct dev *d = q->client->dev;
    pthread_mutex_lock(&d->lock);
    bool watched = q->since != 0;
    pthread_mutex_unlock(&d->lock);
    return watched;
}

bool fake_is_resting(struct dev_queue *q)
{
    struct dev *d = q->client->dev;
    pthread_mutex_lock(&d->lock);
    bool resting = gm_list_empty(&q->active);
    pthread_mutex_unlock(&d->lock);
    return resting;
}

void fake_pace(struct dev_queue *q, uint64_t ns)
{
    struct dev *d = q->client->dev;
    pthread_mutex_lock(&d->lock);
    q->pace = ns;
    if (q->marked != q->seen)
        q->since = gm_now_ns();
    cuda_ahead_note(q);
    pthread_mutex_unlock(&d->lock);
}

CUstream fake_detour(struct dev_queue *q, unsigned device, bool fallback)
{
    struct dev *d = q->client->dev;
    struct cuda_gpu *to = fallback ? &d->fallbacks[device] : &d->gpus[device];
    CUstream into;
    cr_assert_eq(cuda_open_way(q, to), CUDA_SUCCESS);
    cr_assert_eq(cuda_go(q, to, &into), CUDA_SUCCESS);
    cr_assert_eq(cuda_entered(), to);
    cr_assert_eq(cuda_leave(q, to, CUDA_SUCCESS), CUDA_SUCCESS);
    return into;
}

/* --- capacity --------------------------------------------------------------------------------- */

static struct cuda_capacity *capacity(struct dev *d, unsigned device, bool fallback)
{
    return fallback ? &d->fallbacks[device].capacity : &d->gpus[device].capacity;
}

struct fake_use fake_use_of(struct dev *d, unsigned device, bool fallback)
{
    pthread_mutex_lock(&d->lock);
    const struct cuda_capacity *c = capacity(d, device, fallback);
    const struct fake_use use = { c->used, c->nodes };
    pthread_mutex_unlock(&d->lock);
    return use;
}

void fake_set_capacity(struct dev *d, unsigned device, struct fake_use use, unsigned of)
{
    pthread_mutex_lock(&d->lock);
    struct cuda_capacity *c = capacity(d, device, false);
    c->used = use.used;
    c->nodes = use.nodes;
    c->made = of;
    pthread_mutex_unlock(&d->lock);
}

bool fake_has_room_for_graph(struct dev_queue *q, unsigned nodes)
{
    struct cuda_exec graph;
    if (!cuda_capacity_take_graph(q, nodes, 0, &graph))
        return false;
    cuda_capacity_graph_destroy(q->client, &graph);
    return true;
}

void fake_need_local(struct dev *d, struct dev_client *c, uint32_t bytes)
{
    if (c)
        c->local[0] = bytes;
    if (bytes) {
        d->gpus[0].local = bytes;
        fake_make_local(bytes);
    } else {
        cuda_local_shrink(d);
    }
}

uint32_t fake_local(struct dev *d)
{
    return d->gpus[0].local;
}

int fake_raise_stack(struct dev_client *c, uint64_t bytes)
{
    uint8_t message[64];
    struct wire_enc enc;
    struct wire_dec dec;
    wire_enc_init(&enc, message, sizeof(message));
    wire_put_call_limit(&enc,
                        &(struct wire_call_limit) { .limit = CU_LIMIT_STACK_SIZE, .value = bytes });
    wire_dec_init(&dec, message, enc.size);
    return cuda_call(
        c, &(struct dev_call) { .function = WIRE_CALL_LIMIT_RAISE, .args = &dec, .reply = &enc });
}

/* --- waiting ---------------------------------------------------------------------------------- */

void fake_patience(struct dev *d, uint64_t rest, uint64_t unknown, uint64_t held)
{
    pthread_mutex_lock(&d->lock); /* the watch reads it */
    d->rest_ns = rest;
    d->unknown_ns = unknown;
    d->held_ns = d->stays_ns = held;
    pthread_mutex_unlock(&d->lock);
}

void fake_patience_grows(struct dev *d, uint64_t rest)
{
    pthread_mutex_lock(&d->lock);
    d->rest_most_ns = rest;
    pthread_mutex_unlock(&d->lock);
}

void fake_patience_to_return(struct dev *d, uint64_t rest)
{
    pthread_mutex_lock(&d->lock);
    d->returns_ns = rest;
    pthread_mutex_unlock(&d->lock);
}

void fake_blocked_after(struct dev *d, uint64_t ns)
{
    pthread_mutex_lock(&d->lock);
    d->blocked_ns = ns;
    pthread_mutex_unlock(&d->lock);
}

bool fake_is_blocked(const struct dev *d)
{
    return atomic_load(&d->blocked) != 0;
}

void fake_look_ahead(struct dev *d)
{
    d->ahead_ns = CUDA_AHEAD_NS;
}

bool fake_is_quiet(struct dev *d, uint32_t contexts)
{
    return cuda_is_quiet(d, contexts);
}

void fake_wait_until_busy(struct dev *d, uint32_t contexts)
{
    while (cuda_is_quiet(d, contexts))
        sched_yield();
}

unsigned fake_waiting(struct dev *d)
{
    unsigned n = 0;
    pthread_mutex_lock(&d->lock);
    for (const struct gm_list *l = d->waiting.next; l != &d->waiting; l = l->next)
        n++;
    pthread_mutex_unlock(&d->lock);
    return n;
}

bool fake_is_closed(struct dev *d, uint32_t contexts)
{
    return atomic_load(&d->closed) & contexts;
}

bool fake_admit_try(struct dev *d, struct dev_client *c, uint32_t contexts)
{
    return cuda_admit_try(d, c, contexts);
}

bool fake_admit_wait(struct dev *d, struct dev_client *c, uint32_t contexts, uint64_t deadline)
{
    return cuda_admit_wait(d, c, contexts, 0, deadline);
}

bool fake_admit_since(struct dev *d, uint64_t begun, uint64_t deadline)
{
    return cuda_admit_wait(d, NULL, FAKE_FIRST, begun, deadline);
}

void fake_admit_end(struct dev *d, uint32_t contexts)
{
    cuda_admit_end(d, contexts);
}

bool fake_settle(struct dev_client *c)
{
    struct cuda_gpu *g = cuda_settle(c, cuda_home(c, 0), false);
    if (g)
        cuda_settled(c, g);
    return g != NULL;
}

bool fake_may_hand_over(struct dev_client *c)
{
    const bool may = cuda_hands_try(c);
    cuda_hands_off(c);
    return may;
}

void fake_call_waits(struct dev *d, bool waits)
{
    if (waits)
        cuda_call_begin(d, FAKE_FIRST, CUDA_GROWS);
    else
        (void)cuda_call_end(d, FAKE_FIRST, CUDA_SUCCESS);
}

void fake_drains(struct dev_queue *q, bool drains)
{
    cuda_drains(q, drains);
}

bool fake_freeze(struct dev *d, const struct dev_client *gone, uint64_t patience)
{
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        atomic_store(&c->gone, c == gone);
    return cuda_freeze(d, patience, false);
}

void fake_dies(struct dev *d, bool dies)
{
    atomic_store(&d->dead, dies);
}

void fake_order(struct dev *d)
{
    atomic_fetch_add(&d->orders, 1);
}

bool fake_is_crowded(struct dev *d)
{
    return atomic_load(&d->gpus[0].fair) != 0;
}

void fake_credit(struct dev *d, uint64_t credit, uint64_t slice)
{
    d->credit_ns = credit;
    d->slice_ns = slice;
}

void fake_unseen(struct dev *d, void (*f)(void *arg), void *arg)
{
    pthread_mutex_lock(&d->lock);
    f(arg);
    pthread_mutex_unlock(&d->lock);
}

static void nothing(void *arg)
{
}

void fake_hear_complaints(void)
{
    cr_assert_eq(cuda_complaint_open(), 0);
}

void fake_deliver_complaints(struct dev *d)
{
    cuda_complaint_deliver(d);
}

void fake_hear_output(struct dev *d)
{
    cr_assert_eq(cuda_output_open(d), 0);
}

/* It works with the lock held. */
void fake_wait_for_output(struct dev *d)
{
    fake_unseen(d, nothing, NULL);
}

/* --- libraries -------------------------------------------------------------------------------- */

struct cuda_gpu *fake_gpu(struct dev *d, unsigned device)
{
    return &d->gpus[device];
}

void fake_keep(struct dev *d, uint64_t bytes)
{
    d->libraries.kept_max = bytes;
}

uint64_t fake_kept(struct dev *d)
{
    pthread_mutex_lock(&d->libraries.lock);
    const uint64_t bytes = d->libraries.kept_bytes;
    pthread_mutex_unlock(&d->libraries.lock);
    return bytes;
}

void fake_launch_fails(struct dev_client *c)
{
    cuda_local_unsure(c, &c->dev->gpus[0]);
}

uint64_t fake_pace_of(const struct fake_progress *p, unsigned count)
{
    struct dev_queue q = { 0 };
    for (unsigned i = 0; i < count; i++)
        cuda_pace_note(&q, p[i].at, p[i].done);
    return q.pace;
}

/* --- modules ---------------------------------------------------------------------------------- */

struct fake_module {
    struct cuda_library library;
};

struct fake_module *fake_module(bool prints, bool asserts)
{
    struct fake_module *m = aligned_alloc(64, (sizeof(*m) + 63) / 64 * 64);
    m->library =
        (struct cuda_library) { .users = 1, .traits.prints = prints, .traits.asserts = asserts };
    return m;
}

void fake_modules_change(struct dev_client *c)
{
    pthread_mutex_lock(&c->modules_lock);
    atomic_fetch_add(&c->runs.modules, 1);
    pthread_mutex_unlock(&c->modules_lock);
}

/* As the main thread does it. */
void fake_module_unload(struct dev_client *c, struct fake_module *m)
{
    fake_modules_change(c);
    cuda_library_close(c->dev, &m->library);
}

unsigned fake_module_users(const struct fake_module *m)
{
    return m->library.users;
}

void fake_bind(struct dev_client *c, bool values)
{
    struct dev_module *m = calloc(1, sizeof(*m));
    m->library = &fake_module(false, false)->library;
    m->library->traits.loses_values = values;
    m->altered = !values;
    m->client = c;
    m->gpu = &c->dev->gpus[0];
    gm_list_init(&m->link);
    gm_list_append(&c->modules, &m->link);
}

void cuda_module_unload(struct dev_module *m)
{
    gm_list_remove(&m->link);
    free(m->library);
    free(m);
}

void fake_launch_as(struct dev_queue *q, uint64_t seq, const struct fake_kernel *k)
{
    static struct fake_module quiet = { .library = { .users = 1 } };
    static struct fake_module printing = { .library = { .users = 1, .traits.prints = true } };
    struct fake_module *common = k->prints ? &printing : &quiet;
    struct cuda_library *library = k->module ? &k->module->library : &common->library;
    struct {
        CUlaunchAttribute attribute;
        uint32_t number;
    } params = { .attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .number = k->number };
    struct cuda_function function = { .handle = (CUkernel)(void *)library,
                                      .loaded = k->unknown ? NULL : (CUfunction)(void *)library,
                                      .param_bytes = sizeof(params.number),
                                      .in_clusters = k->in_clusters,
                                      .blocks_max = k->first ? 0 : INT64_MAX };
    struct dev_module module = {
        .client = q->client, .library = library, .functions = &function, .functions_count = 1
    };
    uint32_t before = k->attribute ? DEV_LAUNCH_ATTRIBUTE : 0;
    const struct dev_launch l = { .module = &module,
                                  .grid = { GM_MAX(k->blocks, 1u), 1, 1 },
                                  .block = { 1, 1, 1 },
                                  .attributes = k->attribute,
                                  .params = (uint8_t *)&params.number - before,
                                  .params_size = before + (uint32_t)sizeof(params.number),
                                  .more = k->more };
    cr_assert_eq(cuda_launch(q, seq, &l), 0);
}

void fake_print(struct dev_queue *q, uint64_t seq, uint32_t number)
{
    fake_launch_as(q, seq, &(struct fake_kernel) { .number = number, .prints = true });
}

void fake_launch_one_of_many(struct dev_queue *q, uint64_t seq, uint32_t number)
{
    fake_launch_as(q, seq, &(struct fake_kernel) { .number = number, .more = true });
}

void fake_launch(struct dev_queue *q, uint64_t seq, uint32_t number)
{
    fake_launch_as(q, seq, &(struct fake_kernel) { .number = number });
}

/* --- questions that no test asks, unless it answers them itself ---------------------------------
 */

#define OF_A_MODULE(name)                                                                          \
    __attribute__((weak)) int name(struct dev_module *m, struct wire_dec *args,                    \
                                   struct wire_enc *reply)                                         \
    {                                                                                              \
        return GM_CUDA_NOT_SUPPORTED;                                                              \
    }
#define OF_A_CLIENT(name)                                                                          \
    __attribute__((weak)) int name(struct dev_client *c, struct wire_dec *args,                    \
                                   struct wire_enc *reply)                                         \
    {                                                                                              \
        return GM_CUDA_NOT_SUPPORTED;                                                              \
    }

OF_A_MODULE(cuda_function_find)
OF_A_MODULE(cuda_function_names)
OF_A_MODULE(cuda_variable_find)
OF_A_MODULE(cuda_attribute_get)
OF_A_MODULE(cuda_attribute_set)
OF_A_MODULE(cuda_clusters)
OF_A_MODULE(cuda_blocks)
OF_A_CLIENT(cuda_link_begin)
OF_A_CLIENT(cuda_link_input)
OF_A_CLIENT(cuda_link_data)
OF_A_CLIENT(cuda_link_complete)
OF_A_CLIENT(cuda_link_read)
OF_A_CLIENT(cuda_link_end)
OF_A_CLIENT(cuda_tensor_map)
