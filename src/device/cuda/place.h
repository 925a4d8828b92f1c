/*
 * Places where streams live (place.c), and partitions of a program's own (part.c).
 */
#ifndef GMUX_DEVICE_CUDA_PLACE_H
#define GMUX_DEVICE_CUDA_PLACE_H

#include "device/cuda/state.h"

/* What the GPU can be split into; also what programs are told of that. */
void cuda_places_open(struct cuda_gpu *g);
/* Its priorities. A GPU that is not open is taken to have those of the first. */
void cuda_priorities_open(struct cuda_gpu *g);
/* An order's thread: another place from now on. `multiprocessors`: 0 or all of them is no limit. */
CUresult cuda_place_set(struct dev_client *c, struct cuda_gpu *g, uint32_t multiprocessors,
                        int priority);
/* As above, without waiting. CUDA_ERROR_NOT_READY: it has to (admit.h). */
CUresult cuda_place_try(struct dev_client *c, struct cuda_gpu *g, uint32_t multiprocessors,
                        int priority);
/* That place would be a green context. */
static inline bool cuda_place_is_part(const struct cuda_gpu *g, uint32_t multiprocessors)
{
    return multiprocessors && multiprocessors < g->info.multiprocessors && g->groups.count;
}
/* The place's green context, of these. */
CUresult cuda_place_make_green(struct cuda_place *p, CUdevResource *chosen, unsigned count);
/* Destroys places that nothing is in any more; `all`: those that something may be in, too. */
void cuda_places_collect(struct dev_client *c, bool all);

/* --- part.c; the client's thread ------------------------------------------------------------- */

/* The part of `whole` that the queue is to be in; `whole` if there can be none. The client's
 * thread. */
struct cuda_place *cuda_place_part(struct dev_queue *q, struct cuda_place *whole);
/* The queue is in none any more. places_lock is held. */
void cuda_part_forget(struct dev_queue *q);

#endif
