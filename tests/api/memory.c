/* Allocation of device, pinned, managed and registered memory. */
#include "tap.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void alloc_and_free(void)
{
    CUdeviceptr p = 0, q = 0;
    OK(cuMemAlloc(&p, 1));
    OK(cuMemAlloc(&q, 1 << 20));
    TRUE(p && q && p != q);
    EQ(p % 256, 0);
    OK(cuMemFree(p));
    OK(cuMemFree(q));
    OK(cuMemFree(0));
    IS(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAlloc(NULL, 16), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemFree(0x1000), CUDA_ERROR_INVALID_VALUE);
}

static void bad_free(void)
{
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 4096));
    IS(cuMemFree(p + 256), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
    IS(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

static void too_much(void)
{
    CUdeviceptr p;
    IS(cuMemAlloc(&p, 1ull << 45), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc(&p, 16)); /* that was no sticky error */
    OK(cuMemFree(p));
}

static void info(void)
{
    const size_t size = 64 << 20;
    const size_t at_hand =
        size / 2; /* a GPU's driver may have a little left of what it took before */
    CUdeviceptr p;
    size_t before, after, total;
    OK(cuMemGetInfo(&before, &total));
    TRUE(before <= total && total > 0);
    OK(cuMemAlloc(&p, size));
    OK(cuMemGetInfo(&after, &total));
    if (after > before - (size - at_hand) && tap_alone())
        tap_fail(__FILE__, __LINE__, "%zu bytes free of %zu after an allocation, %zu before", after,
                 total, before);
    OK(cuMemFree(p));
    before = after;
    OK(cuMemGetInfo(&after, &total)); /* not before it is all back */
    TRUE(after <= total);
    if (after < before + (size - at_hand) && tap_alone())
        tap_fail(__FILE__, __LINE__, "%zu bytes free after they have been given back, %zu before",
                 after, before);
}

/* What has been freed counts as free, whatever is kept for later. */
static void freed_at_once(void)
{
    enum { COUNT_OF_EACH = 6 };
    static const size_t sizes[] = { 1000, 100 << 10, 3 << 20, 16 << 20 };
    CUdeviceptr p[COUNT(sizes)][COUNT_OF_EACH];
    size_t before, after, total;
    if (!tap_alone())
        tap_skip("others allocate beside us");
    OK(cuMemGetInfo(&before, &total));
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t j = 0; j < COUNT_OF_EACH; j++)
            OK(cuMemAlloc(&p[i][j], sizes[i]));
    OK(cuMemGetInfo(&after, &total));
    TRUE(before - after >= 114 << 20);
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t j = 0; j < COUNT_OF_EACH; j++)
            OK(cuMemFree(p[i][j]));
    OK(cuMemGetInfo(&after, &total));
    TRUE(after + (4 << 20) >= before); /* a slab of the driver's */
}

static void pitch(void)
{
    CUdeviceptr p;
    size_t pitch_bytes = 0;
    OK(cuMemAllocPitch(&p, &pitch_bytes, 100, 10, 4));
    TRUE(pitch_bytes >= 100 && pitch_bytes % 32 == 0);
    OK(cuMemsetD2D8(p, pitch_bytes, 1, 100, 10));
    OK(cuMemFree(p));
    IS(cuMemAllocPitch(&p, &pitch_bytes, 100, 10, 3), CUDA_ERROR_INVALID_VALUE);
}

static void address_range(void)
{
    CUdeviceptr p, base;
    size_t size;
    OK(cuMemAlloc(&p, 10000));
    OK(cuMemGetAddressRange(&base, &size, p + 9999));
    TRUE(base == p);
    EQ(size, 10000);
    OK(cuMemGetAddressRange(NULL, &size, p));
    OK(cuMemFree(p));
    TRUE(cuMemGetAddressRange(&base, &size, 0x10) != CUDA_SUCCESS);
}

