// Kernels with one mistake each. The line that has it says what the checker has to tell: //! KIND, by whom. With `ends`
// as argument the program runs what ends its session, with `no-bounds` what does not touch what it has not.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace cg = cooperative_groups;

#define NOINLINE __attribute__((noinline))

static void good(cudaError_t r, int line)
{
    if (r == cudaSuccess)
        return;
    printf("line %d: %s\n", line, cudaGetErrorString(r));
    exit(3);
}
#define GOOD(call) good(call, __LINE__)

template <typename T> static T *device(size_t n, int byte = 0)
{
    T *p;
    GOOD(cudaMalloc(&p, n * sizeof(T)));
    if (byte >= 0)
        GOOD(cudaMemset(p, byte, n * sizeof(T)));
    return p;
}

// ---- bounds ----

__global__ void write_past_the_end(int *a)
{
    a[threadIdx.x] = 1; //! Invalid __global__ write of size 4 bytes, thread (63,0,0) in block (0,0,0)
}

__global__ void read_past_the_end(const int *a, int *out)
{
    out[threadIdx.x] = a[threadIdx.x + 1]; //! Invalid __global__ read of size 4 bytes, thread (31,0,0) in block (0,0,0)
}

__global__ void write_before_the_start(int *a)
{
    a[(int)threadIdx.x - 1] = 1; //! Invalid __global__ write of size 4 bytes, thread (0,0,0) in block (0,0,0)
}

__global__ void one_byte_too_far(char *a)
{
    a[threadIdx.x] = 1; //! Invalid __global__ write of size 1 bytes, thread (13,0,0) in block (0,0,0)
}

