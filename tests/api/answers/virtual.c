/* Reserved addresses and memory that is mapped there. */
#include "answers.h"

#include <unistd.h>

static const CUmemAllocationProp plain = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                         .id = 0 } };
static const CUmemAccessDesc both = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
                                      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static void granularity(void)
{
    size_t least = 0, best = 0;
    CUmemAllocationProp prop = plain;
    CALL(cuMemGetAllocationGranularity(&least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    NUM(least);
    CALL(cuMemGetAllocationGranularity(&best, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    NUM(best);
    CALL(cuMemGetAllocationGranularity(&best, &prop, (CUmemAllocationGranularity_flags)9));
    CALL(cuMemGetAllocationGranularity(NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CALL(cuMemGetAllocationGranularity(&best, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    prop.location.id = 1000;
    CALL(cuMemGetAllocationGranularity(&best, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    prop = plain;
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    CALL(cuMemGetAllocationGranularity(&best, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static void reserving(void)
{
    const size_t g = 2 << 20;
    CUdeviceptr p = 0, q = 0;
    CALL(cuMemAddressReserve(&p, 4 * g, 0, 0, 0));
    NUM(p % g);
    CALL(cuMemAddressReserve(&q, g, 64 << 20, 0, 0));
    NUM(q % (64 << 20));
    CALL(cuMemAddressFree(q, g));
    CALL(cuMemAddressReserve(&q, 1000, 0, 0, 0));
    CALL(cuMemAddressReserve(&q, 0, 0, 0, 0));
    CALL(cuMemAddressReserve(&q, g, 3, 0, 0));
    CALL(cuMemAddressReserve(&q, g, 0, 0, 1));
    CALL(cuMemAddressReserve(NULL, g, 0, 0, 0));
    CALL(cuMemAddressFree(p, g));
    CALL(cuMemAddressFree(p + g, g));
    CALL(cuMemAddressFree(p, 4 * g));
    CALL(cuMemAddressFree(p, 4 * g));
    CALL(cuMemAddressFree(0, g));
}

static void mapping(void)
{
    const size_t g = 2 << 20;
    CUdeviceptr p = 0, base = 0;
    CUmemGenericAllocationHandle h = 0, again = 0;
    unsigned long long flags = 9;
    CUmemAllocationProp got;
    CUmemLocation at = plain.location;
    size_t size = 0;
    CALL(cuMemCreate(&h, g, &plain, 0));
    CALL(cuMemCreate(&again, 1000, &plain, 0));
    CALL(cuMemCreate(&again, 0, &plain, 0));
    CALL(cuMemCreate(&again, g, &plain, 1));
    CALL(cuMemCreate(&again, g, NULL, 0));
    CALL(cuMemCreate(NULL, g, &plain, 0));
    CALL(cuMemCreate(&again, (size_t)1 << 50, &plain, 0));
    CALL(cuMemGetAllocationPropertiesFromHandle(&got, h));
    NUM(got.type);
    NUM(got.location.type);
    NUM(got.location.id);
    NUM(got.requestedHandleTypes);
    CALL(cuMemAddressReserve(&p, 4 * g, 0, 0, 0));
    CALL(cuMemMap(p, g, 0, h, 0));
    CALL(cuMemGetAccess(&flags, &at, p));
    NUM(flags);
    CALL(cuMemsetD8(p, 1, 16));
    CALL(cuMemSetAccess(p, g, &both, 1));
    CALL(cuMemGetAccess(&flags, &at, p));
    NUM(flags);
    CALL(cuMemsetD32(p, 77, 100));
    NUM(answers_word(p + 396));
    CALL(cuMemGetAddressRange(&base, &size, p + 100));
    NUM(base == p);
    NUM(size == g);
    CALL(cuMemMap(p, g, 0, h, 0));
    CALL(cuMemMap(p + g, g, 0, h, 0));
    CALL(cuMemSetAccess(p + g, g, &both, 1));
    NUM(answers_word(p + g + 396));
    CALL(cuMemMap(p + 2 * g, g, 4096, h, 0));
    CALL(cuMemMap(p + 2 * g, 2 * g, 0, h, 0));
    CALL(cuMemMap(p + 2 * g + 4096, g, 0, h, 0));
    CALL(cuMemMap(p + 2 * g, g, 0, h, 1));
    CALL(cuMemMap(p + 8 * g, g, 0, h, 0));
    CALL(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + 100)));
    NUM(again == h);
    CALL(cuMemRelease(again));
    CALL(cuMemRelease(h));
    NUM(answers_word(p + 396));
    CALL(cuMemAddressFree(p, 4 * g));
    CALL(cuMemUnmap(p, 1000));
    CALL(cuMemUnmap(p, 2 * g));
    CALL(cuMemUnmap(p, g));
    CALL(cuMemsetD8(p, 1, 16));
    CALL(cuMemAddressFree(p, 4 * g));
    CALL(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)p));
}

static void access_of_ranges(void)
{
    const size_t g = 2 << 20;
    CUdeviceptr p = 0;
    CUmemGenericAllocationHandle h = 0;
    unsigned long long flags = 9;
    CUmemAccessDesc d = both;
    CUmemLocation at = plain.location;
    uint32_t word = 4;
    CALL(cuMemCreate(&h, 2 * g, &plain, 0));
    CALL(cuMemAddressReserve(&p, 4 * g, 0, 0, 0));
    CALL(cuMemMap(p, 2 * g, 0, h, 0));
    CALL(cuMemSetAccess(p, 4 * g, &d, 1));
    CALL(cuMemSetAccess(p, g, &d, 1));
    CALL(cuMemSetAccess(p, 1000, &d, 1));
    CALL(cuMemSetAccess(p, 2 * g, NULL, 1));
    CALL(cuMemSetAccess(p, 2 * g, &d, 0));
    d.location.id = 1000;
    CALL(cuMemSetAccess(p, 2 * g, &d, 1));
    d = both;
    d.flags = (CUmemAccess_flags)9;
    CALL(cuMemSetAccess(p, 2 * g, &d, 1));
    d.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    CALL(cuMemSetAccess(p, 2 * g, &d, 1));
    CALL(cuMemGetAccess(&flags, &at, p));
    NUM(flags);
    CALL(cuMemcpyDtoH(&word, p, 4));
    CALL(cuMemGetAccess(&flags, &at, p + 3 * g));
    CALL(cuMemGetAccess(&flags, &at, 16));
    CALL(cuMemGetAccess(NULL, &at, p));
}

static void shareable(void)
{
    const size_t g = 2 << 20;
    CUdeviceptr p = 0;
    CUmemGenericAllocationHandle h = 0, private = 0, back = 0;
    CUmemAllocationProp prop = plain;
    int fd = -1;
    CALL(cuMemCreate(&private, g, &plain, 0));
    CALL(cuMemExportToShareableHandle(&fd, private, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CALL(cuMemCreate(&h, g, &prop, 0));
    CALL(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    NUM(fd >= 0);
    CALL(cuMemExportToShareableHandle(NULL, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    CALL(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_WIN32, 0));
    CALL(cuMemImportFromShareableHandle(&back, (void *)(intptr_t)fd,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CALL(cuMemAddressReserve(&p, 2 * g, 0, 0, 0));
    CALL(cuMemMap(p, g, 0, h, 0));
    CALL(cuMemMap(p + g, g, 0, back, 0));
    CALL(cuMemSetAccess(p, 2 * g, &both, 1));
    CALL(cuMemsetD32(p, 5, 4));
    NUM(answers_word(p + g));
    CALL(cuMemRelease(back));
    CALL(cuMemRelease(h));
    CALL(cuMemRelease(private));
    close(fd);
    CALL(cuMemImportFromShareableHandle(&back, (void *)(intptr_t)-1,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CALL(cuMemImportFromShareableHandle(&back, (void *)(intptr_t)0,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
}

static void kinds(void)
{
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop = plain;
    size_t g = 0, multicast = 0;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    CALL(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MACHINE(g);
    prop = plain;
    prop.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    CALL(cuMemCreate(&h, 2 << 20, &prop, 0));
    prop = plain;
    prop.allocFlags.compressionType = 1;
    CALL(cuMemCreate(&h, 2 << 20, &prop, 0));
    prop = plain;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    CALL(cuMemCreate(&h, 2 << 20, &prop, 0));
    CUmulticastObjectProp m = { .numDevices = 1, .size = 2 << 20 };
    (void)multicast;
    (void)m;
}

const struct answers_case answers_virtual[] = {
    CASE(granularity), CASE(reserving), CASE(mapping), CASE(access_of_ranges),
    CASE(shareable),   CASE(kinds),     END,
};
