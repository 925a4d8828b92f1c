/*
 * What memory this process has: every range of the window that was allocated to it, and the host
 * memory it registered, by address. Look-ups answer copies' and pointer attributes' questions
 * without asking the server.
 */
#ifndef GMUX_CLIENT_SESSION_MAP_H
#define GMUX_CLIENT_SESSION_MAP_H

#include "client/session/session.h"

struct rt_block;
struct rt_context;

enum rt_memory {
    RT_MEMORY_DEVICE,
    RT_MEMORY_HOST,       /* pinned: cuMemHostAlloc */
    RT_MEMORY_MANAGED,    /* pinned host memory, too */
    RT_MEMORY_REGISTERED, /* the program's own pages, which are those of a host range by now */
    RT_MEMORY_PAGEABLE,   /* registered, but the pages cannot be exchanged: only this process sees
                             them */
    RT_MEMORY_GLOBAL,     /* a module's variable: device memory that is not the program's to free */
    RT_MEMORY_GLOBAL_MANAGED, /* a variable that the host may touch, too */
    RT_MEMORY_IMPORTED,       /* another process's, opened with cuIpcOpenMemHandle */
    RT_MEMORY_IMPORTED_BLOCK, /* of another process's memory pool (memory/pool_ipc.h) */
    RT_MEMORY_VIRTUAL,        /* mapped with cuMemMap */
    RT_MEMORY_ARRAY,          /* of an array: device memory that has no address for the program */
    RT_MEMORY_GRAPH,          /* of a node of a graph (graph/memory.h) */
};

struct rt_physical;

struct rt_range {
    uint64_t base; /* as the program knows it */
    uint64_t size;
    uint64_t window; /* where the device sees `base`; differs for registered memory only */
    enum rt_memory kind;
    unsigned flags;             /* of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged */
    struct rt_context *context; /* NULL: of a library's globals, of virtual memory */
    int device;                 /* whose memory it is, or where it was allocated */
    uint64_t id;
    struct rt_block *block;       /* of the pool that it came from; NULL: of none */
    struct rt_physical *physical; /* what is mapped there; NULL: not RT_MEMORY_VIRTUAL */
    unsigned access; /* of RT_MEMORY_VIRTUAL: two bits of CUmemAccess_flags for each device */
    bool sync; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: synchronous calls wait; they do so anyway */
};

/* The range that contains `address`. A copy: it may be freed the next moment, as in any program
 * that does so. */
bool rt_memory_find(uint64_t address, struct rt_range *out);
/* The range that [address, address + size) lies within, by either of its addresses; *window: where
 * the device sees it. None of what it does not see. */
bool rt_memory_device_range(uint64_t address, uint64_t size, struct rt_range *out,
                            uint64_t *window);
/* True if some range has some of [address, address + size), which is not empty. */
bool rt_memory_overlaps(uint64_t address, uint64_t size);
/* The registered range that the device sees at `address`. */
bool rt_memory_find_alias(uint64_t address, struct rt_range *out);
/* Enters a range; fills in its id. CUresult. */
int rt_memory_insert(struct rt_range *r);
/* Takes out the range that starts at `base` if `accept` (a mask of 1 << kind) allows. */
bool rt_memory_remove(uint64_t base, unsigned accept, struct rt_range *out);

/* Sets `sync` of the device memory that contains `address`; false if there is none. */
bool rt_memory_set_sync(uint64_t address, bool sync);
/* Changes the access, of all devices, of the virtual range that starts at `base`. */
void rt_memory_set_access(uint64_t base, unsigned access);

/* CUmemAccess_flags of a device for virtual memory. */
static inline unsigned rt_memory_access(const struct rt_range *r, int device)
{
    return r->access >> 2 * device & 3u;
}

static inline bool rt_memory_is_device(const struct rt_range *r)
{
    return r->kind == RT_MEMORY_DEVICE || r->kind == RT_MEMORY_GLOBAL ||
           r->kind == RT_MEMORY_IMPORTED || r->kind == RT_MEMORY_IMPORTED_BLOCK ||
           r->kind == RT_MEMORY_VIRTUAL || r->kind == RT_MEMORY_ARRAY || r->kind == RT_MEMORY_GRAPH;
}

static inline bool rt_memory_is_managed(const struct rt_range *r)
{
    return r->kind == RT_MEMORY_MANAGED || r->kind == RT_MEMORY_GLOBAL_MANAGED;
}

/* Nobody but the device can touch it, whatever the device: it is not in this process's window. */
static inline bool rt_memory_is_apart(const struct rt_range *r)
{
    return r->kind == RT_MEMORY_IMPORTED || r->kind == RT_MEMORY_IMPORTED_BLOCK ||
           r->kind == RT_MEMORY_VIRTUAL || (rt_session->memory_apart && rt_memory_is_device(r));
}

static inline bool rt_memory_is_host(const struct rt_range *r)
{
    return r->kind == RT_MEMORY_HOST || r->kind == RT_MEMORY_REGISTERED ||
           r->kind == RT_MEMORY_PAGEABLE;
}

/* Takes out one range of the context, whichever comes first; false if there is none. */
bool rt_memory_remove_any(const struct rt_context *c, struct rt_range *out);

/* Around a fork, of one thread at a time: the map stands still. All ranges, by address. */
const struct rt_range *rt_memory_freeze(size_t *count);
void rt_memory_thaw(bool child);

#endif
