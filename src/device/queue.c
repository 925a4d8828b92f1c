/*
 * One rule drives everything: a queue is advanced while its head can be done. A thread that changes
 * what a head may wait for (submits, finishes, moves a gate, completes a queue that others wait
 * for) puts the queues concerned on `runnable` and runs that list before it lets go of the lock, so
 * there is no separate thread for it and no recursion.
 *
 * A fault is reported to the executor before anything completes because of it: a client that sees
 * the completion must also see the error. The lock is not held during the report; `reporting` keeps
 * completions back meanwhile.
 */
#include "device/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/guard.h"
#include "device/transfer.h"
#include "device/value.h"

#define WEIGHT_BYTES 1024u

int dev_work_init(struct dev_work *w, struct dev_client *client, const struct dev_work_ops *ops,
                  const struct dev_events *events, struct tp_session *session,
                  struct dev_window *window)
{
    memset(w, 0, sizeof(*w));
    int r = pthread_mutex_init(&w->lock, NULL);
    if (r != 0)
        return -r;
    w->client = client;
    w->ops = ops;
    w->events = events;
    w->session = session;
    w->window = window;
    w->arrivals = atomic_load_explicit(&session->control->arrivals.value, memory_order_relaxed);
    gm_list_init(&w->queues);
    gm_list_init(&w->runnable);
    return 0;
}

static void op_free(struct dev_work *w, struct dev_op *op)
{
    if (op->kind == DEV_OP_LAUNCH && w->ops->release)
        w->ops->release(w, op);
    else
        free(op);
}

static void make_runnable(struct dev_queue *q)
{
    if (gm_list_empty(&q->runnable))
        gm_list_append(&q->work->runnable, &q->runnable);
}

/* Completion words only grow, and only here. */
static void complete(struct dev_queue *q, uint64_t seq)
{
    struct dev_work *w = q->work;
    q->completed = seq;
    tp_word_publish(&q->slot->completed, seq);
    if (w->waiting == 0)
        return;
    gm_list_for_each (other, &w->queues, struct dev_queue, link)
        if (other->waiting)
            make_runnable(other);
}

/* Records the first fault; it is reported when the lock is given up. */
static void fail(struct dev_work *w, int result, uint64_t address, const char *text)
{
    if (w->failed || w->dead)
        return;
    w->failed = true;
    w->fault_result = result;
    w->fault_address = address;
    snprintf(w->fault_text, sizeof(w->fault_text), "%s", text);
}

static void arrive(struct dev_queue *q, uint64_t seq)
{
    struct dev_work *w = q->work;
    atomic_store_explicit(&q->slot->arrived, seq, memory_order_release);
    tp_word_publish(&w->session->control->arrivals, ++w->arrivals);
}

static void stamp_write(struct dev_work *w, uint32_t event, uint64_t seq)
{
    struct tp_event_slot *slot = &w->session->events[event];
    atomic_store_explicit(&slot->time_ns, gm_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&slot->seq, seq, memory_order_release);
}

static void move_inline(void *arg)
{
    const struct dev_op *op = arg;
    if (op->kind == DEV_OP_COPY)
        dev_box_move(&op->u.box, UINT64_MAX, 0);
    else if (op->kind == DEV_OP_FILL)
        dev_area_fill(&op->u.area, UINT64_MAX, 0);
    else
        memcpy((void *)(uintptr_t)op->u.write.dst, op + 1, op->u.write.size);
}

static void transfer_inline(struct dev_work *w, struct dev_op *op)
{
    static const char *const verbs[] = {
        [DEV_OP_COPY] = "copy", [DEV_OP_FILL] = "fill", [DEV_OP_WRITE] = "write"
    };
    struct dev_guard g = { 0 };
    if (op->kind == DEV_OP_COPY && dev_box_bytes(&op->u.box) == 0)
        return;
    if (op->kind == DEV_OP_FILL && dev_area_bytes(&op->u.area) == 0)
        return;
    if (dev_guard_call(&g, move_inline, op) != 0) {
        char text[128];
        snprintf(text, sizeof(text),
                 "%s in stream %u touches address 0x%llx, which is not allocated", verbs[op->kind],
                 op->queue->stream, (unsigned long long)g.address);
        fail(w, GM_CUDA_ILLEGAL_ADDRESS, g.address, text);
    } else if (w->ops->moved) {
        w->ops->moved(w, op);
    }
}

