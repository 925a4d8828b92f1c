/*
 * Stream-ordered allocation, and the pools behind it: cuMemAllocAsync, cuMemPool*,
 * cuDevice*MemPool, cuMem*MemPool. Pools hold device memory; there are none of host or managed
 * memory. Pools of several processes are in pool_ipc.c.
 */
#include "client/memory/pool.h"

#include <stdlib.h>

#include "client/gen/api.h"
#include "client/memory/memory.h"
#include "client/memory/pool_ipc.h"
#include "client/stream/capture.h"
#include "client/stream/check.h"
#include "client/stream/reach.h"

#define ALL_HANDLE_TYPES (2u * CU_MEM_HANDLE_TYPE_FABRIC - 1)

/* --- allocation ------------------------------------------------------------------------------- */

/* A stream that takes part in no capture disturbs those that go on. */
static int enter_ordered(CUstream stream, struct rt_context **c, struct rt_stream **st)
{
    int r = rt_enter_stream(stream, c, st);
    r = r ? r : rt_capture_usable(*st);
    return r || rt_stream_captures(*st) ? r : rt_capture_unsafe();
}

static int allocate(struct rt_context *c, struct rt_pool *p, struct rt_stream *st, size_t size,
                    CUdeviceptr *out)
{
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct rt_range range = { .size = size, .kind = RT_MEMORY_DEVICE, .ordered = true };
    uint64_t address;
    /* No error, unlike with cuMemAlloc; 0 can be freed. */
    if (GM_UNLIKELY(size == 0 && !rt_pool_is_imported(p))) {
        *out = 0;
        return CUDA_SUCCESS;
    }
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return rt_hooks.capture_alloc(st, size, out);
    int r = rt_pool_alloc(p, st, rt_check_padded(size), &address, &range.block);
    if (r == CUDA_ERROR_OUT_OF_MEMORY &&
        rt_memory_reap(true)) /* what other pools hold unused may be room enough */
        r = rt_pool_alloc(p, st, rt_check_padded(size), &address, &range.block);
    r = r ? r : rt_memory_enter_block(c, address, &range);
    if (r == CUDA_SUCCESS)
        *out = address;
    return r;
}

CUresult rt_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = enter_ordered(hStream, &c, &st);
    if (r)
        return r;
    return dptr ? (CUresult)allocate(c, rt_pool_current(c->device), st, bytesize, dptr)
                : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                    CUstream hStream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = enter_ordered(hStream, &c, &st);
    if (r)
        return r;
    struct rt_pool *p = rt_pool_find(pool);
    return dptr && p ? (CUresult)allocate(c, p, st, bytesize, dptr) : CUDA_ERROR_INVALID_VALUE;
}

/* Frees an allocation of a graph. Returns CUDA_ERROR_NOT_FOUND if it is not one. */
static int free_of_graph(struct rt_stream *st, CUdeviceptr dptr)
{
    uint32_t number = st->number;
    return number < TP_STREAMS
               ? rt_hooks.graph_memory_free(dptr, number, rt_queue_issued(rt_session, number))
               : CUDA_ERROR_NOT_FOUND;
}

/* Also frees what cuMemAlloc and graphs have allocated. */
CUresult rt_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct rt_context *c;
    struct rt_stream *st;
    struct rt_range range;
    int r = enter_ordered(hStream, &c, &st);
    if (r || dptr == 0)
        return r;
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return rt_hooks.capture_free(st, dptr);
    r = free_of_graph(st, dptr);
    if (GM_UNLIKELY(r != CUDA_ERROR_NOT_FOUND))
        return r;
    r = rt_queue_begin(st);
    if (r)
        return r;
    uint32_t number = st->number;
    uint64_t seq = number < TP_STREAMS ? rt_queue_issued(rt_session, number) : 0;
    struct rt_pool_view *view = NULL;
    if (number >= TP_STREAMS)
        r = CUDA_ERROR_INVALID_HANDLE;
    else if (rt_memory_is_imported_block(dptr) && (view = rt_pool_view_leave(dptr)) != NULL)
        r = CUDA_SUCCESS;
    else if (!rt_memory_remove(dptr, 1u << RT_MEMORY_DEVICE, &range))
        r = rt_memory_find(dptr, &range) && rt_memory_is_managed(&range) && range.base == dptr
                ? CUDA_ERROR_NOT_SUPPORTED
                : CUDA_ERROR_INVALID_VALUE;
    rt_queue_end();
    if (r)
        return r;
    if (!view)
        rt_check_left(&range);
    if (view)
        rt_memory_free_later(0, view, number, seq);
    else if (range.block)
        rt_pool_free(range.block, number, seq);
    else
        rt_memory_free_later(range.base, NULL, number, seq);
    return CUDA_SUCCESS;
}

/* --- which pool ------------------------------------------------------------------------------- */

static int check_device(CUdevice dev)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    return dev >= 0 && (unsigned)dev < rt_session->device_count ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_DEVICE;
}

