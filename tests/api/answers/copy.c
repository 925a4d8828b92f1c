/* Copies of all kinds. */
#include "answers.h"

#include <stdlib.h>

static void linear(void)
{
    CUdeviceptr p, q;
    uint32_t in[256], out[256] = { 0 };
    for (unsigned i = 0; i < 256; i++)
        in[i] = i * 3;
    CALL(cuMemAlloc(&p, 1024));
    CALL(cuMemAlloc(&q, 1024));
    CALL(cuMemcpyHtoD(p, in, 1024));
    CALL(cuMemcpyDtoD(q, p, 1024));
    CALL(cuMemcpyDtoH(out, q, 1024));
    NUM(memcmp(in, out, 1024));
    CALL(cuMemcpyDtoD(q + 1, p + 3, 501));
    CALL(cuMemcpyDtoH(out, q + 1, 501));
    NUM(memcmp((char *)in + 3, out, 501));
    CALL(cuMemcpyDtoD(p + 100, p, 400));
    CALL(cuMemcpyHtoD(p, in, 0));
    CALL(cuMemcpyHtoD(p, NULL, 4));
    CALL(cuMemcpyDtoH(NULL, p, 4));
    CALL(cuMemcpyHtoD(0, in, 4));
    CALL(cuMemcpyDtoH(out, 16, 4));
    CALL(cuMemcpyDtoD(p, 16, 4));
    CALL(cuMemcpyHtoD(0, NULL, 0));
    CALL(cuMemcpyHtoD(p, in, (size_t)4 << 20));
    CALL(cuCtxSynchronize());
}

/* The kind is found out from the addresses. */
static void unified(void)
{
    CUdeviceptr p;
    uint32_t in[16] = { 5 }, out[16] = { 0 };
    void *pinned;
    CALL(cuMemAlloc(&p, 64));
    CALL(cuMemAllocHost(&pinned, 64));
    CALL(cuMemcpy(p, (CUdeviceptr)(uintptr_t)in, 64));
    CALL(cuMemcpy((CUdeviceptr)(uintptr_t)pinned, p, 64));
    CALL(cuMemcpy((CUdeviceptr)(uintptr_t)out, (CUdeviceptr)(uintptr_t)pinned, 64));
    NUM(out[0]);
    CALL(cuMemcpy((CUdeviceptr)(uintptr_t)out, (CUdeviceptr)(uintptr_t)in, 64));
    CALL(cuMemcpyAsync(p, (CUdeviceptr)(uintptr_t)pinned, 64, NULL));
    CALL(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)pinned, in, 64));
    CALL(cuMemcpyDtoH(out, (CUdeviceptr)(uintptr_t)pinned, 64));
    CALL(cuMemcpyDtoD((CUdeviceptr)(uintptr_t)pinned, p, 64));
    CALL(cuMemcpyHtoD(p, (void *)(uintptr_t)p, 32));
    CALL(cuMemcpyDtoH(out, (CUdeviceptr)(uintptr_t)in, 64));
    CALL(cuCtxSynchronize());
}

static void asynchronous(void)
{
    CUdeviceptr p;
    CUstream s;
    uint32_t *pinned, out[256] = { 0 };
    CALL(cuMemAlloc(&p, 1024));
    CALL(cuMemAllocHost((void **)&pinned, 1024));
    CALL(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 256; i++)
        pinned[i] = i;
    CALL(cuMemcpyHtoDAsync(p, pinned, 1024, s));
    CALL(cuMemcpyDtoHAsync(out, p, 1024, s));
    CALL(cuStreamSynchronize(s));
    NUM(out[255]);
    CALL(cuMemcpyHtoDAsync(p, out, 1024, CU_STREAM_LEGACY));
    CALL(cuMemcpyDtoDAsync(p, p + 512, 512, CU_STREAM_PER_THREAD));
    CALL(cuMemcpyDtoHAsync(out, p, 1024, NULL));
    CALL(cuMemcpyHtoDAsync(p, NULL, 8, s));
    CALL(cuMemcpyHtoDAsync(16, out, 8, s));
    CALL(cuStreamSynchronize(s));
}