static void pinned(void)
{
    void *h = NULL;
    CUdeviceptr d = 0;
    unsigned flags = 0;
    OK(cuMemHostAlloc(&h, 100000, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    memset(h, 0x5a, 100000);
    OK(cuMemHostGetDevicePointer(&d, h, 0));
    TRUE(d == (CUdeviceptr)(uintptr_t)h);
    OK(cuMemHostGetFlags(&flags, h));
    TRUE(flags & CU_MEMHOSTALLOC_DEVICEMAP);
    IS(cuMemHostGetDevicePointer(&d, &flags, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(h));
    IS(cuMemFreeHost(h), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(NULL));
    OK(cuMemAllocHost(&h, 64));
    OK(cuMemFreeHost(h));
    IS(cuMemHostAlloc(&h, 64, 0x80), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemHostAlloc(NULL, 64, 0), CUDA_ERROR_INVALID_VALUE);
}

static void managed(void)
{
    CUdeviceptr p;
    OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    uint32_t *words = (uint32_t *)(uintptr_t)p;
    words[0] = 1;
    OK(cuMemsetD32(p + 4, 0xabcd, 10));
    OK(cuCtxSynchronize());
    EQ(words[0], 1);
    EQ(words[10], 0xabcd);
    CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
    OK(cuMemPrefetchAsync_v2(p, 4096, here, 0, NULL));
    OK(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    TRUE(cuMemPrefetchAsync_v2(p, 1 << 30, here, 0, NULL) != CUDA_SUCCESS);
    IS(cuMemFreeAsync(p, NULL), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuMemFree(p));
    IS(cuMemAllocManaged(&p, 4096, 77), CUDA_ERROR_INVALID_VALUE);
    CUcontext c;
    OK(cuCtxPopCurrent(&c));
    IS(cuMemAllocManaged(&p, 4096, 77), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuMemAllocPitch(&p, NULL, 1, 1, 4), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxPushCurrent(c));
}

/* After a synchronous copy from or to managed memory the host may look at once. */
static void managed_copies(void)
{
    const size_t size = 4 << 20, last = size / 4 - 1;
    CUdeviceptr p, q, d;
    OK(cuMemAllocManaged(&p, size, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAllocManaged(&q, size, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAlloc(&d, size));
    uint32_t *a = (uint32_t *)(uintptr_t)p, *b = (uint32_t *)(uintptr_t)q;
    for (uint32_t i = 1; i <= 8; i++) {
        a[last] = i;
        OK(cuMemcpyDtoH(b, p, size));
        EQ(b[last], i);
        a[last] = 100 + i;
        OK(cuMemcpyHtoD(q, a, size));
        EQ(b[last], 100 + i);
        OK(cuMemsetD32Async(d, 200 + i, size / 4, NULL));
        OK(cuMemcpyDtoH(b, d, size));
        EQ(b[last], 200 + i);
        OK(cuMemsetD32Async(d, 300 + i, size / 4, NULL));
        OK(cuMemcpyHtoD(q, &i, 4)); /* behind what is under way, not put off until then */
        EQ(b[0], i);
    }
    OK(cuMemFree(p));
    OK(cuMemFree(q));
    OK(cuMemFree(d));
}

static int range_attribute(CUmem_range_attribute attribute, CUdeviceptr p, size_t size)
{
    int value = 77;
    OK(cuMemRangeGetAttribute(&value, sizeof(value), attribute, p, size));
    return value;
}

/* Advice about memory that is not managed: none is taken, but about a node of the host's memory. */
static void advice_for_others(void)
{
    const CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
                        node = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA },
                        invalid = { .type = CU_MEM_LOCATION_TYPE_INVALID };
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 4096));
    IS(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, here), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, node));
    OK(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node));
    IS(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, node), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemPrefetchAsync_v2(p, 0, here, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
    OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    IS(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, invalid), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
}

static void hints(void)
{
    const size_t size = 1 << 20, half = size / 2;
    CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
                  host = { .type = CU_MEM_LOCATION_TYPE_HOST };
    CUdeviceptr p, ranges[2];
    size_t sizes[2] = { half, half }, index = 0;
    int by[3] = { 7, 7, 7 };
    OK(cuMemAllocManaged(&p, size, CU_MEM_ATTACH_GLOBAL));
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, size), 0);
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, size), CU_DEVICE_INVALID);
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, p, size), CU_DEVICE_INVALID);
    OK(cuMemAdvise_v2(p, size, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, size), 1);
    OK(cuMemAdvise_v2(p, half, CU_MEM_ADVISE_UNSET_READ_MOSTLY, here));
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, size), 0);
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p + half, half), 1);
    OK(cuMemAdvise_v2(p, size, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, size), 0);
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, p, size),
       CU_MEM_LOCATION_TYPE_DEVICE);
    OK(cuMemAdvise_v2(p + half, half, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, size), CU_DEVICE_INVALID);
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p + half, half), CU_DEVICE_CPU);
    OK(cuMemAdvise_v2(p, size, CU_MEM_ADVISE_SET_ACCESSED_BY, here));
    OK(cuMemRangeGetAttribute(by, sizeof(by), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, size));
    EQ(by[0], 0);
    EQ(by[1], CU_DEVICE_INVALID);
    ranges[0] = p;
    ranges[1] = p + half;
    OK(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_GLOBAL));
    TRUE(cuStreamAttachMemAsync(NULL, p + 1, 0, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS);
    TRUE(cuStreamAttachMemAsync(NULL, p, 0, 99) != CUDA_SUCCESS);
    if (!tap_genuine()) { /* which wants a stream of one's own */
        OK(cuMemPrefetchBatchAsync(ranges, sizes, 2, &here, &index, 1, 0, NULL));
        EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, size), 0);
        OK(cuMemDiscardBatchAsync(ranges, sizes, 2, 0, NULL));
    }
    TRUE(cuMemRangeGetAttribute(by, 2, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, size) !=
         CUDA_SUCCESS);
    OK(cuMemFree(p));
    OK(cuMemAllocManaged(&p, size, CU_MEM_ATTACH_GLOBAL));
    EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p + half, half), 0);
    OK(cuMemFree(p));
}

