/*
 * Records of a command ring: checked here for what only the executor knows (streams, sequence
 * numbers, modules), then handed to the device, which checks addresses. A record that breaks a rule
 * fails its client.
 *
 * `accepted` is stored before the device sees the operation and the ring moves on after: if the
 * executor dies in between, accepted != completed tells the server that something was in flight.
 */
#include "executor/executor.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/result.h"
#include "device/value.h"
#include "executor/inner.h"
#include "transport/names.h"

struct take {
    struct exe_client *client;
    struct exe_stream *stream;
    uint64_t seq;
    bool more; /* records wait behind it */
    const char *why;
};

static struct exe_stream *find_stream(struct exe_client *c, uint32_t number)
{
    struct exe_stream **chunk = &c->chunks[number / EXE_STREAMS_PER_CHUNK];
    if (!*chunk) {
        *chunk = calloc(EXE_STREAMS_PER_CHUNK, sizeof(**chunk));
        if (!*chunk)
            return NULL;
        /* A new session's words are zero; in a second executor counting goes on where the first
         * executor stopped. */
        uint32_t first = number - number % EXE_STREAMS_PER_CHUNK;
        for (uint32_t i = 0; i < EXE_STREAMS_PER_CHUNK && first + i < c->session.streams_count;
             i++) {
            (*chunk)[i].device = DEV_DEVICES;
            (*chunk)[i].last = c->resumed
                                   ? atomic_load_explicit(&c->session.streams[first + i].accepted,
                                                          memory_order_relaxed)
                                   : 0;
        }
    }
    return &(*chunk)[number % EXE_STREAMS_PER_CHUNK];
}

static int ensure_queue(struct exe_client *c, struct exe_stream *s, uint32_t number)
{
    const struct tp_stream_slot *slot = &c->session.streams[number];
    if (s->retired) { /* the number is used again before its queue was destroyed: keep the queue */
        s->retired = false;
        c->retired--;
        if (s->queue && c->engine->ops->queue_reuse)
            c->engine->ops->queue_reuse(s->queue);
    }
    if (s->queue)
        return 0;
    int priority = atomic_load_explicit(&slot->priority, memory_order_relaxed);
    if (s->device == DEV_DEVICES) {
        uint32_t device = atomic_load_explicit(&slot->device, memory_order_relaxed);
        if (!exe_client_uses(c, device))
            return GM_CUDA_INVALID_DEVICE;
        s->device = device;
    }
    return c->engine->ops->queue_create(c->dev, s->device, number, s->last, priority, &s->queue);
}

/* Around a question that the device may take long to answer. modules_lock is held before and after,
 * but not meanwhile.
 */
static void begin_asking(struct exe_client *c)
{
    atomic_store_explicit(&c->asking, true, memory_order_release);
    pthread_mutex_unlock(&c->modules_lock);
}

static void end_asking(struct exe_client *c)
{
    pthread_mutex_lock(&c->modules_lock);
    atomic_store_explicit(&c->asking, false, memory_order_release);
    if (c->awaited)
        exe_engine_wake(c->engine);
}

/* Looks up again what the client has found in an earlier executor, in the same order. If something
 * is not found, the client gets an error when it uses that. */
static void find_names(struct exe_client *c, struct exe_module *m)
{
    const struct dev_ops *ops = c->engine->ops;
    struct tp_name *name = malloc(sizeof(*name));
    if (!name)
        return;
    const size_t size = 2 * sizeof(struct tp_name) + TP_REPLY_BYTES;
    uint8_t *scratch = malloc(size);
    uint32_t at = 0;
    while (scratch && tp_names_next(&c->session, &at, name)) {
        struct wire_enc args, reply;
        struct wire_dec decoded;
        if (name->module != m->id)
            continue;
        wire_enc_init(&args, scratch, 2 * sizeof(*name));
        wire_put_call_function_find(
            &args, &(struct wire_call_function_find) { .index = name->index, .name = name->text });
        wire_dec_init(&decoded, scratch, args.size);
        wire_enc_init(&reply, scratch + 2 * sizeof(*name), TP_REPLY_BYTES);
        const struct dev_call call = { .function = WIRE_CALL_FUNCTION_FIND,
                                       .device = m->device,
                                       .module = m->dev,
                                       .args = &decoded,
                                       .reply = &reply };
        (void)ops->call(c->dev, &call);
    }
    m->recalled = scratch != NULL;
    free(scratch);
    free(name);
}

