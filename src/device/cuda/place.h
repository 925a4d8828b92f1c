/*
 * Places where streams live (place.c), and partitions of a program's own (part.c).
 */
#ifndef GMUX_DEVICE_CUDA_PLACE_H
#define GMUX_DEVICE_CUDA_PLACE_H

#include "base/list.h"
#include "device/cuda/capacity.h"

#define CUDA_GROUPS_MAX 64u

/* A GPU's multiprocessors, split into groups of the smallest size. */
struct cuda_groups {
    uint32_t size; /* multiprocessors in each; 0: the device cannot be split */
    uint32_t count;
    CUdevResource group[CUDA_GROUPS_MAX];
    uint32_t use[CUDA_GROUPS_MAX]; /* dev->lock: green contexts that have it */
};

/* Where streams of a client live on a GPU, and how urgent they are: a green context or the whole
 * device. */
struct cuda_place {
    struct gm_list link; /* client->places */
    struct cuda_gpu *gpu;
    uint64_t number;               /* never used twice in a client */
    CUgreenCtx green;              /* NULL: the whole device */
    CUcontext context;             /* the green one, as a context */
    struct cuda_capacity capacity; /* of the green one */
    uint64_t groups;               /* bit for each; 0: all of the device */
    uint32_t multiprocessors;      /* asked for; 0: no limit */
    bool low;                      /* below normal */
    /* a stream left it with work that may still run: it stays until the client's end */
    bool unsure;
    uint32_t streams; /* that are in it; the client's thread */
    uint32_t graphs;  /* graph.h: that were made in it; places_lock */
    uint32_t parts;   /* places with this one as their parent; places_lock */
    /* Only of a part of another place, for a green context of the program: */
    uint64_t of;   /* the number of the client's place that it is in; 0: it is no part */
    uint32_t part; /* the program's number of it */
    struct cuda_place
        *parent;     /* what was split: the client's place, or a part of it; NULL: it is none */
    uint32_t queues; /* that are to be in it; places_lock */
};

/* Splits the GPU into groups, and notes what programs are told about that. */
void cuda_places_open(struct cuda_gpu *g);
/* Notes its priorities. GPUs that are not open yet are taken to have those of the first. */
void cuda_priorities_open(struct cuda_gpu *g);
/* Gives the client another place on this GPU, if what is asked for is not what it has; waits for a
 * safe point if that is needed. `multiprocessors`: 0, or all of them, is no limit. An order's
 * thread.
 */
CUresult cuda_place_set(struct dev_client *c, struct cuda_gpu *g, uint32_t multiprocessors,
                        int priority);
/* Does it without waiting. CUDA_ERROR_NOT_READY: it would have to wait (admit.h). */
CUresult cuda_place_try(struct dev_client *c, struct cuda_gpu *g, uint32_t multiprocessors,
                        int priority);
/* With so many multiprocessors a place is a green context. */
bool cuda_place_is_part(const struct cuda_gpu *g, uint32_t multiprocessors);
/* Makes the place's green context of these resources. */
CUresult cuda_place_make_green(struct cuda_place *p, CUdevResource *chosen, unsigned count);
/* Destroys places with nothing in them; `all`: also places that something but graphs may still be
 * in. */
void cuda_places_collect(struct dev_client *c, bool all);

/* --- part.c; the client's thread ------------------------------------------------------------- */

/* The part of `whole` that the queue wants to be in; `whole` itself if that part cannot be made. */
struct cuda_place *cuda_place_part(struct dev_queue *q, struct cuda_place *whole);
/* The queue is in no part any more. places_lock is held. */
void cuda_part_forget(struct dev_queue *q);

#endif
