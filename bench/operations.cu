/*
 * What operations of CUDA C++ cost on the software device: one kernel for each, which does it over
 * and over; nanoseconds of a processor for 32 threads, loop included, dearest first. What comes out
 * far dearer than its neighbours is made lane by lane, or by a call.
 *
 *   build/src/cudart/gmux-cc -O3 -std=c++17 -arch=sm_80 bench/operations.cu -o operations
 *   GMUX_SOFT_JIT=wait ./operations [NAME...]
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define BLOCKS  64
#define THREADS 256
#define ROUNDS  64
#define WORDS   65536u

struct memory {
    unsigned *words;
    float *floats;
    double *doubles;
    unsigned char *bytes;
};

struct triple {
    float x, y, z;
};

typedef void (*kernel)(memory, int);

struct operation {
    const char *name;
    kernel run;
};

static std::vector<operation> operations;

struct registration {
    registration(const char *name, kernel run)
    {
        operations.push_back({ name, run });
    }
};

typedef float (*function)(float);

__device__ float scaled(float x)
{
    return x * 1.1f;
}

__device__ float moved(float x)
{
    return x + 0.5f;
}

__device__ function functions[2] = { scaled, moved };
__constant__ unsigned table[256];

__device__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

/* A kernel: `u`, `x` and `y` go through all rounds k; `t` and `i` are the thread's numbers in its
 * block and in the grid, `s` is shared memory. */
