/*
 * How many blocks of a kernel fit on a multiprocessor, computed from numbers alone: no device is
 * asked, so a program can ask about one that is not there. The rules are those that NVIDIA
 * publishes: registers are given to warps and shared memory to blocks, in units that depend on the
 * compute capability, and a warp's registers are in one of four parts of a multiprocessor. What
 * multiprocessors of these devices do not have (partitioned caches, a preference for L1) is taken
 * and not looked at.
 */
#ifndef GMUX_CUDA_OCCUPANCY_H
#define GMUX_CUDA_OCCUPANCY_H
#define __cuda_occupancy_h__ /* programs look for the toolkit's */

#include <limits.h>
#include <stddef.h>

#ifdef __CUDACC__
#define __OCC_INLINE inline __host__ __device__
#else
#define __OCC_INLINE inline
#endif

typedef enum cudaOccError_enum {
    CUDA_OCC_SUCCESS = 0,
    CUDA_OCC_ERROR_INVALID_INPUT = 1,
    CUDA_OCC_ERROR_UNKNOWN_DEVICE = 2,
} cudaOccError;

typedef enum cudaOccPartitionedGCConfig_enum {
    PARTITIONED_GC_OFF,
    PARTITIONED_GC_ON,
    PARTITIONED_GC_ON_STRICT,
} cudaOccPartitionedGCConfig;

typedef enum cudaOccFuncShmemConfig_enum {
    FUNC_SHMEM_LIMIT_DEFAULT,
    FUNC_SHMEM_LIMIT_OPTIN,
} cudaOccFuncShmemConfig;

typedef enum cudaOccCacheConfig_enum {
    CACHE_PREFER_NONE = 0,
    CACHE_PREFER_SHARED = 1,
    CACHE_PREFER_L1 = 2,
    CACHE_PREFER_EQUAL = 3,
} cudaOccCacheConfig;

typedef enum cudaOccCarveoutConfig_enum {
    SHAREDMEM_CARVEOUT_DEFAULT = -1,
    SHAREDMEM_CARVEOUT_MAX_SHARED = 100,
    SHAREDMEM_CARVEOUT_MAX_L1 = 0,
    SHAREDMEM_CARVEOUT_HALF = 50,
} cudaOccCarveoutConfig;

/* What allows no further block, as bits. */
typedef enum cudaOccLimitingFactor_enum {
    OCC_LIMIT_WARPS = 0x01,
    OCC_LIMIT_REGISTERS = 0x02,
    OCC_LIMIT_SHARED_MEMORY = 0x04,
    OCC_LIMIT_BLOCKS = 0x08,
    OCC_LIMIT_BARRIERS = 0x10,
    OCC_LIMIT_VIRTUAL_RESOURCES = 0x20,
} cudaOccLimitingFactor;

/* A device. In C++ it can be made of a cudaDeviceProp. */
typedef struct cudaOccDeviceProp {
    int computeMajor, computeMinor;
    int maxThreadsPerBlock, maxThreadsPerMultiprocessor;
    int regsPerBlock, regsPerMultiprocessor;
    int warpSize;
    size_t sharedMemPerBlock, sharedMemPerMultiprocessor; /* bytes */
    int numSms;
    size_t sharedMemPerBlockOptin, reservedSharedMemPerBlock; /* bytes */
#ifdef __cplusplus
    template <typename P>
    __OCC_INLINE cudaOccDeviceProp(const P &p)
        : computeMajor(p.major), computeMinor(p.minor), maxThreadsPerBlock(p.maxThreadsPerBlock),
          maxThreadsPerMultiprocessor(p.maxThreadsPerMultiProcessor), regsPerBlock(p.regsPerBlock),
          regsPerMultiprocessor(p.regsPerMultiprocessor), warpSize(p.warpSize),
          sharedMemPerBlock(p.sharedMemPerBlock),
          sharedMemPerMultiprocessor(p.sharedMemPerMultiprocessor), numSms(p.multiProcessorCount),
          sharedMemPerBlockOptin(p.sharedMemPerBlockOptin),
          reservedSharedMemPerBlock(p.reservedSharedMemPerBlock)
    {
    }
    __OCC_INLINE cudaOccDeviceProp()
        : computeMajor(0), computeMinor(0), maxThreadsPerBlock(0), maxThreadsPerMultiprocessor(0),
          regsPerBlock(0), regsPerMultiprocessor(0), warpSize(0), sharedMemPerBlock(0),
          sharedMemPerMultiprocessor(0), numSms(0), sharedMemPerBlockOptin(0),
          reservedSharedMemPerBlock(0)
    {
    }
#endif
} cudaOccDeviceProp;