static void read_word(void *arg)
{
    const struct wire_rec_wait_value *v = &((const struct dev_op *)arg)->u.value;
    const void *at = (const void *)(uintptr_t)v->address;
    uint64_t now = v->width == 8
                       ? atomic_load_explicit((const _Atomic uint64_t *)at, memory_order_acquire)
                       : atomic_load_explicit((const _Atomic uint32_t *)at, memory_order_acquire);
    atomic_store_explicit(&((const struct dev_op *)arg)->queue->slot->looked, now,
                          memory_order_relaxed);
}

/* The gate word says so, too, because threads that count gates look there. */
static bool value_reached(struct dev_queue *q, struct dev_op *op)
{
    struct dev_guard g = { 0 };
    q->gated = true;
    if (dev_guard_call(&g, read_word, op) != 0) {
        fail(q->work, GM_CUDA_ILLEGAL_ADDRESS, g.address,
             "wait for a value at an address that is not allocated");
        return false;
    }
    if (!dev_value_reached(&op->u.value,
                           atomic_load_explicit(&q->slot->looked, memory_order_relaxed)))
        return false;
    atomic_store_explicit(&q->slot->gate, op->seq, memory_order_release);
    q->gated = false;
    return true;
}

static uint64_t op_bytes(const struct dev_op *op)
{
    switch (op->kind) {
    case DEV_OP_COPY:
        return dev_box_bytes(&op->u.box);
    case DEV_OP_FILL:
        return dev_area_bytes(&op->u.area);
    default:
        return 0;
    }
}

/* Does the op at the head of its queue, or what of it can be done. True: it is done. */
static bool step(struct dev_queue *q, struct dev_op *op)
{
    struct dev_work *w = q->work;

    if (w->failed && !w->dead)
        return false; /* until it has been reported */
    if (op->started)
        return op->finished;
    if (w->dead)
        return true;
    switch (op->kind) {
    case DEV_OP_WAIT: {
        const struct dev_queue *other = op->u.wait.other;
        bool satisfied = !other || other->completed >= op->u.wait.seq;
        w->waiting += (uint32_t)!satisfied - (uint32_t)q->waiting;
        q->waiting = !satisfied;
        return satisfied;
    }
    case DEV_OP_GATE: {
        /* The client opens gates up to a number, possibly before the stream has come here. */
        bool open = atomic_load_explicit(&q->slot->gate, memory_order_acquire) >= op->seq;
        if (!q->gated) {
            q->gated = true;
            arrive(q, op->seq);
        }
        q->gated = !open;
        return open;
    }
    case DEV_OP_VALUE:
        return value_reached(q, op);
    case DEV_OP_STAMP:
        stamp_write(w, op->u.event, op->seq);
        return true;
    case DEV_OP_MARK:
        return true;
    case DEV_OP_WRITE:
        transfer_inline(w, op);
        return !w->failed;
    case DEV_OP_COPY:
    case DEV_OP_FILL:
        if (!w->ops->start || op_bytes(op) <= w->ops->inline_bytes) {
            transfer_inline(w, op);
            return !w->failed;
        }
        break;
    case DEV_OP_LAUNCH:
        break;
    }
    if (!w->ops->start)
        return true;
    op->started = true;
    op->finished = w->ops->start(w, op);
    return op->finished;
}

