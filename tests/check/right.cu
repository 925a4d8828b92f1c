// Kernels without a mistake, each near to one: the checker has to say nothing.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace cg = cooperative_groups;

static void good(cudaError_t r, int line)
{
    if (r == cudaSuccess)
        return;
    printf("line %d: %s\n", line, cudaGetErrorString(r));
    exit(3);
}
#define GOOD(call) good(call, __LINE__)
#define FULL       0xffffffffu

template <typename T> static T *device(size_t n, int byte = 0)
{
    T *p;
    GOOD(cudaMalloc(&p, n * sizeof(T)));
    if (byte >= 0)
        GOOD(cudaMemset(p, byte, n * sizeof(T)));
    return p;
}

// ---- barriers and shared memory ----

__global__ void reduce(const int *a, int *out)
{
    __shared__ int s[256];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    for (int n = 128; n > 0; n /= 2) {
        if (threadIdx.x < n)
            s[threadIdx.x] += s[threadIdx.x + n];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *out = s[0];
}

__global__ void reduce_last_warp(const int *a, int *out)
{
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    for (int n = 128; n > 32; n /= 2) {
        if (t < n)
            s[t] += s[t + n];
        __syncthreads();
    }
    if (t < 32) {
        int v = s[t] + s[t + 32];
        __syncwarp();
        for (int n = 16; n > 0; n /= 2) {
            s[t] = v;
            __syncwarp();
            v += s[(t + n) % 32];
            __syncwarp();
        }
        if (t == 0)
            *out = v;
    }
}

__global__ void reduce_volatile(const int *a, int *out)
{
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    if (t < 32)
        for (int n = 32; n > 0; n /= 2)
            s[t] += s[t + n < 64 ? t + n : t];
    if (t == 0)
        *out = s[0];
}

__global__ void reduce_shuffles(const int *a, int *out)
{
    __shared__ int sums[8];
    int v = a[threadIdx.x];
    for (int n = 16; n > 0; n /= 2)
        v += __shfl_down_sync(FULL, v, n);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 8) {
        v = sums[threadIdx.x];
        for (int n = 4; n > 0; n /= 2)
            v += __shfl_down_sync(0xff, v, n);
        if (threadIdx.x == 0)
            *out = v;
    }
}