/* A kernel. In C++ it can be made of a cudaFuncAttributes. */
typedef struct cudaOccFuncAttributes {
    int maxThreadsPerBlock;
    int numRegs;            /* of a thread */
    size_t sharedSizeBytes; /* of the kernel's own variables */
    cudaOccPartitionedGCConfig partitionedGCConfig;
    cudaOccFuncShmemConfig shmemLimitConfig; /* whether maxDynamicSharedSizeBytes counts */
    size_t maxDynamicSharedSizeBytes;
    int numBlockBarriers;
    int virtualResourceCount;
#ifdef __cplusplus
    template <typename A>
    __OCC_INLINE cudaOccFuncAttributes(const A &a)
        : maxThreadsPerBlock(a.maxThreadsPerBlock), numRegs(a.numRegs),
          sharedSizeBytes(a.sharedSizeBytes), partitionedGCConfig(PARTITIONED_GC_OFF),
          shmemLimitConfig(FUNC_SHMEM_LIMIT_OPTIN),
          maxDynamicSharedSizeBytes(a.maxDynamicSharedSizeBytes), numBlockBarriers(1),
          virtualResourceCount(0)
    {
    }
    __OCC_INLINE cudaOccFuncAttributes()
        : maxThreadsPerBlock(0), numRegs(0), sharedSizeBytes(0),
          partitionedGCConfig(PARTITIONED_GC_OFF), shmemLimitConfig(FUNC_SHMEM_LIMIT_DEFAULT),
          maxDynamicSharedSizeBytes(0), numBlockBarriers(0), virtualResourceCount(0)
    {
    }
#endif
} cudaOccFuncAttributes;

typedef struct cudaOccDeviceState {
    cudaOccCacheConfig cacheConfig;
    int carveoutConfig; /* per cent of the most shared memory, or a cudaOccCarveoutConfig */
#ifdef __cplusplus
    __OCC_INLINE cudaOccDeviceState()
        : cacheConfig(CACHE_PREFER_NONE), carveoutConfig(SHAREDMEM_CARVEOUT_DEFAULT)
    {
    }
#endif
} cudaOccDeviceState;

typedef struct cudaOccResult {
    int activeBlocksPerMultiprocessor;
    unsigned int limitingFactors; /* cudaOccLimitingFactor */
    int blockLimitRegs, blockLimitSharedMem, blockLimitWarps, blockLimitBlocks;
    int blockLimitBarriers, blockLimitVirtual;
    int allocatedRegistersPerBlock;
    size_t allocatedSharedMemPerBlock;
    cudaOccPartitionedGCConfig partitionedGCConfig;
} cudaOccResult;

static __OCC_INLINE int __occMin(int a, int b)
{
    return a < b ? a : b;
}

static __OCC_INLINE int __occDivideRoundUp(int x, int y)
{
    return (x + (y - 1)) / y;
}

static __OCC_INLINE int __occRoundUp(int x, int y)
{
    return __occDivideRoundUp(x, y) * y;
}

/* The device is one whose rules are known here. */
static __OCC_INLINE cudaOccError gmux_occ_known(const cudaOccDeviceProp *p)
{
    return p->computeMajor >= 5 && p->computeMajor <= 12 ? CUDA_OCC_SUCCESS
                                                         : CUDA_OCC_ERROR_UNKNOWN_DEVICE;
}

/* Shared memory is given to blocks in units of so many bytes. */
static __OCC_INLINE cudaOccError cudaOccSMemAllocationGranularity(int *unit,
                                                                  const cudaOccDeviceProp *p)
{
    *unit = p->computeMajor < 8 ? 256 : 128;
    return gmux_occ_known(p);
}

