/*
 * An operation of a queue, as it is kept while something holds it back.
 */
#ifndef GMUX_DEVICE_CUDA_OP_H
#define GMUX_DEVICE_CUDA_OP_H

#include "device/cuda/state.h"

enum cuda_op_kind {
    CUDA_OP_LAUNCH,
    CUDA_OP_COPY,
    CUDA_OP_COPY_ARRAY,
    CUDA_OP_WRITE,
    CUDA_OP_FILL,
    CUDA_OP_WAIT,
    CUDA_OP_STAMP,
    CUDA_OP_GATE,
    CUDA_OP_VALUE, /* a gate that opens when a word has a value */
    CUDA_OP_MARK,
    CUDA_OP_GRAPH, /* graph.h */
};

struct cuda_graph;

struct cuda_op_launch {
    struct cuda_library *library; /* where the kernel is; kept while the op is held */
    CUkernel kernel;
    CUfunction loaded; /* the kernel in the primary context */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    uint32_t modules; /* the client's count of changes: while it stays, so does the kernel */
    bool in_clusters; /* as the kernel was compiled */
    bool prints;      /* may print */
    bool more;        /* others wait behind it */
    bool precedes;    /* launches of others with the stream's priority (precedence.h) */
    uint32_t attributes;
    uint32_t params_size; /* with the attributes, which stand first */
};

struct cuda_op {
    struct gm_list link; /* queue->held */
    enum cuda_op_kind kind;
    uint64_t seq;
    const void
        *bytes; /* of a launch or a write: behind the op where it is held, else the caller's */
    union {
        struct cuda_op_launch launch;
        struct wire_rec_copy copy;
        struct wire_rec_copy_array copy_array;
        struct wire_rec_fill fill;
        struct {
            uint64_t dst;
            uint32_t size;
        } write;
        struct {
            struct dev_queue *other;
            uint64_t seq;
        } wait;
        struct wire_rec_wait_value value;
        uint32_t event;
        struct cuda_graph *graph;
    } u;
};

/* The driver's calls add to a graph of its own. */
static inline bool cuda_captures(const struct dev_queue *q)
{
    return q->learning.into != NULL;
}
/* Takes the result of a driver call for an operation: as cuda_check(), but while a run is learnt a
 * failure makes the run stay plain. */
static inline bool cuda_outcome(struct dev_queue *q, CUresult r, const char *what)
{
    if (GM_LIKELY(r == CUDA_SUCCESS))
        return true;
    q->learning.failed = true;
    return q->learning.run && !cuda_is_fatal(r) ? false : cuda_check(q->client, r, what);
}
/* The operation names memory that is not the client's: as cuda_wrong(), with the same exception. */
static inline void cuda_misplaced(struct dev_queue *q, CUresult r, uint64_t address,
                                  const char *what)
{
    q->learning.failed = true;
    if (!q->learning.run)
        cuda_wrong(q->client, r, address, what);
}
/* The stream into which the driver is to put the queue's next operation. */
static inline CUstream cuda_into(const struct dev_queue *q)
{
    return GM_UNLIKELY(cuda_captures(q)) ? q->learning.into : q->stream;
}

/* The queue is in the primary context, and the kernel is known to be loaded there. */
static inline bool cuda_is_loaded_there(const struct dev_queue *q, CUfunction loaded)
{
    return GM_LIKELY(loaded && !q->gpu->is_fallback);
}

/* Finds the kernel of a launch again, after its queue has gone to another context, or goes there
 * meanwhile. False: the client has an error, or is about to be stopped. The client's thread. */
bool cuda_op_find_kernel(struct dev_queue *q, struct cuda_op_launch *l);

/* Hands an operation to the driver. The client's thread. */
void cuda_op_submit(struct dev_queue *q, const struct cuda_op *op);

/* A client's launch attributes, copied to `out` (DEV_LAUNCH_ATTRIBUTES_MAX). False if there are too
 * many, or one that a client may not give. */
bool cuda_attributes_take(CUlaunchAttribute *out, const void *bytes, size_t size);

#endif
