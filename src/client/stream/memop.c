/*
 * Stream memory operations: a stream stores a word, or waits until a word has a value. Both are
 * records. The executor watches the word, wherever it lies. The device itself never waits, because
 * a waiting stream of the driver's can hold up the calls of all clients.
 */
#include "client/stream/memop.h"

#include <stdlib.h>

#include "client/gen/api.h"
#include "client/session/map.h"
#include "client/stream/capture.h"

enum { COMPARE = CU_STREAM_WAIT_VALUE_NOR }; /* the bits of the flags that say how to compare */
/* A flag of the first version of these functions only, which asks for nothing here. */
#define NO_BARRIER (unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER

/* Refuses to flush. Some GPUs could do it, but this library does not; for others their own driver
 * refuses it as well. */
static int flush_refused(void)
{
    static atomic_bool said;
    if (!rt_session->devices[rt_current_device()]
             .attributes[CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES])
        return CUDA_ERROR_NOT_SUPPORTED;
    return (int)rt_not_supported("flushing other devices' writes in a stream", &said);
}

static int find_word(struct rt_memop *op, CUdeviceptr address)
{
    struct rt_range range;
    const unsigned size = op->wide ? 8 : 4;
    if (address % size || !rt_memory_device_range(address, size, &range, &op->window))
        return CUDA_ERROR_INVALID_VALUE;
    op->in_graphs_only = rt_memory_is_managed(&range) || range.ordered;
    return CUDA_SUCCESS;
}

static int read_wait(const CUstreamBatchMemOpParams *p, struct rt_memop *op)
{
    *op = (struct rt_memop) { .waits = true,
                              .wide = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64,
                              .compare = p->waitValue.flags & COMPARE };
    op->value = op->wide ? p->waitValue.value64 : p->waitValue.value;
    if (p->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
        return flush_refused();
    return p->waitValue.flags & ~(unsigned)COMPARE ? CUDA_ERROR_INVALID_VALUE
                                                   : find_word(op, p->waitValue.address);
}

static int read_write(const CUstreamBatchMemOpParams *p, struct rt_memop *op)
{
    *op = (struct rt_memop) { .wide = p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 };
    op->value = op->wide ? p->writeValue.value64 : p->writeValue.value;
    return p->writeValue.flags ? CUDA_ERROR_INVALID_VALUE : find_word(op, p->writeValue.address);
}

/* Reads an operation. A barrier is not needed, because a stream's operations are in order anyway;
 * then *none is set. */
static int read_op(const CUstreamBatchMemOpParams *p, struct rt_memop *op, bool *none)
{
    *none = false;
    switch (p->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return read_wait(p, op);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return read_write(p, op);
    default: /* a barrier */
        *none = true;
        return p->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    }
}

/* Checked of all operations before anything else. */
static int check_kind(CUstreamBatchMemOpType operation)
{
    switch (operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
    case CU_STREAM_MEM_OP_BARRIER:
        return CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return flush_refused();
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

int rt_memops_read(const CUstreamBatchMemOpParams *params, unsigned count, unsigned flags,
                   struct rt_memop *out, unsigned *used)
{
    int r = count > RT_MEMOPS_MAX || (count && !params) || flags ? CUDA_ERROR_INVALID_VALUE
                                                                 : CUDA_SUCCESS;
    *used = 0;
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = check_kind(params[i].operation);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++) {
        bool none;
        r = read_op(&params[i], &out[*used], &none);
        *used += !none;
    }
    return r;
}

int rt_memop_put(struct rt_stream *st, const struct rt_memop *op)
{
    if (op->waits) {
        struct wire_rec_wait_value r = { .head.op = WIRE_OP_WAIT_VALUE,
                                         .address = op->window,
                                         .value = op->value,
                                         .width = op->wide ? 8 : 4,
                                         .compare = op->compare };
        return rt_queue_put(st, &r.head, sizeof(r), NULL, 0, NULL);
    }
    if (op->wide) {
        struct wire_rec_write r = { .head.op = WIRE_OP_WRITE, .dst = op->window };
        return rt_queue_put(st, &r.head, sizeof(r), &op->value, sizeof(op->value), NULL);
    }
    struct wire_rec_fill r = {
        .head.op = WIRE_OP_FILL,
        .dst = op->window,
        .pitch = 4,
        .width = 1,
        .height = 1,
        .value = (uint32_t)op->value,
        .element_size = 4,
    };
    return rt_queue_put(st, &r.head, sizeof(r), NULL, 0, NULL);
}

/* Checks all operations before it queues the first. */
static int perform(CUstream stream, unsigned count, const CUstreamBatchMemOpParams *params,
                   unsigned flags)
{
    struct rt_context *c;
    struct rt_stream *st;
    struct rt_memop ops[RT_MEMOPS_MAX];
    unsigned used;
    int r = rt_enter_stream(stream, &c, &st);
    r = r ? r : rt_capture_usable(st);
    if (r == CUDA_SUCCESS && GM_UNLIKELY(rt_stream_captures(st)))
        return rt_hooks.capture_memops(st, params, count, flags);
    r = r ? r : rt_memops_read(params, count, flags, ops, &used);
    for (unsigned i = 0; r == CUDA_SUCCESS && i < used; i++)
        r = ops[i].in_graphs_only ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (r || !used || (r = rt_queue_begin(st)) != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < used && r == CUDA_SUCCESS; i++)
        r = rt_memop_put(st, &ops[i]);
    rt_queue_end();
    return r;
}

/* --- entry points ----------------------------------------------------------------------------- */

CUresult rt_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                   unsigned int flags)
{
    const CUstreamBatchMemOpParams p = { .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                                        .address = addr,
                                                        .value = value,
                                                        .flags = flags } };
    return perform(stream, 1, &p, 0);
}

CUresult rt_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                   unsigned int flags)
{
    const CUstreamBatchMemOpParams p = { .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_64,
                                                        .address = addr,
                                                        .value64 = value,
                                                        .flags = flags } };
    return perform(stream, 1, &p, 0);
}

CUresult rt_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                    unsigned int flags)
{
    const CUstreamBatchMemOpParams p = { .writeValue = { .operation =
                                                             CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                                         .address = addr,
                                                         .value = value,
                                                         .flags = flags } };
    return perform(stream, 1, &p, 0);
}

CUresult rt_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                    unsigned int flags)
{
    const CUstreamBatchMemOpParams p = { .writeValue = { .operation =
                                                             CU_STREAM_MEM_OP_WRITE_VALUE_64,
                                                         .address = addr,
                                                         .value64 = value,
                                                         .flags = flags } };
    return perform(stream, 1, &p, 0);
}

CUresult rt_cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags)
{
    return rt_cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult rt_cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned int flags)
{
    return rt_cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult rt_cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned int flags)
{
    return rt_cuStreamWriteValue32_v2(stream, addr, value, flags & ~NO_BARRIER);
}

CUresult rt_cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned int flags)
{
    return rt_cuStreamWriteValue64_v2(stream, addr, value, flags & ~NO_BARRIER);
}

CUresult rt_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                                  CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    return perform(stream, count, paramArray, flags);
}

CUresult rt_cuStreamBatchMemOp(CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    return rt_cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}
