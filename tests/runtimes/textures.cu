/* Texture and surface objects: an array with filtering, a linear buffer, a layered array written through a surface. */
#include "check.cuh"

#define W 64
#define H 32

__global__ void from_array(cudaTextureObject_t t, float *out)
{
    int x = threadIdx.x, y = blockIdx.x;
    out[y * W + x] = tex2D<float>(t, x + 1.0f, y + 0.5f); /* half way between two texels */
}

__global__ void from_linear(cudaTextureObject_t t, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1Dfetch<int>(t, W * H - 1 - i);
}

__global__ void to_surface(cudaSurfaceObject_t s)
{
    surf2DLayeredwrite((int)(threadIdx.x + 100 * blockIdx.x + 10000 * blockIdx.y), s, threadIdx.x * 4, blockIdx.x,
                       blockIdx.y);
}

static void filtered(float *out)
{
    block<float> host(W * H), got(W * H);
    cudaArray_t array;
    cudaTextureObject_t t;
    cudaResourceDesc resource = {};
    cudaTextureDesc how = {};
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    for (int i = 0; i < W * H; i++)
        host[i] = (float)(scrambled(i) % 64);
    MUST(cudaMallocArray(&array, &format, W, H));
    SAY(cudaMemcpy2DToArray(array, 0, 0, host.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModeLinear;
    MUST(cudaCreateTextureObject(&t, &resource, &how, NULL));
    from_array<<<H, W>>>(t, out);
    SAY(cudaMemcpy(got.data(), out, W * H * 4, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            float next = host[y * W + (x + 1 < W ? x + 1 : x)];
            wrong += got[y * W + x] != (host[y * W + x] + next) / 2;
        }
    CHECK(wrong == 0);
    cudaChannelFormatDesc back;
    SAY(cudaGetChannelDesc(&back, array));
    CHECK(back.x == 32 && back.f == cudaChannelFormatKindFloat);
    SAY(cudaDestroyTextureObject(t));
    SAY(cudaFreeArray(array));
}

static void linear(int *out)
{
    block<int> host(W * H), got(W * H);
    int *p;
    cudaTextureObject_t t;
    cudaResourceDesc resource = {};
    cudaTextureDesc how = {};
    for (int i = 0; i < W * H; i++)
        host[i] = (int)scrambled(i);
    MUST(cudaMalloc(&p, W * H * 4));
    SAY(cudaMemcpy(p, host.data(), W * H * 4, cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = p;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = W * H * 4;
    MUST(cudaCreateTextureObject(&t, &resource, &how, NULL));
    from_linear<<<H, W>>>(t, out);
    SAY(cudaMemcpy(got.data(), out, W * H * 4, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < W * H; i++)
        wrong += got[i] != host[W * H - 1 - i];
    CHECK(wrong == 0);
    SAY(cudaDestroyTextureObject(t));
    SAY(cudaFree(p));
}

static void layered(void)
{
    block<int> got(W * H * 3, -1);
    cudaArray_t array;
    cudaSurfaceObject_t s;
    cudaResourceDesc resource = {};
    cudaMemcpy3DParms copy = {};
    cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    MUST(cudaMalloc3DArray(&array, &format, make_cudaExtent(W, H, 3), cudaArrayLayered | cudaArraySurfaceLoadStore));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    MUST(cudaCreateSurfaceObject(&s, &resource));
    to_surface<<<dim3(H, 3), W>>>(s);
    SAY(cudaGetLastError());
    copy.srcArray = array;
    copy.dstPtr = make_cudaPitchedPtr(got.data(), W * 4, W, H);
    copy.extent = make_cudaExtent(W, H, 3);
    copy.kind = cudaMemcpyDeviceToHost;
    SAY(cudaMemcpy3D(&copy));
    int wrong = 0;
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                wrong += got[(z * H + y) * W + x] != x + 100 * y + 10000 * z;
    CHECK(wrong == 0);
    SAY(cudaDestroySurfaceObject(s));
    SAY(cudaFreeArray(array));
}

int main()
{
    void *out;
    MUST(cudaMalloc(&out, W * H * 4));
    filtered((float *)out);
    linear((int *)out);
    layered();
    SAY(cudaFree(out));
    return verdict();
}