/* Registers are given to warps in units of so many. */
static __OCC_INLINE cudaOccError cudaOccRegAllocationGranularity(int *unit,
                                                                 const cudaOccDeviceProp *p)
{
    *unit = 256;
    return gmux_occ_known(p);
}

static __OCC_INLINE cudaOccError cudaOccRegAllocationMaxPerThread(int *most,
                                                                  const cudaOccDeviceProp *p)
{
    *most = p->computeMajor < 7 ? 255 : 256;
    return gmux_occ_known(p);
}

/* A multiprocessor has so many parts with registers of their own. */
static __OCC_INLINE cudaOccError cudaOccSubPartitionsPerMultiprocessor(int *parts,
                                                                       const cudaOccDeviceProp *p)
{
    *parts = p->computeMajor == 6 && p->computeMinor == 0 ? 2 : 4;
    return gmux_occ_known(p);
}

static __OCC_INLINE cudaOccError cudaOccMaxBlocksPerMultiprocessor(int *blocks,
                                                                   const cudaOccDeviceProp *p)
{
    int version = p->computeMajor * 10 + p->computeMinor;
    *blocks = version == 75 || version == 86 || version == 87 ? 16
              : version == 89 || version >= 110               ? 24
                                                              : 32;
    return gmux_occ_known(p);
}

/* The shared memory of a multiprocessor: all that there can be. A launch is given what it needs,
 * whatever the program prefers. */
static __OCC_INLINE cudaOccError cudaOccSMemPerMultiprocessor(size_t *bytes,
                                                              const cudaOccDeviceProp *p,
                                                              const cudaOccDeviceState *state)
{
    *bytes = p->sharedMemPerMultiprocessor;
    return state->carveoutConfig < SHAREDMEM_CARVEOUT_DEFAULT ||
                   state->carveoutConfig > SHAREDMEM_CARVEOUT_MAX_SHARED
               ? CUDA_OCC_ERROR_INVALID_INPUT
               : gmux_occ_known(p);
}

/* Returns whether the numbers can be those of a device and of a kernel. */
static __OCC_INLINE cudaOccError gmux_occ_check(const cudaOccDeviceProp *p,
                                                const cudaOccFuncAttributes *a,
                                                const cudaOccDeviceState *s)
{
    if (!p || !a || !s || p->maxThreadsPerBlock <= 0 || p->maxThreadsPerMultiprocessor <= 0 ||
        p->regsPerBlock <= 0 || p->regsPerMultiprocessor <= 0 || p->warpSize <= 0 ||
        p->sharedMemPerBlock == 0 || p->sharedMemPerMultiprocessor == 0 || p->numSms <= 0 ||
        a->maxThreadsPerBlock <= 0 || a->numRegs < 0)
        return CUDA_OCC_ERROR_INVALID_INPUT;
    return gmux_occ_known(p);
}

/* Sets the limit by registers, INT_MAX where the kernel uses none. */
static __OCC_INLINE void gmux_occ_registers(cudaOccResult *r, const cudaOccDeviceProp *p,
                                            const cudaOccFuncAttributes *a, int warps)
{
    int unit, parts, most;
    cudaOccRegAllocationGranularity(&unit, p);
    cudaOccSubPartitionsPerMultiprocessor(&parts, p);
    cudaOccRegAllocationMaxPerThread(&most, p);
    int each = __occRoundUp(a->numRegs * p->warpSize, unit);
    r->allocatedRegistersPerBlock = each * warps;
    if (!each)
        r->blockLimitRegs = INT_MAX;
    else if (a->numRegs > most || each * __occRoundUp(warps, 4) > p->regsPerBlock)
        r->blockLimitRegs = 0;
    else
        r->blockLimitRegs = p->regsPerMultiprocessor / parts / each * parts / warps;
}

