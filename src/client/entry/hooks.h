/*
 * Upward calls: what folders tell those above them, which they may not call. There is one table,
 * which client/init.c fills in. All other calls from folder to folder go down.
 *
 * Functions that return int return CUresult values. Unless it says otherwise, they are called on
 * any thread, with no lock held.
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
    /* Called around a fork, by one thread at a time; in the child that thread is the only one. */
    void (*fork_prepare)(void);
    void (*fork_parent)(void);
    void (*fork_child)(void);

    /* A context ends; its streams and events are gone already. Gives back what else the context
     * owns; nothing of it runs any more. */
    void (*context_ends)(struct rt_context *c);
    /* CU_LIMIT_MALLOC_HEAP_SIZE changes to that many bytes. CUresult. */
    int (*heap_resized)(struct rt_context *c, uint64_t size);
    /* The program has a primary context, perhaps not for the first time. */
    void (*primary_retained)(struct rt_context *c);
    /* The program has waited for a stream, an event or a context. */
    void (*synchronized)(void);

    /* Moves all managed memory that is in this process to the device (stream/coherence.h).
     * CUresult. */
    int (*pages_release)(void);

    /* For the checker (stream/check.h), and called only if the program is checked: the session
     * exists; memory has come into the map; the program ends. The map's lock is not held. */
    int (*check_begin)(void);
    void (*check_entered)(const struct rt_range *r);
    void (*check_end)(void);

    /* For memory of graphs (graph/memory.h). The program frees an address, in the order of queue
     * `number` after `seq` (0: at once). CUDA_ERROR_NOT_FOUND: it is not memory of a graph. */
    int (*graph_memory_free)(uint64_t address, uint32_t number, uint64_t seq);
    /* The context ends, and the caller gives back the memory at this address. */
    void (*graph_memory_lose)(uint64_t address);

    /* Calls on a stream that captures; they become nodes (graph/capture.h). */
    int (*capture_launch)(struct rt_stream *st, const void *function, const struct rt_launch *l,
                          const CUlaunchAttribute *attributes, unsigned count);
    int (*capture_copy)(struct rt_stream *st, const struct rt_box *box);
    int (*capture_fill)(struct rt_stream *st, const struct rt_fill *fill);
    int (*capture_alloc)(struct rt_stream *st, uint64_t size, CUdeviceptr *out);
    int (*capture_free)(struct rt_stream *st, CUdeviceptr address);
    int (*capture_host)(struct rt_stream *st, CUhostFn fn, void *arg);
    int (*capture_memops)(struct rt_stream *st, const CUstreamBatchMemOpParams *ops, unsigned count,
                          unsigned flags);
    /* `external`: the event becomes a node. */
    int (*capture_record)(struct rt_stream *st, CUevent event, bool external);
    /* Either the stream captures, or the event was recorded in a capture. */
    int (*capture_wait)(struct rt_stream *st, CUevent event, bool external);
    /* The stream is destroyed. A capture that began in it ends, too; one that it joined goes on
     * without it. */
    void (*capture_stream_ends)(struct rt_stream *st);
};

extern const struct rt_hooks rt_hooks;

#endif
