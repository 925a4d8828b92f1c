/* Managed memory: host and device touch the same pages. */
#include "answers.h"

static const CUmemLocation device = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
static const CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST, .id = 0 };

static void both_sides(void)
{
    CUdeviceptr p = 0, base;
    size_t size = 0;
    CALL(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    volatile uint32_t *w = (volatile uint32_t *)(uintptr_t)p;
    for (unsigned i = 0; i < 1024; i++)
        w[i] = 5;
    CALL(answers_fill(NULL, p, 512, 100));
    CALL(cuCtxSynchronize());
    NUM(w[0]);
    NUM(w[511]);
    NUM(w[512]);
    CALL(cuMemsetD32(p, 7, 10));
    CALL(cuCtxSynchronize());
    NUM(w[9]);
    CALL(cuMemGetAddressRange(&base, &size, p + 100));
    NUM(base == p);
    NUM(size);
    CALL(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuMemAllocManaged(&p, 100, 0));
    CALL(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_SINGLE));
    CALL(cuMemAllocManaged(&p, 100, 8));
    CALL(cuMemAllocManaged(NULL, 100, CU_MEM_ATTACH_GLOBAL));
    CALL(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_HOST));
    *(volatile uint32_t *)(uintptr_t)p = 3;
    NUM(answers_word(p));
    CALL(cuMemFree(p));
    CALL(cuMemHostGetDevicePointer(&p, (void *)(uintptr_t)base, 0));
    CALL(cuMemFreeHost((void *)(uintptr_t)base));
    CALL(cuMemFree(base));
}

