/* Arrays: shapes, copies of every kind with them, their memory, and what is refused. A software
 * device has none. */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static const CUarray_format u8 = CU_AD_FORMAT_UNSIGNED_INT8, u32 = CU_AD_FORMAT_UNSIGNED_INT32,
                            f32 = CU_AD_FORMAT_FLOAT;

static void needs_arrays(void)
{
    const CUDA_ARRAY_DESCRIPTOR d = { .Width = 4, .Format = u8, .NumChannels = 1 };
    CUarray a = NULL;
    CUresult r = cuArrayCreate(&a, &d);
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        tap_skip("a device without arrays");
    OK(r);
    OK(cuArrayDestroy(a));
}

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 7 + (i >> 8) + (i >> 16) * 3);
}

static uint8_t *made(size_t n)
{
    uint8_t *p = malloc(n);
    TRUE(p != NULL);
    for (size_t i = 0; i < n; i++)
        p[i] = pattern(i);
    return p;
}

static CUarray make(size_t w, size_t h, size_t d, CUarray_format format, unsigned channels,
                    unsigned flags)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = { w, h, d, format, channels, flags };
    CUarray a = NULL;
    OK(cuArray3DCreate(&a, &desc));
    TRUE(a != NULL);
    return a;
}

static void shape_is(CUarray a, size_t w, size_t h, size_t d, CUarray_format format,
                     unsigned channels, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR is = { 0 };
    CUDA_ARRAY_DESCRIPTOR flat = { 0 };
    OK(cuArray3DGetDescriptor(&is, a));
    EQ(is.Width, w);
    EQ(is.Height, h);
    EQ(is.Depth, d);
    EQ(is.Format, format);
    EQ(is.NumChannels, channels);
    EQ(is.Flags, flags);
    OK(cuArrayGetDescriptor(&flat, a));
    EQ(flat.Width, w);
    EQ(flat.Height, h);
    EQ(flat.Format, format);
    EQ(flat.NumChannels, channels);
}

static void shapes(void)
{
    static const struct {
        size_t w, h, d;
        CUarray_format format;
        unsigned channels, flags;
    } known[] = {
        { 100, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 },
        { 100, 50, 0, CU_AD_FORMAT_UNSIGNED_INT16, 2, 0 },
        { 33, 7, 5, CU_AD_FORMAT_SIGNED_INT32, 4, 0 },
        { 64, 64, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP },
        { 20, 10, 3, CU_AD_FORMAT_HALF, 4, CUDA_ARRAY3D_LAYERED },
        { 20, 0, 3, CU_AD_FORMAT_SIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED },
        { 32, 32, 12, CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP },
        { 40, 30, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST },
        { 40, 30, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER },
    };
    needs_arrays();
    for (size_t i = 0; i < COUNT(known); i++) {
        CUarray a = make(known[i].w, known[i].h, known[i].d, known[i].format, known[i].channels,
                         known[i].flags);
        shape_is(a, known[i].w, known[i].h, known[i].d, known[i].format, known[i].channels,
                 known[i].flags);
        OK(cuArrayDestroy(a));
    }
}

