/*
 * Kinds of numbers, groups and memory beyond the first program's: halves and bfloat16 (each of the 65,536 of them, there
 * and back), tiles and cooperative launches, textures, surfaces, graphs, pools, host functions, copies in 2-D and 3-D.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

// what headers of CUDA 13 and CCCL look for
__NV_SILENCE_DEPRECATION_BEGIN
__host__ __device__ double4 four(double);
__NV_SILENCE_DEPRECATION_END

namespace cg = cooperative_groups;

/* Thrust and CUB ask by these names. */
static_assert(cudaDevAttrIpcEventSupport == 125 && cudaDevAttrHostNumaMultinodeIpcSupported == 143 &&
                  cudaDevAttrOnlyPartialHostNativeAtomicSupported == 147,
              "as CUDA's documentation numbers them");

__global__ void small(unsigned short *h, unsigned short *b, float *product)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    __half x = __ushort_as_half((unsigned short)i);
    __nv_bfloat16 y = __ushort_as_bfloat16((unsigned short)i);
    h[i] = __half_as_ushort(__float2half(__half2float(x)));
    b[i] = __bfloat16_as_ushort(__float2bfloat16(__bfloat162float(y)));
    product[i] = __half2float(x * __float2half(3.0f));
}

/* Against the compiler's own type of 16 bits, on the host. */
static void small_floats()
{
    static unsigned short h[65536], b[65536];
    static float product[65536];
    unsigned short *dh, *db;
    float *dp;
    OK(cudaMalloc(&dh, sizeof(h)));
    OK(cudaMalloc(&db, sizeof(b)));
    OK(cudaMalloc(&dp, sizeof(product)));
    small<<<256, 256>>>(dh, db, dp);
    OK(cudaMemcpy(h, dh, sizeof(h), cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(b, db, sizeof(b), cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(product, dp, sizeof(product), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (unsigned i = 0; i < 65536; i++) {
        bool h_nan = (i & 0x7c00) == 0x7c00 && (i & 0x3ff), b_nan = (i & 0x7f80) == 0x7f80 && (i & 0x7f);
        _Float16 x = __builtin_bit_cast(_Float16, (unsigned short)i);
        float want = (float)(_Float16)((float)x * 3.0f);
        wrong += h[i] != (h_nan ? 0x7fff : i) || b[i] != (b_nan ? 0x7fff : i);
        wrong += h_nan ? product[i] == product[i] : product[i] != want;
        wrong += !h_nan && __half2float(__ushort_as_half((unsigned short)i)) != (float)x;
    }
    CHECK(wrong == 0);
    OK(cudaFree(dh));
    OK(cudaFree(db));
    OK(cudaFree(dp));
}

__global__ void groups(int *sums, int *phases)
{
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int v = cg::reduce(tile, (int)threadIdx.x, cg::plus<int>());
    if (tile.thread_rank() == 0)
        sums[tile.meta_group_rank()] = v;
    cg::grid_group grid = cg::this_grid();
    for (int phase = 0; phase < 3; phase++) {
        if (threadIdx.x == 0)
            phases[phase * gridDim.x + blockIdx.x] = phase ? phases[(phase - 1) * gridDim.x + (blockIdx.x + 1) % gridDim.x] + 1 : (int)blockIdx.x;
        if (phase == 1)
            grid.barrier_wait(grid.barrier_arrive());
        else
            grid.sync();
    }
}

__global__ void copied(const int *in, int *out)
{
    __shared__ int s[100];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, s, 60, in, 100); // elements: 60
    cg::memcpy_async(block, s + 60, in + 60, 40 * sizeof(int));
    cg::wait(block);
    const int last = cg::invoke_one_broadcast(cg::tiled_partition<32>(block), [] { return 99; });
    out[cg::thread_block::thread_rank()] = s[last - threadIdx.x];
}

static void group_copies()
{
    int *p;
    OK(cudaMallocManaged(&p, 164 * sizeof(int)));
    for (int i = 0; i < 100; i++)
        p[i] = i * i;
    copied<<<1, 64>>>(p, p + 100);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        CHECK(p[100 + i] == (99 - i) * (99 - i));
    OK(cudaFree(p));
}

static void cooperation()
{
    int *sums, *phases, hs[8], hp[12];
    OK(cudaMalloc(&sums, sizeof(hs)));
    OK(cudaMalloc(&phases, sizeof(hp)));
    void *args[] = { &sums, &phases };
    OK(cudaLaunchCooperativeKernel(groups, dim3(4), dim3(64), args, 0, 0));
    OK(cudaMemcpy(hs, sums, sizeof(hs), cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(hp, phases, sizeof(hp), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; i++)
        CHECK(hs[i] == 8 * (8 * i) + 28);
    for (int i = 0; i < 4; i++)
        CHECK(hp[8 + i] == (i + 2) % 4 + 2);
    OK(cudaFree(sums));
    OK(cudaFree(phases));
}

__global__ void sample(cudaTextureObject_t t, cudaSurfaceObject_t s, float *out)
{
    int x = (int)threadIdx.x % 4, y = (int)threadIdx.x / 4;
    out[threadIdx.x] = tex2D<float>(t, (float)x + 0.5f, (float)y + 0.5f) + 100 * surf2Dread<float>(s, x * 4, y);
    surf2Dwrite((float)threadIdx.x, s, x * 4, y);
}

static void textures()
{
    float in[8], out[8], *d;
    for (int i = 0; i < 8; i++)
        in[i] = (float)(i * i);
    cudaArray_t a;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    OK(cudaMallocArray(&a, &format, 4, 2, cudaArraySurfaceLoadStore));
    OK(cudaMemcpy2DToArray(a, 0, 0, in, 16, 16, 2, cudaMemcpyHostToDevice));
    cudaResourceDesc r;
    memset(&r, 0, sizeof(r));
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    cudaTextureDesc td;
    memset(&td, 0, sizeof(td));
    td.filterMode = cudaFilterModePoint;
    td.addressMode[0] = td.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t t;
    cudaSurfaceObject_t s;
    OK(cudaCreateTextureObject(&t, &r, &td, NULL));
    OK(cudaCreateSurfaceObject(&s, &r));
    OK(cudaMalloc(&d, sizeof(out)));
    sample<<<1, 8>>>(t, s, d);
    OK(cudaMemcpy(out, d, sizeof(out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; i++)
        CHECK(out[i] == 101 * in[i]);
    OK(cudaMemcpy2DFromArray(out, 16, a, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; i++)
        CHECK(out[i] == (float)i);
    OK(cudaDestroyTextureObject(t));
    OK(cudaDestroySurfaceObject(s));
    OK(cudaFreeArray(a));
    OK(cudaFree(d));
}

__global__ void increment(int *v, int by)
{
    v[threadIdx.x] += by;
}

static void count_host(void *data)
{
    ++*(int *)data;
}

static void called_back(cudaStream_t, cudaError_t status, void *data)
{
    *(int *)data += status == cudaSuccess ? 10 : 1000;
}

static void graphs()
{
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t e;
    int *v, host[32], calls = 0;
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaMallocAsync(&v, sizeof(host), s));
    OK(cudaMemsetAsync(v, 0, sizeof(host), s));
    OK(cudaStreamSynchronize(s));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    increment<<<1, 32, 0, s>>>(v, 2);
    increment<<<1, 32, 0, s>>>(v, 3);
    OK(cudaLaunchHostFunc(s, count_host, &calls));
    OK(cudaStreamEndCapture(s, &g));
    OK(cudaGraphInstantiate(&e, g, 0));
    for (int i = 0; i < 4; i++)
        OK(cudaGraphLaunch(e, s));
    OK(cudaStreamAddCallback(s, called_back, &calls, 0));
    OK(cudaMemcpyAsync(host, v, sizeof(host), cudaMemcpyDeviceToHost, s));
    OK(cudaStreamSynchronize(s));
    CHECK(host[0] == 20 && host[31] == 20 && calls == 14);
    OK(cudaGraphExecDestroy(e));
    OK(cudaGraphDestroy(g));
    OK(cudaFreeAsync(v, s));
    OK(cudaStreamDestroy(s));
}

static void wait_for_host(void *data)
{
    while (!__atomic_load_n((int *)data, __ATOMIC_ACQUIRE))
        sched_yield();
}

/* That work is not done is an answer, and no error that stays. */
static void unfinished()
{
    cudaStream_t s;
    cudaEvent_t e;
    int go = 0;
    OK(cudaStreamCreate(&s));
    OK(cudaEventCreate(&e));
    OK(cudaLaunchHostFunc(s, wait_for_host, &go));
    OK(cudaEventRecord(e, s));
    CHECK(cudaStreamQuery(s) == cudaErrorNotReady && cudaEventQuery(e) == cudaErrorNotReady);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    OK(cudaStreamSynchronize(s));
    OK(cudaEventQuery(e));
    OK(cudaGetLastError());
    OK(cudaEventDestroy(e));
    OK(cudaStreamDestroy(s));
}

static void boxes()
{
    char in[3][5][7], out[3][5][7];
    cudaPitchedPtr box;
    for (int i = 0; i < 105; i++)
        ((char *)in)[i] = (char)i;
    memset(out, 0, sizeof(out));
    OK(cudaMalloc3D(&box, make_cudaExtent(7, 5, 3)));
    CHECK(box.pitch >= 7 && box.ysize == 5);
    OK(cudaMemset3D(box, 9, make_cudaExtent(7, 5, 3)));
    cudaMemcpy3DParms p;
    memset(&p, 0, sizeof(p));
    p.srcPtr = make_cudaPitchedPtr(in, 7, 7, 5);
    p.dstPtr = box;
    p.extent = make_cudaExtent(7, 4, 3);
    p.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&p));
    p.srcPtr = box;
    p.dstPtr = make_cudaPitchedPtr(out, 7, 7, 5);
    p.extent = make_cudaExtent(7, 5, 3);
    p.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&p));
    int wrong = 0;
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 7; x++)
                wrong += out[z][y][x] != (y < 4 ? in[z][y][x] : 9);
    CHECK(wrong == 0);
    CHECK(cudaMemcpy2D(out, 3, box.ptr, box.pitch, 7, 2, cudaMemcpyDeviceToHost) == cudaErrorInvalidPitchValue);
    OK(cudaFree(box.ptr));
}

int main()
{
    cuDoubleComplex q = cuCdiv(make_cuDoubleComplex(-5, 10), make_cuDoubleComplex(3, 4));
    CHECK(q.x > 1 - 1e-15 && q.x < 1 + 1e-15 && q.y > 2 - 1e-15 && q.y < 2 + 1e-15 && CUDART_PI > 3.14);
    small_floats();
    cooperation();
    group_copies();
    textures();
    graphs();
    unfinished();
    boxes();
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