#define OPERATION(name, ...)                                                                       \
    __global__ void name(memory m, int rounds)                                                     \
    {                                                                                              \
        __shared__ unsigned s[1024];                                                               \
        const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;                           \
        unsigned u = i * 2654435761u;                                                              \
        float x = (float)(u >> 8) * 1e-6f;                                                         \
        double y = x;                                                                              \
        s[t] = u;                                                                                  \
        __syncthreads();                                                                           \
        for (int k = 0; k < rounds; k++) {                                                         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
        m.words[i % WORDS] = u;                                                                    \
        m.floats[i % WORDS] = x;                                                                   \
        m.doubles[i % WORDS] = y;                                                                  \
    }                                                                                              \
    static registration register_##name(#name, name);

/* Another number for each thread and round. */
#define MIX u = u * 1664525u + 1013904223u;

OPERATION(nothing, u += k;)

OPERATION(load, u += m.words[(i + k) % WORDS];)
OPERATION(load_volatile, u += ((volatile unsigned *)m.words)[(i + k * 32) % WORDS];)
OPERATION(load_uniform, x += m.floats[k & 1023];)
OPERATION(load_column, x += m.floats[(t * 256 + k + blockIdx.x) % WORDS];)
OPERATION(load_4, float4 v = ((float4 *)m.floats)[(i + k) % (WORDS / 4)];
          x += v.x + v.y + v.z + v.w;)
OPERATION(load_triple, triple v = ((triple *)m.floats)[(i + k) % 8192]; x += v.x * v.y + v.z;)
OPERATION(store_volatile, ((volatile unsigned *)m.words)[(i + k * 32) % WORDS] = u;)
OPERATION(store_triple, ((triple *)m.floats)[(i + k * 32) % 8192] = triple { x, x + 1, x + 2 };)
OPERATION(store_some, if (u & 1) m.words[(i + k * 32) % WORDS] = u; MIX)
OPERATION(gather, u += m.words[u & 65535]; MIX)
OPERATION(gather_bytes, u += m.bytes[u & 65535]; MIX)
OPERATION(gather_doubles, y += m.doubles[u & 16383]; MIX)
OPERATION(gather_constants, u += table[u & 255]; MIX)
OPERATION(scatter, m.words[u & 65535] = u; MIX)
OPERATION(scatter_bytes, m.bytes[u & 65535] = (unsigned char)u; MIX)
OPERATION(local_array, unsigned l[16]; for (int n = 0; n < 16; n++) l[n] = u + n; l[u & 15] = k;
          u += l[(u >> 4) & 15];)
OPERATION(fence, m.words[(i + k * 32) % WORDS] = u; __threadfence();)

OPERATION(shared_gather, u += s[u & 1023]; MIX)
OPERATION(shared_volatile, volatile unsigned *v = s; v[t] = u; u += v[t ^ 1];)
OPERATION(shared_reversed, u += s[255 - t] + k;)
OPERATION(shared_bytes, u += ((unsigned char *)s)[(t + k) & 1023];
          ((unsigned char *)s)[t] = (unsigned char)u;)
OPERATION(barriers, s[t] = u; __syncthreads(); u += s[(t + 1) & 255]; __syncthreads();)

OPERATION(atomic_one_place, atomicAdd(m.words + k % 64, 1u);)
OPERATION(atomic_list, s[u & 1023] = atomicAdd(m.words + k % 64, 1u);)
OPERATION(atomic_float_one_place, atomicAdd(m.floats + k % 64, x);)
OPERATION(atomic_neighbours, atomicAdd(m.words + (i + k) % WORDS, 1u);)
OPERATION(atomic_random, atomicAdd(m.words + (u & 65535), 1u); MIX)
OPERATION(atomic_shared, atomicAdd(s + (u & 1023), 1u); MIX)
OPERATION(atomic_shared_one_place, atomicMax(s + k % 64, u + k);)

OPERATION(shuffle, u += __shfl_sync(~0u, u, u & 31);)
OPERATION(shuffle_sum, for (int o = 16; o; o >>= 1) u += __shfl_down_sync(~0u, u, o);)
OPERATION(ballot, u += __popc(__ballot_sync(~0u, u & 1));)
OPERATION(match, u += __match_any_sync(~0u, u & 3);)

OPERATION(
    branches, switch (u & 3) {
case 0:
    x += 1;
    break;
case 1:
    x *= 1.5f;
    break;
case 2:
    x -= 2;
    break;
default:
    x = -x;
    } MIX)
OPERATION(loops, for (unsigned n = u & 15; n > 0; n--) x = x * 1.01f + 0.1f; MIX)
OPERATION(function_pointers, x = functions[u & 1](x); MIX)
OPERATION(recursion, if (k % 16 == 0) u += fibonacci(6 + (u & 1));)

OPERATION(divide_32, u = u / ((k & 7) + 3 + (u & 1)) + i;)
OPERATION(divide_64, u = (unsigned)(((unsigned long long)u << 20 | i) / ((u & 1023) + 3ull));)
OPERATION(multiply_high, u = __umulhi(u, 0x9E3779B9u) ^ u;)
OPERATION(bits, u = __brev(u) + __clz(u) + __ffs(u) + __popc(u);)
OPERATION(conversions, u += (int)x; x = (float)(u & 1023); y = u & 7; u += (unsigned)(y * 1.5);)

OPERATION(divide_float, x = x / (1.5f + x) + 1.f;)
OPERATION(root_float, x = sqrtf(x + 1.f);)
OPERATION(sin_float, x = sinf(x) + 1.f;)
OPERATION(exp_float, x = expf(x * 0.1f);)
OPERATION(log_float, x = logf(x + 1.5f);)
OPERATION(pow_float, x = powf(x + 0.5f, 1.1f) * 0.5f;)
OPERATION(exp_approximate, x = __expf(x * 0.1f);)
OPERATION(divide_double, y = y / (1.5 + y) + 1.;)
OPERATION(sin_double, y = sin(y) + 1.;)
OPERATION(exp_double, y = exp(y * 0.1);)
OPERATION(pow_double, y = pow(y + 0.5, 1.1) * 0.5;)

OPERATION(fma_half2, __half2 h = __float2half2_rn(x); x = __low2float(__hfma2(h, h, h)) * 0.5f;)
OPERATION(fma_bfloat162, __nv_bfloat162 h = __float2bfloat162_rn(x);
          x = __low2float(__hfma2(h, h, h)) * 0.5f;)
OPERATION(half_4_times, __half h = __float2half(x);
          for (int n = 0; n < 4; n++) h = __hadd(__hmul(h, h), h); x = __half2float(h) * 0.1f;)

/* Seconds of the quickest of some launches; negative: it failed. */
static double measure(const operation &o, memory m)
{
    double best = 1e9;
    o.run<<<BLOCKS, THREADS>>>(m, 2);
    if (cudaDeviceSynchronize() != cudaSuccess)
        return -1;
    for (int n = 0; n < 5; n++) {
        const auto began = std::chrono::steady_clock::now();
        o.run<<<BLOCKS, THREADS>>>(m, ROUNDS);
        if (cudaDeviceSynchronize() != cudaSuccess)
            return -1;
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        best = std::min(best, took.count());
    }
    return best;
}

int main(int argc, char **argv)
{
    const double processors = std::thread::hardware_concurrency();
    std::vector<std::pair<double, const char *>> results;
    int failed = 0;
    memory m;
    for (void **p :
         { (void **)&m.words, (void **)&m.floats, (void **)&m.doubles, (void **)&m.bytes })
        if (cudaMalloc(p, WORDS * 8) != cudaSuccess || cudaMemset(*p, 0, WORDS * 8) != cudaSuccess)
            return 1;
    for (const operation &o : operations) {
        const bool wanted = argc == 1 || std::any_of(argv + 1, argv + argc, [&](const char *name) {
                                return strcmp(name, o.name) == 0;
                            });
        const double s = wanted ? measure(o, m) : 0;
        failed += s < 0;
        if (wanted)
            results.push_back({ s * 1e9 * processors * 32 / (BLOCKS * THREADS * ROUNDS), o.name });
    }
    std::sort(results.rbegin(), results.rend());
    for (const auto &r : results)
        printf("%-24s %8.1f\n", r.second, r.first);
    return failed ? 1 : 0;
}
