/*
 * Virtual memory management: cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess, and
 * others. The server makes memory and reserves addresses. What is mapped where is known here only;
 * the server is told when memory becomes accessible, so that a mapping without access costs no
 * request. The server keeps an object for as long as the program has a handle or a mapping of it.
 *
 * A handle for other processes is a descriptor that names the object and does not keep it.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "client/gen/api.h"
#include "client/memory/memory.h"
#include "client/stream/reach.h"

#define GRANULARITY (2u << 20)

struct rt_physical {
    struct rt_object object;
    uint32_t name; /* the server's name of it */
    uint64_t size;
    unsigned handles; /* handles that the program has not released */
    unsigned mappings;
    CUmemAllocationProp prop;
};

struct reservation {
    struct gm_list link;
    uint64_t address, size;
    unsigned mappings;
};

/* Protects everything in this file. The locks of requests and of the map of addresses are taken
 * inside it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_table physicals = RT_TABLE(RT_KIND_PHYSICAL, struct rt_physical);
static struct gm_list reservations = { &reservations, &reservations };

/* --- what is asked for ------------------------------------------------------------------------ */

static int check_location(const CUmemLocation *l)
{
    static atomic_bool said;
    switch (l->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return l->id >= 0 && (unsigned)l->id < rt_session->device_count ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return (int)rt_not_supported("cuMemCreate of host memory",
                                     &said); /* the device's attributes say so, too */
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static int check_prop(const CUmemAllocationProp *prop)
{
    static atomic_bool said;
    const unsigned known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    int r = check_location(&prop->location);
    if (r)
        return r;
    if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE &&
        prop->allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_GENERIC)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)prop->requestedHandleTypes &
        (CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT))
        return CUDA_ERROR_INVALID_VALUE; /* handles of another operating system */
    if (((unsigned)prop->requestedHandleTypes & ~known) || prop->allocFlags.gpuDirectRDMACapable ||
        prop->allocFlags.usage)
        return (int)rt_not_supported(
            "cuMemCreate for another kind of handle, for other devices or for decompression",
            &said);
    return CUDA_SUCCESS;
}

/* Called with the lock held. */
static struct rt_physical *find(CUmemGenericAllocationHandle handle)
{
    struct rt_physical *p = rt_object_find(&physicals, (const void *)(uintptr_t)handle);
    return p && p->handles ? p : NULL;
}

static CUmemGenericAllocationHandle handle_of(const struct rt_physical *p)
{
    return (CUmemGenericAllocationHandle)(uintptr_t)rt_object_handle(&physicals, &p->object);
}

static void drop_if_unused(struct rt_physical *p)
{
    if (p->handles || p->mappings)
        return;
    (void)rt_request_object_release(rt_session, p->name);
    rt_object_release(&physicals, &p->object);
}

/* --- memory ----------------------------------------------------------------------------------- */

CUresult rt_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                          CUmemAllocationGranularity_flags option)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!granularity || !prop ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
         option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

