/*
 * c = a + b in CUDA C++, with the runtime library and a launch in <<<>>>: vecadd.c as most people write it.
 * gmux-cc vecadd.cu -o vecadd
 *
 * Expect: "vecadd: 1000000 elements, all correct".
 */
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t error, int line)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(error));
    exit(1);
}
#define CHECK(call) check(call, __LINE__)

__global__ void vecadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1000000;
    if (n < 1) {
        fprintf(stderr, "usage: %s [ELEMENTS]\n", argv[0]);
        return 2;
    }
    std::vector<float> a(n), b(n), c(n);
    for (int i = 0; i < n; i++) {
        a[i] = (float)(i % 1000);
        b[i] = 0.5f * (float)(i % 77);
    }
    size_t size = n * sizeof(float);
    float *da, *db, *dc;
    CHECK(cudaMalloc(&da, size));
    CHECK(cudaMalloc(&db, size));
    CHECK(cudaMalloc(&dc, size));
    CHECK(cudaMemcpy(da, a.data(), size, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), size, cudaMemcpyHostToDevice));
    vecadd<<<(n + 255) / 256, 256>>>(da, db, dc, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), dc, size, cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += c[i] != a[i] + b[i];
    if (wrong)
        printf("vecadd: %d of %d elements WRONG\n", wrong, n);
    else
        printf("vecadd: %d elements, all correct\n", n);
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dc));
    return wrong != 0;
}
