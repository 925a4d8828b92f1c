/*
 * Hints about managed memory. That memory moves when it is touched (moving.c), or it is pinned host
 * memory that both host and device reach. No hint changes that. A hint is checked and kept, so that
 * a program can ask for it.
 *
 * Hints are ranges, the newest first. A range that lies within a newer one of its kind is
 * forgotten.
 */
#include "client/gen/api.h"
#include "client/memory/memory.h"
#include "client/memory/pages.h"
#include "client/stream/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum hint_kind {
    HINT_READ_MOSTLY,
    HINT_PREFERRED, /* a location, see pack() */
    HINT_ACCESSED_BY_DEVICE,
    HINT_ACCESSED_BY_HOST,
    HINT_PREFETCHED, /* a location */
};

struct hint {
    struct gm_list link;
    uint64_t start, end;
    enum hint_kind kind;
    uint64_t value; /* 0: as if there were no hint */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gm_list hints = { &hints, &hints }; /* lock */

/* --- what is remembered ----------------------------------------------------------------------- */

/* Called with the lock held. */
static void forget(uint64_t start, uint64_t end, int kind)
{
    gm_list_for_each_safe (h, &hints, struct hint, link)
        if (h->start >= start && h->end <= end && (kind < 0 || h->kind == (enum hint_kind)kind)) {
            gm_list_remove(&h->link);
            free(h);
        }
}

void rt_managed_forget(uint64_t address, uint64_t size)
{
    pthread_mutex_lock(&lock);
    forget(address, address + size, -1);
    pthread_mutex_unlock(&lock);
    uint64_t whole;
    if (rt_pages_remove(address) && gm_align_up(size, RT_PAGE, &whole))
        rt_session_hide(rt_session, address, whole);
}

static int remember(enum hint_kind kind, uint64_t address, uint64_t size, uint64_t value)
{
    struct hint *h = malloc(sizeof(*h));
    if (!h)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *h = (struct hint) { .start = address, .end = address + size, .kind = kind, .value = value };
    pthread_mutex_lock(&lock);
    forget(h->start, h->end, (int)kind);
    gm_list_insert(&hints, &h->link);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Finds the value that all of [start, end) has, searching from `at` on. Returns false if it is not
 * the same everywhere. Called with the lock held. */
static bool uniform(struct gm_list *at, enum hint_kind kind, uint64_t start, uint64_t end,
                    uint64_t *value)
{
    uint64_t rest;
    for (; at != &hints; at = at->next) {
        const struct hint *h = gm_list_entry(at, struct hint, link);
        if (h->kind != kind || h->end <= start || h->start >= end)
            continue;
        *value = h->value;
        return (h->start <= start ||
                (uniform(at->next, kind, start, h->start, &rest) && rest == *value)) &&
               (h->end >= end || (uniform(at->next, kind, h->end, end, &rest) && rest == *value));
    }
    *value = 0;
    return true;
}

static uint64_t remembered(enum hint_kind kind, uint64_t address, uint64_t size)
{
    uint64_t value;
    pthread_mutex_lock(&lock);
    bool same = uniform(hints.next, kind, address, address + size, &value);
    pthread_mutex_unlock(&lock);
    return same ? value : 0;
}

/* --- locations -------------------------------------------------------------------------------- */

static uint64_t pack(CUmemLocation l)
{
    return (uint64_t)l.type << 32 | (uint32_t)l.id;
}

static CUmemLocation unpack(uint64_t value)
{
    return (CUmemLocation) { .type = (CUmemLocationType)(value >> 32), .id = (int)(uint32_t)value };
}

/* Makes a location of a device's number, which the older calls use. */
static CUmemLocation location_of(CUdevice device)
{
    return device == CU_DEVICE_CPU
               ? (CUmemLocation) { .type = CU_MEM_LOCATION_TYPE_HOST }
               : (CUmemLocation) { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device };
}

static int device_of(uint64_t value)
{
    CUmemLocation l = unpack(value);
    if (l.type == CU_MEM_LOCATION_TYPE_INVALID)
        return CU_DEVICE_INVALID;
    return l.type == CU_MEM_LOCATION_TYPE_DEVICE ? l.id : CU_DEVICE_CPU;
}

/* Returns -1 if the type says it all. */
static int id_of(uint64_t value)
{
    CUmemLocation l = unpack(value);
    if (l.type == CU_MEM_LOCATION_TYPE_INVALID)
        return CU_DEVICE_INVALID;
    return l.type == CU_MEM_LOCATION_TYPE_DEVICE || l.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ? l.id
                                                                                             : -1;
}

static bool is_known(CUmemLocationType type)
{
    return type >= CU_MEM_LOCATION_TYPE_DEVICE && type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static bool node_exists(int id)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", id);
    return id == 0 || access(path, F_OK) == 0;
}

static int check_location(CUmemLocation l)
{
    if (l.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return l.id >= 0 && (unsigned)l.id < rt_session->device_count ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_DEVICE;
    return is_known(l.type) && (l.type != CU_MEM_LOCATION_TYPE_HOST_NUMA || node_exists(l.id))
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static int check_range(CUdeviceptr address, size_t size)
{
    struct rt_range range;
    if (size == 0 || !rt_memory_find(address, &range) || !rt_memory_is_managed(&range) ||
        size > range.size - (address - range.base))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* --- prefetching and discarding --------------------------------------------------------------- */

static int prefetch(CUdeviceptr address, size_t size, CUmemLocation location, CUstream stream)
{
    struct rt_context *c;
    struct rt_stream *st;
    if (!is_known(location.type))
        return CUDA_ERROR_INVALID_VALUE;
    int r = rt_enter_stream(stream, &c, &st);
    if (r == CUDA_SUCCESS && (!address || !size))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : check_location(location);
    if (r)
        return r;
    if (GM_UNLIKELY(rt_stream_captures(st)))
        return rt_capture_refuse(st);
    r = check_range(address, size);
    return r ? r : remember(HINT_PREFETCHED, address, size, pack(location));
}

CUresult rt_cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                               CUstream hStream)
{
    return prefetch(devPtr, count, location_of(dstDevice), hStream);
}

CUresult rt_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                  unsigned int flags, CUstream hStream)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : (CUresult)prefetch(devPtr, count, location, hStream);
}

/* Prefetches many ranges. Range i goes to the last location whose index is not above i. */
static int prefetch_many(const CUdeviceptr *dptrs, const size_t *sizes, size_t count,
                         const CUmemLocation *locations, const size_t *indices,
                         size_t locations_count, CUstream stream)
{
    size_t at = 0;
    if (!locations || !indices || locations_count == 0 || locations_count > count ||
        indices[0] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 1; i < locations_count; i++)
        if (indices[i] <= indices[i - 1] || indices[i] >= count)
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        while (at + 1 < locations_count && indices[at + 1] <= i)
            at++;
        int r = prefetch(dptrs[i], sizes[i], locations[at], stream);
        if (r)
            return r;
    }
    return CUDA_SUCCESS;
}

/* Discards many ranges. The contents of discarded memory do not matter, so they may stay. */
static int discard_many(const CUdeviceptr *dptrs, const size_t *sizes, size_t count,
                        CUstream stream)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(stream, &c, &st);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = check_range(dptrs[i], sizes[i]);
    if (r == CUDA_SUCCESS && GM_UNLIKELY(rt_stream_captures(st)))
        r = rt_capture_refuse(st);
    return r;
}