static void bad_shapes(void)
{
    static const CUDA_ARRAY3D_DESCRIPTOR bad[] = {
        { 0, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0 },
        { 16, 16, 0, CU_AD_FORMAT_FLOAT, 3, 0 },
        { 16, 16, 0, CU_AD_FORMAT_FLOAT, 0, 0 },
        { 16, 16, 0, (CUarray_format)77, 1, 0 },
        { 16, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0 },
        { 1 << 24, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0 },
        { 16, 1 << 24, 0, CU_AD_FORMAT_FLOAT, 1, 0 },
        { 16, 8, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP },
        { 16, 16, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP },
        { SIZE_MAX, SIZE_MAX, SIZE_MAX, CU_AD_FORMAT_FLOAT, 4, 0 },
    };
    CUarray a;
    needs_arrays();
    for (size_t i = 0; i < COUNT(bad); i++) {
        CUresult r = cuArray3DCreate(&a, &bad[i]);
        if (r != CUDA_ERROR_INVALID_VALUE)
            tap_fail(__FILE__, __LINE__, "shape %zu gives %d, not %d", i, (int)r,
                     CUDA_ERROR_INVALID_VALUE);
    }
    IS(cuArray3DCreate(NULL, &bad[0]), CUDA_ERROR_INVALID_VALUE);
    IS(cuArray3DCreate(&a, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* A box of the pattern goes up, a part of it comes down, through each kind of memory. */
static void planes(void)
{
    enum { W = 100, H = 60, PITCH = 4 * W };
    needs_arrays();
    uint8_t *from = made(PITCH * H), *to = malloc(PITCH * H);
    CUarray a = make(W, H, 0, u32, 1, 0), b = make(W, H, 0, u32, 1, 0);
    CUDA_MEMCPY2D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = from,
                         .srcPitch = PITCH,
                         .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                         .dstArray = a,
                         .WidthInBytes = PITCH,
                         .Height = H };
    OK(cuMemcpy2D(&up));
    CUDA_MEMCPY2D across = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                             .srcArray = a,
                             .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                             .dstArray = b,
                             .WidthInBytes = PITCH,
                             .Height = H };
    OK(cuMemcpy2D(&across));
    CUDA_MEMCPY2D down = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = b,
                           .srcXInBytes = 40,
                           .srcY = 5,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = to,
                           .dstPitch = PITCH,
                           .dstXInBytes = 8,
                           .dstY = 2,
                           .WidthInBytes = 200,
                           .Height = 30 };
    memset(to, 0, PITCH * H);
    OK(cuMemcpy2DUnaligned(&down));
    for (size_t y = 0; y < 30; y++)
        EQ(memcmp(to + (y + 2) * PITCH + 8, from + (y + 5) * PITCH + 40, 200), 0);
    EQ(to[2 * PITCH + 7], 0);
    EQ(to[2 * PITCH + 208], 0);

    /* Pinned and device memory, in order with a stream. */
    CUstream s;
    CUdeviceptr device;
    void *pinned;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&device, PITCH * H));
    OK(cuMemHostAlloc(&pinned, PITCH * H, 0));
    memcpy(pinned, from, PITCH * H);
    OK(cuMemsetD8Async(device, 0, PITCH * H, s));
    up.srcHost = pinned;
    OK(cuMemcpy2DAsync(&up, s));
    CUDA_MEMCPY2D out = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = a,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = device,
                          .dstPitch = PITCH,
                          .WidthInBytes = PITCH,
                          .Height = H };
    OK(cuMemcpy2DAsync(&out, s));
    OK(cuMemcpyDtoHAsync(to, device, PITCH * H, s));
    OK(cuStreamSynchronize(s));
    EQ(memcmp(to, from, PITCH * H), 0);
    OK(cuMemsetD8Async(device, 0x5a, PITCH * H, s));
    CUDA_MEMCPY2D in = { .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = device,
                         .srcPitch = PITCH,
                         .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                         .dstArray = b,
                         .dstXInBytes = 4,
                         .dstY = 1,
                         .WidthInBytes = 16,
                         .Height = 2 };
    OK(cuMemcpy2DAsync(&in, s));
    OK(cuStreamSynchronize(s));
    down = (CUDA_MEMCPY2D) { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                             .srcArray = b,
                             .dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = pinned,
                             .dstPitch = PITCH,
                             .WidthInBytes = PITCH,
                             .Height = H };
    OK(cuMemcpy2D(&down));
    const uint8_t *got = pinned;
    EQ(got[PITCH + 3], from[PITCH + 3]);
    EQ(got[PITCH + 4], 0x5a);
    EQ(got[2 * PITCH + 19], 0x5a);
    EQ(got[2 * PITCH + 20], from[2 * PITCH + 20]);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(device));
    OK(cuStreamDestroy(s));
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(b));
    free(from);
    free(to);
}