/* Sets the limit by shared memory, INT_MAX where a block uses none. */
static __OCC_INLINE cudaOccError gmux_occ_shared(cudaOccResult *r, const cudaOccDeviceProp *p,
                                                 const cudaOccFuncAttributes *a,
                                                 const cudaOccDeviceState *s, size_t dynamic_bytes)
{
    int unit;
    size_t all, most = p->sharedMemPerBlock, used = a->sharedSizeBytes + dynamic_bytes;
    cudaOccError e = cudaOccSMemPerMultiprocessor(&all, p, s);
    cudaOccSMemAllocationGranularity(&unit, p);
    if (a->shmemLimitConfig == FUNC_SHMEM_LIMIT_OPTIN) {
        most = a->sharedSizeBytes + a->maxDynamicSharedSizeBytes;
        most = most < p->sharedMemPerBlockOptin ? most : p->sharedMemPerBlockOptin;
    }
    size_t bytes = used + p->reservedSharedMemPerBlock;
    bytes = (bytes + (size_t)unit - 1) / (size_t)unit * (size_t)unit;
    r->allocatedSharedMemPerBlock = bytes;
    r->blockLimitSharedMem = used > most ? 0 : bytes ? (int)(all / bytes) : INT_MAX;
    return e;
}

/* How many blocks of `threads` threads, with so many bytes of shared memory beside the kernel's own
 * variables, run on a multiprocessor at once, and what allows no more. None may be the answer. */
static __OCC_INLINE cudaOccError cudaOccMaxActiveBlocksPerMultiprocessor(
    cudaOccResult *r, const cudaOccDeviceProp *p, const cudaOccFuncAttributes *a,
    const cudaOccDeviceState *s, int threads, size_t dynamic_bytes)
{
    cudaOccError e = gmux_occ_check(p, a, s);
    if (!r || threads <= 0)
        return CUDA_OCC_ERROR_INVALID_INPUT;
    if (e)
        return e;
    int warps = __occDivideRoundUp(threads, p->warpSize);
    r->blockLimitWarps =
        threads <= p->maxThreadsPerBlock ? p->maxThreadsPerMultiprocessor / p->warpSize / warps : 0;
    cudaOccMaxBlocksPerMultiprocessor(&r->blockLimitBlocks, p);
    gmux_occ_registers(r, p, a, warps);
    e = gmux_occ_shared(r, p, a, s, dynamic_bytes);
    r->blockLimitBarriers = r->blockLimitVirtual = INT_MAX;
    r->partitionedGCConfig = PARTITIONED_GC_OFF;
    int n = __occMin(__occMin(r->blockLimitWarps, r->blockLimitBlocks),
                     __occMin(r->blockLimitRegs, r->blockLimitSharedMem));
    r->activeBlocksPerMultiprocessor = n;
    r->limitingFactors = (n == r->blockLimitWarps ? (unsigned)OCC_LIMIT_WARPS : 0u) |
                         (n == r->blockLimitRegs ? (unsigned)OCC_LIMIT_REGISTERS : 0u) |
                         (n == r->blockLimitSharedMem ? (unsigned)OCC_LIMIT_SHARED_MEMORY : 0u) |
                         (n == r->blockLimitBlocks ? (unsigned)OCC_LIMIT_BLOCKS : 0u);
    return e;
}

/* The most dynamic shared memory with which `blocks` blocks still run on a multiprocessor, beside
 * what is kept back for each. */
static __OCC_INLINE cudaOccError cudaOccAvailableDynamicSMemPerBlock(size_t *bytes,
                                                                     const cudaOccDeviceProp *p,
                                                                     const cudaOccFuncAttributes *a,
                                                                     const cudaOccDeviceState *s,
                                                                     int blocks, int threads)
{
    cudaOccResult r;
    cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, p, a, s, threads, 0);
    if (!bytes || blocks <= 0)
        return CUDA_OCC_ERROR_INVALID_INPUT;
    *bytes = 0;
    if (!e && blocks > r.activeBlocksPerMultiprocessor)
        e = CUDA_OCC_ERROR_INVALID_INPUT;
    if (e)
        return e;
    int unit;
    size_t all, most = p->sharedMemPerBlock, kept = a->sharedSizeBytes;
    cudaOccSMemAllocationGranularity(&unit, p);
    e = cudaOccSMemPerMultiprocessor(&all, p, s);
    if (a->shmemLimitConfig == FUNC_SHMEM_LIMIT_OPTIN)
        most = p->sharedMemPerBlockOptin;
    size_t each = all / (size_t)blocks / (size_t)unit * (size_t)unit;
    each = each > p->reservedSharedMemPerBlock ? each - p->reservedSharedMemPerBlock : 0;
    each = each < most ? each : most;
    *bytes = each > kept ? each - kept : 0;
    if (*bytes > a->maxDynamicSharedSizeBytes)
        *bytes = a->maxDynamicSharedSizeBytes;
    return e;
}

