/*
 * Limits of a context, which all its clients share: each limit is the largest that a client has
 * asked for. Stacks may grow at any time. The heap of device malloc and the buffer of device printf
 * may grow only before the first kernel that uses them, of any client. So the heap, which all
 * clients share, is large from the beginning; it takes no memory until there is such a kernel. The
 * buffer is made with the context (open.c) in the driver's own size, which is more than a program
 * takes at once (transport/session.h). Nobody is charged for the device memory of all these, hence
 * their bounds.
 *
 * Also answers how much memory is left.
 */
#include "device/cuda/admit.h"
#include "device/cuda/call.h"
#include "device/cuda/settle.h"
#include "device/cuda/local.h"

static const struct {
    CUlimit limit;
    uint64_t most;
} limits[] = {
    { CU_LIMIT_STACK_SIZE, UINT64_MAX }, /* stacks_max() */
    { CU_LIMIT_PRINTF_FIFO_SIZE, 64u << 20 },
    { CU_LIMIT_MALLOC_HEAP_SIZE, 2ull << 30 },
};

/* The driver's word, which also counts what the context itself takes and what programs outside of
 * gmux have. */
int cuda_memory_left(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    size_t left = 0, total;
    if (!wire_dec_end(args))
        return GM_CUDA_INVALID_VALUE;
    CUresult r = c->dev->api.cuMemGetInfo_v2(&left, &total);
    wire_put_call_memory_left_is(reply, &(struct wire_call_memory_left_is) { left });
    return (int)r;
}

static CUresult raise_limit(struct dev_client *c, CUlimit limit, uint64_t value)
{
    const bool stack = limit == CU_LIMIT_STACK_SIZE;
    size_t now = atomic_load_explicit(&c->asked->stack, memory_order_relaxed);
    CUresult r = stack ? CUDA_SUCCESS : c->dev->api.cuCtxGetLimit(&now, limit);
    if (r != CUDA_SUCCESS || value <= now)
        return r;
    struct cuda_gpu *g = cuda_settle(c, cuda_home(c, c->asked->index), CUDA_MOVES);
    if (!g)
        return CUDA_ERROR_NOT_READY;
    r = stack ? cuda_stack_raise(g, value)
              : CUDA_CALL(g->dev, CUDA_GPU_BIT(g), cuCtxSetLimit, limit, value);
    cuda_settled(c, g);
    /* Too late for the buffer of printf. At worst some text is lost, so that is no error. */
    bool late = limit == CU_LIMIT_PRINTF_FIFO_SIZE && r == CUDA_ERROR_INVALID_VALUE;
    return late ? CUDA_SUCCESS : r;
}

/* There is a stack for each thread that the device can hold. All together may take an eighth of its
 * memory: 64 KiB each on an H200. */
static uint64_t stacks_max(const struct cuda_gpu *g)
{
    const uint64_t each =
        (uint64_t)g->info.attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR];
    const uint64_t threads = each * g->info.multiprocessors;
    return threads ? g->info.memory_total / 8 / threads : 0;
}

int cuda_limit_raise(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_limit w;
    wire_get_call_limit(args, &w);
    for (unsigned i = 0; i < GM_ARRAY_LEN(limits); i++) {
        if ((uint32_t)limits[i].limit != w.limit)
            continue;
        if (w.value > limits[i].most ||
            (limits[i].limit == CU_LIMIT_STACK_SIZE && w.value > stacks_max(c->asked)))
            return GM_CUDA_OUT_OF_MEMORY;
        return (int)raise_limit(c, limits[i].limit, w.value);
    }
    return GM_CUDA_NOT_SUPPORTED;
}
