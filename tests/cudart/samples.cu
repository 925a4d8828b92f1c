/*
 * Every function that samples a texture by its handle, each with the texel that CUDA's guide names
 * for it. A texel's value says where it lies: 1000 for each level, 100 for each layer (or face of a
 * layered cube), 10 for each row, 1 for each column.
 */
#include <cuda_runtime.h>

#include <string.h>

#include "check.h"

enum { WIDTH = 4, LEVELS = 2, MOST = 64 };

__global__ void flat(cudaTextureObject_t t, float *out)
{
    float2 none = make_float2(0, 0), wide = make_float2(0.5f, 0);
    *out++ = tex2DLod<float>(t, 0.9f, 0.1f, 0);
    *out++ = tex2DLod<float>(t, 0.9f, 0.1f, 1);
    *out++ = tex2DGrad<float>(t, 0.9f, 0.1f, none, none);
    *out++ = tex2DGrad<float>(t, 0.9f, 0.1f, wide, none);
    *out++ = tex2DGrad<float>(t, 0.9f, 0.1f, none, wide);
    tex2DLod(out++, t, 0.1f, 0.9f, 1);
    tex2DGrad(out++, t, 0.1f, 0.9f, wide, none);
}

__global__ void layers(cudaTextureObject_t t, float *out)
{
    float2 none = make_float2(0, 0), wide = make_float2(0.5f, 0);
    *out++ = tex2DLayered<float>(t, 0.9f, 0.4f, 1);
    *out++ = tex2DLayeredLod<float>(t, 0.9f, 0.4f, 1, 0);
    *out++ = tex2DLayeredLod<float>(t, 0.9f, 0.4f, 0, 1);
    *out++ = tex2DLayeredGrad<float>(t, 0.9f, 0.4f, 1, none, none);
    *out++ = tex2DLayeredGrad<float>(t, 0.9f, 0.4f, 1, wide, none);
}

__global__ void lines(cudaTextureObject_t t, float *out)
{
    *out++ = tex1DLayered<float>(t, 0.9f, 1);
    *out++ = tex1DLayeredLod<float>(t, 0.9f, 1, 1);
    *out++ = tex1DLayeredGrad<float>(t, 0.9f, 1, 0.5f, 0);
    *out++ = tex1DLayeredGrad<float>(t, 0.9f, 1, 0, 0);
}

__global__ void line(cudaTextureObject_t t, float *out)
{
    *out++ = tex1DLod<float>(t, 0.9f, 1);
    *out++ = tex1DGrad<float>(t, 0.9f, 0, 0.5f);
    *out++ = tex1DGrad<float>(t, 0.9f, 0, 0);
}

__global__ void solid(cudaTextureObject_t t, float *out)
{
    float4 none = make_float4(0, 0, 0, 0), deep = make_float4(0, 0, 0.5f, 0);
    *out++ = tex3DLod<float>(t, 0.9f, 0.4f, 0.6f, 0);
    *out++ = tex3DGrad<float>(t, 0.9f, 0.4f, 0.6f, none, none);
    *out++ = tex3DGrad<float>(t, 0.9f, 0.4f, 0.6f, deep, none);
}

/* The middle of face 2 is (0, 1, 0). */
__global__ void cube(cudaTextureObject_t t, float *out)
{
    float4 none = make_float4(0, 0, 0, 0);
    *out++ = texCubemap<float>(t, 0.1f, 1, 0.1f);
    *out++ = texCubemapLod<float>(t, 0.1f, 1, 0.1f, 1);
    *out++ = texCubemapGrad<float>(t, 0.1f, 1, 0.1f, none, none);
}

__global__ void cubes(cudaTextureObject_t t, float *out)
{
    float4 none = make_float4(0, 0, 0, 0);
    *out++ = texCubemapLayered<float>(t, 0.1f, 1, 0.1f, 1);
    *out++ = texCubemapLayeredLod<float>(t, 0.1f, 1, 0.1f, 1, 0);
    *out++ = texCubemapLayeredLod<float>(t, 0.1f, 1, 0.1f, 0, 1);
    *out++ = texCubemapLayeredGrad<float>(t, 0.1f, 1, 0.1f, 1, none, none);
}

__global__ void corners(cudaTextureObject_t t, float4 *out)
{
    out[0] = tex2Dgather<float4>(t, 0.5f, 0.5f);
    out[1] = tex2Dgather<float4>(t, 0.5f, 0.5f, 1);
}