/* With modules_lock held. */
static void recall(struct exe_client *c, struct exe_module *m)
{
    if (m->recalled || !c->resumed || !c->engine->ops->call)
        return;
    begin_asking(c);
    find_names(c, m);
    end_asking(c);
}

static int take_launch(void *arg, const struct wire_rec_launch *r)
{
    struct take *t = arg;
    struct exe_client *c = t->client;
    uint32_t size = r->head.size - (uint32_t)sizeof(*r);
    if (r->attributes &&
        (!c->engine->info->launch_attributes || r->attributes > DEV_LAUNCH_ATTRIBUTES_MAX ||
         size < r->attributes * DEV_LAUNCH_ATTRIBUTE)) {
        t->why = "launch with attributes that the device does not know, or not as many as it says";
        return GM_CUDA_INVALID_VALUE;
    }
    pthread_mutex_lock(&c->modules_lock);
    struct exe_module *m = exe_client_module(c, r->module);
    int result = GM_CUDA_INVALID_HANDLE;
    if (m && m->device == t->stream->device) {
        if (GM_UNLIKELY(c->resumed && !m->recalled))
            recall(c, m);
        const struct dev_launch l = {
            .module = m->dev,
            .function = r->function,
            .grid = { r->grid_x, r->grid_y, r->grid_z },
            .block = { r->block_x, r->block_y, r->block_z },
            .shared_bytes = r->shared_bytes,
            .attributes = r->attributes,
            .params = r->params,
            .params_size = size,
            .more = t->more,
        };
        result = c->engine->ops->launch(t->stream->queue, t->seq, &l);
    } else {
        t->why = "launch of a module that is not loaded there";
    }
    pthread_mutex_unlock(&c->modules_lock);
    return result;
}

static int take_copy(void *arg, const struct wire_rec_copy *r)
{
    struct take *t = arg;
    return t->client->engine->ops->copy(t->stream->queue, t->seq, r);
}

static int take_copy_array(void *arg, const struct wire_rec_copy_array *r)
{
    struct take *t = arg;
    const struct dev_ops *ops = t->client->engine->ops;
    if (!ops->copy_array) {
        t->why = "copy of an array, which the device does not have";
        return GM_CUDA_NOT_SUPPORTED;
    }
    return ops->copy_array(t->stream->queue, t->seq, r);
}

static int take_write(void *arg, const struct wire_rec_write *r)
{
    struct take *t = arg;
    return t->client->engine->ops->write(t->stream->queue, t->seq, r->dst, r->data,
                                         r->head.size - (uint32_t)sizeof(*r));
}

static int take_fill(void *arg, const struct wire_rec_fill *r)
{
    struct take *t = arg;
    return t->client->engine->ops->fill(t->stream->queue, t->seq, r);
}

static int take_wait(void *arg, const struct wire_rec_wait *r)
{
    struct take *t = arg;
    struct exe_client *c = t->client;
    const struct dev_ops *ops = c->engine->ops;
    struct exe_stream *other =
        r->other < c->session.streams_count ? find_stream(c, r->other) : NULL;

    /* A wait for something not yet taken could never end: what it waits for stands behind it in the
     * ring. */
    if (!other || r->other_seq > other->last ||
        (other == t->stream && r->other_seq >= r->head.seq)) {
        t->why = "wait for a record that does not exist";
        return GM_CUDA_INVALID_VALUE;
    }
    if (!other->queue || other == t->stream) /* it is done, or comes first in any case */
        return ops->mark(t->stream->queue, t->seq);
    return ops->wait(t->stream->queue, t->seq, other->queue, r->other_seq);
}

static int take_stamp(void *arg, const struct wire_rec_stamp *r)
{
    struct take *t = arg;
    if (r->event >= t->client->session.events_count) {
        t->why = "stamp of an event that does not exist";
        return GM_CUDA_INVALID_VALUE;
    }
    return t->client->engine->ops->stamp(t->stream->queue, t->seq, r->event);
}

