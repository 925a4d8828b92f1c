/*
 * Surfaces of all shapes and of elements of 1 to 16 bytes: written and read again by kernels, and
 * compared with what the host copies; out of bounds clamped or left out.
 */
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#include "check.h"

enum shape { line, plane, volume, lines, planes, cube, cubes };
static const char *const names[] = { "line", "plane", "volume", "lines", "planes", "cube", "cubes" };

template <class T> __device__ T make(int n)
{
    T v;
    unsigned char *bytes = (unsigned char *)&v;
    for (unsigned i = 0; i < sizeof(T); i++)
        bytes[i] = (unsigned char)(n * 7 + i * 31);
    return v;
}

template <class T> __device__ bool equal(T a, T b)
{
    const unsigned char *x = (const unsigned char *)&a, *y = (const unsigned char *)&b;
    for (unsigned i = 0; i < sizeof(T); i++)
        if (x[i] != y[i])
            return false;
    return true;
}

// One thread per element. Readers look beyond the end of a line, too: the last element, or zero, and
// nothing is stored there.
template <class T>
__global__ void touch(cudaSurfaceObject_t s, int shape, int3 size, bool write, int *wrong)
{
    const int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= size.x * size.y * size.z)
        return;
    const int x = n % size.x, y = n / size.x % size.y, z = n / size.x / size.y;
    const int at = x * (int)sizeof(T), end = size.x * (int)sizeof(T);
    const auto clamp = cudaBoundaryModeClamp, zero = cudaBoundaryModeZero;
    const T own = make<T>(n), last = make<T>(n - x + size.x - 1), none = {};
    T got;
    bool good = true;
#define AND ,
#define TOUCH(shape, name, others)                                                                  \
    case shape:                                                                                     \
        if (write) {                                                                                \
            name##write(own, s, at others);                                                         \
            break;                                                                                  \
        }                                                                                           \
        name##read(&got, s, at others);                                                             \
        name##write(last, s, end others, zero);                                                     \
        good = equal(got, own) && equal(name##read<T>(s, end others, clamp), last) &&               \
               equal(name##read<T>(s, end others, zero), none);                                     \
        break;
    switch (shape) {
        TOUCH(line, surf1D, )
        TOUCH(plane, surf2D, AND y)
        TOUCH(volume, surf3D, AND y AND z)
        TOUCH(lines, surf1DLayered, AND z)
        TOUCH(planes, surf2DLayered, AND y AND z)
        TOUCH(cube, surfCubemap, AND y AND z)
        TOUCH(cubes, surfCubemapLayered, AND y AND z)
    }
    if (!good)
        atomicAdd(wrong, 1);
}

template <class T> static void check(enum shape shape)
{
    const int3 sizes[] = { { 37, 1, 1 }, { 19, 11, 1 }, { 9, 7, 5 }, { 21, 1, 6 },
                           { 13, 5, 4 }, { 8, 8, 6 },   { 4, 4, 12 } };
    const int3 size = sizes[shape];
    const unsigned flags = shape >= cube ? cudaArrayCubemap : 0;
    const unsigned layered = shape == lines || shape == planes || shape == cubes ? cudaArrayLayered : 0;
    const bool flat = shape == line || shape == lines;
    const cudaExtent extent = make_cudaExtent(size.x, flat ? 0 : size.y, size.z > 1 ? size.z : 0);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
    const int count = size.x * size.y * size.z;
    std::vector<unsigned char> host(count * sizeof(T));
    cudaArray_t array;
    int *wrong;
    OK(cudaMallocManaged(&wrong, sizeof(int)));
    *wrong = 0;
    OK(cudaMalloc3DArray(&array, &format, extent, flags | layered | cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t s;
    OK(cudaCreateSurfaceObject(&s, &resource));
    touch<T><<<(count + 63) / 64, 64>>>(s, shape, size, true, wrong);
    touch<T><<<(count + 63) / 64, 64>>>(s, shape, size, false, wrong);
    OK(cudaDeviceSynchronize());
    CHECK(*wrong == 0);
    cudaMemcpy3DParms copy = {};
    copy.srcArray = array;
    copy.dstPtr = make_cudaPitchedPtr(host.data(), size.x * sizeof(T), size.x, size.y);
    copy.extent = make_cudaExtent(size.x, size.y, size.z);
    copy.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&copy));
    for (int n = 0; n < count; n++)
        for (unsigned i = 0; i < sizeof(T); i++)
            if (host[n * sizeof(T) + i] != (unsigned char)(n * 7 + i * 31)) {
                printf("%s, %zu bytes: element %d\n", names[shape], sizeof(T), n);
                failures++;
                n = count;
                break;
            }
    OK(cudaDestroySurfaceObject(s));
    OK(cudaFreeArray(array));
    OK(cudaFree(wrong));
}

int main()
{
    for (int shape = line; shape <= cubes; shape++) {
        check<unsigned char>((enum shape)shape);
        check<uchar4>((enum shape)shape);
        check<short>((enum shape)shape);
        check<float>((enum shape)shape);
        check<float2>((enum shape)shape);
        check<float4>((enum shape)shape);
    }
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
