/*
 * A client's memory: a heap for each device and one for the host. The devices' lie in one area of
 * its window, the host's in the other. Small allocations are cut from slabs, larger ones are ranges
 * of pages. The bytes are with the heap's keeper; executor and client map them at the window's
 * addresses.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_MEMORY_H
#define GMUX_SERVER_MEMORY_H

#include "server/account.h"
#include "server/area.h"
#include "server/keeper.h"
#include "server/request.h"
#include "server/sweep.h"

#define SRV_PAGE      4096u
#define SRV_GRANULE   512u /* of small allocations, and their alignment */
#define SRV_SLAB      (2u << 20)
#define SRV_SMALL_MAX (256u << 10) /* the largest one that is cut from a slab */
#define SRV_ALIGN_MAX (1u << 30)

struct srv_object;
struct srv_session;

/* A range that the executor has mapped: a slab, or one large allocation. */
struct srv_mapping {
    struct gm_list link; /* heap->mappings */
    struct srv_charge charge;
    struct srv_block *block;           /* in heap->pages; block->user is this */
    struct srv_allocation *allocation; /* NULL for a slab */
    bool live;       /* the executor has said so, and was not told otherwise since */
    uint64_t handle; /* the keeper's */
    int fd;          /* the keeper's, for the executor; -1: none needed */
    bool kept;       /* others have it open beyond the session's end: its pages stay */
};

struct srv_allocation {
    struct gm_list link; /* heap->allocations */
    struct srv_heap *heap;
    struct srv_charge bytes;
    struct srv_charge count;
    struct srv_block *block; /* in heap->small, where block->user is this, or that of the mapping */
    struct srv_mapping *mapping; /* its own; NULL for a small one */
    bool internal;               /* not the client's to free */
    bool busy;                   /* being made or freed */
    bool doomed;                 /* freed, but others have it open */
    struct srv_object *object;   /* what it is to others; NULL: never shared */
};

struct srv_heap {
    struct srv_session *session; /* NULL: not in use */
    const struct srv_keeper_ops *keeper;
    struct srv_area *area;
    uint32_t device; /* of the device's memory */
    enum srv_quantity quantity;
    struct srv_ranges small;
    struct gm_list mappings;
    struct gm_list allocations;
    struct gm_list deferred;       /* allocations that wait for ranges on their way back */
    struct gm_list questions;      /* about what is left, that wait for them */
    unsigned unmapping;            /* how many such ranges there are */
    unsigned unmapping_paid;       /* how many of them are charged until they are back */
    struct srv_sweep_owner sweeps; /* of such ranges */
    unsigned empty_slabs;          /* kept for the next small allocation: at most one */
};

typedef void srv_allocated_fn(void *arg, uint64_t serial, int result, struct srv_allocation *a);
typedef void srv_freed_fn(void *arg, uint64_t serial);

/* Without anything in it. */
void srv_heap_init(struct srv_heap *h, struct srv_session *c, struct srv_area *area,
                   uint32_t device, enum srv_quantity quantity,
                   const struct srv_keeper_ops *keeper);
/* Frees everything in it, until so late; false: there is more. Once it is done nothing is left to
 * do. Nothing is in the works any more. */
GM_MUST_CHECK bool srv_heap_finish(struct srv_heap *h, uint64_t until_ns);
/* No page of it is being freed, after those that wait for their turn have given up. Else the
 * session hears when that is so. */
GM_MUST_CHECK bool srv_heap_rests(struct srv_heap *h);
/* Tells a new executor about what is mapped. */
void srv_heap_replay(struct srv_heap *h);

/* Allocates; `done` gets a CUresult and, on success, what was allocated, perhaps at once. */
void srv_memory_alloc(struct srv_heap *h, uint64_t size, uint64_t align, bool internal,
                      srv_allocated_fn *done, void *arg, uint64_t serial);
/* The device has refused memory: it gives back what it keeps; `done` gets 0 when it has, or cannot,
 * and is asked again. */
void srv_memory_trim(struct srv_session *c, uint32_t device, srv_answer_fn *done, void *arg);
/* The client's allocation that starts at `address`; NULL if there is none. */
struct srv_allocation *srv_memory_find(struct srv_heap *h, uint64_t address);
/* Frees; `done` may be NULL. What others have open stays, charged, until they close it; `done` does
 * not wait for that. */
void srv_memory_free(struct srv_allocation *a, srv_freed_fn *done, void *arg, uint64_t serial);

#endif
