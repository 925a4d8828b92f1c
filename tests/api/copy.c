/* Copies and sets, of every shape and between every two kinds of memory. */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define SIZE (1u << 20)

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 7 + (i >> 8));
}

static void fill_pattern(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = pattern(i);
}

static void round_trip(void)
{
    static const size_t sizes[] = { 1, 3, 4096, 4097, 100000, SIZE };
    uint8_t *from = malloc(SIZE), *to = malloc(SIZE);
    CUdeviceptr p, q;
    fill_pattern(from, SIZE);
    OK(cuMemAlloc(&p, SIZE));
    OK(cuMemAlloc(&q, SIZE));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        memset(to, 0, SIZE);
        OK(cuMemcpyHtoD(p, from, sizes[i]));
        OK(cuMemcpyDtoD(q, p, sizes[i]));
        OK(cuMemcpyDtoH(to, q, sizes[i]));
        EQ(memcmp(from, to, sizes[i]), 0);
    }
    OK(cuMemcpyHtoD(p, from, 0));
    OK(cuMemFree(p));
    OK(cuMemFree(q));
    free(from);
    free(to);
}

static void asynchronous(void)
{
    uint8_t *pageable = malloc(SIZE), *to = malloc(SIZE);
    void *pinned;
    CUdeviceptr p, q;
    CUstream s;
    fill_pattern(pageable, SIZE);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, SIZE));
    OK(cuMemAlloc(&q, SIZE));
    OK(cuMemHostAlloc(&pinned, SIZE, 0));
    OK(cuMemcpyHtoDAsync(p, pageable, SIZE, s));
    OK(cuMemcpyDtoDAsync(q, p, SIZE, s));
    OK(cuMemcpyDtoHAsync(pinned, q, SIZE, s));
    OK(cuStreamSynchronize(s));
    EQ(memcmp(pinned, pageable, SIZE), 0);
    OK(cuMemcpyHtoDAsync(p, pinned, SIZE / 2, s));
    OK(cuMemcpyHtoDAsync(p + SIZE / 2, "tail", 4, s)); /* small and pageable */
    OK(cuMemcpyDtoHAsync(to, p, SIZE, s));
    OK(cuStreamSynchronize(s));
    EQ(memcmp(to, pageable, SIZE / 2), 0);
    EQ(memcmp(to + SIZE / 2, "tail", 4), 0);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(p));
    OK(cuMemFree(q));
    OK(cuStreamDestroy(s));
    free(pageable);
    free(to);
}

/* The bytes of a small asynchronous copy are taken at the call, however busy the stream. */
static void small_source_is_free_at_once(void)
{
    CUdeviceptr p;
    CUstream s;
    _Atomic int go = 0;
    char source[64] = "first", got[64] = "";
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 64));
    OK(cuLaunchHostFunc(s, tap_hold, &go));
    OK(cuMemcpyHtoDAsync(p, source, sizeof(source), s));
    strcpy(source, "second");
    hold_set(&go, 1);
    OK(cuMemcpyDtoHAsync(got, p, sizeof(got), s));
    OK(cuStreamSynchronize(s));
    EQ(strcmp(got, "first"), 0);
    OK(cuMemFree(p));
    OK(cuStreamDestroy(s));
}

static void unified(void)
{
    uint8_t from[1000], to[1000];
    CUdeviceptr p;
    fill_pattern(from, sizeof(from));
    OK(cuMemAlloc(&p, sizeof(from)));
    OK(cuMemcpy(p, (CUdeviceptr)(uintptr_t)from, sizeof(from)));
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)to, p, sizeof(to)));
    EQ(memcmp(from, to, sizeof(from)), 0);
    OK(cuMemFree(p));
}

