/* Memory and an event of one process, opened in another, which is started anew. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.cuh"

#define N 50000

struct handles {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
};

__global__ void add(unsigned *p, unsigned k)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        p[i] += k + i;
}

static int wrong_in(const unsigned *device, unsigned k, unsigned times)
{
    block<unsigned> host(N);
    int wrong = 0;
    SAY(cudaMemcpy(host.data(), device, N * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < N; i++)
        wrong += host[i] != k + times * i;
    return wrong;
}

static int child(int in)
{
    struct handles h;
    unsigned *p;
    cudaEvent_t e;
    if (read(in, &h, sizeof(h)) != (ssize_t)sizeof(h))
        return 2;
    MUST(cudaIpcOpenMemHandle((void **)&p, h.memory, cudaIpcMemLazyEnablePeerAccess));
    MUST(cudaIpcOpenEventHandle(&e, h.event));
    SAY(cudaStreamWaitEvent(0, e, 0));
    CHECK(wrong_in(p, 3, 1) == 0);
    add<<<(N + 255) / 256, 256>>>(p, 4);
    SAY(cudaEventRecord(e, 0));
    SAY(cudaEventSynchronize(e));
    SAY(cudaIpcCloseMemHandle(p));
    SAY(cudaEventDestroy(e));
    return failures != 0;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return child(atoi(argv[1]));
    struct handles h;
    unsigned *p;
    cudaEvent_t e;
    int ends[2], status = -1;
    MUST(cudaMalloc(&p, N * sizeof(*p)));
    MUST(cudaMemset(p, 0, N * sizeof(*p)));
    MUST(cudaEventCreateWithFlags(&e, cudaEventDisableTiming | cudaEventInterprocess));
    add<<<(N + 255) / 256, 256>>>(p, 3);
    SAY(cudaEventRecord(e, 0));
    MUST(cudaIpcGetMemHandle(&h.memory, p));
    MUST(cudaIpcGetEventHandle(&h.event, e));
    if (pipe(ends) != 0 || write(ends[1], &h, sizeof(h)) != (ssize_t)sizeof(h))
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        char number[16];
        snprintf(number, sizeof(number), "%d", ends[0]);
        execl("/proc/self/exe", "ipc", number, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    CHECK(status == 0);
    SAY(cudaEventSynchronize(e));
    CHECK(wrong_in(p, 7, 2) == 0);
    void *own;
    SAY(cudaIpcOpenMemHandle(&own, h.memory, cudaIpcMemLazyEnablePeerAccess)); /* not in the process that made it */
    SAY(cudaGetLastError());
    SAY(cudaFree(p));
    return verdict();
}
