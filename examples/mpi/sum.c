/*
 * A sum over the ranks of an MPI job, each of which adds up its part on the device: mpicc; mpirun
 * -np 4 ./sum KERNEL.ptx. KERNEL.ptx is that of the reduction example. All numbers are small and
 * whole, so the sum is exact in any order.
 *
 * Expect: "4 ranks: sum 6291456, correct".
 */
#include <cuda.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N (1 << 20)

static void check(CUresult r, const char *call)
{
    const char *name = "?";
    if (r == CUDA_SUCCESS)
        return;
    cuGetErrorName(r, &name);
    fprintf(stderr, "%s: %s\n", call, name);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, #call)

int main(int argc, char **argv)
{
    int rank, ranks, n = N;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction sum;
    CUdeviceptr in, out;
    double part, all, right = 0;
    float result;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    float *numbers = malloc(n * sizeof(*numbers));
    if (argc != 2 || !numbers)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < n; i++)
        numbers[i] = (float)((i + rank) % 4);
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, argv[1]));
    CHECK(cuModuleGetFunction(&sum, module, "reduce_sum"));
    CHECK(cuMemAlloc(&in, n * sizeof(*numbers)));
    CHECK(cuMemAlloc(&out, sizeof(result)));
    CHECK(cuMemcpyHtoD(in, numbers, n * sizeof(*numbers)));
    CHECK(cuMemsetD32(out, 0, 1));
    void *arguments[] = { &in, &out, &n };
    CHECK(cuLaunchKernel(sum, 64, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
    CHECK(cuMemcpyDtoH(&result, out, sizeof(result)));
    part = result;
    MPI_Reduce(&part, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < n; i++)
            right += (i + r) % 4;
    if (rank == 0)
        printf("%d ranks: sum %.0f, %s\n", ranks, all, all == right ? "correct" : "WRONG");
    CHECK(cuDevicePrimaryCtxRelease(device));
    free(numbers);
    MPI_Finalize();
    return rank == 0 && all != right;
}