static void out_of_range(void)
{
    uint8_t h[512] = { 0 };
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 256));
    IS(cuMemcpyHtoD(0x10, h, 16), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemcpyDtoH(h, 0x10, 16), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemcpyHtoD(p, NULL, 16), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemsetD8(0x10, 1, 16), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemsetD32(p + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemsetD16(p + 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
    if (!tap_genuine()) { /* the genuine library rounds an allocation's size up */
        IS(cuMemcpyHtoD(p + 200, h, 100), CUDA_ERROR_INVALID_VALUE);
        IS(cuMemsetD8(p + 200, 1, 100), CUDA_ERROR_INVALID_VALUE);
    }
    OK(cuMemcpyHtoD(p, h, 256)); /* nothing sticks */
    OK(cuMemFree(p));
}

static void sets(void)
{
    static uint8_t b[4096];
    CUdeviceptr p;
    OK(cuMemAlloc(&p, sizeof(b)));
    OK(cuMemsetD8(p, 0, sizeof(b)));
    OK(cuMemsetD8(p + 1, 0x11, 3));
    OK(cuMemsetD16(p + 8, 0x2233, 2));
    OK(cuMemsetD32(p + 16, 0x44556677, 2));
    OK(cuMemsetD8Async(p + 32, 0x88, 1, NULL));
    OK(cuMemsetD16Async(p + 34, 0x99aa, 1, NULL));
    OK(cuMemsetD32Async(p + 36, 0xbbccddee, 1, NULL));
    OK(cuMemcpyDtoH(b, p, 64));
    static const uint8_t want[40] = { 0,    0x11, 0x11, 0x11, 0,    0,    0,    0,    0x33, 0x22,
                                      0x33, 0x22, 0,    0,    0,    0,    0x77, 0x66, 0x55, 0x44,
                                      0x77, 0x66, 0x55, 0x44, 0,    0,    0,    0,    0,    0,
                                      0,    0,    0x88, 0,    0xaa, 0x99, 0xee, 0xdd, 0xcc, 0xbb };
    EQ(memcmp(b, want, sizeof(want)), 0);
    OK(cuMemsetD2D8(p, 64, 5, 3, 10));
    OK(cuMemsetD2D16(p + 4, 64, 0x606, 2, 10));
    OK(cuMemsetD2D32Async(p + 8, 64, 0x07070707, 1, 10, NULL));
    OK(cuMemcpyDtoH(b, p, 640));
    for (int y = 0; y < 10; y++) {
        EQ(b[y * 64 + 2], 5);
        EQ(b[y * 64 + 7], 6);
        EQ(b[y * 64 + 11], 7);
    }
    OK(cuMemsetD8(p, 1, 0));
    OK(cuMemFree(p));
}

static void two_dimensions(void)
{
    static uint8_t from[32 * 48], to[32 * 48];
    CUdeviceptr p;
    size_t pitch;
    fill_pattern(from, sizeof(from));
    OK(cuMemAllocPitch(&p, &pitch, 48, 32, 4));
    CUDA_MEMCPY2D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = from,
                         .srcPitch = 48,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = p,
                         .dstPitch = pitch,
                         .WidthInBytes = 48,
                         .Height = 32 };
    OK(cuMemcpy2D(&up));
    /* A part of it back: 10 rows of 20 bytes from (8, 4) to (16, 2). */
    CUDA_MEMCPY2D down = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = p,
                           .srcPitch = pitch,
                           .srcXInBytes = 8,
                           .srcY = 4,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = to,
                           .dstPitch = 48,
                           .dstXInBytes = 16,
                           .dstY = 2,
                           .WidthInBytes = 20,
                           .Height = 10 };
    OK(cuMemcpy2DUnaligned(&down));
    for (int y = 0; y < 10; y++)
        EQ(memcmp(&to[(y + 2) * 48 + 16], &from[(y + 4) * 48 + 8], 20), 0);
    EQ(to[2 * 48 + 15], 0);
    EQ(to[2 * 48 + 36], 0);
    OK(cuMemcpy2DAsync(&down, NULL));
    OK(cuStreamSynchronize(NULL));
    down.dstPitch = 0; /* 16 bytes and 20 */
    OK(cuMemcpy2D(&down));
    for (int y = 0; y < 10; y++)
        EQ(memcmp(&to[(y + 2) * 36 + 16], &from[(y + 4) * 48 + 8], 20), 0);
    down.dstPitch = 10;
    IS(cuMemcpy2D(&down), CUDA_ERROR_INVALID_VALUE);
    down.Height = 0; /* nothing to copy is right anywhere */
    OK(cuMemcpy2D(&down));
    IS(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
}

static void three_dimensions(void)
{
    static uint8_t from[8 * 8 * 8], to[8 * 8 * 8];
    CUdeviceptr p;
    fill_pattern(from, sizeof(from));
    OK(cuMemAlloc(&p, sizeof(from)));
    OK(cuMemsetD8(p, 0, sizeof(from)));
    CUDA_MEMCPY3D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = from,
                         .srcPitch = 8,
                         .srcHeight = 8,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = p,
                         .dstPitch = 8,
                         .dstHeight = 8,
                         .srcXInBytes = 2,
                         .srcY = 1,
                         .srcZ = 3,
                         .dstXInBytes = 1,
                         .dstY = 2,
                         .dstZ = 4,
                         .WidthInBytes = 4,
                         .Height = 3,
                         .Depth = 2 };
    OK(cuMemcpy3D(&up));
    OK(cuMemcpyDtoH(to, p, sizeof(to)));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++)
            EQ(memcmp(&to[((z + 4) * 8 + y + 2) * 8 + 1], &from[((z + 3) * 8 + y + 1) * 8 + 2], 4),
               0);
    EQ(to[((4) * 8 + 2) * 8 + 5], 0);
    OK(cuMemcpy3DAsync(&up, NULL));
    OK(cuStreamSynchronize(NULL));
    up.dstHeight = 0; /* planes of 5 rows */
    OK(cuMemsetD8(p, 0, sizeof(from)));
    OK(cuMemcpy3D(&up));
    OK(cuMemcpyDtoH(to, p, sizeof(to)));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++)
            EQ(memcmp(&to[((z + 4) * 5 + y + 2) * 8 + 1], &from[((z + 3) * 8 + y + 1) * 8 + 2], 4),
               0);
    up.dstHeight = 4; /* rows 2 to 4 are not in a plane of 4 */
    IS(cuMemcpy3D(&up), CUDA_ERROR_INVALID_VALUE);
    up.Depth = 1;
    IS(cuMemcpy3D(&up), CUDA_ERROR_INVALID_VALUE);
    up.WidthInBytes = 0;
    OK(cuMemcpy3D(&up));
    OK(cuMemFree(p));
}

