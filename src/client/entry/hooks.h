/*
 * What folders tell those above them, which they may not call: one table, which client/init.c fills
 * in. All other calls from folder to folder go down.
 *
 * Functions that return int return CUresult values. Any thread, no lock held, unless it says
 * otherwise.
 */
#ifndef GMUX_CLIENT_ENTRY_HOOKS_H
#define GMUX_CLIENT_ENTRY_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/entry/dispatch.h"

struct rt_box;
struct rt_context;
struct rt_fill;
struct rt_launch;
struct rt_range;
struct rt_stream;

struct rt_hooks {
    /* Around a fork, of one thread at a time; in the child that thread is the only one. */
    void (*fork_prepare)(void);
    void (*fork_parent)(void);
    void (*fork_child)(void);

    /* A context ends, its streams and events have. What else it owns is given back; nothing of it
     * runs any more. */
    void (*context_ends)(struct rt_context *c);
    /* CU_LIMIT_MALLOC_HEAP_SIZE changes, to so many bytes. CUresult. */
    int (*heap_resized)(struct rt_context *c, uint64_t size);
    /* The program has a primary context, again perhaps. */
    void (*primary_retained)(struct rt_context *c);
    /* The program has waited for a stream, an event or a context. */
    void (*synchronized)(void);

    /* What this process has of managed memory that moves is the device's (stream/coherence.h).
     * CUresult. */
    int (*pages_release)(void);

    /* The checker (stream/check.h): the session stands, memory has come into the map, the program
     * ends. Only where the program is checked. The map's lock is not held. */
    int (*check_begin)(void);
    void (*check_entered)(const struct rt_range *r);
    void (*check_end)(void);

    /* Memory of graphs (graph/memory.h). The program frees an address, in the order of queue
     * `number` after `seq` (0: at once): CUDA_ERROR_NOT_FOUND if it is no graph's. */
    int (*graph_memory_free)(uint64_t address, uint32_t number, uint64_t seq);
    /* The context ends, and the caller gives the memory at this address back. */
    void (*graph_memory_lose)(uint64_t address);

    /* Calls on a stream that captures, which become nodes (graph/capture.h). */
    int (*capture_launch)(struct rt_stream *st, const void *function, const struct rt_launch *l,
                          const CUlaunchAttribute *attributes, unsigned count);
    int (*capture_copy)(struct rt_stream *st, const struct rt_box *box);
    int (*capture_fill)(struct rt_stream *st, const struct rt_fill *fill);
    int (*capture_alloc)(struct rt_stream *st, uint64_t size, CUdeviceptr *out);
    int (*capture_free)(struct rt_stream *st, CUdeviceptr address);
    int (*capture_host)(struct rt_stream *st, CUhostFn fn, void *arg);
    int (*capture_memops)(struct rt_stream *st, const CUstreamBatchMemOpParams *ops, unsigned count,
                          unsigned flags);
    /* `external`: as a node. */
    int (*capture_record)(struct rt_stream *st, CUevent event, bool external);
    /* Either the stream captures or the event was captured. */
    int (*capture_wait)(struct rt_stream *st, CUevent event, bool external);
    /* The stream goes away: a capture that began in it does, too; one that it joined goes on
     * without it. */
    void (*capture_stream_ends)(struct rt_stream *st);
};

extern const struct rt_hooks rt_hooks;

#endif