static void note_gate(struct take *t)
{
    t->client->gates += t->stream->gate == 0;
    t->stream->gate = t->seq;
}

static int take_gate(void *arg, const struct wire_rec_gate *r GM_UNUSED)
{
    struct take *t = arg;
    int result = t->client->engine->ops->gate(t->stream->queue, t->seq);
    if (result == 0)
        note_gate(t);
    return result;
}

static int take_wait_value(void *arg, const struct wire_rec_wait_value *r)
{
    struct take *t = arg;
    if (!dev_value_is_sound(r)) {
        t->why = "wait for a value of no kind that there is";
        return GM_CUDA_INVALID_VALUE;
    }
    int result = t->client->engine->ops->wait_value(t->stream->queue, t->seq, r);
    if (result == 0) {
        note_gate(t);
        t->client->values += t->stream->value == 0;
        t->client->look_since = gm_now_ns();
        t->stream->value = t->seq;
    }
    return result;
}

static int take_mark(void *arg, const struct wire_rec_mark *r)
{
    struct take *t = arg;
    return t->client->engine->ops->mark(t->stream->queue, t->seq);
}

/* Completes like a mark. The queue is destroyed later, when the device has nothing of this client
 * and says that the queue is done: the client could forge the shared word that says so.
 */
static int take_retire(void *arg, const struct wire_rec_retire *r)
{
    struct take *t = arg;
    int result = t->client->engine->ops->mark(t->stream->queue, t->seq);
    if (result == 0) {
        t->stream->retired = true;
        t->client->retired++;
    }
    return result;
}

/* Asks the device, about the module `id` (0: about none), which is not unloaded meanwhile. */
static int ask_device(struct exe_client *c, uint32_t id, struct dev_call *call)
{
    int result = GM_CUDA_INVALID_HANDLE;
    pthread_mutex_lock(&c->modules_lock);
    struct exe_module *m = id ? exe_client_module(c, id) : NULL;
    if (m) {
        recall(c, m);
        call->device = m->device;
        call->module = m->dev;
    }
    if (m || !id) {
        begin_asking(c);
        result = c->engine->ops->call(c->dev, call);
        end_asking(c);
    }
    pthread_mutex_unlock(&c->modules_lock);
    return result;
}

static int answer_call(struct exe_client *c, const struct wire_rec_call *r, struct wire_enc *reply)
{
    const struct dev_ops *ops = c->engine->ops;
    struct wire_dec args;
    struct dev_call call = {
        .function = r->function, .device = r->device, .args = &args, .reply = reply
    };
    if (!ops->call)
        return GM_CUDA_NOT_SUPPORTED;
    if (!exe_client_uses(c, r->device))
        return GM_CUDA_INVALID_DEVICE;
    wire_dec_init(&args, r->args, r->head.size - sizeof(*r));
    int result = ask_device(c, r->module, &call);
    if (args.fatal || (result == 0 && reply->fatal))
        result = GM_CUDA_INVALID_VALUE;
    return result;
}

/* The answer is made in private memory and copied when it is complete. */
static int take_call(void *arg, const struct wire_rec_call *r)
{
    struct take *t = arg;
    struct exe_client *c = t->client;
    struct tp_reply *shared = c->session.reply;
    struct wire_enc reply;
    if (r->number != c->calls + 1) {
        t->why = "call out of sequence";
        return GM_CUDA_INVALID_VALUE;
    }
    if (!c->reply && !(c->reply = malloc(sizeof(shared->bytes))))
        return GM_CUDA_OUT_OF_MEMORY;
    wire_enc_init(&reply, c->reply, sizeof(shared->bytes));
    shared->result = answer_call(c, r, &reply);
    const uint32_t size = reply.fatal ? 0 : (uint32_t)reply.size;
    shared->size = size;
    memcpy(shared->bytes, c->reply, size);
    c->calls = r->number;
    tp_word_publish(&c->session.control->replied, c->calls);
    return c->engine->ops->mark(t->stream->queue, t->seq);
}

/* --- runs ------------------------------------------------------------------------------------- */

