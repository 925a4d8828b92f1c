/*
 * Memory in a client's window: device memory that the server has made is mapped, host memory is
 * mapped and registered with the driver, and both are taken away again.
 */
#include <sys/mman.h>

#include "base/clock.h"
#include "device/cuda/admit.h"
#include "device/cuda/memory.h"

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* True if the range lies in the half of the window that begins at `from`. */
static bool in_half(const struct dev_client *c, uint64_t from, uint64_t address, uint64_t size)
{
    return size && address >= from && address - from <= c->half &&
           size <= c->half - (address - from);
}

/* Makes pages inaccessible; their addresses stay reserved. */
static void close_pages(uint64_t address, uint64_t size)
{
    (void)mmap(pointer(address), size, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* Maps a range of the host area to what `fd` has from `offset` on. */
static int map_host(struct dev_client *c, uint64_t address, uint64_t size, int fd, uint64_t offset)
{
    uint64_t from = c->base + c->half;
    if ((address | size) % 4096 || !in_half(c, from, address, size))
        return GM_CUDA_INVALID_VALUE;
    if (mmap(pointer(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             (off_t)offset) == MAP_FAILED)
        return GM_CUDA_OUT_OF_MEMORY;
    CUresult r = c->dev->api.cuMemHostRegister_v2(
        pointer(address), size, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    const struct cuda_range range = { .address = address,
                                      .end = address + size,
                                      .device = CUDA_HOST };
    if (r == CUDA_SUCCESS && (r = (CUresult)cuda_range_add(c, &range)) != CUDA_SUCCESS)
        (void)c->dev->api.cuMemHostUnregister(pointer(address));
    if (r != CUDA_SUCCESS)
        close_pages(address, size);
    return (int)r;
}

int cuda_memory_map(struct dev_client *c, uint64_t address, uint64_t size)
{
    cuda_enter(&c->dev->gpus[0]);
    return map_host(c, address, size, c->host_fd, address - (c->base + c->half));
}

/* What a GPU may do with the range, as enum wire_memory_access; 0: nothing. */
static uint32_t access_of(const struct dev_client *c, const struct cuda_range *range,
                          uint32_t device)
{
    if (range->access)
        return DEV_ACCESS(range->access, device);
    return device == range->device || (c->peers[range->device] >> device & 1)
               ? WIRE_MEMORY_ACCESS_WRITE
               : 0;
}

/* Tells the driver what each GPU may do with the range, and notes it. */
static CUresult set_access(struct dev_client *c, struct cuda_range *range)
{
    CUmemAccessDesc desc[DEV_DEVICES];
    uint32_t given = 0, writers = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < c->dev->count; i++) {
        uint32_t access = access_of(c, range, i);
        if (!access && !(range->given >> i & 1))
            continue;
        CUresult r = access ? cuda_gpu_open(&c->dev->gpus[i]) : CUDA_SUCCESS;
        if (r != CUDA_SUCCESS)
            return r;
        given |= (uint32_t)(access != 0) << i;
        writers |= (uint32_t)(access == WIRE_MEMORY_ACCESS_WRITE) << i;
        desc[n++] = (CUmemAccessDesc) {
            .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->dev->gpus[i].device },
            .flags = !access                             ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                     : access == WIRE_MEMORY_ACCESS_READ ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                         : CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
    }
    CUresult r =
        n ? c->dev->api.cuMemSetAccess(range->address, range->end - range->address, desc, n)
          : CUDA_SUCCESS;
    if (r != CUDA_SUCCESS)
        return r;
    range->given = given;
    range->reach = writers;
    cuda_range_update(c, range);
    return r;
}

static CUresult map_handle(struct dev_client *c, struct cuda_range *range, int fd)
{
    const uint64_t address = range->address, size = range->end - address;
    const struct cuda_driver *api = &c->dev->api;
    CUmemGenericAllocationHandle handle;
    CUresult r = api->cuMemImportFromShareableHandle(&handle, pointer((uint64_t)fd),
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (r != CUDA_SUCCESS)
        return r;
    r = api->cuMemMap(address, size, 0, handle, 0);
    (void)api->cuMemRelease(handle); /* the mapping keeps it */
    if (r != CUDA_SUCCESS)
        return r;
    r = (CUresult)cuda_range_add(c, range);
    if (r == CUDA_SUCCESS && (r = set_access(c, range)) != CUDA_SUCCESS)
        cuda_range_remove(c, address);
    if (r != CUDA_SUCCESS)
        (void)api->cuMemUnmap(address, size);
    return r;
}

int cuda_memory_attach(struct dev_client *c, uint64_t address, uint64_t size, int fd,
                       uint64_t offset, uint32_t device, uint32_t access)
{
    struct cuda_range range;
    const bool there = cuda_range_find(c, address, size, &range);
    cuda_enter(&c->dev->gpus[0]);
    if (in_half(c, c->base + c->half, address, size))
        return there ? GM_CUDA_SUCCESS : map_host(c, address, size, fd, offset);
    if (offset || !in_half(c, c->base, address, size))
        return GM_CUDA_INVALID_VALUE;
    if (!there) {
        range = (struct cuda_range) {
            .address = address, .end = address + size, .device = device, .access = access
        };
        return (int)map_handle(c, &range, fd);
    }
    const uint32_t before = range.access;
    range.access = access;
    CUresult r = set_access(c, &range);
    if (r != CUDA_SUCCESS) {
        range.access = before;
        (void)set_access(c, &range);
    }
    return (int)r;
}

/* Does that for all of a device's memory. Returns the driver's first refusal. */
static CUresult set_access_of(struct dev_client *c, uint32_t device)
{
    CUresult first = CUDA_SUCCESS;
    struct cuda_range range;
    for (uint64_t at = c->base; cuda_range_next(c, at, &range); at = range.end) {
        const CUresult r = range.device == device ? set_access(c, &range) : CUDA_SUCCESS;
        first = first ? first : r;
    }
    return first;
}

int cuda_client_peer(struct dev_client *c, uint32_t device, uint32_t peer, bool enabled)
{
    const uint32_t before = c->peers[peer];
    c->peers[peer] = enabled ? before | 1u << device : before & ~(1u << device);
    CUresult r = set_access_of(c, peer);
    if (r != CUDA_SUCCESS) {
        c->peers[peer] = before;
        (void)set_access_of(c, peer);
    }
    return (int)r;
}

void cuda_unpin(struct dev *d, void *memory)
{
    (void)CUDA_CALL(d, UINT32_MAX, cuMemHostUnregister, memory);
}

void cuda_pinned_unmap(struct dev_client *c, const struct cuda_range *r)
{
    atomic_fetch_add_explicit(&c->runs.memory, 1, memory_order_release);
    pthread_mutex_lock(&c->memory_lock);
    cuda_range_remove(c, r->address);
    cuda_unpin(c->dev, pointer(r->address));
    close_pages(r->address, r->end - r->address);
    pthread_mutex_unlock(&c->memory_lock);
}

static void range_unmap(struct dev_client *c, const struct cuda_range *r)
{
    atomic_fetch_add_explicit(&c->runs.memory, 1, memory_order_release);
    pthread_mutex_lock(&c->memory_lock);
    cuda_range_remove(c, r->address);
    (void)c->dev->api.cuMemUnmap(r->address, r->end - r->address);
    pthread_mutex_unlock(&c->memory_lock);
}

void cuda_device_unmap(struct dev_client *c)
{
    struct cuda_range r;
    while (cuda_range_next(c, c->base, &r) && r.device != CUDA_HOST) /* that lies above */
        range_unmap(c, &r);
}

/* Waits for a safe point of all contexts. False: the client is about to be stopped. */
static bool wait_to_unpin(struct dev_client *c)
{
    const uint64_t slice = 10 * GM_NS_PER_MS;
    while (!cuda_admit_wait(c->dev, NULL, UINT32_MAX, 0, gm_now_ns() + slice))
        if (cuda_is_leaving(c->dev, c))
            return false;
    return true;
}

void cuda_memory_unmap(struct dev_client *c, uint64_t address, uint64_t size)
{
    struct cuda_range r;
    cuda_enter(&c->dev->gpus[0]);
    if (!cuda_range_find(c, address, size, &r))
        return;
    if (r.device != CUDA_HOST)
        range_unmap(c, &r);
    else if (wait_to_unpin(c)) { /* if not, it is unmapped with the client */
        cuda_pinned_unmap(c, &r);
        cuda_admit_end(c->dev, UINT32_MAX);
    }
}