/* Called with the lock held. */
static int enter_physical(const struct rt_made *made, const CUmemAllocationProp *prop,
                          CUmemGenericAllocationHandle *handle)
{
    struct rt_physical *p = rt_object_take(&physicals);
    if (!p) {
        (void)rt_request_object_release(rt_session, made->object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->name = made->object;
    p->size = made->size;
    p->handles = 1;
    p->prop = *prop;
    p->prop.allocFlags.compressionType = /* what it is, not what was wished for */
        made->compressible ? CU_MEM_ALLOCATION_COMP_GENERIC : CU_MEM_ALLOCATION_COMP_NONE;
    rt_object_publish(&p->object);
    *handle = handle_of(p);
    return CUDA_SUCCESS;
}

CUresult rt_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                        const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct rt_made made;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!handle || !prop || flags || size == 0 || size % GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_prop(prop);
    if (r)
        return r;
    bool compressible = prop->allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC;
    (void)rt_memory_reap(false);
    int device = prop->location.id;
    r = rt_request_object_create(rt_session, size, WIRE_MEMORY_KIND_DEVICE, device, compressible,
                                 &made);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = rt_request_object_create(rt_session, size, WIRE_MEMORY_KIND_DEVICE, device,
                                     compressible, &made);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    r = enter_physical(&made, prop, handle);
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult rt_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    struct rt_physical *p = find(handle);
    if (p) {
        p->handles--;
        drop_if_unused(p);
    }
    pthread_mutex_unlock(&lock);
    return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                   CUmemGenericAllocationHandle handle)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    struct rt_physical *p = find(handle);
    if (p && prop)
        *prop = p->prop;
    pthread_mutex_unlock(&lock);
    return p && prop ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    struct rt_range range;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    bool found = rt_memory_find((uintptr_t)addr, &range) && range.kind == RT_MEMORY_VIRTUAL;
    if (found) {
        range.physical->handles++;
        *handle = handle_of(range.physical);
    }
    pthread_mutex_unlock(&lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- for other processes ---------------------------------------------------------------------- */

CUresult rt_cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                         CUmemAllocationHandleType handleType,
                                         unsigned long long flags)
{
    int fd = -1;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!shareableHandle || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct rt_physical *p = find(handle);
    if (!p || !(p->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        r = CUDA_ERROR_INVALID_VALUE;
    else
        r = rt_request_object_export(rt_session, p->name, &fd);
    pthread_mutex_unlock(&lock);
    if (r == CUDA_SUCCESS)
        *(int *)shareableHandle = fd;
    return r;
}

CUresult rt_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                           CUmemAllocationHandleType shHandleType)
{
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
    int fd = (int)(intptr_t)osHandle;
    struct rt_made made;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (fcntl(fd, F_GETFD) < 0)
        return CUDA_ERROR_UNKNOWN;
    r = rt_request_object_import(rt_session, fd, &made);
    prop.location.id = made.device;
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    r = enter_physical(&made, &prop, handle);
    pthread_mutex_unlock(&lock);
    return r;
}

/* --- addresses -------------------------------------------------------------------------------- */

/* Finds the reservation that contains all of [address, address + size). Called with the lock
 * held. */
static struct reservation *find_reservation(uint64_t address, uint64_t size)
{
    gm_list_for_each (v, &reservations, struct reservation, link)
        if (address >= v->address && address - v->address <= v->size &&
            size <= v->size - (address - v->address))
            return v;
    return NULL;
}

/* Reserves addresses. The address that the program would like to have is ignored. */
CUresult rt_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                CUdeviceptr addr GM_UNUSED, unsigned long long flags)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!ptr || flags || size == 0 || size % GRANULARITY || (alignment && !gm_is_pow2(alignment)))
        return CUDA_ERROR_INVALID_VALUE;
    struct reservation *v = malloc(sizeof(*v));
    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *v = (struct reservation) { .size = size };
    r = rt_request_range_reserve(rt_session, size, GM_MAX(alignment, (size_t)GRANULARITY),
                                 WIRE_MEMORY_KIND_DEVICE, &v->address);
    if (r) {
        free(v);
        return r;
    }
    *ptr = v->address;
    pthread_mutex_lock(&lock);
    gm_list_insert(&reservations, &v->link);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult rt_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    struct reservation *v = find_reservation(ptr, size);
    if (!v || v->address != ptr || v->size != size || v->mappings) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        r = rt_request_range_release(rt_session, ptr);
        gm_list_remove(&v->link);
        free(v);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

/* --- mappings --------------------------------------------------------------------------------- */

/* Whether anything is mapped in [address, address + size). */
static bool is_occupied(uint64_t address, uint64_t size)
{
    struct rt_range range;
    for (uint64_t at = address; at < address + size; at += GRANULARITY)
        if (rt_memory_find(at, &range))
            return true;
    return false;
}