/* A copy of nothing is none, whatever else is wrong with it. Rows have to be in their plane. */
static void empty_and_beyond(void)
{
    static unsigned char host[64];
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 256));
    CUDA_MEMCPY2D flat = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = host,
                           .srcXInBytes = 9,
                           .srcPitch = 16,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = p,
                           .WidthInBytes = 16 };
    OK(cuMemcpy2D(&flat));
    OK(cuMemcpy2DUnaligned(&flat));
    flat.srcMemoryType = (CUmemorytype)99;
    OK(cuMemcpy2DAsync(&flat, NULL));
    flat.Height = 1;
    IS(cuMemcpy2D(&flat), CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = 8,
                        .srcHeight = 4,
                        .srcY = 2,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = p,
                        .dstPitch = 8,
                        .WidthInBytes = 8,
                        .Height = 2,
                        .Depth = 1 };
    OK(cuMemcpy3D(&c));
    c.Height = 3;
    IS(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);
    c.srcHeight = 0;
    OK(cuMemcpy3D(&c));
    c.srcHeight = 1;
    c.Depth = 0;
    OK(cuMemcpy3D(&c));
    OK(cuMemFree(p));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(round_trip),     TEST(asynchronous),     TEST(small_source_is_free_at_once),
        TEST(unified),        TEST(out_of_range),     TEST(sets),
        TEST(two_dimensions), TEST(three_dimensions), TEST(empty_and_beyond),
    };
    return tap_main(tests, COUNT(tests));
}
