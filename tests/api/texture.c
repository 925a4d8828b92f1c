/* Textures and surfaces: what kernels see through them, of arrays of every shape and of memory;
 * tensor maps. A software device has none. */
#include "hold.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

extern const char texture_ptx[];

static CUmodule module;

static CUfunction kernel(const char *name)
{
    CUfunction f;
    if (!tap_computes())
        tap_skip("a device that computes nothing");
    if (!module)
        OK(cuModuleLoadData(&module, texture_ptx));
    OK(cuModuleGetFunction(&f, module, name));
    return f;
}

static CUarray array_with(size_t w, size_t h, size_t d, CUarray_format format, unsigned channels,
                          unsigned flags, size_t element, const void *data)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = { w, h, d, format, channels, flags };
    CUarray a = NULL;
    OK(cuArray3DCreate(&a, &desc));
    const CUDA_MEMCPY3D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = data,
                               .srcPitch = w * element,
                               .srcHeight = h,
                               .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                               .dstArray = a,
                               .WidthInBytes = w * element,
                               .Height = h ? h : 1,
                               .Depth = d ? d : 1 };
    if (data)
        OK(cuMemcpy3D(&up));
    return a;
}

static CUDA_RESOURCE_DESC of_array(CUarray a)
{
    return (CUDA_RESOURCE_DESC) { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a };
}

/* Unnormalized coordinates, nearest element, clamped. */
static const CUDA_TEXTURE_DESC plain = {
    .addressMode = { CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP },
    .filterMode = CU_TR_FILTER_MODE_POINT
};

static CUtexObject texture_of(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t)
{
    CUtexObject tex = 0;
    OK(cuTexObjectCreate(&tex, r, t, NULL));
    return tex;
}