static void rows(void)
{
    enum { N = 1000 };
    needs_arrays();
    uint8_t *from = made(N), to[N];
    CUarray a = make(N, 0, 0, u8, 1, 0), b = make(N, 0, 0, u8, 1, 0);
    CUdeviceptr p;
    CUstream s;
    OK(cuMemAlloc(&p, N));
    OK(cuStreamCreate(&s, 0));
    OK(cuMemcpyHtoA(a, 0, from, N));
    OK(cuMemcpyAtoA(b, 0, a, 0, N));
    OK(cuMemcpyAtoA(b, 10, a, 500, 20));
    OK(cuMemcpyAtoD(p, b, 0, N));
    OK(cuMemcpyDtoH(to, p, N));
    EQ(memcmp(to, from, 10), 0);
    EQ(memcmp(to + 10, from + 500, 20), 0);
    EQ(memcmp(to + 30, from + 30, N - 30), 0);
    OK(cuMemsetD8(p, 9, N));
    OK(cuMemcpyDtoA(a, 100, p, 50));
    OK(cuMemcpyAtoH(to, a, 90, 100));
    EQ(to[9], from[99]);
    EQ(to[10], 9);
    EQ(to[59], 9);
    EQ(to[60], from[150]);
    OK(cuMemcpyHtoAAsync(a, 0, from, N, s));
    OK(cuMemcpyAtoHAsync(to, a, 0, N, s));
    OK(cuStreamSynchronize(s));
    EQ(memcmp(to, from, N), 0);
    OK(cuStreamDestroy(s));
    OK(cuMemFree(p));
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(b));
    free(from);
}

static void copy_volume(CUarray a, uint8_t *host, bool up, size_t w, size_t h, size_t d)
{
    CUDA_MEMCPY3D c = { .WidthInBytes = w, .Height = h, .Depth = d };
    c.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
    c.dstMemoryType = up ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
    c.srcArray = c.dstArray = a;
    c.srcHost = c.dstHost = host;
    c.srcPitch = c.dstPitch = w;
    c.srcHeight = c.dstHeight = h;
    OK(cuMemcpy3D(&c));
}

static void volumes(void)
{
    static const struct {
        size_t w, h, d;
        unsigned flags;
    } known[] = { { 24, 10, 6, 0 },
                  { 24, 10, 6, CUDA_ARRAY3D_LAYERED },
                  { 16, 16, 6, CUDA_ARRAY3D_CUBEMAP } };
    needs_arrays();
    for (size_t i = 0; i < COUNT(known); i++) {
        size_t w = 4 * known[i].w, h = known[i].h, d = known[i].d, n = w * h * d;
        uint8_t *from = made(n), *to = calloc(1, n);
        CUarray a = make(known[i].w, h, d, f32, 1, known[i].flags);
        copy_volume(a, from, true, w, h, d);
        copy_volume(a, to, false, w, h, d);
        EQ(memcmp(from, to, n), 0);
        /* A box from the middle, to another place of the same memory's size. */
        memset(to, 0, n);
        const CUDA_MEMCPY3D part = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                     .srcArray = a,
                                     .srcXInBytes = 8,
                                     .srcY = 3,
                                     .srcZ = 2,
                                     .dstMemoryType = CU_MEMORYTYPE_HOST,
                                     .dstHost = to,
                                     .dstPitch = w,
                                     .dstHeight = h,
                                     .dstXInBytes = 4,
                                     .dstY = 1,
                                     .dstZ = 1,
                                     .WidthInBytes = 20,
                                     .Height = 5,
                                     .Depth = 3 };
        OK(cuMemcpy3DAsync(&part, NULL));
        OK(cuStreamSynchronize(NULL));
        for (size_t z = 0; z < 3; z++)
            for (size_t y = 0; y < 5; y++)
                EQ(memcmp(to + ((z + 1) * h + y + 1) * w + 4, from + ((z + 2) * h + y + 3) * w + 8,
                          20),
                   0);
        EQ(to[(1 * h + 1) * w + 3], 0);
        EQ(to[(1 * h + 1) * w + 24], 0);
        OK(cuArrayDestroy(a));
        free(from);
        free(to);
    }
}

/* --- in graphs -------------------------------------------------------------------------------- */

