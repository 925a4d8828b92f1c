/*
 * Words in memory that streams wait for. The client's thread, its hands on (admit.h).
 */
#ifndef GMUX_DEVICE_CUDA_WAIT_VALUE_H
#define GMUX_DEVICE_CUDA_WAIT_VALUE_H

#include "device/cuda/state.h"

/* The stream stands at its gate until the word has its value; looked at when all before it is done.
 */
void cuda_value_begin(struct dev_queue *q, const struct wire_rec_wait_value *r);
/* Looks at it, if the queue stands at such a gate, and opens that by its gate word. */
void cuda_value_look(struct dev_queue *q);

#endif