static void run(CUfunction f, unsigned n, void **params)
{
    OK(cuLaunchKernel(f, (n + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
}

static CUdeviceptr room(size_t n)
{
    CUdeviceptr p;
    OK(cuMemAlloc(&p, n));
    OK(cuMemsetD8(p, 0xff, n));
    return p;
}

/* out[y * w + x] = tex(x * sx + bx, y * sy + by) */
static void sample(CUtexObject tex, float *out, unsigned w, unsigned h, float sx, float bx,
                   float sy, float by)
{
    unsigned n = w * h;
    CUfunction f = kernel("sample_2d");
    CUdeviceptr p = room(4ul * n);
    void *params[] = { &tex, &p, &n, &w, &sx, &bx, &sy, &by };
    run(f, n, params);
    OK(cuMemcpyDtoH(out, p, 4ul * n));
    OK(cuMemFree(p));
}

enum { W = 24, H = 10 };

static float value(unsigned x, unsigned y)
{
    return (float)(x + 100 * y);
}

static CUarray plane(void)
{
    static float data[W * H];
    for (unsigned y = 0; y < H; y++)
        for (unsigned x = 0; x < W; x++)
            data[y * W + x] = value(x, y);
    return array_with(W, H, 0, CU_AD_FORMAT_FLOAT, 1, 0, 4, data);
}

static void nearest(void)
{
    static float got[W * H];
    (void)kernel("sample_2d");
    CUarray a = plane();
    CUDA_RESOURCE_DESC r = of_array(a);
    CUtexObject tex = texture_of(&r, &plain);
    sample(tex, got, W, H, 1, 0.5f, 1, 0.5f);
    for (unsigned i = 0; i < W * H; i++)
        EQ(got[i], value(i % W, i / W));
    sample(tex, got, W, H, 1, 1000, 1, -1000); /* beyond the edges: the corner */
    EQ(got[0], value(W - 1, 0));
    OK(cuTexObjectDestroy(tex));
    OK(cuTexObjectDestroy(0));
    OK(cuArrayDestroy(a));
}

static void filtered(void)
{
    static float got[W * H];
    (void)kernel("sample_2d");
    CUarray a = plane();
    CUDA_RESOURCE_DESC r = of_array(a);
    CUDA_TEXTURE_DESC t = plain;
    t.filterMode = CU_TR_FILTER_MODE_LINEAR;
    CUtexObject tex = texture_of(&r, &t);
    sample(tex, got, W - 1, H - 1, 1, 1, 1, 1); /* between four elements */
    for (unsigned y = 0; y < H - 1; y++)
        for (unsigned x = 0; x < W - 1; x++)
            TRUE(got[y * (W - 1) + x] == value(x, y) + 50.5f);
    OK(cuTexObjectDestroy(tex));

    t = plain;
    t.flags = CU_TRSF_NORMALIZED_COORDINATES;
    t.addressMode[0] = t.addressMode[1] = CU_TR_ADDRESS_MODE_WRAP;
    tex = texture_of(&r, &t);
    sample(tex, got, W, H, 1.0f / W, 0.5f / W + 1, 1.0f / H, 0.5f / H - 1);
    for (unsigned i = 0; i < W * H; i++)
        EQ(got[i], value(i % W, i / W));
    OK(cuTexObjectDestroy(tex));

    t = plain;
    t.addressMode[0] = t.addressMode[1] = CU_TR_ADDRESS_MODE_BORDER;
    t.borderColor[0] = 42;
    tex = texture_of(&r, &t);
    sample(tex, got, W, H, 1, -1000, 1, 0.5f);
    for (unsigned i = 0; i < W * H; i++)
        EQ(got[i], 42);
    OK(cuTexObjectDestroy(tex));
    OK(cuArrayDestroy(a));
}

static void integers(void)
{
    static uint8_t data[W * H * 4];
    static uint32_t got[W * H * 4];
    static float scaled[W * H];
    unsigned n = W * H, w = W;
    CUfunction f = kernel("fetch_2d");
    for (unsigned i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 3);
    CUarray a = array_with(W, H, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0, 4, data);
    CUDA_RESOURCE_DESC r = of_array(a);
    CUDA_TEXTURE_DESC t = plain;
    t.flags = CU_TRSF_READ_AS_INTEGER;
    CUtexObject tex = texture_of(&r, &t);
    CUdeviceptr p = room(sizeof(got));
    void *params[] = { &tex, &p, &n, &w };
    run(f, n, params);
    OK(cuMemcpyDtoH(got, p, sizeof(got)));
    for (unsigned i = 0; i < W * H * 4; i++)
        EQ(got[i], data[i]);
    OK(cuTexObjectDestroy(tex));
    tex = texture_of(&r, &plain); /* as a fraction */
    sample(tex, scaled, W, H, 1, 0.5f, 1, 0.5f);
    for (unsigned i = 0; i < W * H; i++)
        TRUE(scaled[i] > data[4 * i] / 255.0f - 1e-5f && scaled[i] < data[4 * i] / 255.0f + 1e-5f);
    OK(cuTexObjectDestroy(tex));
    OK(cuMemFree(p));
    OK(cuArrayDestroy(a));
}

static void linear_memory(void)
{
    enum { N = 1000 };
    static uint32_t data[N], got[N];
    unsigned n = N;
    CUfunction f = kernel("fetch_1d");
    CUdeviceptr from = room(sizeof(data)), p = room(sizeof(got));
    for (unsigned i = 0; i < N; i++)
        data[i] = i * 2654435761u;
    OK(cuMemcpyHtoD(from, data, sizeof(data)));
    const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_LINEAR,
                                   .res.linear = { from, CU_AD_FORMAT_UNSIGNED_INT32, 1,
                                                   sizeof(data) } };
    CUDA_TEXTURE_DESC t = plain;
    t.flags = CU_TRSF_READ_AS_INTEGER;
    CUtexObject tex = texture_of(&r, &t);
    void *params[] = { &tex, &p, &n };
    run(f, n, params);
    OK(cuMemcpyDtoH(got, p, sizeof(got)));
    EQ(memcmp(got, data, sizeof(data)), 0);
    OK(cuTexObjectDestroy(tex));
    OK(cuMemFree(from));
    OK(cuMemFree(p));
}

/* As NVIDIA's sample convolutionFFT2D does: nothing is read there. */
static void more_than_the_memory(void)
{
    const size_t size = 16u << 20;
    CUdeviceptr from;
    (void)kernel("fetch_1d");
    OK(cuMemAlloc(&from, size));
    const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_LINEAR,
                                   .res.linear = { from, CU_AD_FORMAT_FLOAT, 2,
                                                   size + (256u << 10) } };
    OK(cuTexObjectDestroy(texture_of(&r, &plain)));
    OK(cuMemFree(from));
}

static void pitched_memory(void)
{
    static float data[W * H], got[W * H];
    CUdeviceptr from;
    size_t pitch;
    (void)kernel("sample_2d");
    for (unsigned i = 0; i < W * H; i++)
        data[i] = (float)i;
    OK(cuMemAllocPitch(&from, &pitch, W * 4, H, 4));
    const CUDA_MEMCPY2D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = data,
                               .srcPitch = W * 4,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = from,
                               .dstPitch = pitch,
                               .WidthInBytes = W * 4,
                               .Height = H };
    OK(cuMemcpy2D(&up));
    const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_PITCH2D,
                                   .res.pitch2D = { from, CU_AD_FORMAT_FLOAT, 1, W, H, pitch } };
    CUtexObject tex = texture_of(&r, &plain);
    sample(tex, got, W, H, 1, 0.5f, 1, 0.5f);
    EQ(memcmp(got, data, sizeof(data)), 0);
    OK(cuTexObjectDestroy(tex));
    OK(cuMemFree(from));
}

