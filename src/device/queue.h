/*
 * Queues of one client, the part that all back ends made of a CPU share: order within a queue,
 * waits between queues, gates, stamps, completion words, dropping everything after a fault. Small
 * memory operations are done at once by the thread that finds them at the head of their queue;
 * launches and large copies are handed to the back end's `start`.
 *
 * A back end embeds struct dev_work in its struct dev_client. Everything of one client is under one
 * lock, which is held for microseconds only. Functions are called without it unless they say
 * otherwise; any thread.
 */
#ifndef GMUX_DEVICE_QUEUE_H
#define GMUX_DEVICE_QUEUE_H

#include <pthread.h>

#include "base/list.h"
#include "device/device.h"
#include "device/window.h"

enum dev_op_kind {
    DEV_OP_LAUNCH,
    DEV_OP_COPY,
    DEV_OP_FILL,
    DEV_OP_WRITE,
    DEV_OP_WAIT,
    DEV_OP_STAMP,
    DEV_OP_GATE,
    DEV_OP_VALUE,
    DEV_OP_MARK,
};

/* A box of bytes: `depth` slices of `height` rows of `width` bytes. */
struct dev_box {
    uint64_t dst, src;
    uint64_t width, height, depth;
    uint64_t dst_pitch, dst_slice, src_pitch, src_slice;
};

struct dev_area {
    uint64_t dst, pitch;
    uint64_t width; /* elements */
    uint64_t height;
    uint32_t value;
    uint32_t element_size;
};

struct dev_op {
    struct gm_list link; /* in queue->ops */
    struct dev_queue *queue;
    uint64_t seq;
    enum dev_op_kind kind;
    uint32_t weight; /* what it counts for in the backlog: 1, and one for each KiB that it keeps */
    bool started;    /* handed to the back end */
    bool finished;   /* the back end has given it back */
    union {
        struct dev_box box;
        struct dev_area area;
        struct {
            uint64_t dst;
            uint32_t size;
        } write; /* the bytes lie behind the op */
        struct {
            struct dev_queue *other; /* NULL: satisfied */
            uint64_t seq;
        } wait;
        struct wire_rec_wait_value value;
        uint32_t event;
    } u;
};

struct dev_queue {
    struct dev_work *work;
    struct gm_list link; /* in work->queues */
    struct gm_list ops;
    struct gm_list runnable; /* in work->runnable, or alone */
    struct tp_stream_slot *slot;
    uint64_t completed;
    uint32_t stream;
    int priority; /* as CUDA has it: lower is more urgent */
    bool waiting; /* the head is a wait that is not satisfied */
    bool gated;   /* the head is a gate that has been announced, or waits for a value */
};

struct dev_work_ops {
    /* A launch, or a copy or fill of more than `inline_bytes`, has come to the head of its queue.
     * With the lock held. True: done already. False: dev_work_finish() will be called, also if it
     * fails. NULL: everything is done inline and launches compute nothing. */
    bool (*start)(struct dev_work *w, struct dev_op *op);
    /* The client has failed: hurry up with what was started. With the lock held, once. May be NULL.
     */
    void (*abandon)(struct dev_work *w);
    /* A copy, fill or write has been done by the thread that found it. With the lock held. May be
     * NULL. */
    void (*moved)(struct dev_work *w, const struct dev_op *op);
    /* Frees a launch, which the back end allocated. With the lock held. NULL: free(). */
    void (*release)(struct dev_work *w, struct dev_op *op);
    uint64_t inline_bytes;
    /* Room behind each copy and fill that `start` gets, for the back end's own: op + 1. */
    size_t op_extra;
};

struct dev_work {
    pthread_mutex_t lock;
    const struct dev_work_ops *ops;
    const struct dev_events *events;
    struct dev_client *client; /* for the events */
    struct tp_session *session;
    struct dev_window *window;
    struct gm_list queues;
    struct gm_list runnable; /* queues whose head may be able to go on */
    uint32_t waiting;        /* queues with `waiting` */
    uint64_t arrivals;
    _Atomic uint32_t backlog;
    bool failed; /* a fault has been recorded, and is reported soon */
    bool dead; /* it was reported, or the client is being stopped: everything completes, nothing is
                  done */
    bool reporting;
    int fault_result;
    uint64_t fault_address;
    char fault_text[256];
};

/* The window and the session outlive the work. 0 or -errno. */
GM_MUST_CHECK int dev_work_init(struct dev_work *w, struct dev_client *client,
                                const struct dev_work_ops *ops, const struct dev_events *events,
                                struct tp_session *session, struct dev_window *window);
/* Frees all queues. Nothing started is left. NULL-safe inside: a work never initialised is fine. */
void dev_work_destroy(struct dev_work *w);

/* The client's fault, from a thread that works for it. The first one counts: the executor is told,
 * then everything queued completes undone. */
void dev_work_fail(struct dev_work *w, int result, uint64_t address, const char *text);
/* Drops everything without a fault. What was started is abandoned, not waited for. */
void dev_work_stop(struct dev_work *w);
/* The back end has done what it started, or has given it up. Frees the op. */
void dev_work_finish(struct dev_work *w, struct dev_op *op);

/* The queue part of struct dev_ops, except launches. */
int dev_queue_open(struct dev_work *w, uint32_t stream, uint64_t done, int priority,
                   struct dev_queue **out);
void dev_queue_close(struct dev_queue *q);
/* `op` with all but link, queue, seq filled, allocated with malloc() or by the back end, with so
 * many bytes behind it; taken over. */
int dev_queue_launch(struct dev_queue *q, uint64_t seq, struct dev_op *op, size_t size);
int dev_queue_copy(struct dev_queue *q, uint64_t seq, const struct wire_rec_copy *r);
int dev_queue_write(struct dev_queue *q, uint64_t seq, uint64_t dst, const void *data,
                    uint32_t size);
int dev_queue_fill(struct dev_queue *q, uint64_t seq, const struct wire_rec_fill *r);
int dev_queue_wait(struct dev_queue *q, uint64_t seq, struct dev_queue *other, uint64_t other_seq);
int dev_queue_stamp(struct dev_queue *q, uint64_t seq, uint32_t event);
int dev_queue_gate(struct dev_queue *q, uint64_t seq);
void dev_queue_gate_moved(struct dev_queue *q);
int dev_queue_wait_value(struct dev_queue *q, uint64_t seq, const struct wire_rec_wait_value *r);
int dev_queue_mark(struct dev_queue *q, uint64_t seq);

#endif