__global__ void vector_over_the_end(const float4 *a, float *out)
{
    float4 v = a[threadIdx.x]; //! Invalid __global__ read of size 16 bytes, thread (1,0,0) in block (0,0,0)
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

__global__ void floats_as_doubles(double *a)
{
    a[blockIdx.x * blockDim.x + threadIdx.x] = 0; //! Invalid __global__ write of size 8 bytes, thread (16,0,0) in block (1,0,0)
}

__global__ void row_too_many(char *a, size_t pitch)
{
    int *row = (int *)(a + threadIdx.y * pitch);
    row[threadIdx.x] = 1; //! Invalid __global__ write of size 4 bytes, thread (0,4,0) in block (0,0,0)
}

__global__ void atomic_past_the_end(unsigned *bins, const unsigned char *data)
{
    atomicAdd(&bins[data[threadIdx.x]], 1); //! Invalid __global__ atomic of size 4 bytes, thread (7,0,0) in block (0,0,0)
}

__global__ void null_pointer(int *a)
{
    if (threadIdx.x == 5)
        *a = 1; //! Invalid __global__ write of size 4 bytes, thread (5,0,0) in block
}

__global__ void host_pointer(const int *a, int *out)
{
    out[threadIdx.x] = a[threadIdx.x]; //! Invalid __global__ read of size 4 bytes, thread (0,0,0) in block (0,0,0)
}

__global__ void freed_memory(int *a)
{
    a[threadIdx.x] = 1; //! Invalid __global__ write of size 4 bytes, thread (0,0,0) in block (0,0,0)
}

__global__ void freed_in_a_stream(const int *a, int *out)
{
    out[threadIdx.x] = a[threadIdx.x]; //! Invalid __global__ read of size 4 bytes, thread (0,0,0) in block (0,0,0)
}

/* What is behind it runs when the program has long gone on. */
__global__ void takes_a_while()
{
    for (volatile int i = 0; i < 200000; i++)
        ;
}

__device__ int table[10];

__global__ void variable_past_the_end(int n)
{
    if (threadIdx.x < n)
        table[threadIdx.x] = 1; //! Invalid __global__ write of size 4 bytes, thread (10,0,0) in block (0,0,0)
}

__constant__ int constants[7];

__global__ void constant_past_the_end(int *out)
{
    out[threadIdx.x] = constants[threadIdx.x]; //! Invalid __global__ read of size 4 bytes, thread (7,0,0) in block (0,0,0)
}

__global__ void shared_past_the_end(int *out, int n)
{
    __shared__ int s[32];
    s[threadIdx.x + n] = 1; //! Invalid __shared__ write of size 4 bytes, thread (31,0,0) in block (0,0,0)
    __syncthreads();
    out[threadIdx.x] = threadIdx.x < n ? 0 : s[threadIdx.x];
}

__global__ void too_little_dynamic(int *out)
{
    extern __shared__ int d[];
    d[threadIdx.x] = 2; //! Invalid __shared__ write of size 4 bytes, thread (20,0,0) in block (0,0,0)
    __syncthreads();
    out[threadIdx.x] = d[0];
}

static __device__ NOINLINE void put(int *where, int value)
{
    *where = value; //! Invalid __shared__ write of size 4 bytes, thread (9,0,0) in block (0,0,0)
}

__global__ void shared_by_a_pointer(int *out, int n)
{
    __shared__ int s[8];
    if (threadIdx.x == 9)
        put(&s[n], 1);
    out[threadIdx.x] = n;
}

__global__ void local_past_the_end(int *out, int n)
{
    volatile int a[16];
    for (int i = 0; i < 16; i++)
        a[i] = i;
    out[0] = a[n]; //! Invalid __local__ read of size 4 bytes, thread (0,0,0) in block (0,0,0)
}

__global__ void managed_past_the_end(int *a)
{
    a[threadIdx.x]++; //! Invalid __global__ read of size 4 bytes, thread (3,0,0) in block (0,0,0)
                      //!- Invalid __global__ write of size 4 bytes, thread (3,0,0) in block (0,0,0)
}

__global__ void pinned_past_the_end(int *a)
{
    a[threadIdx.x] = 1; //! Invalid __global__ write of size 4 bytes, thread (5,0,0) in block (0,0,0)
}

__global__ void pool_past_the_end(int *a)
{
    a[threadIdx.x] = 1; //! Invalid __global__ write of size 4 bytes, thread (6,0,0) in block (0,0,0)
}

// ---- alignment ----

__global__ void misaligned_int(const char *a, int *out)
{
    out[0] = *(const int *)(a + 1); //! Invalid __global__ read of size 4 bytes, thread (0,0,0) in block (0,0,0)
}

__global__ void misaligned_vector(float *a)
{
    *(float4 *)(a + threadIdx.x + 1) = make_float4(1, 2, 3, 4); //! Invalid __global__ write of size 16 bytes, thread (0,0,0) in block (0,0,0)
}

__global__ void misaligned_shared(int *out, int n)
{
    __shared__ char s[64];
    *(volatile short *)(s + n) = 1; //! Invalid __shared__ write of size 2 bytes, thread (0,0,0) in block (0,0,0)
    out[0] = s[n & 2];               //! Uninitialized __shared__ memory read of size 1 bytes, thread (0,0,0) in block (0,0,0)
}

// ---- never written ----

__global__ void read_of_nothing(const int *a, int *out)
{
    out[threadIdx.x] = a[threadIdx.x]; //! Uninitialized __global__ memory read of size 4 bytes, thread (0,0,0) in block (0,0,0)
}

__global__ void memset_of_too_little(const int *a, int *out)
{
    out[threadIdx.x] = a[threadIdx.x]; //! Uninitialized __global__ memory read of size 4 bytes, thread (8,0,0) in block (0,0,0)
}

__global__ void count_from_nothing(unsigned *n)
{
    atomicAdd(n, 1); //! Uninitialized __global__ memory read of size 4 bytes, thread (0,0,0) in block (0,0,0)
}

__global__ void shared_of_nothing(int *out)
{
    __shared__ int s[64];
    if (threadIdx.x != 17)
        s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1]; //! Uninitialized __shared__ memory read of size 4 bytes, thread (16,0,0) in block (0,0,0)
}