static void boxes(const char *name, unsigned flags)
{
    enum { D = 5 };
    static float data[W * H * D], got[W * H * D];
    unsigned n = W * H * D, w = W, h = H;
    CUfunction f = kernel(name);
    for (unsigned i = 0; i < n; i++)
        data[i] = (float)(i * 2 + 1);
    CUarray a = array_with(W, H, D, CU_AD_FORMAT_FLOAT, 1, flags, 4, data);
    CUDA_RESOURCE_DESC r = of_array(a);
    CUtexObject tex = texture_of(&r, &plain);
    CUdeviceptr p = room(sizeof(got));
    void *params[] = { &tex, &p, &n, &w, &h };
    run(f, n, params);
    OK(cuMemcpyDtoH(got, p, sizeof(got)));
    EQ(memcmp(got, data, sizeof(data)), 0);
    OK(cuTexObjectDestroy(tex));
    OK(cuMemFree(p));
    OK(cuArrayDestroy(a));
}

static void volume(void)
{
    boxes("sample_3d", 0);
}

static void layers(void)
{
    boxes("sample_layers", CUDA_ARRAY3D_LAYERED);
}

static void levels(void)
{
    enum { LEVELS = 5 };
    const CUDA_ARRAY3D_DESCRIPTOR d = { 16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0 };
    CUfunction f = kernel("sample_level");
    CUmipmappedArray m;
    float got, at;
    OK(cuMipmappedArrayCreate(&m, &d, LEVELS));
    for (unsigned l = 0; l < LEVELS; l++) {
        static float data[256];
        CUarray level;
        size_t w = 16u >> l;
        for (unsigned i = 0; i < 256; i++)
            data[i] = (float)(l * 10);
        OK(cuMipmappedArrayGetLevel(&level, m, l));
        const CUDA_MEMCPY2D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                                   .srcHost = data,
                                   .srcPitch = w * 4,
                                   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                   .dstArray = level,
                                   .WidthInBytes = w * 4,
                                   .Height = w };
        OK(cuMemcpy2D(&up));
    }
    const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                                   .res.mipmap.hMipmappedArray = m };
    CUDA_TEXTURE_DESC t = plain;
    t.flags = CU_TRSF_NORMALIZED_COORDINATES;
    t.filterMode = t.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
    t.maxMipmapLevelClamp = LEVELS - 1;
    CUtexObject tex = texture_of(&r, &t);
    CUdeviceptr p = room(4);
    void *params[] = { &tex, &p, &at };
    for (unsigned i = 0; i <= 2 * (LEVELS - 1); i++) {
        at = (float)i / 2;
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        OK(cuMemcpyDtoH(&got, p, 4));
        EQ(got, 5 * i);
    }
    /* One level as an array of its own. */
    CUarray level;
    OK(cuMipmappedArrayGetLevel(&level, m, 2));
    CUDA_RESOURCE_DESC one = of_array(level);
    CUtexObject second = texture_of(&one, &plain);
    sample(second, &got, 1, 1, 1, 0.5f, 1, 0.5f);
    EQ(got, 20);
    OK(cuTexObjectDestroy(second));
    OK(cuTexObjectDestroy(tex));
    OK(cuMemFree(p));
    OK(cuMipmappedArrayDestroy(m));
}