static const struct wire_record_ops record_ops;

static int take_each(struct take *t, const struct wire_rec_run *r)
{
    const uint32_t size = exe_inner_size(&r->head, sizeof(*r));
    int result = 0;
    t->seq = r->head.seq;
    for (uint32_t at = 0; at < size && result == 0; t->seq++) {
        const struct wire_record *op = exe_inner_next(r->records, &at);
        t->more = at < size;
        result = wire_record_dispatch(&record_ops, t, op);
    }
    return result;
}

static int take_run(void *arg, const struct wire_rec_run *r)
{
    struct take *t = arg;
    const struct dev_ops *ops = t->client->engine->ops;
    const struct dev_run run = { .seq = r->head.seq,
                                 .count = r->count,
                                 .size = exe_inner_size(&r->head, sizeof(*r)),
                                 .records = r->records };
    enum dev_run_verdict verdict = DEV_RUN_PLAIN;
    if (!exe_run_is_sound(r)) {
        t->why = "run of operations that are none";
        return GM_CUDA_INVALID_VALUE;
    }
    if (ops->run_begin)
        verdict = ops->run_begin(t->stream->queue, &run);
    if (verdict == DEV_RUN_DONE)
        return 0;
    int result = take_each(t, r);
    if (verdict == DEV_RUN_PLAIN)
        return result;
    bool submitted = ops->run_end(t->stream->queue, &run);
    return result || submitted ? result : take_each(t, r);
}

/* --- graphs ----------------------------------------------------------------------------------- */

/* The ring has one where only an operation may be. */
static int take_condition(void *arg, const struct wire_rec_condition *r GM_UNUSED)
{
    ((struct take *)arg)->why = "condition outside of a graph";
    return GM_CUDA_INVALID_VALUE;
}

static int take_body(void *arg, const struct wire_rec_body *r GM_UNUSED)
{
    ((struct take *)arg)->why = "body outside of a condition";
    return GM_CUDA_INVALID_VALUE;
}

static int take_within(struct take *t, const void *records, uint32_t size);

static int take_bodies(struct take *t, const struct wire_rec_condition *r)
{
    const struct dev_ops *ops = t->client->engine->ops;
    int result = ops->graph_condition(t->stream->queue, r);
    for (uint32_t i = 0, at = 0; i < r->bodies && result == 0; i++) {
        const struct wire_record *body = exe_inner_next(r->records, &at);
        result = ops->graph_body(t->stream->queue, i);
        if (result == 0)
            result = take_within(t, ((const struct wire_rec_body *)(const void *)body)->records,
                                 exe_inner_size(body, sizeof(struct wire_rec_body)));
    }
    return result ? result : ops->graph_body(t->stream->queue, r->bodies);
}

/* Takes what a graph or a body has. */
static int take_within(struct take *t, const void *records, uint32_t size)
{
    int result = 0;
    for (uint32_t at = 0; at < size && result == 0;) {
        const struct wire_record *r = exe_inner_next(records, &at);
        const void *condition = r;
        result = r->op == WIRE_OP_CONDITION ? take_bodies(t, condition)
                                            : wire_record_dispatch(&record_ops, t, r);
    }
    return result;
}

static int take_graph(void *arg, const struct wire_rec_graph *r)
{
    struct take *t = arg;
    const struct dev_ops *ops = t->client->engine->ops;
    const uint32_t size = exe_inner_size(&r->head, sizeof(*r));
    const uint32_t first = r->handles * (uint32_t)sizeof(struct wire_graph_handle);
    const struct dev_graph graph = {
        .seq = r->head.seq, .handles = r->handles, .size = size, .records = r->records
    };
    bool known = false;
    if (!exe_graph_is_sound(r)) {
        t->why = "graph of operations and conditions that are none";
        return GM_CUDA_INVALID_VALUE;
    }
    if (!ops->graph_begin) {
        t->why = "graph, which the device does not run as a whole";
        return GM_CUDA_NOT_SUPPORTED;
    }
    int result = ops->graph_begin(t->stream->queue, &graph, &known);
    if (result || known)
        return result;
    result = take_within(t, r->records + first, size - first);
    return result ? result : ops->graph_end(t->stream->queue);
}

