/*
 * A client's coming, its share, and its end (leave.c).
 */
#ifndef GMUX_DEVICE_CUDA_CLIENT_H
#define GMUX_DEVICE_CUDA_CLIENT_H

#include "device/cuda/state.h"

int cuda_client_device(struct dev_client *c, uint32_t device);
/* Initialises the struct, without the driver. */
void cuda_client_init(struct dev_client *c, struct dev *d, const struct dev_client_config *config);
int cuda_client_create(struct dev *d, const struct dev_client_config *config,
                       struct dev_client **out);
/* The client is one of the device's from now on, until cuda_output_leave(). */
void cuda_client_join(struct dev_client *c);
void cuda_client_set_share(struct dev_client *c, double share_pct, const uint32_t *multiprocessors,
                           int priority);

/* --- its end: leave.c ------------------------------------------------------------------------ */

/* Starts the thread that frees the rest of clients that are gone. 0 or -errno */
GM_MUST_CHECK int cuda_leave_start(struct dev *d);
/* Stops clients from handing over and waits until none has anything in flight; what clients that
 * are gone have does not count. Then the context can end without anybody's loss. False: that moment
 * did not come within `patience_ns`, and clients go on. With `spares` it also returns false if
 * somebody would lose something that only this executor has, and nobody is stopped at all if that
 * is so or somebody has something in flight. */
bool cuda_freeze(struct dev *d, uint64_t patience_ns, bool spares);
void cuda_client_stop(struct dev_client *c);
/* events.client_gone() follows. */
void cuda_client_destroy(struct dev_client *c);
/* Frees a client whose creation has failed half-way. */
void cuda_client_discard(struct dev_client *c);

#endif