static void surfaces(void)
{
    static uint32_t data[W * H], got[W * H];
    unsigned n = W * H, w = W, by = 7;
    CUfunction f = kernel("surface_add");
    for (unsigned i = 0; i < n; i++)
        data[i] = i;
    CUarray a =
        array_with(W, H, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST, 4, data);
    CUDA_RESOURCE_DESC r = of_array(a), back = { 0 };
    CUsurfObject surface;
    OK(cuSurfObjectCreate(&surface, &r));
    void *params[] = { &surface, &n, &w, &by };
    run(f, n, params);
    run(f, n, params);
    const CUDA_MEMCPY2D down = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                 .srcArray = a,
                                 .dstMemoryType = CU_MEMORYTYPE_HOST,
                                 .dstHost = got,
                                 .dstPitch = W * 4,
                                 .WidthInBytes = W * 4,
                                 .Height = H };
    OK(cuMemcpy2D(&down));
    for (unsigned i = 0; i < n; i++)
        EQ(got[i], i + 14);
    OK(cuSurfObjectGetResourceDesc(&back, surface));
    EQ(back.resType, CU_RESOURCE_TYPE_ARRAY);
    TRUE(back.res.array.hArray == a);
    OK(cuSurfObjectDestroy(surface));
    OK(cuArrayDestroy(a));
}

static void descriptions(void)
{
    (void)kernel("sample_2d");
    CUarray a = plane();
    CUDA_RESOURCE_DESC r = of_array(a), r2 = { 0 };
    CUDA_TEXTURE_DESC t = plain, t2 = { 0 };
    CUDA_RESOURCE_VIEW_DESC v2;
    const CUDA_RESOURCE_VIEW_DESC v = { .format = CU_RES_VIEW_FORMAT_FLOAT_1X32,
                                        .width = W,
                                        .height = H };
    t.flags = CU_TRSF_NORMALIZED_COORDINATES;
    t.borderColor[2] = 3;
    CUtexObject tex = texture_of(&r, &t), viewed;
    OK(cuTexObjectGetResourceDesc(&r2, tex));
    EQ(r2.resType, CU_RESOURCE_TYPE_ARRAY);
    TRUE(r2.res.array.hArray == a);
    OK(cuTexObjectGetTextureDesc(&t2, tex));
    EQ(t2.flags, CU_TRSF_NORMALIZED_COORDINATES);
    EQ(t2.addressMode[1], CU_TR_ADDRESS_MODE_CLAMP);
    OK(cuTexObjectGetResourceViewDesc(&v2, tex)); /* there is none */
    OK(cuTexObjectCreate(&viewed, &r, &t, &v));
    OK(cuTexObjectGetResourceViewDesc(&v2, viewed));
    EQ(v2.format, CU_RES_VIEW_FORMAT_FLOAT_1X32);
    EQ(v2.width, W);
    OK(cuTexObjectDestroy(viewed));
    OK(cuTexObjectDestroy(tex));
    OK(cuArrayDestroy(a));
}

