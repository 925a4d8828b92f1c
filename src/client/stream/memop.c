/*
 * Stream memory operations: a stream stores a word, or waits for one. A store is a record. A wait is a gate that the
 * library's thread opens when it sees the value, so it needs a word that this process can read: device memory that only
 * the device can touch cannot be waited for. The device itself never waits, because a stream of the driver's that does
 * can hold up everybody's calls.
 */
#include <stdlib.h>

#include "client/gen/api.h"
#include "client/session/map.h"
#include "client/stream/capture.h"
#include "client/stream/hostfunc.h"

enum { WAIT_KIND = CU_STREAM_WAIT_VALUE_NOR }; /* bits of the flags that say how to compare */

struct memop {
    bool waits;
    bool wide; /* 64 bits */
    bool host; /* the program may look at it: so may we, and store there */
    bool apart;
    uint64_t window;
    void *address; /* for us */
    uint64_t value;
    unsigned flags;
};

/* Some GPUs can; of the others their own driver would say the same. */
static int flush_refused(void)
{
    static atomic_bool said;
    if (!rt_session->devices[rt_current_device()].attributes[CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES])
        return CUDA_ERROR_NOT_SUPPORTED;
    return (int)rt_not_supported("flushing other devices' writes in a stream", &said);
}

static int prepare(struct memop *op, CUdeviceptr address)
{
    const unsigned known = op->waits ? (unsigned)WAIT_KIND : (unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    struct rt_range range;
    unsigned size = op->wide ? 8 : 4;
    if (op->waits && (op->flags & CU_STREAM_WAIT_VALUE_FLUSH))
        return flush_refused();
    if ((op->flags & ~known) || address % size || !rt_memory_device_range(address, size, &range, &op->window))
        return CUDA_ERROR_INVALID_VALUE;
    op->apart = rt_memory_is_apart(&range);
    op->host = !rt_memory_is_device(&range);
    op->address = (void *)(uintptr_t)op->window; /* the window is mapped here, also for registered memory */
    return CUDA_SUCCESS;
}

static bool reached(const struct memop *op)
{
    if (op->wide) {
        uint64_t now = atomic_load_explicit((_Atomic uint64_t *)op->address, memory_order_acquire);
        switch (op->flags & WAIT_KIND) {
        case CU_STREAM_WAIT_VALUE_GEQ:
            return (int64_t)(now - op->value) >= 0;
        case CU_STREAM_WAIT_VALUE_EQ:
            return now == op->value;
        case CU_STREAM_WAIT_VALUE_AND:
            return (now & op->value) != 0;
        default:
            return ~(now | op->value) != 0;
        }
    }
    uint32_t now = atomic_load_explicit((_Atomic uint32_t *)op->address, memory_order_acquire);
    uint32_t value = (uint32_t)op->value;
    switch (op->flags & WAIT_KIND) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return (int32_t)(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value) != 0;
    default:
        return ~(now | value) != 0;
    }
}

static bool is_over(void *arg)
{
    return reached(arg);
}

/* Stores on the way through the gate. */
static bool store(void *arg)
{
    const struct memop *op = arg;
    atomic_store_explicit((_Atomic uint64_t *)op->address, op->value, memory_order_release);
    return true;
}

static int gate(struct rt_stream *st, const struct memop *op, bool (*ready)(void *arg))
{
    struct memop *kept = malloc(sizeof(*kept));
    if (!kept)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *kept = *op;
    int r = rt_gate_add(st, ready, free, kept);
    if (r)
        free(kept);
    return r;
}

static int perform(struct rt_stream *st, const struct memop *op)
{
    if (op->waits) {
        static atomic_bool said;
        if (op->apart)
            return (int)rt_not_supported("cuStreamWaitValue of device memory", &said);
        return gate(st, op, is_over);
    }
    if (op->wide && op->host && rt_session->memory_apart) /* a GPU's driver copies to device memory only */
        return gate(st, op, store);
    if (op->wide) {
        struct wire_rec_write r = { .head.op = WIRE_OP_WRITE, .dst = op->window };
        return rt_queue_submit(st, &r.head, sizeof(r), &op->value, sizeof(op->value));
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
    return rt_queue_submit(st, &r.head, sizeof(r), NULL, 0);
}

static int enter(CUstream stream, struct rt_stream **st)
{
    struct rt_context *c;
    int r = rt_enter_stream(stream, &c, st);
    if (r == CUDA_SUCCESS && GM_UNLIKELY(rt_stream_captures(*st)))
        r = rt_capture_refuse(*st);
    return r;
}

static int one(CUstream stream, CUdeviceptr address, struct memop op)
{
    struct rt_stream *st;
    int r = enter(stream, &st);
    r = r ? r : prepare(&op, address);
    return r ? r : perform(st, &op);
}

/* --- entry points ------------------------------------------------------------------------------------------------- */

CUresult rt_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return one(stream, addr, (struct memop) { .waits = true, .value = value, .flags = flags });
}

CUresult rt_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return one(stream, addr, (struct memop) { .waits = true, .wide = true, .value = value, .flags = flags });
}

CUresult rt_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return one(stream, addr, (struct memop) { .value = value, .flags = flags });
}

CUresult rt_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return one(stream, addr, (struct memop) { .wide = true, .value = value, .flags = flags });
}

CUresult rt_cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return rt_cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult rt_cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return rt_cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult rt_cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return rt_cuStreamWriteValue32_v2(stream, addr, value, flags);
}

CUresult rt_cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return rt_cuStreamWriteValue64_v2(stream, addr, value, flags);
}

/* A barrier between operations of one stream is there anyway; *none: the operation is one. */
static int read_op(const CUstreamBatchMemOpParams *p, struct memop *op, bool *none)
{
    *none = false;
    switch (p->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        *op = (struct memop) { .waits = true,
                               .wide = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64,
                               .flags = p->waitValue.flags };
        op->value = op->wide ? p->waitValue.value64 : p->waitValue.value;
        return prepare(op, p->waitValue.address);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        *op =
            (struct memop) { .wide = p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64, .flags = p->writeValue.flags };
        op->value = op->wide ? p->writeValue.value64 : p->writeValue.value;
        return prepare(op, p->writeValue.address);
    case CU_STREAM_MEM_OP_BARRIER:
        *none = true;
        return p->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return flush_refused();
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* All are looked at before the first one is queued. */
CUresult rt_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                                  unsigned int flags)
{
    struct rt_stream *st;
    struct memop op;
    bool none;
    int r = enter(stream, &st);
    if (r)
        return r;
    if (count > 256 || (count && !paramArray) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = read_op(&paramArray[i], &op, &none);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++) {
        r = read_op(&paramArray[i], &op, &none);
        if (r == CUDA_SUCCESS && !none)
            r = perform(st, &op);
    }
    return r;
}

CUresult rt_cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                               unsigned int flags)
{
    return rt_cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}