static void attaching(void)
{
    CUdeviceptr p, q, d;
    CUstream s;
    CALL(cuStreamCreate(&s, 0));
    CALL(cuMemAllocManaged(&p, 65536, CU_MEM_ATTACH_HOST));
    CALL(cuMemAllocManaged(&q, 65536, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync(s, p, 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync(s, p, 65536, CU_MEM_ATTACH_HOST));
    CALL(cuStreamAttachMemAsync(s, p, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync(s, p, 4096, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync(s, p + 4096, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync(s, p, 0, 8));
    CALL(cuMemAlloc(&d, 4096));
    CALL(cuStreamAttachMemAsync(s, d, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync(s, 16, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamSynchronize(s));
}

static void advice(void)
{
    CUdeviceptr p, d;
    CALL(cuMemAllocManaged(&p, 1 << 20, CU_MEM_ATTACH_GLOBAL));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, host));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_UNSET_ACCESSED_BY, device));
    CALL(cuMemAdvise(p, 1 << 20, (CUmem_advise)99, device));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                     (CUmemLocation) { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1000 }));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                     (CUmemLocation) { .type = CU_MEM_LOCATION_TYPE_INVALID }));
    CALL(cuMemAdvise(p, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALL(cuMemAdvise(p, 2 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALL(cuMemAdvise(p + 100, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALL(cuMemAlloc(&d, 1 << 20));
    CALL(cuMemAdvise(d, 1 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALL(cuMemAdvise(16, 16, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
}

static void prefetching(void)
{
    CUdeviceptr p, d;
    CUstream s;
    volatile uint32_t *w;
    CALL(cuStreamCreate(&s, 0));
    CALL(cuMemAllocManaged(&p, 1 << 20, CU_MEM_ATTACH_GLOBAL));
    w = (volatile uint32_t *)(uintptr_t)p;
    w[0] = 5;
    CALL(cuMemPrefetchAsync(p, 1 << 20, device, 0, s));
    CALL(answers_fill(s, p, 1 << 18, 3));
    CALL(cuMemPrefetchAsync(p, 1 << 20, host, 0, s));
    CALL(cuStreamSynchronize(s));
    NUM(w[(1 << 18) - 1]);
    CALL(cuMemPrefetchAsync(p, 1 << 20, device, 1, s));
    CALL(cuMemPrefetchAsync(p, 0, device, 0, s));
    CALL(cuMemPrefetchAsync(p, 2 << 20, device, 0, s));
    CALL(cuMemPrefetchAsync(
        p, 1 << 20, (CUmemLocation) { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1000 }, 0, s));
    CALL(cuMemPrefetchAsync(p, 1 << 20, device, 0, NULL));
    CALL(cuMemAlloc(&d, 1 << 20));
    CALL(cuMemPrefetchAsync(d, 1 << 20, device, 0, s));
    CALL(cuMemPrefetchAsync(16, 16, device, 0, s));
    CALL(cuStreamSynchronize(s));
}

static void range_attributes(void)
{
    CUdeviceptr p, d;
    int value = 99, by[3] = { 99, 99, 99 }, last = 99;
    CUmem_range_attribute which[] = { CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                      CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION };
    void *to[] = { &value, &last };
    size_t sizes[] = { sizeof(value), sizeof(last) };
    CALL(cuMemAllocManaged(&p, 1 << 20, CU_MEM_ATTACH_GLOBAL));
    CALL(cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p,
                                1 << 20));
    NUM(value);
    CALL(cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p,
                                1 << 20));
    NUM(value);
    CALL(cuMemRangeGetAttribute(&value, sizeof(value),
                                CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, 1 << 20));
    NUM(value);
    CALL(cuMemRangeGetAttribute(by, sizeof(by), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 1 << 20));
    NUM(by[0]);
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    CALL(cuMemAdvise(p, 1 << 20, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    CALL(cuMemPrefetchAsync(p, 1 << 20, device, 0, NULL));
    CALL(cuCtxSynchronize());
    CALL(cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p,
                                1 << 20));
    NUM(value);
    CALL(cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p,
                                1 << 20));
    NUM(value);
    CALL(cuMemRangeGetAttribute(&value, sizeof(value),
                                CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, p, 1 << 20));
    NUM(value);
    CALL(cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID,
                                p, 1 << 20));
    NUM(value);
    CALL(cuMemRangeGetAttribute(&value, sizeof(value),
                                CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, p, 1 << 20));
    NUM(value);
    CALL(cuMemRangeGetAttribute(by, sizeof(by), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 1 << 20));
    NUM(by[0]);
    NUM(by[1]);
    CALL(cuMemRangeGetAttributes(to, sizes, which, 2, p, 1 << 20));
    NUM(value);
    NUM(last);
    CALL(cuMemAdvise(p, 65536, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
    CALL(cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p,
                                1 << 20));
    NUM(value);
    CALL(cuMemRangeGetAttribute(&value, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 1 << 20));
    CALL(cuMemRangeGetAttribute(by, 3, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 1 << 20));
    CALL(cuMemRangeGetAttribute(&value, sizeof(value), (CUmem_range_attribute)99, p, 1 << 20));
    CALL(cuMemRangeGetAttribute(NULL, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p,
                                1 << 20));
    CALL(cuMemAlloc(&d, 4096));
    CALL(
        cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, d, 4096));
    CALL(cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p,
                                4 << 20));
    CALL(cuMemRangeGetAttributes(to, sizes, which, 0, p, 1 << 20));
}

static void managed_copies(void)
{
    CUdeviceptr p, d;
    uint32_t out[4] = { 0 };
    CALL(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    CALL(cuMemAlloc(&d, 4096));
    ((volatile uint32_t *)(uintptr_t)p)[1] = 8;
    CALL(cuMemcpyDtoD(d, p, 4096));
    CALL(cuMemcpyDtoH(out, d, 16));
    NUM(out[1]);
    CALL(cuMemcpyDtoH(out, p, 16));
    CALL(cuMemcpyHtoD(d, (void *)(uintptr_t)p, 16));
    CALL(cuMemcpy(p, d, 16));
    CALL(cuMemcpyAsync(p, d, 16, NULL));
    CALL(cuCtxSynchronize());
    NUM(((volatile uint32_t *)(uintptr_t)p)[1]);
}

const struct answers_case answers_managed[] = {
    CASE(both_sides),       CASE(attaching),      CASE(advice), CASE(prefetching),
    CASE(range_attributes), CASE(managed_copies), END,
};
