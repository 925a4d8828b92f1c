/* Memory pools and what is allocated from them in the order of streams. */
#include "tap.h"

#include <string.h>

#define MIB (1u << 20)

static const CUmemPoolProps plain = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                    .id = 0 } };

static cuuint64_t number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value = 0;
    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void supported(void)
{
    int value = 0;
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
    EQ(value, 1);
}

static void which_pool(void)
{
    CUmemoryPool first, current, mine;
    OK(cuDeviceGetDefaultMemPool(&first, 0));
    OK(cuDeviceGetMemPool(&current, 0));
    TRUE(first == current);
    OK(cuMemPoolCreate(&mine, &plain));
    TRUE(mine != first);
    OK(cuDeviceSetMemPool(0, mine));
    OK(cuDeviceGetMemPool(&current, 0));
    TRUE(current == mine);
    OK(cuMemPoolDestroy(mine)); /* makes the default one current */
    OK(cuDeviceGetMemPool(&current, 0));
    TRUE(current == first);
    TRUE(cuMemPoolDestroy(first) != CUDA_SUCCESS);
    IS(cuDeviceGetDefaultMemPool(&first, 99), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGetDefaultMemPool(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

static void by_location(void)
{
    CUmemoryPool first, there, mine;
    CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
    OK(cuDeviceGetDefaultMemPool(&first, 0));
    OK(cuMemGetDefaultMemPool(&there, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    TRUE(first == there);
    OK(cuMemPoolCreate(&mine, &plain));
    OK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, mine));
    OK(cuMemGetMemPool(&there, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    TRUE(there == mine);
    OK(cuDeviceGetMemPool(&there, 0));
    TRUE(there == mine);
    OK(cuMemPoolDestroy(mine));
}

static void loop(void)
{
    CUmemoryPool pool;
    CUdeviceptr p, first = 0;
    CUstream s;
    uint32_t words[4] = { 0 };
    cuuint64_t threshold = UINT64_MAX;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemPoolCreate(&pool, &plain));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    for (unsigned i = 0; i < 1000; i++) {
        OK(cuMemAllocFromPoolAsync(&p, 100000, pool, s));
        first = i == 0 ? p : first;
        TRUE(p == first); /* the stream's own order makes it good again at once */
        OK(cuMemsetD32Async(p, i, 4, s));
        OK(cuMemcpyDtoHAsync(words, p, sizeof(words), s));
        OK(cuMemFreeAsync(p, s));
    }
    OK(cuStreamSynchronize(s));
    EQ(words[3], 999);
    EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    TRUE(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 100000 &&
         number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) < 200000);
    TRUE(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 100000);
    OK(cuMemPoolDestroy(pool));
    OK(cuStreamDestroy(s));
}

static void numbers(void)
{
    CUmemoryPool pool;
    CUdeviceptr p[8];
    cuuint64_t zero = 0, one = 1, high;
    OK(cuMemPoolCreate(&pool, &plain));
    EQ(number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
    EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    for (unsigned i = 0; i < COUNT(p); i++)
        OK(cuMemAllocFromPoolAsync(&p[i], 3 * MIB, pool, NULL));
    EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 24 * MIB);
    TRUE(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 24 * MIB);
    for (unsigned i = 0; i < COUNT(p) - 1; i++)
        OK(cuMemFreeAsync(p[i], NULL));
    EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 3 * MIB);
    EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 24 * MIB);
    high = number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
    TRUE(high >= 24 * MIB);
    IS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 3 * MIB);
    TRUE(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero) != CUDA_SUCCESS);
    OK(cuMemFreeAsync(p[7], NULL));
    OK(cuStreamSynchronize(NULL)); /* above the threshold, all goes back */
    EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0);
    OK(cuMemPoolDestroy(pool));
}