static void registered(void)
{
    const size_t size = 64 << 10;
    uint8_t *h = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr d, p;
    TRUE(h != MAP_FAILED);
    memset(h, 3, size);
    OK(cuMemHostRegister(h, size, CU_MEMHOSTREGISTER_DEVICEMAP));
    EQ(h[100], 3); /* still there */
    IS(cuMemHostRegister(h, size, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostGetDevicePointer(&d, h, 0));
    h[5] = 55;
    OK(cuMemsetD8(d + 1000, 9, 1000)); /* the device writes the program's pages */
    OK(cuCtxSynchronize());
    EQ(h[999], 3);
    EQ(h[1000], 9);
    OK(cuMemAlloc(&p, size));
    OK(cuMemcpyHtoDAsync(p, h, size, NULL));
    OK(cuStreamSynchronize(NULL));
    memset(h, 0, size);
    OK(cuMemcpyDtoHAsync(h, p, size, NULL));
    OK(cuStreamSynchronize(NULL));
    EQ(h[5], 55);
    EQ(h[1999], 9);
    OK(cuMemHostUnregister(h));
    EQ(h[5], 55);
    IS(cuMemHostUnregister(h), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    void *allocated;
    OK(cuMemAllocHost(&allocated, 100));
    IS(cuMemHostUnregister(allocated), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(allocated));
    OK(cuMemFree(p));
    munmap(h, size);
}

/* For reading by the device only: the host still writes there, and what lies in the same pages. */
static void registered_read_only(void)
{
    char *h = malloc(1000), out[1000];
    CUdeviceptr d;
    memset(h, 3, 1000);
    CUresult r = cuMemHostRegister(h, 1000, CU_MEMHOSTREGISTER_READ_ONLY);
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        tap_skip("the device reads only what it may write");
    OK(r);
    h[5] = 4;
    OK(cuMemAlloc(&d, 1000));
    OK(cuMemcpyHtoD(d, h, 1000));
    OK(cuMemcpyDtoH(out, d, 1000));
    EQ(out[4], 3);
    EQ(out[5], 4);
    OK(cuMemHostUnregister(h));
    h[5] = 6;
    EQ(h[5], 6);
    free(h);
    OK(cuMemFree(d));
}

/* Copies of `bytes`, which are registered, both ways. */
static void copies_of_registered(uint8_t *bytes, size_t size)
{
    CUdeviceptr p;
    CUstream s;
    CUmemorytype type = 0;
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                             (CUdeviceptr)(uintptr_t)bytes));
    EQ(type, CU_MEMORYTYPE_HOST);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, size));
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7);
    OK(cuMemcpyHtoDAsync(p, bytes, size, s));
    OK(cuStreamSynchronize(s));
    memset(bytes, 0, size);
    OK(cuMemsetD8Async(p + 1, 99, 1, s));
    OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)bytes, p, size, s));
    OK(cuStreamSynchronize(s));
    for (size_t i = 0; i < size; i++)
        EQ(bytes[i], i == 1 ? 99 : (uint8_t)(i * 7));
    OK(cuMemFree(p));
    OK(cuStreamDestroy(s));
}

