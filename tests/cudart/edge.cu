// A stencil that reads the row above each one, and of the first row puts that aside. So it reads a little before the
// program's first allocation, as Rodinia's srad does: on a GPU memory of the context lies there.
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 512, ROWS = 1024 };

__global__ void differences(float *out, const float *in)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float above = in[(y - 1) * COLUMNS + x];
    if (y == 0)
        above = 0;
    out[y * COLUMNS + x] = in[y * COLUMNS + x] - above;
}

int main()
{
    static float host[ROWS * COLUMNS];
    float *in, *out;
    int wrong = 0;
    for (int k = 0; k < ROWS * COLUMNS; k++)
        host[k] = (float)(k / COLUMNS * 3 + k % 7);
    bool done = cudaMalloc(&in, sizeof(host)) == cudaSuccess && cudaMalloc(&out, sizeof(host)) == cudaSuccess &&
                cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice) == cudaSuccess;
    differences<<<dim3(COLUMNS / 128, ROWS), 128>>>(out, in);
    done = done && cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost) == cudaSuccess;
    for (int k = 0; k < ROWS * COLUMNS; k++)
        wrong += host[k] != (k < COLUMNS ? (float)(k % 7) : (float)(3 + k % 7 - (k - COLUMNS) % 7));
    if (!done || wrong)
        printf("%d wrong, error %d\n", wrong, (int)cudaGetLastError());
    puts(done && !wrong ? "passed" : "failed");
    return done && !wrong ? EXIT_SUCCESS : EXIT_FAILURE;
}
