/*
 * A client's queues: what it hands over, and what of that the driver has. The client's thread.
 */
#ifndef GMUX_DEVICE_CUDA_QUEUE_H
#define GMUX_DEVICE_CUDA_QUEUE_H

#include "device/cuda/state.h"

/* Looks in session memory where the program wants the stream to be. */
void cuda_queue_reuse(struct dev_queue *q);
int cuda_queue_create(struct dev_client *c, uint32_t device, uint32_t stream, uint64_t done,
                      int priority, struct dev_queue **out);
bool cuda_queue_is_done(struct dev_queue *q);
/* What the driver had of it is done, and its client has heard of that; something may be held back.
 */
bool cuda_queue_is_over(struct dev_queue *q);
/* One of which the driver has nothing goes to another context, where its client already is. */
void cuda_queue_go(struct dev_queue *q, struct cuda_gpu *to);
void cuda_queue_destroy(struct dev_queue *q);
/* Forgets what is held back. */
void cuda_queue_drop(struct dev_queue *q);
/* Its stream is where the client's place is, and nothing is held back. */
bool cuda_queue_is_open(struct dev_queue *q);
/* Has the GPU write the completion of all that is with the driver. */
void cuda_queue_mark(struct dev_queue *q);
/* The operations up to `seq` are with the driver, and have been counted (inflight.h). */
void cuda_queue_submitted(struct dev_queue *q, uint64_t seq);
/* As above, for `count` operations that were not taken one by one, but are a run. */
void cuda_queue_run(struct dev_queue *q, uint64_t seq, uint32_t count);
int cuda_launch(struct dev_queue *q, uint64_t seq, const struct dev_launch *l);
int cuda_copy(struct dev_queue *q, uint64_t seq, const struct wire_rec_copy *r);
int cuda_copy_array(struct dev_queue *q, uint64_t seq, const struct wire_rec_copy_array *r);
int cuda_write(struct dev_queue *q, uint64_t seq, uint64_t dst, const void *data, uint32_t size);
int cuda_fill(struct dev_queue *q, uint64_t seq, const struct wire_rec_fill *r);
int cuda_wait(struct dev_queue *q, uint64_t seq, struct dev_queue *other, uint64_t other_seq);
int cuda_stamp(struct dev_queue *q, uint64_t seq, uint32_t event);
int cuda_gate(struct dev_queue *q, uint64_t seq);
void cuda_gate_moved(struct dev_queue *q);
int cuda_wait_value(struct dev_queue *q, uint64_t seq, const struct wire_rec_wait_value *r);
int cuda_mark(struct dev_queue *q, uint64_t seq);
/* What is in rows, and marks: before the client's thread waits for anything. Its program hears of
 * what is done, and others see what runs. */
void cuda_hand_over(struct dev_client *c);
void cuda_flush(struct dev_client *c);
/* At least CUDA_DEPTH while the driver has too much of the client. The client's thread. */
uint32_t cuda_backlog(struct dev_client *c);

/* A client's launch attributes, copied to `out` (DEV_LAUNCH_ATTRIBUTES_MAX). False if
 * there are too many, or one that a client may not give. */
bool cuda_attributes_take(CUlaunchAttribute *out, const void *bytes, size_t size);

/* --- wait_value.c: words that streams wait for; the client's thread, its hands on */
/* The stream stands at its gate until the word has its value; looked at when all before it is done.
 */
void cuda_value_begin(struct dev_queue *q, const struct wire_rec_wait_value *r);
/* Looks at it, if the queue stands at such a gate, and opens that by its gate word. */
void cuda_value_look(struct dev_queue *q);

#endif
