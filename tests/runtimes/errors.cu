/*
 * What goes wrong, and how that is told: launches that cannot be, arguments that make no sense, and, with the argument
 * "fault", a kernel that faults and what is left after a reset of the device.
 */
#include <sched.h>
#include <string.h>

#include "check.cuh"

__global__ void nothing(int *p)
{
    if (p)
        *p = 1;
}

__global__ void __launch_bounds__(128) small(int *p)
{
    if (p)
        *p = 2;
}

__global__ void other(int *p)
{
    p[threadIdx.x] = (int)threadIdx.x;
}

__global__ void trap()
{
    asm volatile("trap;");
}

__global__ void huge_static(int *p)
{
    __shared__ int s[12000];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[threadIdx.x ^ 1];
}

#define LAUNCH(...)                                                                                                  \
    do {                                                                                                             \
        __VA_ARGS__;                                                                                                 \
        int error = (int)cudaGetLastError();                                                                         \
        printf("%s: %d, then %d\n", #__VA_ARGS__, error, (int)cudaDeviceSynchronize());                              \
        fflush(stdout);                                                                                              \
    } while (0)

static void launches(int *p)
{
    LAUNCH((nothing<<<0, 1>>>(p)));
    LAUNCH((nothing<<<1, 0>>>(p)));
    LAUNCH((nothing<<<1, 1025>>>(p)));
    LAUNCH((nothing<<<1, dim3(1, 1, 65)>>>(p)));
    LAUNCH((nothing<<<1, dim3(32, 32, 2)>>>(p)));
    LAUNCH((nothing<<<dim3(1, 65536), 1>>>(p)));
    LAUNCH((nothing<<<dim3(1, 1, 65536), 1>>>(p)));
    LAUNCH((nothing<<<0x80000000u, 1>>>(p)));
    LAUNCH((nothing<<<1, 1, 49153>>>(p)));
    LAUNCH((nothing<<<1, 1, 1 << 20>>>(p)));
    LAUNCH((huge_static<<<1, 32, 4096>>>(p)));
    LAUNCH((small<<<1, 129>>>(p)));
    LAUNCH((small<<<1, 1025>>>(p)));
    LAUNCH((small<<<1, 128>>>(p)));

    void *args[] = { &p };
    LAUNCH(cudaLaunchKernel((const void *)nothing, dim3(1), dim3(2048), args, 0, 0));
    LAUNCH(cudaLaunchKernel((const void *)nothing, dim3(0), dim3(1), args, 0, 0));
#if CUDART_VERSION < 13000 /* which takes it for a handle of the driver's, and reads it */
    LAUNCH(cudaLaunchKernel((const void *)p, dim3(1), dim3(1), args, 0, 0));
#endif
    LAUNCH(cudaLaunchKernel(NULL, dim3(1), dim3(1), args, 0, 0));
    LAUNCH(cudaLaunchCooperativeKernel((const void *)nothing, dim3(1 << 20), dim3(1024), args, 0, 0));
    LAUNCH(cudaLaunchCooperativeKernel((const void *)nothing, dim3(1), dim3(2048), args, 0, 0));
    SAY(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
    SAY(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
    SAY(cudaGetLastError());
}

static void arguments(int *p)
{
    char host[16];
    void *q = NULL;
    int *unknown = (int *)0x10;
    cudaStream_t s;
    cudaEvent_t e;
    float ms;
    SAY(cudaMalloc(&q, (size_t)1 << 60));
    SAY(cudaMalloc(NULL, 16));
    SAY(cudaMemcpy(p, host, 16, (cudaMemcpyKind)9));
    SAY(cudaMemcpy(unknown, host, 16, cudaMemcpyHostToDevice));
    SAY(cudaMemset(unknown, 0, 16));
    SAY(cudaFree(unknown));
    SAY(cudaFree(p + 1));
    SAY(cudaFreeHost(host));
    SAY(cudaHostUnregister(host));
    SAY(cudaStreamCreateWithFlags(&s, 0x80));
    SAY(cudaEventCreateWithFlags(&e, 0x80));
    SAY(cudaEventCreate(&e));
    SAY(cudaEventElapsedTime(&ms, e, e));
    SAY(cudaEventQuery(e));
    SAY(cudaEventDestroy(e));
    SAY(cudaDeviceSetLimit((cudaLimit)4711, 1));
    SAY(cudaDeviceCanAccessPeer(NULL, 0, 0));
    SAY(cudaDeviceEnablePeerAccess(0, 0));
    SAY(cudaPeekAtLastError());
    SAY(cudaGetLastError());
    SAY(cudaGetLastError());
    printf("%s: %s\n", cudaGetErrorName((cudaError_t)719), cudaGetErrorString((cudaError_t)719));
}

static void fault(int *p)
{
    int back[32], wrong = 0;
    trap<<<1, 1>>>();
    SAY(cudaDeviceSynchronize());
    SAY(cudaMalloc(&p, 16));
    SAY(cudaGetLastError());
    SAY(cudaDeviceReset());
    SAY(cudaGetLastError());
    SAY(cudaMalloc(&p, 32 * sizeof(int)));
    LAUNCH((other<<<1, 32>>>(p)));
    SAY(cudaMemcpy(back, p, sizeof(back), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++)
        wrong += back[i] != i;
    printf("works after the reset: %s\n", wrong ? "no" : "yes");
}

static void CUDART_CB wait_for_host(void *go)
{
    while (!__atomic_load_n((int *)go, __ATOMIC_ACQUIRE))
        sched_yield();
}

/* What a query of work that is under way leaves as the last error. */
static void under_way()
{
    int go = 0;
    MUST(cudaLaunchHostFunc(0, wait_for_host, &go));
    int answer = (int)cudaStreamQuery(0);
    printf("under way: %d, last error %d\n", answer, (int)cudaGetLastError());
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    SAY(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
    int *p;
    MUST(cudaMalloc(&p, 1 << 16));
    if (argc > 1 && strcmp(argv[1], "fault") == 0) {
        fault(p);
        return verdict();
    }
    launches(p);
    arguments(p);
    under_way();
    SAY(cudaFree(p));
    return verdict();
}
