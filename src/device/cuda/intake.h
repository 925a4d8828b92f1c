/*
 * What a client's thread hands over, operation by operation or as a run: it goes to the driver, or
 * is held back in its queue. device.h describes the functions that are its own.
 */
#ifndef GMUX_DEVICE_CUDA_INTAKE_H
#define GMUX_DEVICE_CUDA_INTAKE_H

#include "device/cuda/state.h"

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
int cuda_graph_begin(struct dev_queue *q, const struct dev_graph *graph, bool *known);
int cuda_graph_end(struct dev_queue *q);
void cuda_flush(struct dev_client *c);
/* At least CUDA_DEPTH while the driver has too much of the client. */
uint32_t cuda_backlog(struct dev_client *c);

/* The queue's stream is where the client's place is, and nothing is held back: a run could go to
 * the driver now. */
bool cuda_intake_is_open(struct dev_queue *q);
/* A run of `count` operations, the last of which is `seq`, is with the driver. */
void cuda_intake_run(struct dev_queue *q, uint64_t seq, uint32_t count);

#endif
