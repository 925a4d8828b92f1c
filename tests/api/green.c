/* Green contexts of the program's own: parts of the multiprocessors that it has, streams in them,
 * and whose things are that are made there. */
#include "tap.h"

#include <string.h>

/* A device whose multiprocessors can be split in two; the halves. */
static void halve(CUdevResource half[2], CUdevResource *rest)
{
    CUdevResource all;
    unsigned count = 2;
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    if (all.sm.smCount < 2 * all.sm.minSmPartitionSize)
        tap_skip("too few multiprocessors to be split");
    OK(cuDevSmResourceSplitByCount(half, &count, &all, rest, 0,
                                   all.sm.smCount / 2 / all.sm.minSmPartitionSize *
                                       all.sm.minSmPartitionSize));
    EQ(count, 2);
}

static CUgreenCtx make(CUdevResource *resources, unsigned count)
{
    CUdevResourceDesc desc;
    CUgreenCtx green = NULL;
    OK(cuDevResourceGenerateDesc(&desc, resources, count));
    OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    TRUE(green != NULL);
    return green;
}

static void splits(void)
{
    CUdevResource all, half[2], rest, parts[64];
    unsigned count = 0;
    halve(half, &rest);
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    EQ(half[0].type, CU_DEV_RESOURCE_TYPE_SM);
    EQ(half[0].sm.smCount, half[1].sm.smCount);
    TRUE(half[0].sm.smCount % all.sm.smCoscheduledAlignment == 0);
    TRUE(half[0].sm.smCount * 2 <= all.sm.smCount);
    OK(cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, all.sm.minSmPartitionSize));
    TRUE(count >= 2 && count <= all.sm.smCount / all.sm.minSmPartitionSize);
    unsigned most = count;
    count = COUNT(parts);
    OK(cuDevSmResourceSplitByCount(parts, &count, &all, &rest, 0, all.sm.minSmPartitionSize));
    EQ(count, most < COUNT(parts) ? most : COUNT(parts));
    for (unsigned i = 0; i < count; i++)
        EQ(parts[i].sm.smCount, all.sm.minSmPartitionSize);
}