static CUresult two(CUdeviceptr d, size_t pitch, void *h, size_t hpitch, size_t width,
                    size_t height, size_t x, size_t y, bool up, bool unaligned)
{
    CUDA_MEMCPY2D c = { .WidthInBytes = width, .Height = height };
    if (up) {
        c.srcMemoryType = CU_MEMORYTYPE_HOST;
        c.srcHost = h;
        c.srcPitch = hpitch;
        c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        c.dstDevice = d;
        c.dstPitch = pitch;
        c.dstXInBytes = x;
        c.dstY = y;
    } else {
        c.dstMemoryType = CU_MEMORYTYPE_HOST;
        c.dstHost = h;
        c.dstPitch = hpitch;
        c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        c.srcDevice = d;
        c.srcPitch = pitch;
        c.srcXInBytes = x;
        c.srcY = y;
    }
    return unaligned ? cuMemcpy2DUnaligned(&c) : cuMemcpy2D(&c);
}

static void rectangles(void)
{
    CUdeviceptr p;
    size_t pitch;
    unsigned char in[100 * 20], out[100 * 20] = { 0 };
    for (unsigned i = 0; i < sizeof(in); i++)
        in[i] = (unsigned char)(i * 7);
    CALL(cuMemAllocPitch(&p, &pitch, 100, 20, 4));
    CALL(two(p, pitch, in, 100, 100, 20, 0, 0, true, false));
    CALL(two(p, pitch, out, 100, 100, 20, 0, 0, false, false));
    NUM(memcmp(in, out, sizeof(in)));
    CALL(two(p, pitch, out, 100, 30, 5, 17, 3, false, false));
    NUM(out[0] == in[3 * 100 + 17]);
    NUM(out[4 * 100 + 29] == in[7 * 100 + 46]);
    CALL(two(p, 101, in, 100, 100, 10, 1, 0, true, true));
    CALL(two(p, 101, in, 100, 100, 10, 1, 0, true, false));
    CALL(two(p, pitch, in, 50, 100, 20, 0, 0, true, false));
    CALL(two(p, 50, in, 100, 100, 20, 0, 0, true, false));
    CALL(two(p, 0, in, 0, 100, 1, 0, 0, true, false));
    CALL(two(p, pitch, in, 100, 0, 20, 0, 0, true, false));
    CALL(two(p, pitch, in, 100, 100, 0, 0, 0, true, false));
    CALL(two(0, pitch, in, 100, 100, 1, 0, 0, true, false));
    CALL(two(p, pitch, NULL, 100, 100, 1, 0, 0, true, false));
    CALL(two(p, pitch, in, 100, 100, 100000, 0, 0, true, false));
    CALL(two(p, (size_t)1 << 33, in, 100, 100, 1, 0, 0, true, false));
    CALL(cuMemcpy2D(NULL));
    CALL(cuCtxSynchronize());
}

static void rectangle_types(void)
{
    CUdeviceptr p;
    uint32_t in[64] = { 3 }, out[64] = { 0 };
    CUDA_MEMCPY2D c = { .WidthInBytes = 64, .Height = 4, .srcPitch = 64, .dstPitch = 64 };
    CALL(cuMemAlloc(&p, 256));
    c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    c.srcDevice = (CUdeviceptr)(uintptr_t)in;
    c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    c.dstDevice = p;
    CALL(cuMemcpy2D(&c));
    c.srcDevice = p;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = out;
    CALL(cuMemcpy2D(&c));
    NUM(out[0]);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = in;
    CALL(cuMemcpy2D(&c));
    c.srcMemoryType = (CUmemorytype)9;
    CALL(cuMemcpy2D(&c));
    c.srcMemoryType = (CUmemorytype)0;
    CALL(cuMemcpy2D(&c));
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = NULL;
    CALL(cuMemcpy2D(&c));
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    CALL(cuMemcpy2DAsync(&c, NULL));
    CALL(cuCtxSynchronize());
}