CUresult rt_cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                    CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                    size_t numPrefetchLocs, unsigned long long flags,
                                    CUstream hStream)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!dptrs || !sizes || count == 0 || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return prefetch_many(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs,
                         hStream);
}

CUresult rt_cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                   unsigned long long flags, CUstream hStream)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!dptrs || !sizes || count == 0 || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return discard_many(dptrs, sizes, count, hStream);
}

CUresult rt_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                              CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                              size_t numPrefetchLocs, unsigned long long flags,
                                              CUstream hStream)
{
    CUresult r = rt_cuMemDiscardBatchAsync(dptrs, sizes, count, flags, hStream);
    return r ? r
             : (CUresult)prefetch_many(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
                                       numPrefetchLocs, hStream);
}

/* Checks a promise of the program's about who uses an allocation. All may use it at any time here,
 * so the promise is not kept. */
CUresult rt_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                   unsigned int flags)
{
    struct rt_context *c;
    struct rt_stream *st;
    struct rt_range range;
    int r = rt_enter_stream(hStream, &c, &st);
    if (r)
        return r;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
        flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!rt_memory_find(dptr, &range) || !rt_memory_is_managed(&range) || range.base != dptr ||
        (length && length != range.size) ||
        (flags == CU_MEM_ATTACH_SINGLE && st->role == RT_ROLE_LEGACY))
        return CUDA_ERROR_INVALID_VALUE;
    return GM_UNLIKELY(rt_stream_captures(st)) ? rt_capture_refuse(st) : CUDA_SUCCESS;
}

