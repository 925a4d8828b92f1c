/* Pools: allocation in stream order, attributes, and a pool that a child process opens by an inherited descriptor. */
#include <string.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.cuh"

#define N 100000

__global__ void fill(unsigned *p, unsigned n, unsigned k)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = i * k;
}

static int wrong_in(const unsigned *device, unsigned k)
{
    block<unsigned> host(N);
    int wrong = 0;
    SAY(cudaMemcpy(host.data(), device, N * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < N; i++)
        wrong += host[i] != i * k;
    return wrong;
}

/* In the child: the handle's number and a pipe with the pointer's data come as arguments. */
static int child(int handle, int data)
{
    cudaMemPool_t pool;
    cudaMemPoolPtrExportData d;
    unsigned *p;
    if (read(data, &d, sizeof(d)) != (ssize_t)sizeof(d))
        return 2;
    printf("child: the descriptor came along: %s\n", fcntl(handle, F_GETFD) >= 0 ? "yes" : "no");
    MUST(cudaMemPoolImportFromShareableHandle(&pool, (void *)(size_t)handle, cudaMemHandleTypePosixFileDescriptor, 0));
    MUST(cudaMemPoolImportPointer((void **)&p, pool, &d));
    CHECK(wrong_in(p, 7) == 0);
    fill<<<(N + 255) / 256, 256>>>(p, N, 9);
    SAY(cudaDeviceSynchronize());
    SAY(cudaFree(p));
    return failures != 0;
}

static void shared(void)
{
    cudaMemPool_t pool;
    cudaMemPoolProps props = {};
    cudaMemPoolPtrExportData d;
    unsigned *p;
    int handle = -1, ends[2];
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    props.location.type = cudaMemLocationTypeDevice;
    MUST(cudaMemPoolCreate(&pool, &props));
    MUST(cudaMallocFromPoolAsync((void **)&p, N * sizeof(*p), pool, 0));
    fill<<<(N + 255) / 256, 256>>>(p, N, 7);
    SAY(cudaDeviceSynchronize());
    MUST(cudaMemPoolExportToShareableHandle(&handle, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    MUST(cudaMemPoolExportPointer(&d, p));
    if (pipe(ends) != 0 || write(ends[1], &d, sizeof(d)) != (ssize_t)sizeof(d))
        exit(2);
    pid_t pid = fork();
    if (pid == 0) {
        char a[16], b[16];
        snprintf(a, sizeof(a), "%d", handle);
        snprintf(b, sizeof(b), "%d", ends[0]);
        execl("/proc/self/exe", "pools", a, b, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
    CHECK(wrong_in(p, 9) == 0);
    close(handle);
    SAY(cudaFreeAsync(p, 0));
    SAY(cudaDeviceSynchronize());
    SAY(cudaMemPoolDestroy(pool));
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return child(atoi(argv[1]), atoi(argv[2]));
    cudaMemPool_t pool;
    cudaStream_t s;
    unsigned *p, *q;
    unsigned long long keep = 1 << 20, used = 1;
    int reuse = -1;
    SAY(cudaStreamCreate(&s));
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    SAY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    SAY(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &reuse));
    printf("opportunistic: %d\n", reuse);
    for (int i = 0; i < 20; i++) {
        int r = cudaMallocAsync((void **)&p, N * sizeof(*p), s);
        r = r ? r : cudaMallocAsync((void **)&q, N * sizeof(*q), s);
        if (r) {
            printf("round %d: %d\n", i, r);
            return 1;
        }
        fill<<<(N + 255) / 256, 256, 0, s>>>(p, N, i);
        cudaMemcpyAsync(q, p, N * sizeof(*p), cudaMemcpyDeviceToDevice, s);
        if (i < 19) {
            cudaFreeAsync(p, s);
            cudaFreeAsync(q, s);
        }
    }
    SAY(cudaStreamSynchronize(s));
    CHECK(wrong_in(q, 19) == 0);
    SAY(cudaFreeAsync(p, s));
    SAY(cudaFreeAsync(q, s));
    SAY(cudaStreamSynchronize(s));
    SAY(cudaMemPoolTrimTo(pool, 0));
#if CUDART_VERSION >= 11030
    SAY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CHECK(used == 0);
#else
    (void)used;
#endif
    shared();
    return verdict();
}