static void advance(struct dev_queue *q)
{
    struct dev_work *w = q->work;
    while (!gm_list_empty(&q->ops)) {
        struct dev_op *op = gm_list_entry(q->ops.next, struct dev_op, link);
        uint64_t seq = op->seq;
        if (!step(q, op))
            return;
        /* Done because the client is dead: whatever it stood at is no more. */
        w->waiting -= (uint32_t)q->waiting;
        q->waiting = q->gated = false;
        gm_list_remove(&op->link);
        uint32_t weight = op->weight;
        op_free(w, op);
        atomic_fetch_sub_explicit(&w->backlog, weight, memory_order_relaxed);
        complete(q, seq);
    }
}

static void run(struct dev_work *w)
{
    while (!gm_list_empty(&w->runnable)) {
        struct dev_queue *q = gm_list_entry(w->runnable.next, struct dev_queue, runnable);
        gm_list_remove(&q->runnable);
        advance(q);
    }
}

static void drop_all(struct dev_work *w)
{
    w->dead = true;
    if (w->ops->abandon)
        w->ops->abandon(w);
    gm_list_for_each (q, &w->queues, struct dev_queue, link)
        make_runnable(q);
}

/* Every function that took the lock ends here. */
static void leave(struct dev_work *w)
{
    run(w);
    if (w->failed && !w->dead && !w->reporting) {
        w->reporting = true;
        pthread_mutex_unlock(&w->lock);
        w->events->client_fault(w->events->arg, w->client, w->fault_result, w->fault_address,
                                w->fault_text);
        pthread_mutex_lock(&w->lock);
        w->reporting = false;
        drop_all(w);
        run(w);
    }
    pthread_mutex_unlock(&w->lock);
}

void dev_work_fail(struct dev_work *w, int result, uint64_t address, const char *text)
{
    pthread_mutex_lock(&w->lock);
    fail(w, result, address, text);
    leave(w);
}

void dev_work_stop(struct dev_work *w)
{
    pthread_mutex_lock(&w->lock);
    if (!w->dead)
        drop_all(w);
    leave(w);
}

void dev_work_finish(struct dev_work *w, struct dev_op *op)
{
    pthread_mutex_lock(&w->lock);
    op->finished = true;
    /* Between a fault and its report nothing completes; drop_all() will come by. */
    if (!w->failed || w->dead)
        make_runnable(op->queue);
    leave(w);
}

/* --- queues ----------------------------------------------------------------------------------- */

int dev_queue_open(struct dev_work *w, uint32_t stream, uint64_t done, int priority,
                   struct dev_queue **out)
{
    if (stream >= w->session->streams_count)
        return GM_CUDA_INVALID_VALUE;
    struct dev_queue *q = calloc(1, sizeof(*q));
    if (!q)
        return GM_CUDA_OUT_OF_MEMORY;
    q->work = w;
    q->stream = stream;
    q->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
    q->slot = &w->session->streams[stream];
    q->completed = done;
    gm_list_init(&q->ops);
    gm_list_init(&q->runnable);
    pthread_mutex_lock(&w->lock);
    gm_list_append(&w->queues, &q->link);
    leave(w);
    *out = q;
    return GM_CUDA_SUCCESS;
}

/* Nobody waits for `gone` any more. */
static void forget_queue(struct dev_work *w, const struct dev_queue *gone)
{
    gm_list_for_each (q, &w->queues, struct dev_queue, link) {
        gm_list_for_each (op, &q->ops, struct dev_op, link)
            if (op->kind == DEV_OP_WAIT && op->u.wait.other == gone)
                op->u.wait.other = NULL;
        if (q->waiting)
            make_runnable(q);
    }
}

static void queue_free(struct dev_queue *q)
{
    struct dev_work *w = q->work;
    gm_list_for_each_safe (op, &q->ops, struct dev_op, link) {
        gm_list_remove(&op->link);
        atomic_fetch_sub_explicit(&w->backlog, op->weight, memory_order_relaxed);
        op_free(w, op);
    }
    w->waiting -= (uint32_t)q->waiting;
    gm_list_remove(&q->link);
    gm_list_remove(&q->runnable);
    free(q);
}

