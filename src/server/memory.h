/*
 * A client's memory: a heap for each device and one for the host. The devices' heaps lie in one
 * area of its window, the host's in the other. Small allocations are cut from slabs, larger ones
 * are ranges of pages. The heap's keeper has the bytes; executor and client map them at the
 * window's addresses.
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
#define SRV_GRANULE   512u /* size unit and alignment of small allocations */
#define SRV_SLAB      (2u << 20)
#define SRV_SMALL_MAX (1u << 20) /* the largest allocation that is cut from a slab */
#define SRV_ALIGN_MAX (1u << 30)

struct srv_object;
struct srv_session;

/* A range that the executor has mapped: a slab, or one large allocation. */
struct srv_mapping {
    struct gm_list link; /* heap->mappings */
    struct srv_charge charge;
    struct srv_block *block;           /* in heap->pages; its `user` points back here */
    struct srv_allocation *allocation; /* NULL for a slab */
    bool live;       /* the executor has mapped it, and was not told to unmap it since */
    uint64_t handle; /* for the keeper */
    int fd;          /* from the keeper, for the executor; -1: it needs none */
    bool kept;       /* others have it open beyond the session's end, so its pages stay */
};

struct srv_allocation {
    struct gm_list link; /* heap->allocations */
    struct srv_heap *heap;
    struct srv_charge bytes;
    struct srv_charge count;
    /* in heap->small, where block->user points back here; or that of the mapping */
    struct srv_block *block;
    struct srv_mapping *mapping; /* its own; NULL for a small allocation */
    bool internal;               /* not for the client to free */
    bool busy;                   /* it is being made or freed */
    bool doomed;                 /* freed, but others have it open */
    /* the object that stands for it when it is shared; NULL: it never was */
    struct srv_object *object;
};

struct srv_heap {
    struct srv_session *session; /* NULL: not in use */
    const struct srv_keeper_ops *keeper;
    struct srv_area *area;
    uint32_t device; /* for device memory: of which device */
    enum srv_quantity quantity;
    struct srv_ranges small;
    struct gm_list mappings;
    struct gm_list allocations;
    struct gm_list deferred;       /* allocations that wait for ranges on their way back */
    struct gm_list questions;      /* questions what is left, which wait for them, too */
    unsigned unmapping;            /* how many ranges are on their way back */
    unsigned unmapping_paid;       /* how many of these are charged until they are back */
    struct srv_sweep_owner sweeps; /* frees the pages of such ranges */
    unsigned empty_slabs;          /* kept for the next small allocation: at most one */
};

typedef void srv_allocated_fn(void *arg, uint64_t serial, int result, struct srv_allocation *a);
typedef void srv_freed_fn(void *arg, uint64_t serial);

/* Makes an empty heap. */
void srv_heap_init(struct srv_heap *h, struct srv_session *c, struct srv_area *area,
                   uint32_t device, enum srv_quantity quantity,
                   const struct srv_keeper_ops *keeper);
/* Frees everything in the heap, until `until_ns`. False: there is more. Nothing may be under way.
 * Once it has returned true it does nothing. */
GM_MUST_CHECK bool srv_heap_finish(struct srv_heap *h, uint64_t until_ns);
/* Cancels page sweeps that have not begun. True: no page of the heap is being freed. False: the
 * session is told when that is so. */
GM_MUST_CHECK bool srv_heap_rests(struct srv_heap *h);
/* Tells a new executor about what is mapped. */
void srv_heap_replay(struct srv_heap *h);

/* Allocates. `done` gets a CUresult and, on success, the allocation; perhaps before this
 * returns. */
void srv_memory_alloc(struct srv_heap *h, uint64_t size, uint64_t align, bool internal,
                      srv_allocated_fn *done, void *arg, uint64_t serial);
/* Called when the device has refused memory: it gives back what it keeps. `done` gets 0 when it has
 * done so, or cannot, and the caller tries again. */
void srv_memory_trim(struct srv_session *c, uint32_t device, srv_answer_fn *done, void *arg);
/* The client's allocation that starts at `address`; NULL if there is none. */
struct srv_allocation *srv_memory_find(struct srv_heap *h, uint64_t address);
/* Frees an allocation; `done` may be NULL. If others have it open it stays, charged, until they
 * close it; `done` does not wait for that. */
void srv_memory_free(struct srv_allocation *a, srv_freed_fn *done, void *arg, uint64_t serial);

#endif
