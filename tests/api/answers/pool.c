/* Stream-ordered allocation and its pools. */
#include "answers.h"

#include <unistd.h>

static const CUmemPoolProps plain = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
                                      .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                    .id = 0 } };

static void stream_ordered(void)
{
    CUdeviceptr p = 0, base;
    CUstream s;
    size_t size = 0;
    CALL(cuStreamCreate(&s, 0));
    CALL(cuMemAllocAsync(&p, 1000, s));
    CALL(cuMemsetD8Async(p, 1, 1000, s));
    CALL(cuMemGetAddressRange(&base, &size, p));
    NUM(base == p);
    MACHINE(size);
    CALL(cuMemFreeAsync(p, s));
    CALL(cuStreamSynchronize(s));
    CALL(cuMemAllocAsync(&p, 1000, NULL));
    CALL(cuMemFree(p));
    CALL(cuMemAlloc(&p, 1000));
    CALL(cuMemFreeAsync(p, s));
    CALL(cuStreamSynchronize(s));
    CALL(cuMemAllocAsync(&p, 0, s));
    NUM(p);
    CALL(cuMemAllocAsync(NULL, 10, s));
    CALL(cuMemAllocAsync(&p, (size_t)1 << 50, s));
    CALL(cuMemFreeAsync(0, s));
    CALL(cuMemFreeAsync(16, s));
}

static void pools(void)
{
    CUmemoryPool standard = NULL, current = NULL, mine = NULL;
    CUmemPoolProps props = plain;
    CUdeviceptr p;
    CALL(cuDeviceGetDefaultMemPool(&standard, 0));
    CALL(cuDeviceGetMemPool(&current, 0));
    NUM(current == standard);
    CALL(cuMemPoolCreate(&mine, &props));
    CALL(cuDeviceSetMemPool(0, mine));
    CALL(cuDeviceGetMemPool(&current, 0));
    NUM(current == mine);
    CALL(cuMemAllocAsync(&p, 100, NULL));
    CALL(cuPointerGetAttribute(&current, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    NUM(current == mine);
    CALL(cuMemFreeAsync(p, NULL));
    CALL(cuMemAllocFromPoolAsync(&p, 100, standard, NULL));
    CALL(cuMemFreeAsync(p, NULL));
    CALL(cuMemPoolDestroy(mine));
    CALL(cuDeviceGetMemPool(&current, 0));
    NUM(current == standard);
    CALL(cuMemPoolDestroy(standard));
    CALL(cuDeviceGetDefaultMemPool(NULL, 0));
    CALL(cuDeviceGetDefaultMemPool(&current, 1000));
    CALL(cuDeviceGetMemPool(&current, 1000));
    CALL(cuDeviceSetMemPool(1000, standard));
    CALL(cuDeviceSetMemPool(0, NULL));
    CALL(cuMemPoolCreate(NULL, &props));
    CALL(cuMemPoolCreate(&mine, NULL));
    props.location.id = 1000;
    CALL(cuMemPoolCreate(&mine, &props));
    props = plain;
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    CALL(cuMemPoolCreate(&mine, &props));
    props = plain;
    props.maxSize = 8 << 20;
    CALL(cuMemPoolCreate(&mine, &props));
    CALL(cuMemAllocFromPoolAsync(&p, 64 << 20, mine, NULL));
}

static void pool_attributes(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = plain;
    CUdeviceptr p;
    cuuint64_t value = 0;
    int yes = 9;
    CALL(cuMemPoolCreate(&pool, &props));
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    NUM(value);
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &yes));
    NUM(yes);
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &yes));
    NUM(yes);
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &yes));
    NUM(yes);
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    NUM(value);
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    MACHINE(value);
    value = UINT64_MAX;
    CALL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    yes = 0;
    CALL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &yes));
    CALL(cuMemAllocFromPoolAsync(&p, 100000, pool, NULL));
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    MACHINE(value);
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    MACHINE(value);
    CALL(cuMemFreeAsync(p, NULL));
    CALL(cuCtxSynchronize());
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    NUM(value);
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    MACHINE(value);
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    NUM(value > 0);
    value = 0;
    CALL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    NUM(value);
    value = 5;
    CALL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    CALL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    CALL(cuMemPoolTrimTo(pool, 0));
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    MACHINE(value);
    CALL(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)99, &value));
    CALL(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    CALL(cuMemPoolTrimTo(NULL, 0));
}

static void pool_access(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = plain;
    CUmemLocation at = plain.location;
    CUmemAccess_flags flags = 9;
    CUmemAccessDesc d = { .location = plain.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CALL(cuMemPoolCreate(&pool, &props));
    CALL(cuMemPoolGetAccess(&flags, pool, &at));
    NUM(flags);
    CALL(cuMemPoolSetAccess(pool, &d, 1));
    d.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CALL(cuMemPoolSetAccess(pool, &d, 1));
    d.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    CALL(cuMemPoolSetAccess(pool, &d, 1));
    d.location.id = 1000;
    CALL(cuMemPoolSetAccess(pool, &d, 1));
    CALL(cuMemPoolSetAccess(pool, NULL, 1));
    CALL(cuMemPoolSetAccess(pool, &d, 0));
    at.id = 1000;
    CALL(cuMemPoolGetAccess(&flags, pool, &at));
    CALL(cuMemPoolGetAccess(NULL, pool, &at));
    CALL(cuMemPoolDestroy(pool));
}

/* Exported and imported by the same process. */
static void pool_sharing(void)
{
    CUmemoryPool pool, private, imported = NULL;
    CUmemPoolProps props = plain;
    CUmemPoolPtrExportData data;
    CUdeviceptr p, q = 0;
    int fd = -1;
    CALL(cuMemPoolCreate(&private, &props));
    CALL(cuMemPoolExportToShareableHandle(&fd, private, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                          0));
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CALL(cuMemPoolCreate(&pool, &props));
    CALL(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    NUM(fd >= 0);
    CALL(cuMemPoolExportToShareableHandle(NULL, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    CALL(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL));
    CALL(cuMemPoolExportPointer(&data, p));
    CALL(cuMemsetD8(p, 6, 4096));
    CALL(cuCtxSynchronize());
    CALL(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuMemPoolImportPointer(&q, imported, &data));
    NUM(answers_word(q));
    CALL(cuMemAllocFromPoolAsync(&q, 64, imported, NULL));
    close(fd);
    CALL(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)-1,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuMemAllocFromPoolAsync(&p, 4096, private, NULL));
    CALL(cuMemPoolExportPointer(&data, p));
    CALL(cuMemPoolExportPointer(NULL, p));
}

const struct answers_case answers_pool[] = {
    CASE(stream_ordered), CASE(pools),        CASE(pool_attributes),
    CASE(pool_access),    CASE(pool_sharing), END,
};