/* Rows of 4 * 24 bytes, 10 of them, between an array and memory. */
static CUDA_MEMCPY3D plane_copy(CUarray a, CUmemorytype type, void *host, CUdeviceptr device,
                                bool up)
{
    CUDA_MEMCPY3D c = {
        .WidthInBytes = 96, .Height = 10, .Depth = 1, .srcPitch = 96, .dstPitch = 96
    };
    c.srcMemoryType = up ? type : CU_MEMORYTYPE_ARRAY;
    c.dstMemoryType = up ? CU_MEMORYTYPE_ARRAY : type;
    c.srcArray = c.dstArray = a;
    c.srcHost = c.dstHost = host;
    c.srcDevice = c.dstDevice = device;
    c.srcHeight = c.dstHeight = 10;
    return c;
}

static void launch(CUgraph g, CUgraphExec *e)
{
    OK(cuGraphInstantiate(e, g, 0));
    OK(cuGraphLaunch(*e, NULL));
    OK(cuCtxSynchronize());
}

/* From pageable memory into one array, on into another, to the device and back. */
static void nodes(void)
{
    CUcontext ctx;
    CUdeviceptr device;
    CUgraph g;
    CUgraphExec e;
    CUgraphNode n[4];
    needs_arrays();
    uint8_t *from = made(960), *to = calloc(1, 960);
    CUarray a = make(24, 10, 0, f32, 1, 0), b = make(24, 10, 0, f32, 1, 0);
    OK(cuCtxGetCurrent(&ctx));
    OK(cuMemAlloc(&device, 960));
    CUDA_MEMCPY3D c[4] = { plane_copy(a, CU_MEMORYTYPE_HOST, from, 0, true),
                           plane_copy(b, CU_MEMORYTYPE_ARRAY, NULL, 0, true),
                           plane_copy(b, CU_MEMORYTYPE_DEVICE, NULL, device, false),
                           plane_copy(NULL, CU_MEMORYTYPE_HOST, to, device, false) };
    c[1].srcArray = a;
    c[3].srcMemoryType = CU_MEMORYTYPE_DEVICE;
    OK(cuGraphCreate(&g, 0));
    for (int i = 0; i < 4; i++)
        OK(cuGraphAddMemcpyNode(&n[i], g, i ? &n[i - 1] : NULL, i > 0, &c[i], ctx));
    CUDA_MEMCPY3D is = { 0 };
    OK(cuGraphMemcpyNodeGetParams(n[1], &is));
    EQ(is.srcMemoryType, CU_MEMORYTYPE_ARRAY);
    TRUE(is.srcArray == a && is.dstArray == b);
    launch(g, &e);
    EQ(memcmp(from, to, 960), 0);
    /* What the source has when the graph runs counts. A copy of more than one dimension stays as it
     * was made. */
    from[7] = 99;
    memset(to, 0, 960);
    c[2].srcXInBytes = 4;
    c[2].srcY = 2;
    c[2].WidthInBytes = 92;
    c[2].Height = 8;
    IS(cuGraphExecMemcpyNodeSetParams(e, n[2], &c[2], ctx), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch(e, NULL));
    OK(cuCtxSynchronize());
    EQ(memcmp(from, to, 960), 0);
    c[1].WidthInBytes = 97;
    IS(cuGraphAddMemcpyNode(&n[0], g, NULL, 0, &c[1], ctx), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(device));
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(b));
    free(from);
    free(to);
}

/* Asynchronous copies of all kinds, captured: nothing happens before the launch. */
static void captured(void)
{
    CUstream s;
    CUgraph g;
    CUgraphExec e;
    CUdeviceptr device;
    uint8_t *host;
    size_t count = 0;
    needs_arrays();
    CUarray a = make(24, 10, 0, f32, 1, 0), row = make(96, 0, 0, u8, 1, 0);
    OK(cuMemHostAlloc((void **)&host, 2 * 960, 0));
    OK(cuMemAlloc(&device, 960));
    OK(cuMemsetD8(device, 0, 960));
    for (size_t i = 0; i < 960; i++)
        host[i] = pattern(i);
    memset(host + 960, 0, 960);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    const CUDA_MEMCPY2D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = host,
                               .srcPitch = 96,
                               .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                               .dstArray = a,
                               .WidthInBytes = 96,
                               .Height = 10 };
    const CUDA_MEMCPY3D down = plane_copy(a, CU_MEMORYTYPE_DEVICE, NULL, device, false);
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuMemcpy2DAsync(&up, s));
    OK(cuMemcpy3DAsync(&down, s));
    OK(cuMemcpyHtoAAsync(row, 0, host, 96, s));
    OK(cuMemcpyAtoHAsync(host + 960 + 96, row, 32, 64, s));
    OK(cuMemcpyDtoHAsync(host + 960, device, 96, s));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetNodes(g, NULL, &count));
    EQ(count, 5);
    OK(cuCtxSynchronize());
    EQ(host[960 + 1], 0);
    launch(g, &e);
    EQ(memcmp(host, host + 960, 96), 0);
    EQ(memcmp(host + 32, host + 960 + 96, 64), 0);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy(s));
    OK(cuMemFree(device));
    OK(cuMemFreeHost(host));
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(row));
}

