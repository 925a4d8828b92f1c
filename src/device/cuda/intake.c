/*
 * Operations as they come in. Each becomes a call or two of the driver on the queue's stream, and
 * none of these calls waits. state.h describes how completions come back.
 *
 * The driver never gets a stream that stands at a gate, because its own calls might stand still
 * with it. What comes behind a gate is held back here until the gate opens, and so is a wait for
 * something that is held back. All of this is on the client's thread and needs no lock.
 *
 * The driver may have a bounded number of calls of a client (inflight.h), and a bounded time's work
 * of each queue (lookahead.h). Operations beyond that are held back here, too.
 *
 * Where a program records an event (a mark or a stamp), the completion is written at once, whatever
 * comes behind it. The driver records an event of its own there, for other streams to wait for
 * (point.h).
 */
#include "base/clock.h"
#include "device/cuda/admit.h"
#include "device/cuda/capacity.h"
#include "device/cuda/chain.h"
#include "device/cuda/complaint.h"
#include "device/cuda/fallback.h"
#include "device/cuda/graph.h"
#include "device/cuda/inflight.h"
#include "device/cuda/intake.h"
#include "device/cuda/kernel.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/mark.h"
#include "device/cuda/module.h"
#include "device/cuda/op.h"
#include "device/cuda/output.h"
#include "device/cuda/point.h"
#include "device/cuda/precedence.h"
#include "device/cuda/queue.h"
#include "device/cuda/stream.h"
#include "device/cuda/wait_value.h"

/* --- room ------------------------------------------------------------------------------------- */

#define CALLS_AGAIN (CUDA_CALLS / 4 * 3) /* a client that was at the limit goes on below this */
#define ASK_NS      GM_NS_PER_MS /* how often the driver is asked about a client at its limit */

static void ask_driver(struct dev_client *c)
{
    uint64_t now = gm_now_ns();
    if (now - c->driver_asked < ASK_NS)
        return;
    c->driver_asked = now;
    gm_list_for_each_safe (q, &c->owing, struct dev_queue, owing) {
        cuda_chain_hand_over(q);
        if (!gm_list_empty(&q->dirty))
            cuda_queue_mark(q); /* with a proof; it has been counted */
        else
            cuda_calls_ask(q);
    }
}

/* The client has as many calls as it may have, as far as is known. True: some of them are done
 * after all. False: the watch wakes the client's thread with each completion. */