static int map(uint64_t address, uint64_t size, CUmemGenericAllocationHandle handle)
{
    struct rt_physical *p = find(handle);
    struct reservation *v = find_reservation(address, size);
    if (p && v && address % GRANULARITY == 0 && size != p->size)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!p || !v || address % GRANULARITY || is_occupied(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_range range = { .base = address,
                              .size = size,
                              .window = address,
                              .kind = RT_MEMORY_VIRTUAL,
                              .physical = p,
                              .device = p->prop.location.id };
    int r = rt_memory_insert(&range);
    if (r)
        return r;
    p->mappings++;
    v->mappings++;
    return CUDA_SUCCESS;
}

CUresult rt_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (size == 0 || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (offset) /* as in NVIDIA's driver, an object is mapped as a whole */
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    r = map(ptr, size, handle);
    pthread_mutex_unlock(&lock);
    return r;
}

/* Finds the next piece of a reservation: a whole mapping, or a hole, which has no `physical`.
 * Returns false if it would be part of a mapping. */
static bool next_piece(uint64_t at, uint64_t end, struct rt_range *piece)
{
    if (!rt_memory_find(at, piece))
        *piece = (struct rt_range) { .base = at, .size = GRANULARITY };
    return piece->base == at && piece->size <= end - at;
}

/* Calls f() for each mapping of [address, address + size). That range must lie in one reservation,
 * and consist of whole mappings, with or without holes between them. */
static int each_mapping(uint64_t address, uint64_t size, bool holes,
                        int (*f)(const struct rt_range *range, unsigned arg), unsigned arg)
{
    struct rt_range range;
    uint64_t end = address + size;
    int r = CUDA_SUCCESS;
    if (size == 0 || address % GRANULARITY || !find_reservation(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = address; at < end; at += range.size)
        if (!next_piece(at, end, &range) || (!range.physical && !holes))
            return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = address; at < end && r == CUDA_SUCCESS; at += range.size)
        if (next_piece(at, end, &range) && range.physical)
            r = f(&range, arg);
    return r;
}

_Static_assert((int)CU_MEM_ACCESS_FLAGS_PROT_READ == (int)WIRE_MEMORY_ACCESS_READ &&
                   (int)CU_MEM_ACCESS_FLAGS_PROT_READWRITE == (int)WIRE_MEMORY_ACCESS_WRITE,
               "said the same way");

/* Changes the access of all devices. */
static int change_access(const struct rt_range *range, unsigned access)
{
    int r = CUDA_SUCCESS;
    if (access == range->access)
        return CUDA_SUCCESS;
    if (access)
        r = rt_request_object_map(rt_session, range->physical->name, access, range->base,
                                  range->size);
    else
        r = rt_request_object_unmap(rt_session, range->base);
    if (r == CUDA_SUCCESS)
        rt_memory_set_access(range->base, access);
    return r;
}

/* Changes the access of one device: its number and two bits. */
static int set_access(const struct rt_range *range, unsigned arg)
{
    unsigned shift = 2 * (arg >> 2);
    return change_access(range, (range->access & ~(3u << shift)) | (arg & 3u) << shift);
}

static int unmap(const struct rt_range *range, unsigned arg GM_UNUSED)
{
    struct rt_range gone;
    struct reservation *v = find_reservation(range->base, range->size);
    int r = change_access(range, 0);
    if (r)
        return r;
    (void)rt_memory_remove(range->base, 1u << RT_MEMORY_VIRTUAL, &gone);
    if (v)
        v->mappings--;
    range->physical->mappings--;
    drop_if_unused(range->physical);
    return CUDA_SUCCESS;
}

/* Returns the devices that may use what is mapped there. */
static uint32_t reach_of_all(uint64_t address, uint64_t size)
{
    uint32_t devices = 0;
    struct rt_range range;
    pthread_mutex_lock(&lock);
    const struct reservation *v =
        size && address % GRANULARITY == 0 ? find_reservation(address, size) : NULL;
    for (uint64_t at = address; v && at < address + size; at += range.size) {
        if (!rt_memory_find(at, &range))
            range.size = GRANULARITY;
        else
            devices |= rt_reach_of(&range);
    }
    pthread_mutex_unlock(&lock);
    return devices;
}

CUresult rt_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    r = rt_reach_wait(reach_of_all(ptr, size));
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    r = each_mapping(ptr, size, true, unmap, 0);
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult rt_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    uint32_t lose = 0; /* devices that lose access, while their work may need it */
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!desc || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        r = check_location(&desc[i].location);
        if (r)
            return r == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : r;
        if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
            desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
            desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
        if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            lose |= 1u << desc[i].location.id;
    }
    if (lose) {
        r = rt_reach_wait(lose);
        if (r)
            return r;
    }
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = each_mapping(ptr, size, false, set_access,
                         (unsigned)desc[i].location.id << 2 | (unsigned)desc[i].flags);
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult rt_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                           CUdeviceptr ptr)
{
    struct rt_range range;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_location(location);
    if (r)
        return r;
    if (!rt_memory_find(ptr, &range))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range.kind == RT_MEMORY_VIRTUAL ? rt_memory_access(&range, location->id)
                                             : (unsigned)CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

unsigned long long rt_physical_handle_types(const struct rt_physical *p)
{
    return (unsigned long long)p->prop.requestedHandleTypes;
}

/* For drivers of other devices. The attribute says that there is no such handle. */
CUresult rt_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                          CUmemRangeHandleType handleType, unsigned long long flags)
{
    static atomic_bool said;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!handle || size == 0 || (dptr | size) % 4096 ||
        handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
        (flags & ~(unsigned long long)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE))
        return CUDA_ERROR_INVALID_VALUE;
    return rt_not_supported("cuMemGetHandleForAddressRange", &said);
}
