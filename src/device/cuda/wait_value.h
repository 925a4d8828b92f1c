/*
 * Words in memory that streams wait for. The client's thread, its hands on (admit.h).
 */
#ifndef GMUX_DEVICE_CUDA_WAIT_VALUE_H
#define GMUX_DEVICE_CUDA_WAIT_VALUE_H

#include "device/cuda/state.h"

/* The queue stands at its gate until the word has its value. The word is first read when all before
 * it is done. */
void cuda_value_begin(struct dev_queue *q, const struct wire_rec_wait_value *r);
/* The queue stands at such a gate: looks at what was read, and opens the gate or reads again. */
void cuda_value_look(struct dev_queue *q);

#endif