void dev_queue_close(struct dev_queue *q)
{
    if (!q)
        return;
    struct dev_work *w = q->work;
    pthread_mutex_lock(&w->lock);
    gm_list_remove(&q->link);
    forget_queue(w, q);
    /* What is on the device comes back with dev_work_finish() and must find its queue; the caller
     * promised that there is nothing, a client that lied keeps the queue until its end. */
    if (!gm_list_empty(&q->ops) && gm_list_entry(q->ops.next, struct dev_op, link)->started)
        gm_list_append(&w->queues, &q->link);
    else
        queue_free(q);
    leave(w);
}

void dev_work_destroy(struct dev_work *w)
{
    if (!w->session)
        return;
    gm_list_for_each_safe (q, &w->queues, struct dev_queue, link)
        queue_free(q);
    pthread_mutex_destroy(&w->lock);
    w->session = NULL;
}

/* --- submission
 * ------------------------------------------------------------------------------------------------
 */

/* A stream that stands still keeps what its launches and writes were given: the more that is, the
 * fewer of them. */
static void weigh(struct dev_op *op, size_t size)
{
    op->weight = 1 + (uint32_t)(size / WEIGHT_BYTES);
    atomic_fetch_add_explicit(&op->queue->work->backlog, op->weight, memory_order_relaxed);
}

/* With the lock held: an op on the caller's stack is done at once where nothing is before it, else
 * a copy of it with `tail` behind it is queued. A stack op that has to be started must be queued
 * first: `start` keeps its address. */
static int submit(struct dev_queue *q, uint64_t seq, const struct dev_op *op, const void *tail,
                  size_t tail_size)
{
    struct dev_work *w = q->work;
    struct dev_op *copy = malloc(sizeof(*op) + GM_MAX(tail_size, w->ops->op_extra));
    if (!copy)
        return GM_CUDA_OUT_OF_MEMORY;
    *copy = *op;
    copy->seq = seq;
    copy->queue = q;
    if (tail_size)
        memcpy(copy + 1, tail, tail_size);
    weigh(copy, tail_size);
    pthread_mutex_lock(&w->lock);
    gm_list_append(&q->ops, &copy->link);
    if (q->ops.next == &copy->link)
        make_runnable(q);
    leave(w);
    return GM_CUDA_SUCCESS;
}

/* Operations that need no memory of their own: nothing is allocated where nothing is before them.
 */
static int submit_light(struct dev_queue *q, uint64_t seq, struct dev_op *op)
{
    struct dev_work *w = q->work;
    bool done = false;

    pthread_mutex_lock(&w->lock);
    if (gm_list_empty(&q->ops)) {
        op->queue = q;
        op->seq = seq;
        done = step(q, op);
        if (done)
            complete(q, seq);
    }
    leave(w);
    return done ? GM_CUDA_SUCCESS : submit(q, seq, op, NULL, 0);
}

static int submit_wrong(struct dev_queue *q, uint64_t seq, int result, uint64_t address,
                        const char *text)
{
    dev_work_fail(q->work, result, address, text);
    return dev_queue_mark(q, seq);
}

int dev_queue_launch(struct dev_queue *q, uint64_t seq, struct dev_op *op, size_t size)
{
    struct dev_work *w = q->work;
    op->kind = DEV_OP_LAUNCH;
    op->queue = q;
    op->seq = seq;
    op->started = op->finished = false;
    weigh(op, size);
    pthread_mutex_lock(&w->lock);
    gm_list_append(&q->ops, &op->link);
    if (q->ops.next == &op->link)
        make_runnable(q);
    leave(w);
    return GM_CUDA_SUCCESS;
}

