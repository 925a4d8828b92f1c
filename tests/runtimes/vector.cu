/* The sum of two vectors, from and to pageable and pinned memory. */
#include "check.cuh"

__global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

int main()
{
    const int n = 1000003;
    const size_t bytes = n * sizeof(float);
    block<float> a(n), b(n), c(n, -1.0f);
    float *da, *db, *dc, *pinned;

    for (int i = 0; i < n; i++) {
        a[i] = (float)(scrambled(i) % 1000);
        b[i] = (float)(scrambled(i + n) % 1000);
    }
    MUST(cudaMalloc(&da, bytes));
    MUST(cudaMalloc(&db, bytes));
    MUST(cudaMalloc(&dc, bytes));
    MUST(cudaMallocHost(&pinned, bytes));
    SAY(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));
    add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
    SAY(cudaGetLastError());
    SAY(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpyAsync(pinned, dc, bytes, cudaMemcpyDeviceToHost, 0));
    SAY(cudaStreamSynchronize(0));

    int wrong = 0, wrong_pinned = 0;
    for (int i = 0; i < n; i++) {
        wrong += c[i] != a[i] + b[i];
        wrong_pinned += pinned[i] != a[i] + b[i];
    }
    CHECK(wrong == 0);
    CHECK(wrong_pinned == 0);
    SAY(cudaFreeHost(pinned));
    SAY(cudaFree(dc));
    SAY(cudaFree(db));
    SAY(cudaFree(da));
    SAY(cudaDeviceReset());
    return verdict();
}