/* --- advice ----------------------------------------------------------------------------------- */

static int advise(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location)
{
    const bool by_host = location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    const bool by_whom =
        advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    if (!is_known(location.type))
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_context *c;
    int r = location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ? rt_enter_living() : rt_enter(&c);
    if (r)
        return r;
    if ((by_whom || advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) && check_location(location))
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_capture_unsafe();
    if (r)
        return r;
    if (check_range(address, size)) {
        /* What is not managed may be advised about a NUMA node, without effect. */
        const bool node = location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && size;
        return node && advice >= CU_MEM_ADVISE_SET_READ_MOSTLY &&
                       advice <= CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    }
    switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        return remember(HINT_READ_MOSTLY, address, size, advice == CU_MEM_ADVISE_SET_READ_MOSTLY);
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        return remember(HINT_PREFERRED, address, size, pack(location));
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        return remember(HINT_PREFERRED, address, size, 0);
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        return remember(by_host ? HINT_ACCESSED_BY_HOST : HINT_ACCESSED_BY_DEVICE, address, size,
                        advice == CU_MEM_ADVISE_SET_ACCESSED_BY);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult rt_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return advise(devPtr, count, advice, location_of(device));
}

CUresult rt_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                           CUmemLocation location)
{
    return advise(devPtr, count, advice, location);
}

/* --- asking ----------------------------------------------------------------------------------- */

static int get_accessed_by(int *data, size_t size, CUdeviceptr address, size_t count)
{
    size_t n = 0, room = size / sizeof(int);
    if (size == 0 || size % sizeof(int))
        return CUDA_ERROR_INVALID_VALUE;
    if (remembered(HINT_ACCESSED_BY_DEVICE, address, count))
        data[n++] = 0;
    if (n < room && remembered(HINT_ACCESSED_BY_HOST, address, count))
        data[n++] = CU_DEVICE_CPU;
    while (n < room)
        data[n++] = CU_DEVICE_INVALID;
    return CUDA_SUCCESS;
}

static int get(int *data, size_t size, CUmem_range_attribute attribute, CUdeviceptr address,
               size_t count)
{
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
        return get_accessed_by(data, size, address, count);
    if (size != sizeof(int))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *data = remembered(HINT_READ_MOSTLY, address, count) != 0;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        *data = device_of(remembered(HINT_PREFERRED, address, count));
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *data = device_of(remembered(HINT_PREFETCHED, address, count));
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *data = (int)unpack(remembered(HINT_PREFERRED, address, count)).type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *data = id_of(remembered(HINT_PREFERRED, address, count));
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *data = (int)unpack(remembered(HINT_PREFETCHED, address, count)).type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        *data = id_of(remembered(HINT_PREFETCHED, address, count));
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult rt_cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                   CUdeviceptr devPtr, size_t count)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_range(devPtr, count);
    return r ? r : get(data, dataSize, attribute, devPtr, count);
}

CUresult rt_cuMemRangeGetAttributes(void **data, size_t *dataSizes,
                                    CUmem_range_attribute *attributes, size_t numAttributes,
                                    CUdeviceptr devPtr, size_t count)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!data || !dataSizes || !attributes || numAttributes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_range(devPtr, count);
    for (size_t i = 0; i < numAttributes && r == CUDA_SUCCESS; i++)
        r = data[i] ? get(data[i], dataSizes[i], attributes[i], devPtr, count)
                    : CUDA_ERROR_INVALID_VALUE;
    return r;
}