int dev_queue_copy(struct dev_queue *q, uint64_t seq, const struct wire_rec_copy *r)
{
    uint64_t address = 0;
    struct dev_op op = { .kind = DEV_OP_COPY,
                         .u.box = { .dst = r->dst,
                                    .src = r->src,
                                    .width = r->width,
                                    .height = r->height,
                                    .depth = r->depth,
                                    .dst_pitch = r->dst_pitch,
                                    .dst_slice = r->dst_slice,
                                    .src_pitch = r->src_pitch,
                                    .src_slice = r->src_slice } };
    if (!dev_box_check(q->work->window, &op.u.box, &address))
        return submit_wrong(q, seq, GM_CUDA_ILLEGAL_ADDRESS, address,
                            "copy outside the program's device memory");
    if (op_bytes(&op) > q->work->ops->inline_bytes && q->work->ops->start)
        return submit(q, seq, &op, NULL, 0);
    return submit_light(q, seq, &op);
}

int dev_queue_write(struct dev_queue *q, uint64_t seq, uint64_t dst, const void *data,
                    uint32_t size)
{
    const struct dev_op op = { .kind = DEV_OP_WRITE, .u.write = { .dst = dst, .size = size } };
    if (!dev_window_holds(q->work->window, dst, size))
        return submit_wrong(q, seq, GM_CUDA_ILLEGAL_ADDRESS, dst,
                            "write outside the program's device memory");
    return submit(q, seq, &op, data, size);
}

int dev_queue_fill(struct dev_queue *q, uint64_t seq, const struct wire_rec_fill *r)
{
    uint64_t address = 0;
    struct dev_op op = { .kind = DEV_OP_FILL,
                         .u.area = { .dst = r->dst,
                                     .pitch = r->pitch,
                                     .width = r->width,
                                     .height = r->height,
                                     .value = r->value,
                                     .element_size = r->element_size } };
    if (!dev_area_check(q->work->window, &op.u.area, &address))
        return submit_wrong(q, seq, GM_CUDA_ILLEGAL_ADDRESS, address,
                            "fill outside the program's device memory");
    if (op_bytes(&op) > q->work->ops->inline_bytes && q->work->ops->start)
        return submit(q, seq, &op, NULL, 0);
    return submit_light(q, seq, &op);
}

int dev_queue_wait(struct dev_queue *q, uint64_t seq, struct dev_queue *other, uint64_t other_seq)
{
    struct dev_op op = { .kind = DEV_OP_WAIT, .u.wait = { .other = other, .seq = other_seq } };
    return submit(q, seq, &op, NULL, 0);
}

int dev_queue_stamp(struct dev_queue *q, uint64_t seq, uint32_t event)
{
    struct dev_op op = { .kind = DEV_OP_STAMP, .u.event = event };
    if (event >= q->work->session->events_count)
        return submit_wrong(q, seq, GM_CUDA_INVALID_HANDLE, 0,
                            "stamp names an event that does not exist");
    return submit_light(q, seq, &op);
}

int dev_queue_gate(struct dev_queue *q, uint64_t seq)
{
    const struct dev_op op = { .kind = DEV_OP_GATE };
    return submit(q, seq, &op, NULL, 0);
}

int dev_queue_wait_value(struct dev_queue *q, uint64_t seq, const struct wire_rec_wait_value *r)
{
    const struct dev_op op = { .kind = DEV_OP_VALUE, .u.value = *r };
    if (!dev_window_holds(q->work->window, r->address, r->width))
        return submit_wrong(q, seq, GM_CUDA_ILLEGAL_ADDRESS, r->address,
                            "wait for a value outside the program's memory");
    return submit(q, seq, &op, NULL, 0);
}

void dev_queue_gate_moved(struct dev_queue *q)
{
    struct dev_work *w = q->work;
    pthread_mutex_lock(&w->lock);
    if (q->gated)
        make_runnable(q);
    leave(w);
}

int dev_queue_mark(struct dev_queue *q, uint64_t seq)
{
    struct dev_op op = { .kind = DEV_OP_MARK };
    return submit_light(q, seq, &op);
}