__global__ void two_buffers(const int *a, int *out)
{
    __shared__ int s[2][64];
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        s[i % 2][threadIdx.x] = a[i * 64 + threadIdx.x];
        __syncthreads();
        sum += s[i % 2][63 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}

__global__ void transpose(const float *a, float *out, int n)
{
    __shared__ float tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < n && y < n)
        tile[threadIdx.y][threadIdx.x] = a[y * n + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    if (x < n && y < n)
        out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void dynamic_in_two_parts(const int *a, double *out)
{
    extern __shared__ double d[];
    int *i = (int *)(d + blockDim.x);
    i[threadIdx.x] = a[threadIdx.x];
    d[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = d[blockDim.x - 1 - threadIdx.x] + i[(threadIdx.x + 1) % blockDim.x];
}

__global__ void bytes_of_neighbours(unsigned char *out)
{
    __shared__ unsigned char s[256];
    s[threadIdx.x] = threadIdx.x;
    s[threadIdx.x] += 1;
    __syncthreads();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

__global__ void all_say_the_same(const int *a, int *out)
{
    __shared__ int found;
    found = 0;
    __syncthreads();
    if (a[threadIdx.x] >= 0)
        found = 1;
    __syncthreads();
    out[threadIdx.x] = found;
}

__global__ void scan(const int *a, int *out)
{
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    for (int n = 1; n < 128; n *= 2) {
        int v = t >= n ? s[t - n] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    out[t] = s[t];
}

__global__ void named_barriers(int *out)
{
    __shared__ int s[128];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 64)
        asm volatile("bar.sync 1, 64;" ::: "memory");
    else
        asm volatile("bar.sync 2, 64;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x ^ 63];
}

__global__ void produce_and_consume(int *out)
{
    __shared__ int s[32];
    if (threadIdx.x < 32) {
        for (int i = 0; i < 4; i++) {
            asm volatile("bar.sync 1, 64;" ::: "memory"); /* it is empty */
            s[threadIdx.x] = i * 100 + threadIdx.x;
            asm volatile("bar.arrive 2, 64;" ::: "memory"); /* it is full */
        }
    } else {
        int sum = 0;
        for (int i = 0; i < 4; i++) {
            asm volatile("bar.arrive 1, 64;" ::: "memory");
            asm volatile("bar.sync 2, 64;" ::: "memory");
            sum += s[63 - threadIdx.x];
        }
        out[threadIdx.x - 32] = sum;
    }
}

__global__ void early_return(const int *a, int *out, int n)
{
    __shared__ int s[64];
    if (threadIdx.x >= n)
        return;
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}

__global__ void voting_barriers(const int *a, int *out)
{
    __shared__ int s[64];
    s[threadIdx.x] = a[threadIdx.x];
    int any = __syncthreads_or(a[threadIdx.x] > 60);
    out[threadIdx.x] = any + s[63 - threadIdx.x];
}

// ---- warps ----

__global__ void exchange_in_a_warp(int *out)
{
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    int v = s[threadIdx.x ^ 1];
    __syncwarp();
    s[threadIdx.x ^ 1] = v;
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x];
}

__global__ void halves_of_a_warp(int *out)
{
    __shared__ int s[32];
    int lane = threadIdx.x;
    if (lane < 16) {
        s[lane] = lane;
        __syncwarp(0x0000ffff);
        out[lane] = s[15 - lane];
    } else {
        s[lane] = -lane;
        __syncwarp(0xffff0000);
        out[lane] = s[47 - lane];
    }
    __syncwarp();
    s[31 - lane] = 0;
}

__global__ void chain_of_lanes(int *out)
{
    __shared__ int s[32];
    int lane = threadIdx.x;
    if (lane == 0)
        s[0] = 7;
    __syncwarp(lane < 2 ? 3u : 0u | 1u << lane); /* 0 tells 1 */
    if (lane == 1 || lane == 2)
        __syncwarp(6); /* 1 tells 2 */
    if (lane == 2)
        out[0] = s[0];
}

__global__ void tiles(int *out)
{
    __shared__ int s[64];
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
    s[threadIdx.x] = threadIdx.x;
    tile.sync();
    out[threadIdx.x] = s[threadIdx.x ^ 7];
    tile.sync();
    s[threadIdx.x ^ 3] = 0;
}

__global__ void coalesced(const int *a, int *out)
{
    __shared__ int s[32];
    if (a[threadIdx.x] % 2) {
        cg::coalesced_group g = cg::coalesced_threads();
        s[g.thread_rank()] = threadIdx.x;
        g.sync();
        out[threadIdx.x] = s[g.size() - 1 - g.thread_rank()];
    } else {
        out[threadIdx.x] = 0;
    }
}

__global__ void block_group(int *out)
{
    cg::thread_block b = cg::this_thread_block();
    __shared__ int s[96];
    s[b.thread_rank()] = b.thread_rank();
    b.sync();
    out[b.thread_rank()] = s[95 - b.thread_rank()];
}

// ---- atomics, flags ----

__global__ void histogram(const int *a, int *out)
{
    __shared__ int bins[16];
    if (threadIdx.x < 16)
        bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[a[threadIdx.x] % 16], 1);
    __syncthreads();
    if (threadIdx.x < 16)
        atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

__global__ void flag_with_fences(int *out)
{
    __shared__ int data[32];
    __shared__ volatile int flag;
    if (threadIdx.x == 0)
        flag = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        data[threadIdx.x] = threadIdx.x * 3;
        __threadfence_block();
        __syncwarp();
        if (threadIdx.x == 0) {
            __threadfence_block();
            flag = 1;
        }
    } else {
        while (!flag)
            ;
        __threadfence_block();
        out[threadIdx.x - 32] = data[63 - threadIdx.x];
    }
}

__global__ void volatile_flags(int *out)
{
    __shared__ volatile int value, turn;
    if (threadIdx.x == 0) {
        value = 0;
        turn = 0;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        int me = threadIdx.x / 32;
        while (turn != me)
            ;
        value = value + me;
        turn = me + 1;
    }
    __syncthreads();
    out[threadIdx.x] = value;
}

__global__ void lock_of_the_block(int *out)
{
    __shared__ int lock, sum;
    if (threadIdx.x == 0)
        lock = sum = 0;
    __syncthreads();
    for (bool done = false; !done;)
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence_block();
            sum += threadIdx.x;
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    __syncthreads();
    out[threadIdx.x] = sum;
}

__device__ unsigned arrived;

__global__ void last_block(const int *a, int *parts, int *out)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = a[blockIdx.x];
        __threadfence();
        last = atomicAdd(&arrived, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < gridDim.x; i++)
            sum += ((volatile int *)parts)[i];
        *out = sum;
        arrived = 0;
    }
}

__global__ void atomics_on_memory(unsigned *n, float *f, unsigned long long *w)
{
    atomicAdd(n, 1);
    atomicMax(n + 1, threadIdx.x);
    atomicAdd(f, 1.0f);
    atomicExch(w, threadIdx.x);
    atomicCAS(n + 2, 0, threadIdx.x);
}

// Lanes of a warp store to one place; whose value stays is as without the checker.
__global__ void one_place(int *n, longlong2 *wide)
{
    int t = threadIdx.x;
    n[0] = t + 1;
    n[1 + t % 3] = t;
    *wide = make_longlong2(t, t);
}

static void check_one_place(void)
{
    int *n = device<int>(4), got[4];
    longlong2 *wide = device<longlong2>(1), last;
    one_place<<<1, 32>>>(n, wide);
    GOOD(cudaMemcpy(got, n, sizeof(got), cudaMemcpyDeviceToHost));
    GOOD(cudaMemcpy(&last, wide, sizeof(last), cudaMemcpyDeviceToHost));
    if (got[0] != 1 || got[1] != 0 || got[2] != 1 || got[3] != 2 || last.x != 24 || last.y != 24) {
        printf("one_place: %d %d %d %d %lld %lld\n", got[0], got[1], got[2], got[3], last.x, last.y);
        exit(3);
    }
}

// ---- bounds, written memory ----

__global__ void guarded(int *a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = i;
}

__global__ void strided(int *a, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        a[i]++;
}

__global__ void pitched(const char *a, size_t pitch, int *out)
{
    out[threadIdx.y * 4 + threadIdx.x] = ((const int *)(a + threadIdx.y * pitch))[threadIdx.x];
}

__global__ void vectors(const float4 *a, float4 *out)
{
    float4 v = a[threadIdx.x];
    out[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
}

struct holes {
    char c;
    double d;
    short s;
};

__global__ void make_holes(holes *h)
{
    holes one;
    one.c = 1;
    one.d = 2;
    one.s = threadIdx.x;
    h[threadIdx.x] = one;
}

__global__ void copy_holes(const holes *h, holes *out, int *sums)
{
    holes one = h[threadIdx.x];
    out[threadIdx.x] = one;
    sums[threadIdx.x] = one.c + one.s + (int)one.d;
}

__global__ void set_members(holes *h)
{
    h[threadIdx.x].c = 1;
    h[threadIdx.x].d = 2;
    h[threadIdx.x].s = 3;
}

__global__ void local_arrays(const int *a, int *out)
{
    int v[32];
    for (int i = 0; i < 32; i++)
        v[i] = a[i] + threadIdx.x;
    int sum = 0;
    for (int i = 0; i < 32; i++)
        sum += v[(a[i] * 7 + threadIdx.x) % 32];
    out[threadIdx.x] = sum;
}

static __device__ __attribute__((noinline)) int fibonacci(int n)
{
    volatile int keep[3] = { n, n + 1, n + 2 };
    return n < 2 ? n : fibonacci(keep[0] - 1) + fibonacci(keep[2] - 4);
}

__global__ void recursion(int *out)
{
    out[threadIdx.x] = fibonacci(threadIdx.x % 8);
}

__device__ int initial[5] = { 1, 2, 3, 4, 5 };
__device__ int zeros[100];
__constant__ float factors[4];

__global__ void variables(int *out)
{
    int t = threadIdx.x;
    out[t] = initial[t % 5] + zeros[t] + (int)factors[t % 4];
    zeros[t] = t;
}

__global__ void textures(cudaTextureObject_t t, float *out)
{
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, 0.5f) + tex2D<float>(t, -100.0f, 1000.0f);
}

__global__ void surfaces(cudaSurfaceObject_t s)
{
    float v;
    surf2Dread(&v, s, threadIdx.x * 4, 0);
    surf2Dwrite(v + 1, s, threadIdx.x * 4, 1);
}

__global__ void pinned(const int *a, int *out)
{
    out[threadIdx.x] = a[threadIdx.x] + 1;
}

__global__ void grid_wide(int *a, int *out)
{
    cg::grid_group g = cg::this_grid();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    a[i] = i;
    g.sync();
    out[i] = a[n - 1 - i];
}

__global__ void prints(int n)
{
    if (threadIdx.x < n)
        printf("%d", n);
}

static void shared_memory(const int *a, int *out)
{
    reduce<<<1, 256>>>(a, out);
    reduce_last_warp<<<1, 256>>>(a, out);
    reduce_volatile<<<1, 64>>>(a, out);
    reduce_shuffles<<<1, 256>>>(a, out);
    two_buffers<<<1, 64>>>(a, out);
    transpose<<<dim3(3, 3), dim3(16, 16)>>>(device<float>(40 * 40), device<float>(40 * 40, -1), 40);
    dynamic_in_two_parts<<<1, 50, 600>>>(a, device<double>(50, -1));
    bytes_of_neighbours<<<1, 256>>>(device<unsigned char>(256, -1));
    all_say_the_same<<<1, 256>>>(a, out);
    scan<<<1, 128>>>(a, out);
    named_barriers<<<1, 128>>>(out);
    produce_and_consume<<<1, 64>>>(out);
    early_return<<<1, 64>>>(a, out, 39);
    voting_barriers<<<1, 64>>>(a, out);
    exchange_in_a_warp<<<1, 64>>>(out);
    halves_of_a_warp<<<1, 32>>>(out);
    chain_of_lanes<<<1, 32>>>(out);
    tiles<<<1, 64>>>(out);
    coalesced<<<1, 32>>>(a, out);
    block_group<<<1, 96>>>(out);
}

static void memory(const int *a, int *out)
{
    histogram<<<2, 128>>>(a, device<int>(16));
    flag_with_fences<<<1, 64>>>(out);
    volatile_flags<<<1, 128>>>(out);
    lock_of_the_block<<<1, 40>>>(out);
    last_block<<<7, 32>>>(a, device<int>(7, -1), out);
    atomics_on_memory<<<3, 40>>>(device<unsigned>(3), device<float>(1), device<unsigned long long>(1));
    check_one_place();
    int *made = device<int>(1000, -1);
    guarded<<<8, 128>>>(made, 1000);
    strided<<<2, 64>>>(made, 1000);
    char *rows;
    size_t pitch;
    GOOD(cudaMallocPitch((void **)&rows, &pitch, 16, 4));
    GOOD(cudaMemset2D(rows, pitch, 0, 16, 4));
    pitched<<<1, dim3(4, 4)>>>(rows, pitch, out);
    float4 *v = device<float4>(33, -1);
    static float host[33 * 4];
    GOOD(cudaMemcpy(v, host, sizeof(host), cudaMemcpyHostToDevice));
    vectors<<<1, 33>>>(v, device<float4>(33, -1));
    holes *h = device<holes>(20, -1), *h2 = device<holes>(20, -1);
    make_holes<<<1, 20>>>(h);
    copy_holes<<<1, 20>>>(h, h2, out);
    copy_holes<<<1, 20>>>(h2, h, out);
    set_members<<<1, 20>>>(h = device<holes>(20, -1));
    copy_holes<<<1, 20>>>(h, h2, out);
    local_arrays<<<1, 32>>>(a, out);
    recursion<<<1, 32>>>(out);
    const float f[4] = { 1, 2, 3, 4 };
    GOOD(cudaMemcpyToSymbol(factors, f, sizeof(f)));
    variables<<<1, 100>>>(out);
    int *freed = device<int>(64);
    GOOD(cudaFree(freed));
    int *again = device<int>(64, -1);
    guarded<<<1, 64>>>(again, 64);
    strided<<<1, 64>>>(again, 64);
}

static void other_memory(int *out)
{
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    static float texels[16 * 4];
    GOOD(cudaMallocArray(&array, &format, 16, 4, cudaArraySurfaceLoadStore));
    GOOD(cudaMemcpy2DToArray(array, 0, 0, texels, 64, 64, 4, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description = {};
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
    GOOD(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    GOOD(cudaCreateSurfaceObject(&surface, &resource));
    textures<<<1, 16>>>(texture, device<float>(16, -1));
    surfaces<<<1, 16>>>(surface);
    int *host, *managed, *pooled;
    GOOD(cudaMallocHost((void **)&host, 400));
    GOOD(cudaMallocManaged((void **)&managed, 400));
    pinned<<<1, 100>>>(host, out);
    pinned<<<1, 100>>>(managed, out);
    GOOD(cudaMallocAsync((void **)&pooled, 400, 0));
    GOOD(cudaMemcpyAsync(pooled, host, 400, cudaMemcpyHostToDevice, 0));
    pinned<<<1, 100>>>(pooled, out);
    GOOD(cudaFreeAsync(pooled, 0));
    GOOD(cudaMallocAsync((void **)&pooled, 400, 0));
    GOOD(cudaMemcpyAsync(pooled, out, 400, cudaMemcpyDeviceToDevice, 0));
    pinned<<<1, 100>>>(pooled, out);
    GOOD(cudaFree(pooled));
    int *cells = device<int>(128, -1);
    void *arguments[] = { &cells, &out };
    GOOD(cudaLaunchCooperativeKernel((void *)grid_wide, dim3(4), dim3(32), arguments, 0, 0));
    prints<<<1, 32>>>(2);
}

int main(void)
{
    static int host[256];
    int *a = device<int>(256), *out = device<int>(256, -1);
    for (int i = 0; i < 256; i++)
        host[i] = i;
    GOOD(cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice));
    shared_memory(a, out);
    GOOD(cudaDeviceSynchronize());
    memory(a, out);
    GOOD(cudaDeviceSynchronize());
    other_memory(out);
    GOOD(cudaDeviceSynchronize());
    puts("\npassed");
    return 0;
}