static void threshold_and_trim(void)
{
    CUmemoryPool pool;
    CUdeviceptr p[3];
    cuuint64_t threshold = UINT64_MAX, kept;
    OK(cuMemPoolCreate(&pool, &plain));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    EQ(number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), -1);
    for (unsigned i = 0; i < COUNT(p); i++)
        OK(cuMemAllocFromPoolAsync(&p[i], 40 * MIB, pool, NULL));
    for (unsigned i = 0; i < COUNT(p); i++)
        OK(cuMemFreeAsync(p[i], NULL));
    OK(cuCtxSynchronize());
    kept = number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    TRUE(kept >= 120 * MIB);
    OK(cuMemPoolTrimTo(pool, 60 * MIB));
    TRUE(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 60 * MIB);
    TRUE(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < kept);
    OK(cuMemPoolTrimTo(pool, 0));
    EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    OK(cuMemPoolDestroy(pool));
}

/* What one stream has freed and not yet come to may not be overwritten by another. */
static void across_streams(void)
{
    CUmemoryPool pool;
    CUstream a, b;
    CUdeviceptr p, q;
    _Atomic int open = 0;
    int off = 0;
    uint32_t word = 0;
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuMemPoolCreate(&pool, &plain));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
    EQ(off, 0);
    OK(cuMemAllocFromPoolAsync(&p, 4096, pool, a));
    OK(cuMemsetD32Async(p, 1, 1024, a));
    OK(cuStreamSynchronize(a));
    OK(cuLaunchHostFunc(a, tap_hold, &open));
    OK(cuMemcpyDtoH(&word, p, 4)); /* another stream, so that this does not wait for the function */
    EQ(word, 1);
    OK(cuMemFreeAsync(p, a)); /* a stands at the host function */
    OK(cuMemAllocFromPoolAsync(&q, 4096, pool, b));
    TRUE(q != p);
    hold_set(&open, 1);
    OK(cuStreamSynchronize(a));
    OK(cuMemFreeAsync(q, b));
    OK(cuStreamSynchronize(b));
    OK(cuMemPoolDestroy(pool));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

static void destroyed_with_memory(void)
{
    CUmemoryPool pool, of;
    CUdeviceptr p, q;
    uint32_t word = 0;
    if (tap_genuine())
        tap_skip("the genuine library, 580.159, comes to grief of it in one of the next cases");
    OK(cuMemPoolCreate(&pool, &plain));
    OK(cuMemAllocFromPoolAsync(&p, 5000, pool, NULL));
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    TRUE(of == pool);
    OK(cuMemPoolDestroy(pool));
    OK(cuMemsetD32(p, 77, 1000));
    OK(cuMemcpyDtoH(&word, p + 3996, 4));
    EQ(word, 77);
    TRUE(cuMemAllocFromPoolAsync(&q, 16, pool, NULL) != CUDA_SUCCESS);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuStreamSynchronize(NULL));
}

static void mixed_frees(void)
{
    CUdeviceptr p;
    if (tap_genuine())
        tap_skip("the genuine library, 580.159, does not always survive it");
    OK(cuMemAllocAsync(&p, 1000, NULL));
    OK(cuMemFree(p));
    OK(cuMemAlloc(&p, 1000));
    OK(cuMemFreeAsync(p, NULL));
    OK(cuStreamSynchronize(NULL));
}

