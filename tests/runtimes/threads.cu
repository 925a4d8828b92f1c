/* Eight threads, each with its own default stream (this file is compiled so) and a stream and event of its own. */
#include <pthread.h>

#include "check.cuh"

#define THREADS 8
#define N       65536
#define ROUNDS  20

struct work {
    unsigned number;
    int error;
    int wrong;
    pthread_t thread;
};

__global__ void step(unsigned *p, unsigned n, unsigned k)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = p[i] * 3 + k;
}

static int rounds(struct work *w, unsigned *device, block<unsigned> &host)
{
    cudaStream_t stream;
    cudaEvent_t event;
    int r = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    r = r ? r : cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    r = r ? r : cudaMemset(device, 0, N * sizeof(unsigned));
    for (unsigned k = 0; k < ROUNDS && !r; k++) {
        step<<<N / 256, 256>>>(device, N, w->number + k);
        r = cudaEventRecord(event, 0);
        r = r ? r : cudaStreamWaitEvent(stream, event, 0);
        step<<<N / 256, 256, 0, stream>>>(device, N, 1);
        r = r ? r : cudaEventRecord(event, stream);
        r = r ? r : cudaStreamWaitEvent(0, event, 0);
    }
    r = r ? r : cudaMemcpyAsync(host.data(), device, N * sizeof(unsigned), cudaMemcpyDeviceToHost, 0);
    r = r ? r : cudaStreamSynchronize(0);
    r = r ? r : cudaEventDestroy(event);
    return r ? r : cudaStreamDestroy(stream);
}

static void *run(void *arg)
{
    struct work *w = (struct work *)arg;
    block<unsigned> host(N);
    unsigned *device;
    unsigned expected = 0;
    w->error = cudaMalloc(&device, N * sizeof(unsigned));
    w->error = w->error ? w->error : rounds(w, device, host);
    w->error = w->error ? w->error : cudaFree(device);
    for (unsigned k = 0; k < ROUNDS; k++)
        expected = (expected * 3 + w->number + k) * 3 + 1;
    for (unsigned i = 0; i < N; i++)
        w->wrong += host[i] != expected;
    return NULL;
}

int main()
{
    struct work w[THREADS] = {};
    for (unsigned i = 0; i < THREADS; i++) {
        w[i].number = i;
        if (pthread_create(&w[i].thread, NULL, run, &w[i]) != 0)
            return 1;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        SAY(w[i].error);
        CHECK(w[i].error == 0);
        CHECK(w[i].wrong == 0);
    }
    return verdict();
}