__global__ void dynamic_of_nothing(int *out, int n)
{
    extern __shared__ int d[];
    if (threadIdx.x < n)
        d[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = d[threadIdx.x]; //! Uninitialized __shared__ memory read of size 4 bytes, thread (30,0,0) in block (0,0,0)
}

__global__ void local_of_nothing(int *out, int n)
{
    volatile int a[16];
    a[n] = 1;
    out[0] = a[n + 1]; //! Uninitialized __local__ memory read of size 4 bytes, thread (0,0,0) in block (0,0,0)
}

__global__ void copy_of_nothing(const int *a, int *out)
{
    out[threadIdx.x] = a[threadIdx.x]; //! Uninitialized __global__ memory read of size 4 bytes, thread (4,0,0) in block (0,0,0)
}

__global__ void column_of_nothing(const char *a, size_t pitch, int *out)
{
    out[threadIdx.y] = ((const int *)(a + threadIdx.y * pitch))[threadIdx.x]; //! Uninitialized __global__ memory read of size 4 bytes, thread (3,0,0) in block (0,0,0)
}

// ---- races ----

__global__ void no_barrier(int *out)
{
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[63 - threadIdx.x]; //! Race, thread (31,0,0) and thread (32,0,0) in block (0,0,0)
                                             //!- Uninitialized __shared__ memory read of size 4 bytes
}

__global__ void no_barrier_in_a_loop(const int *a, int *out)
{
    __shared__ int s[128];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    for (int n = 64; n > 0; n /= 2)
        if (threadIdx.x < n)
            s[threadIdx.x] += s[threadIdx.x + n]; //! Race
    __syncthreads();
    out[threadIdx.x] = s[0];
}

__global__ void two_writers(int *out)
{
    __shared__ int s;
    if (threadIdx.x % 32 == 0)
        s = threadIdx.x; //! Race reported between Write access, thread (0,0,0) and thread (32,0,0) in block (0,0,0)
    __syncthreads();
    out[threadIdx.x] = s;
}

// Its threads differ in an index that it does not read: which ones the device would leave out.
__global__ void two_that_do_the_same(int *out)
{
    __shared__ int s[32];
    s[threadIdx.x] = 0;
    __syncthreads();
    s[threadIdx.x] += 1; //! Race, thread (0,0,0) and thread (0,1,0) in block (0,0,0)
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

__global__ void no_syncwarp(int *out)
{
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x ^ 1]; //! Race reported between Write access, thread (1,0,0) and thread (0,0,0) in block (0,0,0)
}

__global__ void plain_read_of_a_count(int *out)
{
    __shared__ int n;
    if (threadIdx.x == 0)
        n = 0;
    __syncthreads();
    atomicAdd(&n, 1);
    out[threadIdx.x] = n; //! Race
}

__global__ void cleared_beside_a_count(int *out)
{
    __shared__ int n[32];
    if (threadIdx.x < 32)
        n[threadIdx.x] = 0;
    atomicAdd(&n[threadIdx.x % 32], 1); //! Race
    __syncthreads();
    out[threadIdx.x] = n[threadIdx.x % 32];
}

__global__ void one_buffer_for_two(const int *a, int *out)
{
    __shared__ int s[64];
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        s[threadIdx.x] = a[i * 64 + threadIdx.x]; //! Race
        __syncthreads();
        sum += s[63 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}

__global__ void flag_without_fence(int *out)
{
    __shared__ int data;
    __shared__ volatile int flag;
    if (threadIdx.x == 0)
        flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        data = 42;
        flag = 1;
    } else if (threadIdx.x == 32) {
        while (!flag)
            ;
        *out = data; //! Race reported between Write access, thread (0,0,0) and thread (32,0,0) in block (0,0,0)
    }
}

__global__ void bytes_that_overlap(int *out, int n)
{
    __shared__ unsigned char s[132];
    for (int i = 0; i < n; i++)
        s[threadIdx.x + i] = threadIdx.x; //! Race
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

__global__ void group_too_small(int *out)
{
    __shared__ int s[32];
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
    s[threadIdx.x] = threadIdx.x;
    tile.sync();
    out[threadIdx.x] = s[threadIdx.x ^ 8]; //! Race reported between Write access, thread (8,0,0) and thread (0,0,0) in block (0,0,0)
}

__global__ void wrong_half(int *out)
{
    __shared__ int s[128];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 64)
        asm volatile("bar.sync 1, 64;" ::: "memory");
    else
        asm volatile("bar.sync 2, 64;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x ^ 64]; //! Race
}

// ---- barriers ----

__global__ void barrier_in_both_ways(int *out)
{
    if (threadIdx.x < 16) {
        out[threadIdx.x] = 1;
        asm volatile("bar.sync 0;" ::: "memory");
        out[threadIdx.x] = 2;
    } else {
        out[threadIdx.x] = 3;
        asm volatile("bar.sync 0;" ::: "memory"); //! Barrier error detected, thread (16,0,0) in block (0,0,0)
        out[threadIdx.x] = 4;
    }
}

__global__ void not_in_its_mask(int *out, unsigned mask)
{
    __syncwarp(mask); //! Barrier error detected, thread (31,0,0) in block (0,0,0)
    out[threadIdx.x] = 1;
}

__global__ void barrier_without_end(int *out)
{
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;" ::: "memory"); //? Barrier error detected, thread (0,0,0) in block (0,0,0)
    out[threadIdx.x] = 1;
}

static void bounds(int *out)
{
    write_past_the_end<<<1, 64>>>(device<int>(63));
    read_past_the_end<<<1, 32>>>(device<int>(32), out);
    write_before_the_start<<<1, 1>>>(device<int>(4));
    one_byte_too_far<<<1, 14>>>(device<char>(13));
    vector_over_the_end<<<1, 2>>>((float4 *)device<float>(5), (float *)out);
    floats_as_doubles<<<2, 32>>>((double *)device<float>(96));
    char *rows;
    size_t pitch;
    GOOD(cudaMallocPitch((void **)&rows, &pitch, 16, 4));
    row_too_many<<<1, dim3(4, 5)>>>(rows, pitch);
    unsigned char host[8] = { 0, 1, 2, 3, 3, 2, 1, 4 };
    unsigned char *data = device<unsigned char>(8);
    GOOD(cudaMemcpy(data, host, 8, cudaMemcpyHostToDevice));
    atomic_past_the_end<<<1, 8>>>(device<unsigned>(4), data);
    null_pointer<<<dim3(3), 6>>>(nullptr);
    GOOD(cudaDeviceSynchronize());
    static int elsewhere[32];
    host_pointer<<<1, 32>>>(elsewhere, out);
    int *gone = device<int>(32);
    GOOD(cudaFree(gone));
    freed_memory<<<1, 32>>>(gone);
    int *kept;
    GOOD(cudaMallocAsync((void **)&gone, 128, 0));
    GOOD(cudaMallocAsync((void **)&kept, 128, 0));
    GOOD(cudaMemsetAsync(gone, 0, 128, 0));
    GOOD(cudaFreeAsync(gone, 0));
    takes_a_while<<<1, 1>>>();
    freed_in_a_stream<<<1, 32>>>(gone, out);
    variable_past_the_end<<<1, 11>>>(11);
    constant_past_the_end<<<1, 8>>>(out);
    shared_past_the_end<<<1, 32>>>(out, 1);
    too_little_dynamic<<<1, 21, 80>>>(out);
    shared_by_a_pointer<<<1, 10>>>(out, 8);
    local_past_the_end<<<1, 1>>>(out, 1000);
    int *managed, *pinned, *pooled;
    GOOD(cudaMallocManaged((void **)&managed, 12));
    memset(managed, 0, 12);
    managed_past_the_end<<<1, 4>>>(managed);
    GOOD(cudaMallocHost((void **)&pinned, 20));
    pinned_past_the_end<<<1, 6>>>(pinned);
    GOOD(cudaMallocAsync((void **)&pooled, 24, 0));
    pool_past_the_end<<<1, 7>>>(pooled);
    misaligned_int<<<1, 1>>>(device<char>(16), out);
    misaligned_vector<<<1, 1>>>(device<float>(16));
    misaligned_shared<<<1, 1>>>(out, 3);
}

static void never_written(int *out)
{
    read_of_nothing<<<1, 32>>>(device<int>(32, -1), out);
    int *part = device<int>(32, -1);
    GOOD(cudaMemset(part, 0, 32));
    memset_of_too_little<<<1, 32>>>(part, out);
    count_from_nothing<<<1, 1>>>(device<unsigned>(1, -1));
    shared_of_nothing<<<1, 64>>>(out);
    dynamic_of_nothing<<<1, 31, 128>>>(out, 30);
    local_of_nothing<<<1, 1>>>(out, 3);
    int *from = device<int>(32, -1), *to = device<int>(32);
    GOOD(cudaMemset(from, 0, 16));
    GOOD(cudaMemcpy(to, from, 128, cudaMemcpyDeviceToDevice));
    copy_of_nothing<<<1, 32>>>(to, out);
    char *rows;
    size_t pitch;
    GOOD(cudaMallocPitch((void **)&rows, &pitch, 16, 4));
    GOOD(cudaMemset2D(rows, pitch, 0, 12, 4));
    column_of_nothing<<<1, dim3(4, 1)>>>(rows, pitch, out);
}

static void races(int *out)
{
    no_barrier<<<1, 64>>>(out);
    no_barrier_in_a_loop<<<1, 128>>>(device<int>(128), out);
    two_writers<<<1, 64>>>(out);
    two_that_do_the_same<<<1, dim3(32, 2)>>>(out);
    no_syncwarp<<<1, 32>>>(out);
    plain_read_of_a_count<<<1, 64>>>(out);
    cleared_beside_a_count<<<1, 64>>>(out);
    int *numbers = device<int>(256);
    static int host[256];
    for (int i = 0; i < 256; i++)
        host[i] = i;
    GOOD(cudaMemcpy(numbers, host, sizeof(host), cudaMemcpyHostToDevice));
    one_buffer_for_two<<<1, 64>>>(numbers, out);
    flag_without_fence<<<1, 64>>>(out);
    bytes_that_overlap<<<1, 128>>>(out, 2);
    group_too_small<<<1, 32>>>(out);
    wrong_half<<<1, 128>>>(out);
    barrier_in_both_ways<<<1, 32>>>(out);
    not_in_its_mask<<<1, 32>>>(out, 0x7fffffff);
}

int main(int argc, char **argv)
{
    int *out = device<int>(256);
    if (argc > 1 && strcmp(argv[1], "ends") == 0) {
        barrier_without_end<<<1, 64>>>(out);
        return cudaDeviceSynchronize() == cudaSuccess;
    }
    if (argc == 1)
        bounds(out);
    GOOD(cudaDeviceSynchronize());
    never_written(out);
    races(out);
    GOOD(cudaDeviceSynchronize());
    return 0;
}