static void refused(void)
{
    CUdevResource all, half[2], bad;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    unsigned count = 1;
    halve(half, NULL);
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    memset(&bad, 0, sizeof(bad));
    TRUE(cuDevSmResourceSplitByCount(half, &count, &bad, NULL, 0, 1) != CUDA_SUCCESS);
    IS(cuDevSmResourceSplitByCount(NULL, NULL, &all, NULL, 0, 1), CUDA_ERROR_INVALID_VALUE);
    TRUE(cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, all.sm.smCount + 1) !=
         CUDA_SUCCESS);
    IS(cuDevResourceGenerateDesc(NULL, half, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuDevResourceGenerateDesc(&desc, half, 1));
    IS(cuGreenCtxCreate(&green, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

/* Resources are values: what another split, equal to the first, made is as good. CUDA's documents
 * want them to be of one; twice the same is what they forbid, and whether the driver notices is not
 * known. */
static void of_two_splits(void)
{
    CUdevResource half[2], other[2], is;
    CUdevResourceDesc desc;
    halve(half, NULL);
    halve(other, NULL);
    CUdevResource mixed[2] = { half[0], other[1] }, twice[2] = { half[0], other[0] };
    CUgreenCtx green = make(mixed, 2);
    OK(cuGreenCtxGetDevResource(green, &is, CU_DEV_RESOURCE_TYPE_SM));
    EQ(is.sm.smCount, half[0].sm.smCount + half[1].sm.smCount);
    OK(cuGreenCtxDestroy(green));
    CUresult r = cuDevResourceGenerateDesc(&desc, twice, 2);
    TRUE(r == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION || (!tap_ours() && r == CUDA_SUCCESS));
}

static void fill_and_read(CUstream s, CUdeviceptr p, uint32_t value)
{
    uint32_t got = 0;
    OK(cuMemsetD32Async(p, value, 16, s));
    OK(cuMemcpyDtoHAsync(&got, p + 60, sizeof(got), s));
    OK(cuStreamSynchronize(s));
    EQ(got, value);
}

static void streams(void)
{
    CUdevResource half[2], is;
    CUgreenCtx green, its;
    CUcontext primary, of, back;
    CUstream s, plain;
    CUdeviceptr p;
    halve(half, NULL);
    green = make(&half[0], 1);
    OK(cuGreenCtxGetDevResource(green, &is, CU_DEV_RESOURCE_TYPE_SM));
    EQ(is.sm.smCount, half[0].sm.smCount);
    OK(cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
    IS(cuGreenCtxStreamCreate(&plain, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamGetGreenCtx(s, &its));
    TRUE(its == green);
    OK(cuCtxGetCurrent(&primary));
    OK(cuStreamGetCtx_v2(s, &of, &its));
    TRUE(of == primary && its == green);
    OK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
    OK(cuStreamGetGreenCtx(plain, &its));
    TRUE(its == NULL);
    OK(cuMemAlloc(&p, 64));
    fill_and_read(s, p, 77);
    if (tap_computes()) { /* a function of the primary context's module */
        uint32_t n = 3, got[3] = { 9, 9, 9 };
        void *params[] = { &p, &n };
        OK(cuLaunchKernel(tap_function("store_index"), 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
        OK(cuMemcpyDtoHAsync(got, p, sizeof(got), s));
        OK(cuStreamSynchronize(s));
        EQ(got[2], 2);
    }
    /* Current, it has a default stream, and what is made there outlives it. */
    OK(cuCtxFromGreenCtx(&of, green));
    OK(cuCtxPushCurrent(of));
    OK(cuCtxGetCurrent(&back));
    TRUE(back == of);
    OK(cuCtxGetDevResource(of, &is, CU_DEV_RESOURCE_TYPE_SM));
    EQ(is.sm.smCount, half[0].sm.smCount);
    CUdeviceptr q;
    OK(cuMemAlloc(&q, 64));
    fill_and_read(NULL, q, 78);
    OK(cuCtxSynchronize());
    OK(cuCtxPopCurrent(&back));
    OK(cuStreamDestroy(s));
    OK(cuGreenCtxDestroy(green));
    fill_and_read(plain, q, 79);
    OK(cuMemFree(q));
    OK(cuMemFree(p));
    OK(cuStreamDestroy(plain));
}

/* Two at once, ordered by events. */
static void two(void)
{
    CUdevResource half[2];
    CUgreenCtx green[2];
    CUstream s[2];
    CUevent e;
    CUdeviceptr p;
    unsigned long long id[2];
    uint32_t got = 0;
    halve(half, NULL);
    for (int i = 0; i < 2; i++) {
        green[i] = make(&half[i], 1);
        OK(cuGreenCtxStreamCreate(&s[i], green[i], CU_STREAM_NON_BLOCKING, 0));
        OK(cuGreenCtxGetId(green[i], &id[i]));
    }
    TRUE(id[0] != id[1]);
    OK(cuMemAlloc(&p, 64));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (uint32_t round = 1; round < 20; round++) {
        OK(cuMemsetD32Async(p, round, 16, s[0]));
        OK(cuEventRecord(e, s[0]));
        OK(cuStreamWaitEvent(s[1], e, 0));
        OK(cuMemcpyDtoHAsync(&got, p, sizeof(got), s[1]));
        OK(cuStreamSynchronize(s[1]));
        EQ(got, round);
    }
    OK(cuMemsetD32Async(p, 100, 16, s[0]));
    OK(cuGreenCtxRecordEvent(green[0], e));
    OK(cuGreenCtxWaitEvent(green[1], e));
    OK(cuMemcpyDtoHAsync(&got, p, sizeof(got), s[1]));
    OK(cuStreamSynchronize(s[1]));
    EQ(got, 100);
    OK(cuEventDestroy(e));
    OK(cuMemFree(p));
    for (int i = 0; i < 2; i++) {
        OK(cuStreamDestroy(s[i]));
        OK(cuGreenCtxDestroy(green[i]));
    }
    TRUE(tap_genuine() || cuGreenCtxDestroy(green[0]) == CUDA_ERROR_INVALID_CONTEXT);
}

/* What a split leaves over, and a green context's multiprocessors that are split again. */
static void rests(void)
{
    CUdevResource all, first, rest, is, second;
    CUgreenCtx green, inner;
    CUstream s;
    CUdeviceptr p;
    unsigned count = 1;
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    unsigned least = all.sm.minSmPartitionSize;
    if (all.sm.smCount < 3 * least)
        tap_skip("too few multiprocessors to be split twice");
    OK(cuDevSmResourceSplitByCount(&first, &count, &all, &rest, 0, least));
    EQ(count, 1);
    EQ(first.sm.smCount, least);
    EQ(rest.sm.smCount, all.sm.smCount - least);
    green = make(&rest, 1);
    OK(cuGreenCtxGetDevResource(green, &is, CU_DEV_RESOURCE_TYPE_SM));
    EQ(is.sm.smCount, rest.sm.smCount);
    count = 1;
    OK(cuDevSmResourceSplitByCount(&second, &count, &is, &rest, 0, least));
    EQ(count, 1);
    EQ(second.sm.smCount, least);
    EQ(rest.sm.smCount, is.sm.smCount - least);
    inner = make(&second, 1);
    OK(cuGreenCtxGetDevResource(inner, &is, CU_DEV_RESOURCE_TYPE_SM));
    EQ(is.sm.smCount, least);
    OK(cuGreenCtxStreamCreate(&s, inner, CU_STREAM_NON_BLOCKING, 0));
    OK(cuMemAlloc(&p, 64));
    fill_and_read(s, p, 80);
    OK(cuStreamDestroy(s));
    OK(cuMemFree(p));
    OK(cuGreenCtxDestroy(inner));
    OK(cuGreenCtxDestroy(green));
}

/* Kernels stay in their half: no multiprocessor sees blocks of both. */
static void apart(void)
{
    enum { SMS = 1024 };
    static unsigned seen[2][SMS];
    CUdevResource half[2];
    CUgreenCtx green[2];
    CUstream s[2];
    CUdeviceptr p;
    CUmodule m;
    CUfunction f;
    unsigned ns = 200000;
    halve(half, NULL);
    if (!tap_gpu())
        tap_skip("this device has no numbered multiprocessors");
    OK(cuModuleLoadData(&m, tap_where_ptx));
    OK(cuModuleGetFunction(&f, m, "where"));
    OK(cuMemAlloc(&p, sizeof(seen)));
    OK(cuMemsetD8(p, 0, sizeof(seen)));
    OK(cuCtxSynchronize());
    for (int i = 0; i < 2; i++) {
        CUdeviceptr mine = p + (unsigned)i * sizeof(seen[0]);
        void *params[] = { &mine, &ns };
        green[i] = make(&half[i], 1);
        OK(cuGreenCtxStreamCreate(&s[i], green[i], CU_STREAM_NON_BLOCKING, 0));
        OK(cuLaunchKernel(f, 512, 1, 1, 1024, 1, 1, 0, s[i], params, NULL));
    }
    for (int i = 0; i < 2; i++)
        OK(cuStreamSynchronize(s[i]));
    OK(cuMemcpyDtoH(seen, p, sizeof(seen)));
    unsigned used[2] = { 0 };
    for (int i = 0; i < SMS; i++) {
        TRUE(!seen[0][i] || !seen[1][i]);
        used[0] += seen[0][i] != 0;
        used[1] += seen[1][i] != 0;
    }
    EQ(used[0], half[0].sm.smCount);
    EQ(used[1], half[1].sm.smCount);
    for (int i = 0; i < 2; i++) {
        OK(cuStreamDestroy(s[i]));
        OK(cuGreenCtxDestroy(green[i]));
    }
    OK(cuMemFree(p));
    OK(cuModuleUnload(m));
}

/* The whole of it, and both halves in one. */
static void all_of_it(void)
{
    CUdevResource all, half[2], is;
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    CUgreenCtx green = make(&all, 1);
    OK(cuGreenCtxGetDevResource(green, &is, CU_DEV_RESOURCE_TYPE_SM));
    EQ(is.sm.smCount, all.sm.smCount);
    OK(cuGreenCtxDestroy(green));
    halve(half, NULL);
    green = make(half, 2);
    OK(cuGreenCtxGetDevResource(green, &is, CU_DEV_RESOURCE_TYPE_SM));
    EQ(is.sm.smCount, 2 * half[0].sm.smCount);
    OK(cuGreenCtxDestroy(green));
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(splits),  TEST(refused),  TEST(of_two_splits),
                                             TEST(streams), TEST(two),      TEST(rests),
                                             TEST(apart),   TEST(all_of_it) };
    return tap_main(tests, COUNT(tests));
}