static void boxes(void)
{
    enum { W = 40, H = 6, D = 5 };
    CUdeviceptr p;
    unsigned char in[W * H * D], out[W * H * D] = { 0 };
    for (unsigned i = 0; i < sizeof(in); i++)
        in[i] = (unsigned char)(i * 5 + 1);
    CALL(cuMemAlloc(&p, 64 * 8 * 5));
    CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = in,
                        .srcPitch = W,
                        .srcHeight = H,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = p,
                        .dstPitch = 64,
                        .dstHeight = 8,
                        .WidthInBytes = W,
                        .Height = H,
                        .Depth = D };
    CALL(cuMemcpy3D(&c));
    CUDA_MEMCPY3D b = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = p,
                        .srcPitch = 64,
                        .srcHeight = 8,
                        .srcXInBytes = 3,
                        .srcY = 1,
                        .srcZ = 2,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = out,
                        .dstPitch = W,
                        .dstHeight = H,
                        .WidthInBytes = 20,
                        .Height = 4,
                        .Depth = 2 };
    CALL(cuMemcpy3D(&b));
    NUM(out[0] == in[2 * W * H + W + 3]);
    NUM(out[W * H + 3 * W + 19] == in[3 * W * H + 4 * W + 22]);
    CALL(cuMemcpy3DAsync(&b, NULL));
    b.srcHeight = 2;
    CALL(cuMemcpy3D(&b));
    b.srcHeight = 8;
    b.srcPitch = 10;
    CALL(cuMemcpy3D(&b));
    b.srcPitch = 64;
    b.Depth = 0;
    CALL(cuMemcpy3D(&b));
    b.Depth = 2;
    b.srcLOD = 1;
    CALL(cuMemcpy3D(&b));
    b.srcLOD = 0;
    b.reserved0 = &b;
    CALL(cuMemcpy3D(&b));
    CALL(cuMemcpy3D(NULL));
    CALL(cuCtxSynchronize());
}

static void between_contexts(void)
{
    CUcontext c, other;
    CUdeviceptr p, q;
    cuCtxGetCurrent(&c);
    CALL(cuMemAlloc(&p, 1024));
    CALL(cuMemsetD8(p, 9, 1024));
    CALL(cuCtxCreate(&other, NULL, 0, 0));
    CALL(cuMemAlloc(&q, 1024));
    CALL(cuMemcpyPeer(q, other, p, c, 1024));
    NUM(answers_word(q + 1020));
    CALL(cuMemcpyPeerAsync(q, other, p, c, 512, NULL));
    CALL(cuMemcpyPeer(q, NULL, p, c, 512));
    CALL(cuMemcpyPeer(q, other, p, c, 0));
    CALL(cuMemcpyPeer(0, other, p, c, 4));
    CUDA_MEMCPY3D_PEER b = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                             .srcDevice = p,
                             .srcContext = c,
                             .srcPitch = 64,
                             .srcHeight = 4,
                             .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                             .dstDevice = q,
                             .dstContext = other,
                             .dstPitch = 64,
                             .dstHeight = 4,
                             .WidthInBytes = 64,
                             .Height = 4,
                             .Depth = 2 };
    CALL(cuMemcpy3DPeer(&b));
    CALL(cuMemcpy3DPeerAsync(&b, NULL));
    CALL(cuCtxSynchronize());
}

static void batch(void)
{
    CUdeviceptr p, q, dst[2], src[2];
    size_t sizes[2] = { 64, 64 }, at = 0, failed = 99;
    CUstream s;
    CUmemcpyAttributes a = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
    CALL(cuStreamCreate(&s, 0));
    CALL(cuMemAlloc(&p, 256));
    CALL(cuMemAlloc(&q, 256));
    CALL(cuMemsetD8(p, 4, 256));
    dst[0] = q;
    dst[1] = q + 128;
    src[0] = p;
    src[1] = p + 64;
    CALL(cuMemcpyBatchAsync(dst, src, sizes, 2, &a, &at, 1, s));
    CALL(cuStreamSynchronize(s));
    NUM(answers_word(q + 188));
    CALL(cuMemcpyBatchAsync(dst, src, sizes, 0, &a, &at, 1, s));
    CALL(cuMemcpyBatchAsync(dst, src, sizes, 2, &a, &at, 0, s));
    CALL(cuMemcpyBatchAsync(dst, src, sizes, 2, &a, &at, 1, NULL));
    a.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    CALL(cuMemcpyBatchAsync(dst, src, sizes, 2, &a, &at, 1, s));
    (void)failed;
}

const struct answers_case answers_copy[] = {
    CASE(linear),           CASE(unified),         CASE(asynchronous),
    CASE(rectangles),       CASE(rectangle_types), CASE(boxes),
    CASE(between_contexts), CASE(batch),           END,
};