/* More than what is in flight at a time on the way from or to pageable memory, and rows that do not
 * divide it. */
static void large(void)
{
    enum { W = 1500, H = 2777, ROW = 4 * W };
    needs_arrays();
    uint8_t *from = made((size_t)ROW * H), *to = calloc(1, (size_t)ROW * H);
    CUarray a = make(W, H, 0, f32, 1, 0);
    copy_volume(a, from, true, ROW, H, 1);
    copy_volume(a, to, false, ROW, H, 1);
    TRUE(memcmp(from, to, (size_t)ROW * H) == 0);
    OK(cuArrayDestroy(a));
    /* Rows of more than a piece. */
    enum { LONG = 100000 };
    a = make(LONG, 4, 0, f32, 4, 0);
    copy_volume(a, from, true, 16 * LONG, 4, 1);
    memset(to, 0, 16 * LONG * 4);
    copy_volume(a, to, false, 16 * LONG, 4, 1);
    TRUE(memcmp(from, to, 16 * LONG * 4) == 0);
    OK(cuArrayDestroy(a));
    free(from);
    free(to);
}

/* The bytes of pageable memory are taken at the call. */
static void source_is_free_at_once(void)
{
    needs_arrays();
    char source[64] = "first", got[64] = "";
    CUarray a = make(64, 0, 0, u8, 1, 0);
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 100; i++) {
        snprintf(source, sizeof(source), "number %d", i);
        OK(cuMemcpyHtoAAsync(a, 0, source, 64, s));
        memset(source, 'x', sizeof(source));
        OK(cuMemcpyAtoHAsync(got, a, 0, 64, s));
        OK(cuStreamSynchronize(s));
        EQ(atoi(got + 7), i);
    }
    OK(cuStreamDestroy(s));
    OK(cuArrayDestroy(a));
}