static void wrong_ones(void)
{
    (void)kernel("sample_2d");
    CUarray a = plane();
    CUdeviceptr p = room(4096);
    CUtexObject tex;
    CUsurfObject surface;
    CUDA_RESOURCE_DESC r = of_array(a);
    IS(cuTexObjectCreate(NULL, &r, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuTexObjectCreate(&tex, NULL, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuTexObjectCreate(&tex, &r, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    r.resType = (CUresourcetype)9;
    IS(cuTexObjectCreate(&tex, &r, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    r = (CUDA_RESOURCE_DESC) { .resType = CU_RESOURCE_TYPE_LINEAR,
                               .res.linear = { 0x10, CU_AD_FORMAT_FLOAT, 1, 4096 } };
    IS(cuTexObjectCreate(&tex, &r, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    r.res.linear.devPtr = p;
    IS(cuSurfObjectCreate(&surface, &r), CUDA_ERROR_INVALID_VALUE);
    if (tap_ours()) { /* the genuine library follows handles as pointers, and looks less at sizes */
        r.res.linear.sizeInBytes = 1ull << 40;
        IS(cuTexObjectCreate(&tex, &r, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
        r = (CUDA_RESOURCE_DESC) { .resType = CU_RESOURCE_TYPE_PITCH2D,
                                   .res.pitch2D = { p, CU_AD_FORMAT_FLOAT, 1, 16, 1 << 20, 512 } };
        IS(cuTexObjectCreate(&tex, &r, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
        IS(cuTexObjectDestroy(0x123456789abc), CUDA_ERROR_INVALID_VALUE);
        IS(cuSurfObjectDestroy(0x123456789abc), CUDA_ERROR_INVALID_VALUE);
        r = of_array(a);
        OK(cuTexObjectCreate(&tex, &r, &plain, NULL));
        IS(cuSurfObjectDestroy(tex), CUDA_ERROR_INVALID_VALUE);
        OK(cuArrayDestroy(a)); /* stays as long as the texture does */
        float got;
        sample(tex, &got, 1, 1, 1, 3.5f, 1, 2.5f);
        EQ(got, value(3, 2));
        OK(cuTexObjectDestroy(tex));
        IS(cuTexObjectDestroy(tex), CUDA_ERROR_INVALID_VALUE);
        IS(cuTexObjectCreate(&tex, &r, &plain, NULL), CUDA_ERROR_INVALID_HANDLE);
        a = plane();
    }
    r = of_array(NULL);
    IS(cuTexObjectCreate(&tex, &r, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuSurfObjectCreate(&tex, &r), CUDA_ERROR_INVALID_VALUE);
    r = of_array(a); /* nothing sticks */
    tex = texture_of(&r, &plain);
    OK(cuTexObjectDestroy(tex));
    OK(cuMemFree(p));
    OK(cuArrayDestroy(a));
}

/* Which of many is which. */
static void many(void)
{
    enum { N = 300 };
    static CUtexObject tex[N];
    static CUarray arrays[N];
    (void)kernel("sample_2d");
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < N; i++) {
            float data = (float)i;
            arrays[i] = array_with(1, 1, 0, CU_AD_FORMAT_FLOAT, 1, 0, 4, &data);
            CUDA_RESOURCE_DESC r = of_array(arrays[i]);
            tex[i] = texture_of(&r, &plain);
        }
        for (unsigned i = 0; i < N; i++) {
            float got;
            sample(tex[i], &got, 1, 1, 1, 0.5f, 1, 0.5f);
            EQ(got, i);
        }
        for (unsigned i = 0; i < N; i++) {
            unsigned j = i * 7 % N; /* in another order */
            OK(cuTexObjectDestroy(tex[j]));
            OK(cuArrayDestroy(arrays[j]));
        }
    }
}

static _Atomic int held;

static void wait_for_it(void *unused)
{
    (void)unused;
    hold_wait(&held, 1);
}

/* A program may destroy an object whose kernel has not begun: others do not get its place. */
static void destroyed_at_once(void)
{
    enum { N = 70 }; /* more than there is room for in one piece of memory */
    CUfunction f = kernel("sample_2d");
    if (tap_gpu())
        tap_skip("how long the genuine library waits before it takes such a place is its affair");
    CUtexObject later[N];
    unsigned n = 1, w = 1;
    float one = 1, half = 0.5f, data = 7, other = 8, got[N];
    CUarray a = array_with(1, 1, 0, CU_AD_FORMAT_FLOAT, 1, 0, 4, &data),
            b = array_with(1, 1, 0, CU_AD_FORMAT_FLOAT, 1, 0, 4, &other);
    CUDA_RESOURCE_DESC ra = of_array(a), rb = of_array(b);
    CUdeviceptr p = room(4 * N);
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned round = 0; round < 2; round++) {
        hold_set(&held, 0);
        OK(cuLaunchHostFunc(s, wait_for_it, NULL));
        for (unsigned i = 0; i < N; i++) {
            CUtexObject tex = texture_of(&ra, &plain);
            CUdeviceptr out = p + 4 * i;
            void *params[] = { &tex, &out, &n, &w, &one, &half, &one, &half };
            OK(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, s, params, NULL));
            OK(cuTexObjectDestroy(tex));
        }
        for (unsigned i = 0; i < N; i++)
            later[i] = texture_of(&rb, &plain);
        hold_set(&held, 1);
        OK(cuStreamSynchronize(s));
        OK(cuMemcpyDtoH(got, p, sizeof(got)));
        for (unsigned i = 0; i < N; i++) {
            EQ(got[i], 7);
            OK(cuTexObjectDestroy(later[i]));
        }
    }
    OK(cuStreamDestroy(s));
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(b));
    OK(cuMemFree(p));
}

/* NVIDIA's library makes these 128 bytes, and only GPUs read them. So here it counts that the
 * program's own library answers, and that the answer depends on the question. */
static void tensor_maps(void)
{
    int access = 0;
    OK(cuDeviceGetAttribute(&access, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0));
    if (!access)
        tap_skip("a device without tensor maps");
    CUdeviceptr p = room(1 << 16);
    void *address = (void *)(uintptr_t)p;
    const cuuint64_t size[] = { 64, 64 }, strides[] = { 256 };
    const cuuint32_t box[] = { 16, 16 }, steps[] = { 1, 1 };
    CUtensorMap map, other;
    memset(&map, 0, sizeof(map));
    memset(&other, 0, sizeof(other));
    OK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, address, size, strides, box,
                              steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                              CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    OK(cuTensorMapEncodeTiled(&other, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (char *)address + 4096,
                              size, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                              CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    TRUE(memcmp(&map, &other, sizeof(map)) != 0);
    OK(cuTensorMapReplaceAddress(&map, (char *)address + 4096));
    EQ(memcmp(&map, &other, sizeof(map)), 0);
    IS(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 9, address, size, strides, box,
                              steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                              CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
       CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
}

/* For convolutions: columns of pixels of an image of 16 x 16 with 32 channels. */
static CUresult columns(CUtensorMap *map, CUdeviceptr p, cuuint32_t rank)
{
    const cuuint64_t size[] = { 32, 16, 16, 2 }, strides[] = { 64, 1024, 16384 };
    const int lower[] = { -1, -1 }, upper[] = { -1, -1 };
    const cuuint32_t steps[] = { 1, 1, 1, 1 };
    return cuTensorMapEncodeIm2col(
        map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank, (void *)(uintptr_t)p, size, strides, lower,
        upper, 32, 64, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void tensor_maps_of_columns(void)
{
    int known = 0;
    CUtensorMap map, other;
    OK(cuDeviceGetAttribute(&known, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0));
    if (!known)
        tap_skip("a device without tensor maps");
    CUdeviceptr p = room(1 << 16);
    memset(&map, 0, sizeof(map));
    memset(&other, 0, sizeof(other));
    OK(columns(&map, p, 4));
    OK(columns(&other, p + 4096, 4));
    TRUE(memcmp(&map, &other, sizeof(map)) != 0);
    OK(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)(p + 4096)));
    EQ(memcmp(&map, &other, sizeof(map)), 0);
    IS(columns(&map, p, 2), CUDA_ERROR_INVALID_VALUE); /* no pixels in it */
    OK(cuMemFree(p));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(nearest),
        TEST(filtered),
        TEST(integers),
        TEST(linear_memory),
        TEST(more_than_the_memory),
        TEST(pitched_memory),
        TEST(volume),
        TEST(layers),
        TEST(levels),
        TEST(surfaces),
        TEST(descriptions),
        TEST(wrong_ones),
        TEST(many),
        TEST(destroyed_at_once),
        TEST(tensor_maps),
        TEST(tensor_maps_of_columns),
    };
    return tap_main(tests, COUNT(tests));
}
