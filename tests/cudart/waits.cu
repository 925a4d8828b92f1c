/*
 * Blocks that wait for each other without a cooperative launch, as programs do that know how many
 * blocks a device keeps live: a barrier of the grid, a chain that goes from the last block to the
 * first, a scan whose blocks look back, a lock, and a kernel that waits for one of another stream.
 */
#include <cstdio>
#include <vector>

#include "check.h"

enum { THREADS = 128, ROUNDS = 5, MANY = 1500 };

/* What block and round add up to, seen by everybody behind each barrier. */
__global__ void barriers(unsigned *arrived, unsigned *values, unsigned *out)
{
    unsigned blocks = gridDim.x, wrong = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (threadIdx.x == 0) {
            values[round * blocks + blockIdx.x] = blockIdx.x + round;
            __threadfence();
            atomicAdd(arrived, 1);
            while (atomicAdd(arrived, 0) < (round + 1) * blocks) {
            }
        }
        __syncthreads();
        unsigned other = (blockIdx.x + threadIdx.x) % blocks;
        wrong += ((volatile unsigned *)values)[round * blocks + other] != other + round;
    }
    atomicAdd(&out[blockIdx.x], wrong);
}

/* Each block waits for the one behind it; the last one for nobody. */
__global__ void chain(volatile unsigned *done)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x + 1 < gridDim.x)
        while (done[blockIdx.x + 1] == 0) {
        }
    __threadfence();
    done[blockIdx.x] = 1 + (blockIdx.x + 1 < gridDim.x ? done[blockIdx.x + 1] : 0);
}

/* A running sum; blocks take their places in the order in which they begin. */
__global__ void look_back(unsigned *next, unsigned *sums, const unsigned *in)
{
    if (threadIdx.x != 0)
        return;
    unsigned place = atomicAdd(next, 1), before = 0;
    if (place > 0) {
        do {
            __threadfence();
            before = sums[place - 1];
        } while (before == 0);
    }
    sums[place] = before + in[place];
}

__global__ void locked(int *lock, int *plain)
{
    if (threadIdx.x != 0)
        return;
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *(volatile int *)plain += 1;
    __threadfence();
    atomicExch(lock, 0);
}

__global__ void wait_for(volatile int *flag, int *seen)
{
    while (*flag == 0) {
    }
    if (threadIdx.x == 0)
        atomicAdd(seen, *flag);
}

__global__ void raise(int *flag)
{
    atomicExch(flag, 7);
}

int main()
{
    int device, processors, each;
    OK(cudaGetDevice(&device));
    OK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, barriers, THREADS, 0));
    unsigned blocks = (unsigned)(processors * each);
    CHECK(each > 1);

    unsigned *words; /* of managed memory: a counter, then what the kernels write */
    const unsigned count = 1 + MANY + (ROUNDS + 1) * (blocks + 1);
    OK(cudaMallocManaged(&words, 2 * sizeof(unsigned) * count));
    auto clear = [&] {
        OK(cudaDeviceSynchronize());
        OK(cudaMemset(words, 0, 2 * sizeof(unsigned) * count));
        OK(cudaDeviceSynchronize());
    };

    for (int again = 0; again < 3; again++) {
        clear();
        barriers<<<blocks, THREADS>>>(words, words + 1 + blocks, words + 1);
        OK(cudaDeviceSynchronize());
        for (unsigned b = 0; b < blocks; b++)
            CHECK(words[1 + b] == 0);
        CHECK(words[0] == ROUNDS * blocks);
    }

    clear();
    chain<<<blocks, 32>>>(words);
    OK(cudaDeviceSynchronize());
    for (unsigned b = 0; b < blocks; b++)
        CHECK(words[b] == blocks - b);

    clear();
    for (unsigned i = 0; i < MANY; i++)
        words[count + i] = 1 + i % 3;
    look_back<<<MANY, 32>>>(words, words + 1, words + count);
    OK(cudaDeviceSynchronize());
    for (unsigned i = 0, sum = 0; i < MANY; i++)
        CHECK(words[1 + i] == (sum += 1 + i % 3));

    clear();
    locked<<<MANY, 32>>>((int *)words, (int *)words + 1);
    OK(cudaDeviceSynchronize());
    CHECK(words[0] == 0 && words[1] == MANY);

    clear();
    cudaStream_t first, second;
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    /* NVIDIA's driver loads a kernel when it is first launched, and waits for others to end. */
    raise<<<1, 1, 0, second>>>((int *)words + 2);
    OK(cudaDeviceSynchronize());
    wait_for<<<(unsigned)processors, THREADS, 0, first>>>((int *)words, (int *)words + 1);
    raise<<<1, 1, 0, second>>>((int *)words);
    OK(cudaDeviceSynchronize());
    CHECK(words[1] == 7u * (unsigned)processors);

    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