/* Kernels touch a little more than was allocated, and nobody notices before the next 2 MiB. */
static void a_little_beyond(void)
{
    static const size_t sizes[] = { 1000, 318828, 1200000, (2u << 20) + 4096 };
    CUfunction f = tap_function("poke");
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUdeviceptr p, at;
        void *params[] = { &at };
        OK(cuMemAlloc(&p, sizes[i]));
        at = p + sizes[i];
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        at = (at | ((2u << 20) - 1)) - 3;
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        OK(cuCtxSynchronize());
        OK(cuMemFree(p));
    }
}

/* Another registration of this size, which may get the pages that the last one had. */
static void register_another(size_t size)
{
    uint8_t *h = malloc(size + 40);
    TRUE(h != NULL);
    memset(h, 2, size + 40);
    OK(cuMemHostRegister(h + 40, size, 0));
    OK(cuMemHostUnregister(h + 40));
    free(h);
}

/* Memory that begins and ends in the middle of a page, as allocators give it out. */
static void registered_parts_of_pages(void)
{
    const size_t size = 300000;
    uint8_t *h = malloc(2 * size + 100), *at = h + 40;
    unsigned flags = 99;
    TRUE(h != NULL);
    memset(h, 1, 2 * size + 100);
    OK(cuMemHostRegister(at, size, CU_MEMHOSTREGISTER_PORTABLE));
    IS(cuMemHostRegister(at + size - 1, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    IS(cuMemHostRegister(at - 1, 2, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostGetFlags(&flags, at + 5));
    copies_of_registered(at, size);
    OK(cuMemHostUnregister(at));
    IS(cuMemHostUnregister(at), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    register_another(size);
    EQ(h[39], 1);
    EQ(h[40 + size], 1);
    for (size_t i = 0; i < size; i++)
        EQ(at[i], i == 1 ? 99 : (uint8_t)(i * 7));
    free(h);
}

static volatile uint32_t *neighbours; /* words in the same page, which another thread counts up */
static atomic_bool over;

static void *counts(void *arg)
{
    for (uint32_t *n = arg; !atomic_load(&over); ++*n)
        for (int i = 0; i < 8; i++)
            ++neighbours[i];
    return NULL;
}

/* Beside another thread, which writes to the same pages: it gets on, and no store is lost. */
static void registered_while_others_write(void)
{
    int fd = (int)syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY);
    if (fd < 0)
        tap_skip("no userfaultfd");
    close(fd);
    uint8_t *h = aligned_alloc(4096, 16384), *at = h + 5000;
    uint32_t count = 0;
    CUdeviceptr seen;
    pthread_t thread;
    TRUE(h != NULL);
    memset(h, 1, 16384);
    neighbours = (uint32_t *)(void *)(h + 4096);
    memset(h + 4096, 0, 32);
    atomic_store(&over, false);
    EQ(pthread_create(&thread, NULL, counts, &count), 0);
    for (int round = 0; round < 200; round++) {
        OK(cuMemHostRegister(at, 6000, CU_MEMHOSTREGISTER_DEVICEMAP));
        OK(cuMemHostGetDevicePointer(&seen, at, 0));
        OK(cuMemsetD8(seen, (unsigned char)round, 6000));
        EQ(at[0], (unsigned char)round);
        EQ(at[5999], (unsigned char)round);
        OK(cuMemHostUnregister(at));
    }
    atomic_store(&over, true);
    EQ(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < 8; i++)
        EQ(neighbours[i], count);
    EQ(h[4999], 1);
    EQ(h[11000], 1);
    free(h);
}

/* One page, beside an allocation that takes a part of one. */
static void registered_beside_small(void)
{
    uint8_t *h = malloc(10000), *at = h + 5000;
    void *small;
    TRUE(h != NULL);
    memset(h, 1, 10000);
    OK(cuMemHostAlloc(&small, 32, 0));
    OK(cuMemHostRegister(at, 8, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(cuMemHostUnregister(at));
    EQ(at[0], 1);
    OK(cuMemFreeHost(small));
    free(h);
}

static void registered_shared(void)
{
    const size_t size = 64 << 10;
    uint8_t *h = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TRUE(h != MAP_FAILED);
    OK(cuMemHostRegister(h, size, 0));
    copies_of_registered(h, size);
    OK(cuMemHostUnregister(h));
    EQ(h[1], 99);
    munmap(h, size);
}

/* A program may unmap what it registered; what lies there next is not to be touched. */
static void registered_and_unmapped(void)
{
    const size_t size = 16 << 10;
    uint8_t *h = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            *again;
    if (tap_genuine())
        tap_skip("what the genuine library does then is not defined");
    TRUE(h != MAP_FAILED);
    OK(cuMemHostRegister(h, size, 0));
    munmap(h, size);
    again = mmap(h, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                 -1, 0);
    TRUE(again == h);
    memset(again, 77, size);
    OK(cuMemHostUnregister(h));
    EQ(again[5000], 77);
    munmap(again, size);
}

static void stream_ordered(void)
{
    CUstream s;
    CUdeviceptr p[20];
    uint32_t word = 0;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < COUNT(p); i++) {
        OK(cuMemAllocAsync(&p[i], 1 << 16, s));
        OK(cuMemsetD32Async(p[i], i, 1 << 14, s));
        OK(cuMemcpyDtoHAsync(&word, p[i] + 4, 4, s));
        OK(cuMemFreeAsync(p[i], s));
    }
    OK(cuStreamSynchronize(s));
    EQ(word, COUNT(p) - 1);
    OK(cuStreamDestroy(s));
}

/* What was given back and is allocated again is zero, if nothing else lives in its pages. */
static void zero_again(void)
{
    static const size_t sizes[] = { 2 << 20, (3 << 20) + 512, 4 << 20, 16 << 20, 40 << 20 };
    if (!tap_computes())
        tap_skip("memory without bytes");
    uint8_t *bytes = malloc(sizes[4]);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (int round = 0; round < 3; round++) {
            CUdeviceptr p;
            size_t dirty = 0;
            OK(cuMemAlloc(&p, sizes[i]));
            OK(cuMemcpyDtoH(bytes, p, sizes[i]));
            for (size_t k = 0; k < sizes[i]; k++)
                dirty += bytes[k] != 0;
            EQ(dirty, 0);
            OK(cuMemsetD8(p, 0xab, sizes[i]));
            OK(cuMemFree(p));
        }
    }
    free(bytes);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(alloc_and_free),
        TEST(zero_again),
        TEST(bad_free),
        TEST(too_much),
        TEST(info),
        TEST(freed_at_once),
        TEST(pitch),
        TEST(address_range),
        TEST(pinned),
        TEST(managed),
        TEST(managed_copies),
        TEST(a_little_beyond),
        TEST(hints),
        TEST(advice_for_others),
        TEST(registered),
        TEST(registered_read_only),
        TEST(registered_and_unmapped),
        TEST(registered_parts_of_pages),
        TEST(registered_while_others_write),
        TEST(registered_beside_small),
        TEST(registered_shared),
        TEST(stream_ordered),
    };
    return tap_main(tests, COUNT(tests));
}