static int check_location(const CUmemLocation *location, CUmemAllocationType type)
{
    static atomic_bool said;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!location)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED) {
        bool known =
            location->type >= CU_MEM_LOCATION_TYPE_DEVICE &&
            location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT &&
            (type == CU_MEM_ALLOCATION_TYPE_PINNED || type == CU_MEM_ALLOCATION_TYPE_MANAGED);
        return known ? (int)rt_not_supported("a memory pool of host or managed memory", &said)
                     : CUDA_ERROR_INVALID_VALUE;
    }
    return check_device(location->id);
}

static int give_pool(struct rt_pool *p, CUmemoryPool *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = rt_pool_handle(p);
    return CUDA_SUCCESS;
}

static int set_pool(CUdevice device, CUmemoryPool handle)
{
    struct rt_pool *p = rt_pool_find(handle);
    if (!p || rt_pool_is_imported(p) || rt_pool_device(p) != device)
        return CUDA_ERROR_INVALID_VALUE;
    rt_pool_set_current(p);
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    int r = check_device(dev);
    return r ? r : give_pool(rt_pool_default(dev), pool_out);
}

/* Checks a device's number. The two calls below report a wrong one as a wrong value. */
static int check_number(CUdevice dev)
{
    int r = check_device(dev);
    return r == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : r;
}

CUresult rt_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    int r = check_number(dev);
    return r ? r : give_pool(rt_pool_current(dev), pool);
}

CUresult rt_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    int r = rt_enter_plain_unsafe();
    r = r ? r : check_number(dev);
    return r ? r : set_pool(dev, pool);
}

CUresult rt_cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                   CUmemAllocationType type)
{
    int r = check_location(location, type);
    return r ? r : give_pool(rt_pool_default(location->id), pool_out);
}

CUresult rt_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    int r = check_location(location, type);
    return r ? r : give_pool(rt_pool_current(location->id), pool);
}

CUresult rt_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    int r = check_location(location, type);
    return r ? r : set_pool(location->id, pool);
}

/* --- pools ------------------------------------------------------------------------------------ */

CUresult rt_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    static atomic_bool said;
    struct rt_pool *p = NULL;
    int r = rt_enter_plain_unsafe();
    if (r)
        return r;
    if (!pool || !poolProps || (unsigned)poolProps->handleTypes > ALL_HANDLE_TYPES)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_location(&poolProps->location, poolProps->allocType);
    if (r)
        return r == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : r;
    bool shared = poolProps->handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if ((!shared && poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE) || poolProps->usage)
        return rt_not_supported("a memory pool for another kind of handle, or for decompression",
                                &said);
    uint64_t name = shared ? rt_pool_new_name() : 0;
    if (shared && !name)
        return CUDA_ERROR_OPERATING_SYSTEM;
    r = rt_pool_create(poolProps->location.id, poolProps->maxSize, name, false, &p);
    return r ? r : give_pool(p, pool);
}

/* Finds the pool by the handle of a call. */
static int enter(CUmemoryPool handle, struct rt_pool **p)
{
    int r = rt_enter_plain_unsafe();
    if (r)
        return r;
    *p = rt_pool_find(handle);
    return *p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuMemPoolDestroy(CUmemoryPool pool)
{
    struct rt_pool *p;
    int r = enter(pool, &p);
    if (r)
        return r;
    if (p == rt_pool_default(rt_pool_device(p)))
        return CUDA_ERROR_INVALID_VALUE;
    rt_pool_destroy(p);
    return CUDA_SUCCESS;
}

CUresult rt_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    struct rt_pool *p;
    int r = enter(pool, &p);
    if (r)
        return r;
    rt_pool_trim(p, minBytesToKeep);
    return CUDA_SUCCESS;
}

CUresult rt_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct rt_pool *p;
    int r = enter(pool, &p);
    if (r)
        return r;
    return value ? (CUresult)rt_pool_set(p, attr, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct rt_pool *p;
    int r = enter(pool, &p);
    if (r)
        return r;
    return value ? (CUresult)rt_pool_get(p, attr, value) : CUDA_ERROR_INVALID_VALUE;
}

/* Sets who has access. A pool's own device always has it. Another device gets access to all memory
 * that this process has on the pool's device. */
CUresult rt_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    struct rt_pool *p;
    int r = enter(pool, &p);
    if (r)
        return r;
    if (count && !map)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (check_device(map[i].location.id) != CUDA_SUCCESS ||
            (!map[i].flags && map[i].location.id == rt_pool_device(p)))
            return CUDA_ERROR_INVALID_DEVICE;
        if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE &&
            map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        r = map[i].flags ? CUDA_SUCCESS : rt_reach_wait(1u << map[i].location.id);
        r = r ? r
              : rt_pool_let(p, map[i].location.id, map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
    }
    return r == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED ? CUDA_ERROR_INVALID_DEVICE : (CUresult)r;
}

CUresult rt_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool,
                               CUmemLocation *location)
{
    struct rt_pool *p;
    int r = enter(memPool, &p);
    if (r)
        return r;
    if (!flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type == CU_MEM_LOCATION_TYPE_HOST) {
        *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return CUDA_SUCCESS;
    }
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || check_device(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = rt_pool_lets(p, location->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
