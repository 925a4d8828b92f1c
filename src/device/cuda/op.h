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
};

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
    } u;
};

/* Takes the result of a driver call for an operation: as cuda_check(), but while a run is learnt a
 * failure makes the run stay plain. */
static inline bool cuda_outcome(struct dev_queue *q, CUresult r, const char *what)
{
    if (GM_LIKELY(!q->learning.run) || cuda_is_fatal(r))
        return cuda_check(q->client, r, what);
    if (r != CUDA_SUCCESS)
        q->learning.failed = true;
    return r == CUDA_SUCCESS;
}
/* The operation names memory that is not the client's: as cuda_wrong(), with the same exception. */
static inline void cuda_misplaced(struct dev_queue *q, CUresult r, uint64_t address,
                                  const char *what)
{
    if (q->learning.run)
        q->learning.failed = true;
    else
        cuda_wrong(q->client, r, address, what);
}
/* The stream into which the driver is to put the queue's next operation. */
static inline CUstream cuda_into(const struct dev_queue *q)
{
    return GM_UNLIKELY(q->learning.run != NULL) ? q->learning.into : q->stream;
}

/* Hands an operation to the driver. The client's thread. */
void cuda_op_submit(struct dev_queue *q, const struct cuda_op *op);

/* A client's launch attributes, copied to `out` (DEV_LAUNCH_ATTRIBUTES_MAX). False if there are too
 * many, or one that a client may not give. */
bool cuda_attributes_take(CUlaunchAttribute *out, const void *bytes, size_t size);

#endif