/* Keeps a block size if it is better than the one that was kept: with more threads at once. */
static __OCC_INLINE void gmux_occ_better(const cudaOccResult *r, int threads, int *blocks,
                                         int *block_size)
{
    if (r->activeBlocksPerMultiprocessor * threads > *blocks * *block_size) {
        *blocks = r->activeBlocksPerMultiprocessor;
        *block_size = threads;
    }
}

/* The largest block size of which most threads run at once, and how many blocks the device runs.
 * `dynamic_of` says how much dynamic shared memory a block size needs; without it all need the
 * same. */
static __OCC_INLINE cudaOccError cudaOccMaxPotentialOccupancyBlockSize(
    int *grid_size, int *block_size, const cudaOccDeviceProp *p, const cudaOccFuncAttributes *a,
    const cudaOccDeviceState *s, size_t (*dynamic_of)(int), size_t dynamic_bytes)
{
    cudaOccResult r;
    int blocks = 0, best = 0;
    cudaOccError e = gmux_occ_check(p, a, s);
    if (!grid_size || !block_size)
        return CUDA_OCC_ERROR_INVALID_INPUT;
    if (e)
        return e;
    int most = __occMin(p->maxThreadsPerBlock, a->maxThreadsPerBlock);
    for (int t = __occRoundUp(most, p->warpSize); !e && t > 0; t -= p->warpSize) {
        int threads = __occMin(t, most);
        e = cudaOccMaxActiveBlocksPerMultiprocessor(
            &r, p, a, s, threads, dynamic_of ? dynamic_of(threads) : dynamic_bytes);
        if (!e)
            gmux_occ_better(&r, threads, &blocks, &best);
    }
    *grid_size = blocks * p->numSms;
    *block_size = best;
    return e;
}

#ifdef __cplusplus
namespace
{

__OCC_INLINE cudaOccError cudaOccMaxPotentialOccupancyBlockSize(int *grid_size, int *block_size,
                                                                const cudaOccDeviceProp *p,
                                                                const cudaOccFuncAttributes *a,
                                                                const cudaOccDeviceState *s,
                                                                size_t dynamic_bytes = 0)
{
    return cudaOccMaxPotentialOccupancyBlockSize(grid_size, block_size, p, a, s, NULL,
                                                 dynamic_bytes);
}

template <typename F>
__OCC_INLINE cudaOccError cudaOccMaxPotentialOccupancyBlockSizeVariableSMem(
    int *grid_size, int *block_size, const cudaOccDeviceProp *p, const cudaOccFuncAttributes *a,
    const cudaOccDeviceState *s, F dynamic_of)
{
    cudaOccResult r;
    int blocks = 0, best = 0;
    cudaOccError e = gmux_occ_check(p, a, s);
    if (!grid_size || !block_size)
        return CUDA_OCC_ERROR_INVALID_INPUT;
    if (e)
        return e;
    int most = __occMin(p->maxThreadsPerBlock, a->maxThreadsPerBlock);
    for (int t = __occRoundUp(most, p->warpSize); !e && t > 0; t -= p->warpSize) {
        int threads = __occMin(t, most);
        e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, p, a, s, threads, dynamic_of(threads));
        if (!e)
            gmux_occ_better(&r, threads, &blocks, &best);
    }
    *grid_size = blocks * p->numSms;
    *block_size = best;
    return e;
}

} // namespace
#endif
#endif
