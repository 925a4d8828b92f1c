/*
 * Occupancy: how many blocks of a function fit on a multiprocessor. It is computed from the
 * device's attributes and from what was reported about the function when it was loaded, by NVIDIA's
 * published rules: registers are given to warps, and shared memory to blocks, in units.
 */
#include <string.h>

#include "client/gen/api.h"
#include "client/module/launch.h"
#include "client/session/attach.h"
#include "client/stream/call.h"

#define REGISTER_UNIT 256u /* registers; for each warp */
#define SHARED_UNIT   128u /* bytes; for each block */
#define QUARTERS      4u   /* parts of a multiprocessor; a warp's registers are in one of them */

struct limits {
    uint32_t warp;
    uint32_t threads, blocks, registers, shared; /* of a multiprocessor */
    uint32_t block_threads;
    uint32_t shared_reserved; /* for each block */
};

static uint32_t attribute(const struct rt_function *f, CUdevice_attribute a)
{
    int32_t v = rt_session->devices[f->module->device].attributes[a];
    return v > 0 ? (uint32_t)v : 0;
}

/* Returns the limits of the function's device. */
static struct limits device_limits(const struct rt_function *f)
{
    return (struct limits) {
        .warp = GM_MAX(attribute(f, CU_DEVICE_ATTRIBUTE_WARP_SIZE), 1u),
        .threads = attribute(f, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        .blocks = attribute(f, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        .registers = attribute(f, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        .shared = attribute(f, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .block_threads = attribute(f, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .shared_reserved = attribute(f, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK),
    };
}

static uint64_t round_up(uint64_t x, uint64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

uint32_t rt_occupancy_register_threads(const struct rt_function *f)
{
    uint32_t warp = device_limits(f).warp;
    uint32_t registers = attribute(f, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    if (!f->entry->registers || !registers)
        return 0;
    uint64_t each = round_up((uint64_t)f->entry->registers * warp, REGISTER_UNIT);
    return (uint32_t)(registers / QUARTERS / each * QUARTERS * warp);
}

/* How much dynamic shared memory a question may assume: what every kernel may have, also where the
 * program has lowered the limit of this one for launches. */
static uint64_t dynamic_most(const struct rt_function *f)
{
    uint64_t usual = attribute(f, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    uint64_t rest = usual > f->entry->shared_bytes ? usual - f->entry->shared_bytes : 0;
    return GM_MAX(rest, (uint64_t)atomic_load_explicit(&f->dynamic_limit, memory_order_relaxed));
}

static uint32_t active_blocks(const struct rt_function *f, uint32_t threads, uint64_t dynamic_bytes)
{
    const struct limits l = device_limits(f);
    const struct rt_entry *e = f->entry;
    if (threads == 0 ||
        /* Not what the kernel was compiled for: NVIDIA's driver does so, too. */
        threads > l.block_threads || dynamic_bytes > dynamic_most(f))
        return 0;
    uint32_t warps = (threads + l.warp - 1) / l.warp;
    uint64_t n = l.threads / (warps * l.warp);
    if (l.blocks)
        n = GM_MIN(n, (uint64_t)l.blocks);
    if (e->registers && l.registers) {
        uint64_t warps_fit = l.registers / round_up((uint64_t)e->registers * l.warp, REGISTER_UNIT);
        n = GM_MIN(n, warps_fit / warps);
    }
    uint64_t shared = round_up(e->shared_bytes + dynamic_bytes + l.shared_reserved, SHARED_UNIT);
    if (shared && l.shared)
        n = GM_MIN(n, l.shared / shared);
    return (uint32_t)n;
}

/* Asks the genuine driver, if there is one. CUresult. */
static int device_blocks(struct rt_function *f, uint32_t threads, uint64_t dynamic_bytes,
                         uint32_t *out)
{
    struct rt_call c;
    struct wire_call_value v = { 0 };
    /* Programs ask again and again with the same numbers. The last answer is kept, in one word. */
    uint64_t question = (uint64_t)(threads & 0xffffu) << 48 | (dynamic_bytes & 0xffffffffu) << 16;
    uint64_t last = atomic_load_explicit(&f->occupancy, memory_order_relaxed);
    if (threads > 0xffffu || dynamic_bytes > 0xffffffffu)
        return CUDA_ERROR_INVALID_VALUE;
    if (last && (last & ~0xffffull) == question) {
        *out = (uint32_t)(last & 0xffffu) - 1;
        return CUDA_SUCCESS;
    }
    rt_call_begin(&c, WIRE_CALL_BLOCKS, f->module->number);
    wire_put_call_blocks(
        &c.args, &(struct wire_call_blocks) { f->entry->index, threads, (uint32_t)dynamic_bytes });
    int r = rt_call_run(&c);
    if (r == CUDA_SUCCESS) {
        wire_get_call_value(&c.reply, &v);
        *out = (uint32_t)GM_MIN((uint32_t)v.value, 0xfffeu);
        atomic_store_explicit(&f->occupancy, question | (*out + 1), memory_order_relaxed);
    }
    return rt_call_end(&c, r);
}

int rt_occupancy_blocks(struct rt_function *f, uint32_t threads, uint64_t dynamic_bytes,
                        uint32_t *out)
{
    *out = active_blocks(f, threads, dynamic_bytes);
    return f->module->by_name && *out ? device_blocks(f, threads, dynamic_bytes, out)
                                      : CUDA_SUCCESS;
}

static int enter(CUfunction func, struct rt_function **f)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    *f = rt_function_find(func);
    return *f ? rt_function_on(f, c->device) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult rt_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
                                                                 int blockSize,
                                                                 size_t dynamicSMemSize,
                                                                 unsigned int flags)
{
    struct rt_context *c;
    struct rt_function *f;
    int r = rt_enter(&c);
    if (r == CUDA_SUCCESS && (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    r = r ? r : enter(func, &f);
    if (r)
        return r;
    if (!numBlocks || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t n;
    r = rt_occupancy_blocks(f, (uint32_t)blockSize, dynamicSMemSize, &n);
    if (r == CUDA_SUCCESS)
        *numBlocks = (int)n;
    return r;
}

CUresult rt_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
                                                        int blockSize, size_t dynamicSMemSize)
{
    return rt_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                   dynamicSMemSize, 0);
}

/* Finds the block size with most threads on a multiprocessor; of equal ones the largest. */
CUresult rt_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
                                                      CUfunction func,
                                                      CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                      size_t dynamicSMemSize, int blockSizeLimit,
                                                      unsigned int flags)
{
    struct rt_function *f;
    int r = enter(func, &f);
    if (r)
        return r;
    if (!minGridSize || !blockSize || blockSizeLimit < 0 ||
        (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    const struct limits l = device_limits(f);
    uint32_t most = GM_MIN(l.block_threads, f->entry->max_threads);
    if (blockSizeLimit)
        most = GM_MIN(most, (uint32_t)blockSizeLimit);
    uint32_t best_size = 0, best_blocks = 0;
    for (uint32_t size = (uint32_t)round_up(most, l.warp); size > 0; size -= l.warp) {
        uint32_t threads = GM_MIN(size, most);
        size_t dynamic =
            blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize((int)threads) : dynamicSMemSize;
        uint32_t n;
        r = rt_occupancy_blocks(f, threads, dynamic, &n);
        if (r)
            return r;
        if ((uint64_t)n * threads > (uint64_t)best_blocks * best_size) {
            best_size = threads;
            best_blocks = n;
        }
    }
    if (best_blocks == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *blockSize = (int)best_size;
    *minGridSize = (int)(best_blocks * GM_MAX(rt_part_visible(f->module->device), 1u));
    return CUDA_SUCCESS;
}

CUresult rt_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                             CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                             size_t dynamicSMemSize, int blockSizeLimit)
{
    return rt_cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
                                                        blockSizeToDynamicSMemSize, dynamicSMemSize,
                                                        blockSizeLimit, 0);
}

CUresult rt_cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func,
                                                    int numBlocks, int blockSize)
{
    struct rt_function *f;
    int r = enter(func, &f);
    if (r)
        return r;
    if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const struct limits l = device_limits(f);
    if ((uint32_t)numBlocks > l.blocks || (uint32_t)blockSize > l.block_threads)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t each = l.shared / (uint32_t)numBlocks / SHARED_UNIT * SHARED_UNIT;
    uint64_t taken = (uint64_t)f->entry->shared_bytes + l.shared_reserved;
    uint64_t most = atomic_load_explicit(&f->dynamic_limit, memory_order_relaxed);
    *dynamicSmemSize = each > taken ? GM_MIN(each - taken, most) : 0;
    return CUDA_SUCCESS;
}

/* --- clusters: only the driver knows which multiprocessors stand together --------------------- */

int rt_occupancy_clusters(struct rt_function *f, const struct wire_call_clusters *w, int *out)
{
    struct rt_call c;
    struct wire_call_value v;
    if (!f->module->by_name)
        return CUDA_ERROR_NOT_SUPPORTED; /* a device without clusters */
    rt_call_begin(&c, WIRE_CALL_CLUSTERS, f->module->number);
    wire_put_call_clusters(&c.args, w);
    int r = rt_call_run(&c);
    if (r == CUDA_SUCCESS) {
        wire_get_call_value(&c.reply, &v);
        *out = v.value;
    }
    return rt_call_end(&c, r);
}

static int ask_clusters(int *out, CUfunction func, const CUlaunchConfig *config, bool largest)
{
    CUlaunchAttribute attributes[RT_LAUNCH_ATTRIBUTES];
    struct rt_function *f;
    int r = enter(func, &f);
    if (r)
        return r;
    if (!out || !config || config->numAttrs > RT_LAUNCH_ATTRIBUTES ||
        (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t count = 0;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (rt_attribute_use(&config->attrs[i]) == RT_ATTRIBUTE_MATTERS)
            attributes[count++] = config->attrs[i];
    const struct wire_call_clusters w = {
        .index = f->entry->index,
        .largest = largest,
        .grid_x = config->gridDimX,
        .grid_y = config->gridDimY,
        .grid_z = config->gridDimZ,
        .block_x = config->blockDimX,
        .block_y = config->blockDimY,
        .block_z = config->blockDimZ,
        .shared_bytes = config->sharedMemBytes,
        .attributes = { .data = attributes, .size = count * (uint32_t)sizeof(*attributes) },
    };
    return rt_occupancy_clusters(f, &w, out);
}

CUresult rt_cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
                                         const CUlaunchConfig *config)
{
    return ask_clusters(numClusters, func, config, false);
}

CUresult rt_cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                               const CUlaunchConfig *config)
{
    return ask_clusters(clusterSize, func, config, true);
}