static void wrong_frees(void)
{
    CUdeviceptr p;
    if (tap_genuine())
        tap_skip("the genuine library does not survive it");
    OK(cuMemAllocAsync(&p, 1000, NULL));
    IS(cuMemFreeAsync(p + 512, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
    IS(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemFreeAsync(p, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&p, 1000));
    OK(cuMemFreeAsync(p, NULL));
    OK(cuStreamSynchronize(NULL));
    IS(cuMemFreeAsync(p, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void bounded(void)
{
    CUmemPoolProps props = plain;
    CUmemoryPool pool;
    CUdeviceptr p, q;
    if (tap_genuine())
        tap_skip("the genuine library, 580.159, divides by zero now and then");
    props.maxSize = 64 * MIB;
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&p, 32 * MIB, pool, NULL));
    IS(cuMemAllocFromPoolAsync(&q, 48 * MIB, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuMemPoolDestroy(pool));
    props.maxSize = 1 * MIB; /* less than the device gives at once */
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&p, 65536, pool, NULL));
    IS(cuMemAllocFromPoolAsync(&q, 8 * MIB, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuMemPoolDestroy(pool));
}

static void too_much(void)
{
    CUdeviceptr p;
    IS(cuMemAllocAsync(&p, 1ull << 45, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAllocAsync(&p, 16, NULL));
    OK(cuMemFreeAsync(p, NULL));
}

/* Pieces freed in any order are whole again afterwards. */
static void pieces(void)
{
    CUmemoryPool pool;
    CUdeviceptr p[200];
    OK(cuMemPoolCreate(&pool, &plain));
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < COUNT(p); i++) {
            OK(cuMemAllocFromPoolAsync(&p[i], 1000 + (i * 7919 + round * 104729) % 300000, pool,
                                       NULL));
            OK(cuMemsetD8Async(p[i], (unsigned char)i, 1000, NULL));
        }
        for (unsigned i = 0; i < COUNT(p); i++) {
            uint8_t byte = 0;
            OK(cuMemcpyDtoH(&byte, p[i] + 999, 1));
            EQ(byte, i & 0xff);
        }
        for (unsigned i = 0; i < COUNT(p); i++)
            OK(cuMemFreeAsync(p[(i * 67) % COUNT(p)], NULL));
    }
    EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    OK(cuStreamSynchronize(NULL));
    OK(cuMemPoolTrimTo(pool, 0));
    EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    OK(cuMemPoolDestroy(pool));
}

static void access(void)
{
    CUmemoryPool pool;
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemAccessDesc desc = { .location = plain.location,
                             .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemLocation here = plain.location;
    OK(cuMemPoolCreate(&pool, &plain));
    OK(cuMemPoolSetAccess(pool, &desc, 1));
    OK(cuMemPoolGetAccess(&flags, pool, &here));
    EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE; /* its own device's access stays */
    TRUE(cuMemPoolSetAccess(pool, &desc, 1) != CUDA_SUCCESS);
    OK(cuMemPoolDestroy(pool));
}

/* No bytes are no error. What they lie at is not said: nothing, or something that can be freed. */
static void nothing(void)
{
    CUmemoryPool pool;
    CUdeviceptr p = 0;
    IS(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocAsync(&p, 0, NULL));
    if (p)
        OK(cuMemFreeAsync(p, NULL));
    p = 0;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocFromPoolAsync(&p, 0, pool, NULL));
    if (p)
        OK(cuMemFreeAsync(p, NULL));
    OK(cuStreamSynchronize(NULL));
}

static void wrong(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = plain;
    cuuint64_t value;
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    IS(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props = plain;
    props.handleTypes = (CUmemAllocationHandleType)64;
    IS(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props = plain;
    props.location.id = 77;
    TRUE(cuMemPoolCreate(&pool, &props) != CUDA_SUCCESS);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    TRUE(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)77, &value) != CUDA_SUCCESS);
    CUmemAccessDesc to = { .location = { .type = (CUmemLocationType)99, .id = 0 },
                           .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    IS(cuMemPoolSetAccess(pool, &to, 1), CUDA_ERROR_NOT_SUPPORTED);
    to.location = (CUmemLocation) { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99 };
    to.flags = (CUmemAccess_flags)2;
    IS(cuMemPoolSetAccess(pool, &to, 1), CUDA_ERROR_INVALID_DEVICE);
    to.location.id = 0;
    IS(cuMemPoolSetAccess(pool, &to, 1), CUDA_ERROR_INVALID_VALUE);
}

static void null_pointers(void)
{
    CUmemoryPool pool;
    if (tap_genuine())
        tap_skip("the genuine library, 580.159, follows them");
    IS(cuMemPoolCreate(&pool, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemPoolCreate(NULL, &plain), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAllocAsync(NULL, 16, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    IS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL),
       CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(supported),      TEST(which_pool),
        TEST(by_location),    TEST(loop),
        TEST(numbers),        TEST(threshold_and_trim),
        TEST(across_streams), TEST(destroyed_with_memory),
        TEST(mixed_frees),    TEST(wrong_frees),
        TEST(bounded),        TEST(too_much),
        TEST(pieces),         TEST(access),
        TEST(nothing),        TEST(wrong),
        TEST(null_pointers),
    };
    return tap_main(tests, COUNT(tests));
}