static void out_of_bounds(void)
{
    needs_arrays();
    static uint8_t host[4096];
    CUarray a = make(16, 8, 0, u32, 1, 0);
    const CUDA_MEMCPY2D good = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                                 .srcHost = host,
                                 .srcPitch = 64,
                                 .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                 .dstArray = a,
                                 .WidthInBytes = 64,
                                 .Height = 8 };
    CUDA_MEMCPY2D c = good;
    OK(cuMemcpy2D(&c));
    c.Height = 9;
    IS(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
    c = good;
    c.dstY = 1;
    IS(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
    c = good;
    c.dstXInBytes = 4;
    IS(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
    c = good;
    c.dstXInBytes = SIZE_MAX - 3;
    IS(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
    c = good;
    c.dstXInBytes = 2; /* not a whole element */
    c.WidthInBytes = 8;
    OK(cuMemcpy2D(&c));
    IS(cuMemcpyHtoA(a, 0, host, 65), CUDA_ERROR_INVALID_VALUE);
    c = good; /* nothing sticks */
    OK(cuMemcpy2D(&c));
    OK(cuArrayDestroy(a));
}

/* What only sparse arrays and those with several planes have. */
static void plain_ones(void)
{
    const CUDA_ARRAY_DESCRIPTOR d = {
        .Width = 16, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
    };
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    CUarray a, plane;
    OK(cuArrayCreate(&a, &d));
    IS(cuArrayGetSparseProperties(&sparse, a), CUDA_ERROR_INVALID_VALUE);
    IS(cuArrayGetPlane(&plane, a, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuArrayDestroy(a));
}

static void handles(void)
{
    needs_arrays();
    if (!tap_ours())
        tap_skip("the genuine library follows handles as pointers");
    static uint8_t host[64];
    CUDA_ARRAY_DESCRIPTOR d;
    CUstream s;
    CUarray a = make(64, 0, 0, u8, 1, 0), gone = make(64, 0, 0, u8, 1, 0);
    OK(cuStreamCreate(&s, 0));
    OK(cuArrayDestroy(gone));
    const CUarray bad[] = { gone, (CUarray)(void *)s, (CUarray)(uintptr_t)0x1234, NULL };
    for (size_t i = 0; i < COUNT(bad); i++) {
        IS(cuArrayGetDescriptor(&d, bad[i]), CUDA_ERROR_INVALID_HANDLE);
        IS(cuArrayDestroy(bad[i]), CUDA_ERROR_INVALID_HANDLE);
        const CUresult r = bad[i] ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
        IS(cuMemcpyHtoA(bad[i], 0, host, 64), r);
        IS(cuMemcpyAtoA(a, 0, bad[i], 0, 64), r);
    }
    OK(cuMemcpyHtoA(a, 0, host, 64));
    OK(cuStreamDestroy(s));
    OK(cuArrayDestroy(a));
}

static void mipmaps(void)
{
    needs_arrays();
    const CUDA_ARRAY3D_DESCRIPTOR d = { 64, 32, 0, f32, 1, 0 };
    static uint8_t from[64 * 32 * 4], to[64 * 32 * 4];
    CUmipmappedArray m;
    CUarray level;
    OK(cuMipmappedArrayCreate(&m, &d, 100)); /* as many as there can be */
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = pattern(i);
    for (unsigned l = 0; l < 7; l++) {
        size_t w = 64u >> l, h = 32u >> l ? 32u >> l : 1;
        OK(cuMipmappedArrayGetLevel(&level, m, l));
        shape_is(level, w, h, 0, f32, 1, 0);
        copy_volume(level, from + l, true, 4 * w, h, 1);
    }
    for (unsigned l = 7; l-- > 0;) {
        size_t w = 64u >> l, h = 32u >> l ? 32u >> l : 1;
        OK(cuMipmappedArrayGetLevel(&level, m, l));
        copy_volume(level, to, false, 4 * w, h, 1);
        EQ(memcmp(to, from + l, 4 * w * h), 0);
    }
    IS(cuMipmappedArrayGetLevel(&level, m, 7), CUDA_ERROR_INVALID_VALUE);
    OK(cuMipmappedArrayDestroy(m));
    if (tap_ours()) {
        IS(cuMipmappedArrayGetLevel(&level, m, 0), CUDA_ERROR_INVALID_HANDLE);
        IS(cuMipmappedArrayDestroy(m), CUDA_ERROR_INVALID_HANDLE);
        IS(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
    }
}

/* What an array takes is missing from what is free, and comes back. */
static void memory(void)
{
    needs_arrays();
    if (!tap_alone() && !(tap_gpu() && tap_ours()))
        tap_skip("others allocate beside us");
    size_t before, during, after, total;
    OK(cuMemGetInfo(&before, &total));
    CUarray a = make(8192, 8192, 0, f32, 1, 0); /* 256 MiB */
    OK(cuMemGetInfo(&during, &total));
    TRUE(before - during >= 256 * MIB && before - during < 400 * MIB);
    OK(cuArrayDestroy(a));
    OK(cuMemGetInfo(&after, &total));
    TRUE(before - after < 64 * MIB || after > before);
}

/* Until there is no more; then all of it is there again. */
static void exhaustion(void)
{
    enum { MOST = 600 };
    static CUarray all[MOST];
    const CUDA_ARRAY3D_DESCRIPTOR gib = { 1024, 1024, 256, CU_AD_FORMAT_FLOAT, 1, 0 };
    int n = 0;
    CUresult r = CUDA_SUCCESS;
    needs_arrays();
    if (!tap_alone() && !tap_gpu())
        tap_skip("others allocate beside us, and there is less than on a GPU");
    while (n < MOST && (r = cuArray3DCreate(&all[n], &gib)) == CUDA_SUCCESS)
        n++;
    IS(r, CUDA_ERROR_OUT_OF_MEMORY);
    int had = n;
    TRUE(had > 0);
    while (n > 0)
        OK(cuArrayDestroy(all[--n]));
    OK(cuArray3DCreate(&all[0], &gib));
    OK(cuArrayDestroy(all[0]));
}

static void many(void)
{
    enum { N = 2000 };
    static CUarray all[N];
    uint32_t value = 0;
    needs_arrays();
    for (uint32_t i = 0; i < N; i++) {
        all[i] = make(16, 4, 0, u32, 1, 0);
        OK(cuMemcpyHtoA(all[i], 8, &i, 4));
    }
    for (uint32_t i = 0; i < N; i += 2)
        OK(cuArrayDestroy(all[i]));
    for (uint32_t i = 1; i < N; i += 2) {
        OK(cuMemcpyAtoH(&value, all[i], 8, 4));
        EQ(value, i);
        OK(cuArrayDestroy(all[i]));
    }
}

/* An array may be destroyed while what was asked of it has not been done yet. */
static void destroyed_in_flight(void)
{
    enum { N = 4096 };
    CUdeviceptr p;
    CUstream s;
    needs_arrays();
    OK(cuMemAlloc(&p, N * 64));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 50; i++) {
        CUarray a = make(N, 64, 0, u8, 1, 0);
        const CUDA_MEMCPY2D in = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                   .srcDevice = p,
                                   .srcPitch = N,
                                   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                   .dstArray = a,
                                   .WidthInBytes = N,
                                   .Height = 64 };
        OK(cuMemsetD8Async(p, (unsigned char)i, N * 64, s));
        for (int j = 0; j < 10; j++)
            OK(cuMemcpy2DAsync(&in, s));
        OK(cuArrayDestroy(a));
    }
    OK(cuStreamSynchronize(s));
    OK(cuStreamDestroy(s));
    OK(cuMemFree(p));
}

/* A context takes its arrays along. */
static void context_ends(void)
{
    CUcontext outer, c;
    size_t before, after, total;
    needs_arrays();
    OK(cuCtxGetCurrent(&outer));
    OK(cuMemGetInfo(&before, &total));
    OK(cuCtxCreate(&c, NULL, 0, 0));
    (void)make(8192, 8192, 0, f32, 1, 0);
    OK(cuCtxDestroy(c));
    OK(cuCtxSetCurrent(outer));
    OK(cuMemGetInfo(&after, &total));
    TRUE(before - after < 128 * MIB || after > before);
}

static void what_there_is_not(void)
{
    int sparse = 1, deferred = 1;
    if (!tap_ours())
        tap_skip("about gmux");
    OK(cuDeviceGetAttribute(&sparse, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 0));
    OK(cuDeviceGetAttribute(&deferred, CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
                            0));
    EQ(sparse, 0);
    EQ(deferred, 0);
    CUarray a;
    CUmipmappedArray m;
    const CUDA_ARRAY3D_DESCRIPTOR d = { 64, 64, 0, f32, 1, CUDA_ARRAY3D_SPARSE };
    IS(cuArray3DCreate(&a, &d), CUDA_ERROR_NOT_SUPPORTED);
    IS(cuMipmappedArrayCreate(&m, &d, 1), CUDA_ERROR_NOT_SUPPORTED);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(shapes),
        TEST(bad_shapes),
        TEST(planes),
        TEST(rows),
        TEST(volumes),
        TEST(nodes),
        TEST(captured),
        TEST(large),
        TEST(source_is_free_at_once),
        TEST(out_of_bounds),
        TEST(plain_ones),
        TEST(handles),
        TEST(mipmaps),
        TEST(memory),
        TEST(many),
        TEST(exhaustion),
        TEST(destroyed_in_flight),
        TEST(context_ends),
        TEST(what_there_is_not),
    };
    return tap_main(tests, COUNT(tests));
}