static const struct wire_record_ops record_ops = {
    .launch = take_launch,
    .copy = take_copy,
    .copy_array = take_copy_array,
    .write = take_write,
    .fill = take_fill,
    .wait = take_wait,
    .stamp = take_stamp,
    .gate = take_gate,
    .wait_value = take_wait_value,
    .mark = take_mark,
    .retire = take_retire,
    .call = take_call,
    .run = take_run,
    .graph = take_graph,
    .condition = take_condition,
    .body = take_body,
};

int exe_record_take(struct exe_client *c, const struct wire_record *r, bool more, const char **why)
{
    struct take t = { .client = c, .seq = r->seq, .more = more };
    uint32_t count =
        r->op == WIRE_OP_RUN ? ((const struct wire_rec_run *)(const void *)r)->count : 1;
    uint64_t last = r->seq + count - 1;

    *why = "record with an unknown flag or stream";
    if (r->flags != 0 || r->reserved != 0 || r->stream >= c->session.streams_count)
        return GM_CUDA_INVALID_VALUE;
    *why = "no memory for a stream";
    t.stream = find_stream(c, r->stream);
    if (!t.stream)
        return GM_CUDA_OUT_OF_MEMORY;
    /* An earlier executor has accepted and finished this record, but has not taken it off the ring.
     */
    bool seen = c->resumed && !c->any_taken && last == t.stream->last && r->seq != 0;
    c->any_taken = true;
    if (seen)
        return 0;
    *why = "record out of sequence";
    if (r->seq != t.stream->last + 1 || count == 0)
        return GM_CUDA_INVALID_VALUE;
    *why = "the device refused to make a stream";
    int result = ensure_queue(c, t.stream, r->stream);
    if (result != 0)
        return result;

    t.stream->last = last;
    atomic_store_explicit(&c->session.streams[r->stream].accepted, last, memory_order_release);
    t.why = "the device refused a record";
    result = wire_record_dispatch(&record_ops, &t, r);
    *why = t.why;
    return result;
}

/* The first stream that was used, from *number on; sets *number to its number. NULL: there is none.
 */
static struct exe_stream *next_stream(struct exe_client *c, uint32_t *number)
{
    for (; *number < c->session.streams_count;
         *number = (*number / EXE_STREAMS_PER_CHUNK + 1) * EXE_STREAMS_PER_CHUNK)
        if (c->chunks[*number / EXE_STREAMS_PER_CHUNK])
            return &c->chunks[*number / EXE_STREAMS_PER_CHUNK][*number % EXE_STREAMS_PER_CHUNK];
    return NULL;
}

/* The stream's gates up to `open` are open. */
static void pass_gates(struct exe_client *c, struct exe_stream *s, uint64_t open)
{
    if (s->value && open >= s->value) {
        s->value = 0;
        c->values--;
    }
    if (s->gate && open >= s->gate) {
        s->gate = 0;
        c->gates--;
    }
}

void exe_record_open_gates(struct exe_client *c)
{
    struct exe_stream *s;
    for (uint32_t i = 0; c->gates && (s = next_stream(c, &i)) != NULL; i++) {
        if (!s->gate)
            continue;
        const struct tp_stream_slot *slot = &c->session.streams[i];
        const uint64_t open =
            atomic_load_explicit(&slot->gate, memory_order_acquire); /* before the device looks */
        c->engine->ops->gate_moved(s->queue);
        if (s->value && atomic_load_explicit(&slot->gate, memory_order_relaxed) != open)
            c->look_since = gm_now_ns(); /* it may soon wait for the next value */
        pass_gates(c, s, open);
    }
}

void exe_record_reap(struct exe_client *c)
{
    const struct dev_ops *ops = c->engine->ops;
    struct exe_stream *s;
    for (uint32_t i = 0; c->retired && (s = next_stream(c, &i)) != NULL; i++) {
        if (!s->retired || (ops->queue_is_done && !ops->queue_is_done(s->queue)))
            continue;
        ops->queue_destroy(s->queue);
        s->queue = NULL;
        s->retired = false;
        pass_gates(c, s, UINT64_MAX);
        c->retired--;
    }
}