/* An array with levels, and a texture of it that takes the nearest level and texel. */
static cudaTextureObject_t texture(cudaMipmappedArray_t *a, cudaChannelFormatDesc format,
                                   cudaExtent size, unsigned flags)
{
    OK(cudaMallocMipmappedArray(a, &format, size, LEVELS, flags));
    for (unsigned level = 0; level < LEVELS; level++) {
        const bool many = flags & (cudaArrayLayered | cudaArrayCubemap);
        const size_t channels = format.y ? 2 : 1, w = size.width >> level;
        const size_t h = size.height >> level, rows = h ? h : 1;
        const size_t d = many ? size.depth : size.depth >> level, planes = d ? d : 1;
        static float texels[2 * WIDTH * WIDTH * 12];
        for (size_t i = 0; i < w * rows * planes; i++)
            for (size_t c = 0; c < channels; c++)
                texels[i * channels + c] = (float)(i % w + 10 * (i / w % rows) +
                                                   100 * (i / w / rows) + 1000 * level + 5000 * c);
        cudaMemcpy3DParms copy;
        memset(&copy, 0, sizeof(copy));
        OK(cudaGetMipmappedArrayLevel(&copy.dstArray, *a, level));
        copy.srcPtr = make_cudaPitchedPtr(texels, w * channels * sizeof(float), w, rows);
        copy.extent = make_cudaExtent(w, rows, planes);
        copy.kind = cudaMemcpyHostToDevice;
        OK(cudaMemcpy3D(&copy));
    }
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof(resource));
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = *a;
    cudaTextureDesc how;
    memset(&how, 0, sizeof(how));
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
    how.normalizedCoords = 1;
    how.maxMipmapLevelClamp = LEVELS - 1;
    cudaTextureObject_t t = 0;
    OK(cudaCreateTextureObject(&t, &resource, &how, NULL));
    return t;
}

typedef void kernel(cudaTextureObject_t t, float *out);

static void try_one(const char *name, kernel *k, cudaExtent size, unsigned flags, int count,
                    const float *expected)
{
    cudaMipmappedArray_t a;
    cudaTextureObject_t t = texture(&a, cudaCreateChannelDesc<float>(), size, flags);
    float *d, out[MOST];
    OK(cudaMalloc(&d, sizeof(out)));
    k<<<1, 1>>>(t, d);
    OK(cudaMemcpy(out, d, sizeof(out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++)
        if (out[i] != expected[i]) {
            printf("%s %d: %g instead of %g\n", name, i, out[i], expected[i]);
            failures++;
        }
    OK(cudaDestroyTextureObject(t));
    OK(cudaFreeMipmappedArray(a));
    OK(cudaFree(d));
}

#define TRY(k, size, flags, ...)                                                                   \
    do {                                                                                           \
        const float expected[] = { __VA_ARGS__ };                                                  \
        try_one(#k, k, size, flags, (int)(sizeof(expected) / sizeof(*expected)), expected);        \
    } while (0)

/* One channel of the four texels around the middle of texel (0, 0) and its neighbours. */
static void gather()
{
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float2>();
    float2 in[4] = { { 0, 50 }, { 1, 51 }, { 10, 60 }, { 11, 61 } };
    float4 *d, out[2];
    cudaArray_t a;
    OK(cudaMallocArray(&a, &format, 2, 2, cudaArrayTextureGather));
    OK(cudaMemcpy2DToArray(a, 0, 0, in, 16, 16, 2, cudaMemcpyHostToDevice));
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof(resource));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = a;
    cudaTextureDesc how;
    memset(&how, 0, sizeof(how));
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.normalizedCoords = 1;
    cudaTextureObject_t t;
    OK(cudaCreateTextureObject(&t, &resource, &how, NULL));
    OK(cudaMalloc(&d, sizeof(out)));
    corners<<<1, 1>>>(t, d);
    OK(cudaMemcpy(out, d, sizeof(out), cudaMemcpyDeviceToHost));
    CHECK(out[0].x == 10 && out[0].y == 11 && out[0].z == 1 && out[0].w == 0);
    CHECK(out[1].x == 60 && out[1].y == 61 && out[1].z == 51 && out[1].w == 50);
    OK(cudaDestroyTextureObject(t));
    OK(cudaFreeArray(a));
    OK(cudaFree(d));
}

int main()
{
    const cudaExtent row = { WIDTH, 0, 0 }, rows = { WIDTH, 0, 2 }, square = { WIDTH, WIDTH, 0 };
    const cudaExtent squares = { WIDTH, WIDTH, 2 }, box = { WIDTH, WIDTH, WIDTH };
    const cudaExtent six = { WIDTH, WIDTH, 6 }, twelve = { WIDTH, WIDTH, 12 };
    TRY(flat, square, 0, 3, 1001, 3, 1001, 1001, 1010, 1010);
    TRY(layers, squares, cudaArrayLayered, 113, 113, 1001, 113, 1101);
    TRY(lines, rows, cudaArrayLayered, 103, 1101, 1101, 103);
    TRY(line, row, 0, 1001, 1001, 3);
    TRY(solid, box, 0, 213, 213, 1101);
    TRY(cube, six, cudaArrayCubemap, 222, 1211, 222);
    TRY(cubes, twelve, cudaArrayCubemap | cudaArrayLayered, 822, 822, 1211, 822);
    gather();
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
