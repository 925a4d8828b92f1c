/*
 * A client's coming, its share, and its end (leave.c).
 */
#ifndef GMUX_DEVICE_CUDA_CLIENT_H
#define GMUX_DEVICE_CUDA_CLIENT_H

#include "device/cuda/state.h"

int cuda_client_device(struct dev_client *c, uint32_t device);
/* Of the client's own, nothing of the driver. */
void cuda_client_init(struct dev_client *c, struct dev *d, const struct dev_client_config *config);
int cuda_client_create(struct dev *d, const struct dev_client_config *config,
                       struct dev_client **out);
void cuda_client_set_share(struct dev_client *c, double share_pct, const uint32_t *multiprocessors,
                           int priority);

/* --- its end: leave.c ------------------------------------------------------------------------ */

/* Starts the thread that sees clients out. 0 or -errno */
GM_MUST_CHECK int cuda_leave_start(struct dev *d);
/* Has clients hand over nothing more, until none has anything in flight: then the context can go
 * without anybody's loss. False, and they go on, if that does not come within `patience_ns`. What
 * the gone have in flight does not count. `spares`: nor is it to come where somebody would lose
 * something that only this executor has, and who has something in flight is not even held up. */
bool cuda_freeze(struct dev *d, uint64_t patience_ns, bool spares);
void cuda_client_stop(struct dev_client *c);
/* events.client_gone() follows. */
void cuda_client_destroy(struct dev_client *c);
/* One that was never whole: it is gone. */
void cuda_client_discard(struct dev_client *c);

#endif
