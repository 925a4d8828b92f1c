/* Device memory: allocation, sizes, fills. */
#include "answers.h"

static void allocation(void)
{
    CUdeviceptr p = 0, q = 0, base = 0;
    size_t size = 0;
    CALL(cuMemAlloc(&p, 1000));
    NUM(p % 256);
    CALL(cuMemAlloc(&q, 1));
    NUM(q % 256);
    CALL(cuMemGetAddressRange(&base, &size, p + 999));
    NUM(base == p);
    NUM(size);
    CALL(cuMemGetAddressRange(NULL, &size, p));
    CALL(cuMemGetAddressRange(&base, NULL, p));
    CALL(cuMemGetAddressRange(NULL, NULL, p));
    CALL(cuMemGetAddressRange(&base, &size, 16));
    CALL(cuMemAlloc(&p, 0));
    CALL(cuMemAlloc(NULL, 100));
    CALL(cuMemAlloc(&p, (size_t)1 << 50));
    CALL(cuMemAlloc(&p, SIZE_MAX));
    CALL(cuMemFree(0));
    CALL(cuMemFree(q + 1));
    CALL(cuMemFree(16));
    CALL(cuMemFree(q));
    CALL(cuMemFree(q));
    CALL(cuMemGetAddressRange(&base, &size, q));
}

static void pitched(void)
{
    CUdeviceptr p = 0;
    size_t pitch = 0;
    CALL(cuMemAllocPitch(&p, &pitch, 100, 10, 4));
    NUM(pitch);
    CALL(cuMemAllocPitch(&p, &pitch, 512, 10, 8));
    NUM(pitch);
    CALL(cuMemAllocPitch(&p, &pitch, 513, 10, 16));
    NUM(pitch);
    CALL(cuMemAllocPitch(&p, &pitch, 100, 10, 3));
    CALL(cuMemAllocPitch(&p, &pitch, 100, 10, 0));
    CALL(cuMemAllocPitch(&p, &pitch, 0, 10, 4));
    CALL(cuMemAllocPitch(&p, &pitch, 100, 0, 4));
    CALL(cuMemAllocPitch(NULL, &pitch, 100, 10, 4));
    CALL(cuMemAllocPitch(&p, NULL, 100, 10, 4));
    CALL(cuMemAllocPitch(&p, &pitch, SIZE_MAX, 10, 4));
}

static void information(void)
{
    size_t before = 0, after = 0, total = 0, all = 0;
    CUdeviceptr p;
    CALL(cuMemGetInfo(&before, &total));
    NUM(before > 0 && before <= total);
    CALL(cuDeviceTotalMem(&all, 0));
    NUM(all == total);
    CALL(cuMemAlloc(&p, 64 << 20));
    CALL(cuMemGetInfo(&after, &total));
    NUM(before - after >= 64 << 20);
    CALL(cuMemFree(p));
    CALL(cuMemGetInfo(&after, &total));
    NUM(after == before);
    CALL(cuMemGetInfo(NULL, &total));
    CALL(cuMemGetInfo(&after, NULL));
    CALL(cuMemGetInfo(NULL, NULL));
}

static void fills(void)
{
    CUdeviceptr p;
    CALL(cuMemAlloc(&p, 4096));
    CALL(cuMemsetD8(p, 0xab, 4096));
    NUM(answers_word(p));
    CALL(cuMemsetD16(p + 2, 0x1234, 5));
    NUM(answers_word(p));
    CALL(cuMemsetD32(p + 4, 0xdeadbeef, 10));
    NUM(answers_word(p + 4));
    CALL(cuMemsetD16(p + 1, 1, 1));
    CALL(cuMemsetD32(p + 2, 1, 1));
    CALL(cuMemsetD8(p, 1, 0));
    CALL(cuMemsetD8(0, 1, 0));
    CALL(cuMemsetD8(0, 1, 1));
    CALL(cuMemsetD8(16, 1, 1));
    CALL(cuMemsetD32(p, 1, 1 << 30));
    CALL(cuMemsetD8Async(p, 3, 100, NULL));
    CALL(cuMemsetD16Async(p, 3, 100, CU_STREAM_PER_THREAD));
    CALL(cuMemsetD32Async(p, 3, 100, CU_STREAM_LEGACY));
    CALL(cuCtxSynchronize());
    NUM(answers_word(p));
}

static void fills_2d(void)
{
    CUdeviceptr p;
    size_t pitch;
    CALL(cuMemAllocPitch(&p, &pitch, 400, 10, 4));
    CALL(cuMemsetD2D8(p, pitch, 7, 400, 10));
    NUM(answers_word(p + 9 * pitch + 396));
    CALL(cuMemsetD2D16(p, pitch, 7, 200, 10));
    NUM(answers_word(p + 9 * pitch + 396));
    CALL(cuMemsetD2D32(p, pitch, 9, 100, 10));
    NUM(answers_word(p + 9 * pitch + 396));
    CALL(cuMemsetD2D32(p, pitch, 9, 0, 10));
    CALL(cuMemsetD2D32(p, pitch, 9, 100, 0));
    CALL(cuMemsetD2D32(p, 100, 9, 100, 10));
    CALL(cuMemsetD2D32(p, 399, 9, 50, 10));
    CALL(cuMemsetD2D8(p, 1, 9, 1, 10));
    CALL(cuMemsetD2D16(p + 1, pitch, 9, 1, 10));
    CALL(cuMemsetD2D32Async(p, pitch, 11, 100, 10, NULL));
    CALL(cuMemsetD2D8(p, pitch, 9, 400, 100000));
    CALL(cuCtxSynchronize());
    NUM(answers_word(p));
}

static void handle_for_range(void)
{
    CUdeviceptr p;
    int fd = -1;
    CALL(cuMemAlloc(&p, 2 << 20));
    CALL(cuMemGetHandleForAddressRange(&fd, p, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_MAX, 0));
    CALL(cuMemGetHandleForAddressRange(NULL, p, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    CALL(cuMemGetHandleForAddressRange(&fd, 16, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

const struct answers_case answers_memory[] = {
    CASE(allocation),       CASE(pitched), CASE(information), CASE(fills), CASE(fills_2d),
    CASE(handle_for_range), END,
};
