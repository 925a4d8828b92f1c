/*
 * The map of memory: every range of the window that was allocated for this process, and the host
 * memory that it registered, by address. Copies and pointer attributes look it up, without asking
 * the server.
 */
#ifndef GMUX_CLIENT_SESSION_MAP_H
#define GMUX_CLIENT_SESSION_MAP_H

#include "client/session/session.h"

struct rt_block;
struct rt_context;

enum rt_memory {
    RT_MEMORY_DEVICE,
    RT_MEMORY_HOST,    /* pinned: cuMemHostAlloc */
    RT_MEMORY_MANAGED, /* pinned host memory, too */
    /* the program's own pages, which are now those of a range of host memory */
    RT_MEMORY_REGISTERED,
    /* Registered, but the pages cannot be exchanged, so only this process sees them. */
    RT_MEMORY_PAGEABLE,
    RT_MEMORY_GLOBAL, /* a module's variable: device memory that is not the program's to free */
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
    uint64_t window; /* the device's address of `base`; differs only for registered memory */
    enum rt_memory kind;
    unsigned flags;             /* of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged */
    struct rt_context *context; /* NULL: of a library's globals, of virtual memory */
    int device;                 /* whose memory it is, or where it was allocated */
    uint64_t id;
    struct rt_block *block; /* of the pool that it came from; NULL: of none */
    bool ordered;           /* allocated in the order of a stream, from a pool of the program's */
    /* the memory object that is mapped there; NULL: it is not RT_MEMORY_VIRTUAL */
    struct rt_physical *physical;
    unsigned access; /* of RT_MEMORY_VIRTUAL: two bits of CUmemAccess_flags for each device */
    /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: synchronous calls wait, which they do anyway. */
    bool sync;
};

/* Finds the range that contains `address`. *out is a copy: the range may be freed at any time by
 * another thread of the program. */
bool rt_memory_find(uint64_t address, struct rt_range *out);
/* Finds the range that contains [address, address + size), by either of its addresses. *window: its
 * address for the device. False also if the device cannot see the range. */
bool rt_memory_device_range(uint64_t address, uint64_t size, struct rt_range *out,
                            uint64_t *window);
/* Whether some range overlaps [address, address + size), which is not empty. */
bool rt_memory_overlaps(uint64_t address, uint64_t size);
/* Finds the registered range that the device sees at `address`. */
bool rt_memory_find_alias(uint64_t address, struct rt_range *out);
/* Enters a range, and sets its id. CUresult. */
int rt_memory_insert(struct rt_range *r);
/* Removes the range that starts at `base`, if its kind is in `accept` (a mask of 1 << kind). */
bool rt_memory_remove(uint64_t base, unsigned accept, struct rt_range *out);

/* Sets `sync` of the memory that contains `address`; false: there is none. */
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

/* Whether only the device can access it, on whatever device: it is not in this process's window. */
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

/* Removes any one range of the context; false: there is none. */
bool rt_memory_remove_any(const struct rt_context *c, struct rt_range *out);

/* Called around a fork, by one thread at a time: the map does not change. */
void rt_memory_freeze(void);
void rt_memory_thaw(bool child);

#endif
