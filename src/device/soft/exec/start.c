/*
 * Between the queues and the block scheduler: the operation at the head of a queue becomes a task.
 * Large copies and fills are tasks, too, cut into pieces, so that a client's share holds for them,
 * several workers carry them out, and they can be stopped.
 */
#include <stdio.h>
#include <stdlib.h>

#include "device/soft/check/check.h"
#include "device/soft/exec/launch.h"
#include "device/soft/exec/worker.h"
#include "device/transfer.h"

/* The thread that finds a copy ready does it itself if it has at most this many bytes. */
#define INLINE_BYTES 65536u
#define PIECE_BYTES  (256u << 10) /* the size of a block of a larger copy */

/* A copy or fill as a task. Lies behind its op. */
struct transfer {
    struct soft_task task;
};

static struct dev_op *transfer_op(struct transfer *x)
{
    return (struct dev_op *)(void *)x - 1;
}

struct piece_loop {
    const struct dev_op *op;
    const _Atomic bool *stopping;
    uint64_t next, end;
};

static void pieces_move(void *arg)
{
    struct piece_loop *l = arg;
    for (; l->next < l->end && !atomic_load_explicit(l->stopping, memory_order_relaxed);
         l->next++) {
        if (l->op->kind == DEV_OP_COPY)
            dev_box_move(&l->op->u.box, PIECE_BYTES, l->next);
        else
            dev_area_fill(&l->op->u.area, PIECE_BYTES, l->next);
    }
}

static bool transfer_run(struct soft_task *t, struct soft_worker *w, uint64_t first, uint64_t count)
{
    struct dev_op *op = transfer_op(GM_CONTAINER_OF(t, struct transfer, task));
    struct piece_loop loop = {
        .op = op, .stopping = &t->account->stopping, .next = first, .end = first + count
    };
    int signal = soft_worker_guarded(w, pieces_move, &loop);
    if (GM_LIKELY(signal == 0))
        return true;
    if (signal == DEV_GUARD_INTERRUPT)
        return false; /* the client is being stopped */
    char text[128];
    snprintf(text, sizeof(text), "%s in stream %u touches address 0x%llx, which is not allocated",
             op->kind == DEV_OP_COPY ? "copy" : "fill", op->queue->stream,
             (unsigned long long)w->guard.address);
    dev_work_fail(op->queue->work, GM_CUDA_ILLEGAL_ADDRESS, w->guard.address, text);
    return false;
}

static void moved(struct dev_work *w, const struct dev_op *op)
{
    if (GM_UNLIKELY(w->client->check != NULL))
        soft_check_moved(w->client->check, op);
}

static void transfer_done(struct soft_task *t)
{
    struct dev_op *op = transfer_op(GM_CONTAINER_OF(t, struct transfer, task));
    moved(op->queue->work, op);
    dev_work_finish(op->queue->work, op);
}

static const struct soft_task_ops transfer_task_ops = { .run = transfer_run,
                                                        .done = transfer_done };

static bool transfer_start(struct dev_op *op)
{
    struct dev_client *c = op->queue->work->client;
    struct transfer *x = (struct transfer *)(void *)(op + 1);
    /* All of it: the memory of an operation is not zero, and blocks of a copy wait for nothing. */
    x->task = (struct soft_task) {
        .ops = &transfer_task_ops,
        .account = &c->account,
        .priority = op->queue->priority,
        .count = op->kind == DEV_OP_COPY ? dev_box_pieces(&op->u.box, PIECE_BYTES)
                                         : dev_area_pieces(&op->u.area, PIECE_BYTES),
    };
    return soft_task_submit(c->dev->sched, &x->task);
}

static bool start(struct dev_work *w, struct dev_op *op)
{
    return !(op->kind == DEV_OP_LAUNCH ? soft_launch_start(op) : transfer_start(op));
}

static void give_up(struct soft_task *t)
{
    struct dev_op *op = soft_launch_op(t);
    if (!op)
        op = transfer_op(GM_CONTAINER_OF(t, struct transfer, task));
    op->finished = true;
}

static void abandon(struct dev_work *w)
{
    if (w->client->held)
        w->client->held->finished = true;
    w->client->held = NULL;
    soft_account_stop(w->client->dev->sched, &w->client->account, give_up);
}

static void release(struct dev_work *w, struct dev_op *op)
{
    soft_launch_release(op);
}

const struct dev_work_ops soft_work_ops = {
    .start = start,
    .abandon = abandon,
    .moved = moved,
    .release = release,
    .inline_bytes = INLINE_BYTES,
    .op_extra = sizeof(struct transfer),
};