static bool make_room(struct dev_client *c)
{
    /* Set before looking: the watch wakes the thread for what is done afterwards. */
    atomic_store_explicit(&c->full, true, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    gm_list_for_each_safe (q, &c->owing, struct dev_queue, owing)
        cuda_calls_look(q);
    if (c->calls >= CALLS_AGAIN)
        ask_driver(c);
    if (c->calls >= CALLS_AGAIN)
        return false;
    atomic_store_explicit(&c->full, false, memory_order_relaxed);
    return true;
}

/* The driver may have one more operation of the client. */
static inline bool has_room(struct dev_client *c)
{
    return GM_LIKELY(c->calls < CUDA_CALLS &&
                     !atomic_load_explicit(&c->full, memory_order_relaxed)) ||
           make_room(c);
}

/* --- one operation ---------------------------------------------------------------------------- */

/* The driver has never had anything of this queue: there is nothing to wait for, and the mark needs
 * no stream. */
static void complete_at_once(struct dev_queue *q, uint64_t seq)
{
    struct dev *d = q->client->dev;
    pthread_mutex_lock(&d->lock);
    atomic_fetch_add_explicit(&q->client->completed, seq - q->seen, memory_order_relaxed);
    q->last = q->marked = q->seen = q->prints.shown = seq;
    pthread_mutex_unlock(&d->lock);
    tp_word_publish(&q->slot->completed, seq);
}

/* What it launches may print. */
static bool prints(const struct cuda_op *op)
{
    return (op->kind == CUDA_OP_LAUNCH && GM_UNLIKELY(op->u.launch.prints)) ||
           (op->kind == CUDA_OP_GRAPH && op->u.graph->prints);
}

static void submit(struct dev_queue *q, const struct cuda_op *op)
{
    if (GM_UNLIKELY(!q->stream) && op->kind == CUDA_OP_MARK) {
        complete_at_once(q, op->seq);
        return;
    }
    cuda_enter(q->gpu); /* a queue that this one waits for may be on another GPU */
    if (GM_UNLIKELY(q->place != cuda_place_now(q))) {
        cuda_chain_hand_over(q);
        cuda_stream_place(q);
    }
    if (GM_UNLIKELY(!q->stream)) { /* the client has an error */
        q->last = op->seq;
        return;
    }
    struct cuda_op found;
    if (op->kind == CUDA_OP_LAUNCH && !cuda_is_loaded_there(q, op->u.launch.loaded)) {
        found = *op;
        if (!cuda_op_find_kernel(q, &found.u.launch)) {
            q->last = op->seq;
            return;
        }
        op = &found;
    }
    if (op->kind == CUDA_OP_GRAPH && !cuda_graph_make(q, op->u.graph)) {
        q->last = op->seq;
        return;
    }
    if (cuda_may_have(q, CUDA_CHAIN) && cuda_chain_take(q, op))
        return;
    cuda_chain_hand_over(q);
    if (prints(op))
        cuda_output_begin(q, op->seq);
    if (op->kind != CUDA_OP_GATE && op->kind != CUDA_OP_VALUE) {
        cuda_count(q, op->kind == CUDA_OP_GRAPH ? op->u.graph->nodes : 1);
        cuda_op_submit(q, op);
        cuda_queue_submitted(q, op->seq);
        if (op->kind == CUDA_OP_MARK || op->kind == CUDA_OP_STAMP)
            cuda_point_set(q);
        return;
    }
    cuda_queue_mark(
        q); /* the program is to see what is done before the gate while it stands there */
    q->gate = op->seq;
    if (op->kind == CUDA_OP_VALUE) {
        cuda_value_begin(q, &op->u.value);
        return;
    }
    cuda_count(q, 1);
    cuda_op_submit(q, op);
}

bool cuda_intake_is_open(struct dev_queue *q)
{
    if (q->gate || !gm_list_empty(&q->held))
        return false;
    cuda_chain_hand_over(q);
    if (GM_UNLIKELY(q->place != cuda_place_now(q)))
        cuda_stream_place(q);
    return q->stream != NULL;
}

static void accept(struct dev_queue *q, uint64_t seq)
{
    atomic_fetch_add_explicit(&q->client->submitted, seq - q->accepted, memory_order_relaxed);
    q->accepted = seq;
}

void cuda_intake_run(struct dev_queue *q, uint64_t seq, uint32_t count)
{
    accept(q, seq);
    q->plain = seq;
    cuda_count(q, count);
    cuda_queue_submitted(q, seq);
    if (!gm_list_empty(&q->dirty))
        cuda_queue_mark(q);
}

/* --- holding back ----------------------------------------------------------------------------- */

/* An operation of the run that is being learnt. */
static int take_to_learn(struct dev_queue *q, struct cuda_op *op, const void *bytes)
{
    op->bytes = bytes;
    cuda_enter(q->gpu);
    if (op->kind == CUDA_OP_LAUNCH &&
        (op->u.launch.prints ||
         !cuda_is_loaded_there(q, op->u.launch.loaded))) /* neither works in a graph */
        q->learning.failed = true;
    else
        cuda_op_submit(q, op);
    if (op->kind != CUDA_OP_LAUNCH)
        q->learning.names_memory = true;
    return GM_CUDA_SUCCESS;
}

/* The operation has to wait: its queue stands at a gate, what it waits for is not with the driver
 * yet, or it is not its client's turn to print. */
static bool stands(const struct dev_queue *q, const struct cuda_op *op)
{
    if (op->kind == CUDA_OP_WAIT)
        cuda_chain_hand_over(op->u.wait.other);
    if (q->gate || (op->kind == CUDA_OP_WAIT && op->u.wait.other->last < op->u.wait.seq))
        return true;
    return prints(op) && !cuda_output_take_turn(q->client);
}

static int take(struct dev_queue *q, struct cuda_op *op, const void *bytes, size_t size)
{
    cuda_hands_on(q->client); /* until the flush that follows */
    if (GM_UNLIKELY(q->learning.run != NULL))
        return take_to_learn(q, op, bytes);
    if (GM_UNLIKELY(q->recording.graph != NULL))
        return cuda_graph_add(q, op, bytes, size) ? GM_CUDA_SUCCESS : GM_CUDA_OUT_OF_MEMORY;
    if (gm_list_empty(&q->held) && has_room(q->client) && cuda_has_ahead(q) && !stands(q, op)) {
        op->bytes = bytes;
        accept(q, op->seq); /* first, for threads that ask meanwhile who is busy */
        submit(q, op);
    } else {
        if (!cuda_queue_hold(q, op, bytes, size))
            return GM_CUDA_OUT_OF_MEMORY;
        accept(q, op->seq);
    }
    return GM_CUDA_SUCCESS;
}

/* Submits what it can of a queue's held operations. True if there was any. */
static bool advance(struct dev_queue *q)
{
    bool any = false;
    while (!gm_list_empty(&q->held)) {
        struct cuda_op *op = gm_list_entry(q->held.next, struct cuda_op, link);
        if (q->client->calls >= CUDA_CALLS || !cuda_has_ahead(q) || stands(q, op))
            return any;
        gm_list_remove(&op->link);
        submit(q, op);
        cuda_queue_release(q, op);
        any = true;
    }
    gm_list_remove(&q->holding);
    return any;
}

static void advance_all(struct dev_client *c)
{
    /* One queue's progress may be what another waits for. Where there is no room, all wait. */
    for (bool any = true; (any || c->calls >= CUDA_CALLS) && has_room(c);) {
        any = false;
        gm_list_for_each_safe (q, &c->holding, struct dev_queue, holding)
            any |= advance(q);
    }
}

static bool is_opened(const struct dev_queue *q)
{
    return atomic_load_explicit(&q->slot->gate, memory_order_acquire) >= q->gate;
}

void cuda_gate_moved(struct dev_queue *q)
{
    bool looks = q->gate && q->value.width;
    if (!q->gate || (!looks && !is_opened(q)))
        return;
    cuda_hands_on(q->client);
    cuda_enter(q->gpu);
    if (looks)
        cuda_value_look(q);
    if (is_opened(q)) {
        cuda_queue_submitted(q, q->gate);
        q->gate = 0;
        q->value.width = 0;
        advance_all(q->client);
    }
    cuda_hands_off(q->client);
}

uint32_t cuda_backlog(struct dev_client *c)
{
    if (GM_UNLIKELY(atomic_load_explicit(&c->dev->frozen, memory_order_relaxed) != 0))
        return GM_MAX(cuda_unfinished(c), CUDA_DEPTH);
    if (GM_UNLIKELY(atomic_load_explicit(&c->away, memory_order_acquire)))
        cuda_fallback_return(c);
    if (GM_UNLIKELY(atomic_load_explicit(&c->dev->blocked, memory_order_relaxed)))
        cuda_fallback_flee(c);
    if (GM_UNLIKELY(atomic_load_explicit(&c->full, memory_order_relaxed))) {
        cuda_hands_on(c);
        advance_all(c); /* before more of the ring is read */
        cuda_hands_off(c);
    }
    return GM_LIKELY(has_room(c)) ? cuda_unfinished(c) : GM_MAX(cuda_unfinished(c), CUDA_DEPTH);
}

void cuda_flush(struct dev_client *c)
{
    cuda_hands_on(c);
    if (GM_UNLIKELY(!gm_list_empty(&c->holding))) /* for a turn to print, perhaps */
        advance_all(c);
    cuda_hand_over(c);
    if (GM_UNLIKELY(!gm_list_empty(&c->passing)))
        cuda_capacity_collect(c, false);
    if (GM_UNLIKELY(c->moving))
        gm_list_for_each (q, &c->queues, struct dev_queue, link)
            cuda_stream_settle(q);
    cuda_hands_off(c);
}

/* --- operations ------------------------------------------------------------------------------- */

/* Whether this launch may take far longer than those of the kernel before. */
static bool is_unknown(struct cuda_function *f, const struct dev_launch *l)
{
    const uint64_t blocks = dev_product(l->grid);
    if (GM_LIKELY(blocks <= 2 * f->blocks_max))
        return false;
    f->blocks_max = blocks;
    return true;
}

int cuda_launch(struct dev_queue *q, uint64_t seq, const struct dev_launch *l)
{
    struct cuda_function *f =
        l->function < l->module->functions_count ? &l->module->functions[l->function] : NULL;
    cuda_enter(q->gpu);
    if (!f || l->params_size != f->param_bytes + l->attributes * DEV_LAUNCH_ATTRIBUTE) {
        (void)cuda_outcome(q, CUDA_ERROR_INVALID_VALUE,
                           "launch of a function that does not exist, or not so");
        return cuda_mark(q, seq);
    }
    if (GM_UNLIKELY(!f->loaded) && !q->gpu->is_fallback)
        f->loaded = cuda_library_known(q->client, q->gpu, l->module->library, f->handle);
    if (cuda_is_loaded_there(q, f->loaded)) /* if not, submit() does this */
        cuda_function_dynamic(q->gpu, f, l->shared_bytes);
    if (GM_UNLIKELY(l->module->library->traits.asserts))
        cuda_complaint_asserts(q->client);
    if (GM_UNLIKELY(is_unknown(f, l)))
        cuda_ahead_unknown(q, seq);
    const bool precedes = cuda_has_precedence(q);
    q->plain = precedes ? q->plain : seq;
    cuda_precedence_need(q, f, l);
    struct cuda_op op = { .kind = CUDA_OP_LAUNCH,
                          .seq = seq,
                          .u.launch = { .library = l->module->library,
                                        .kernel = f->handle,
                                        .loaded = f->loaded,
                                        .grid = { l->grid[0], l->grid[1], l->grid[2] },
                                        .block = { l->block[0], l->block[1], l->block[2] },
                                        .shared_bytes = l->shared_bytes,
                                        .modules = atomic_load_explicit(&q->client->runs.modules,
                                                                        memory_order_relaxed),
                                        .in_clusters = f->in_clusters,
                                        .prints = l->module->library->traits.prints &&
                                                  cuda_output_watched(q),
                                        .more = l->more,
                                        .precedes = precedes,
                                        .attributes = l->attributes,
                                        .params_size = l->params_size } };
    return take(q, &op, l->params, l->params_size);
}

int cuda_copy(struct dev_queue *q, uint64_t seq, const struct wire_rec_copy *r)
{
    struct cuda_op op = { .kind = CUDA_OP_COPY, .seq = seq, .u.copy = *r };
    return take(q, &op, NULL, 0);
}

int cuda_copy_array(struct dev_queue *q, uint64_t seq, const struct wire_rec_copy_array *r)
{
    struct cuda_op op = { .kind = CUDA_OP_COPY_ARRAY, .seq = seq, .u.copy_array = *r };
    return take(q, &op, NULL, 0);
}

int cuda_write(struct dev_queue *q, uint64_t seq, uint64_t dst, const void *data, uint32_t size)
{
    struct cuda_op op = { .kind = CUDA_OP_WRITE,
                          .seq = seq,
                          .u.write = { .dst = dst, .size = size } };
    return take(q, &op, data, size);
}

int cuda_fill(struct dev_queue *q, uint64_t seq, const struct wire_rec_fill *r)
{
    struct cuda_op op = { .kind = CUDA_OP_FILL, .seq = seq, .u.fill = *r };
    return take(q, &op, NULL, 0);
}

int cuda_wait(struct dev_queue *q, uint64_t seq, struct dev_queue *other, uint64_t other_seq)
{
    struct cuda_op op = { .kind = CUDA_OP_WAIT,
                          .seq = seq,
                          .u.wait = { .other = other, .seq = other_seq } };
    return take(q, &op, NULL, 0);
}

int cuda_stamp(struct dev_queue *q, uint64_t seq, uint32_t event)
{
    struct cuda_op op = { .kind = CUDA_OP_STAMP, .seq = seq, .u.event = event };
    return take(q, &op, NULL, 0);
}

int cuda_gate(struct dev_queue *q, uint64_t seq)
{
    struct cuda_op op = { .kind = CUDA_OP_GATE, .seq = seq };
    return take(q, &op, NULL, 0);
}

int cuda_wait_value(struct dev_queue *q, uint64_t seq, const struct wire_rec_wait_value *r)
{
    struct cuda_op op = { .kind = CUDA_OP_VALUE, .seq = seq, .u.value = *r };
    return take(q, &op, NULL, 0);
}

int cuda_mark(struct dev_queue *q, uint64_t seq)
{
    struct cuda_op op = { .kind = CUDA_OP_MARK, .seq = seq };
    return take(q, &op, NULL, 0);
}

/* --- graphs ----------------------------------------------------------------------------------- */

static int take_graph(struct dev_queue *q, uint64_t seq, struct cuda_graph *g)
{
    struct cuda_op op = { .kind = CUDA_OP_GRAPH, .seq = seq, .u.graph = g };
    cuda_ahead_unknown(q, seq); /* it may be a loop */
    q->plain = seq;
    return take(q, &op, NULL, 0);
}

int cuda_graph_begin(struct dev_queue *q, const struct dev_graph *graph, bool *known)
{
    struct cuda_graph *g = cuda_graph_find(q->client, graph);
    cuda_enter(q->gpu);
    *known = g != NULL;
    return g ? take_graph(q, graph->seq, g) : (int)cuda_graph_record(q, graph);
}

int cuda_graph_end(struct dev_queue *q)
{
    struct cuda_graph *g = cuda_graph_recorded(q);
    return take_graph(q, g->seq, g);
}
