/*
 * Managed memory that host and device use in turns and at the same time: each sees what the other wrote, whichever
 * waited, and nothing that either wrote is lost, also where both add to one word at once. Not how long anything takes.
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "check.cuh"

#define N (6u << 20) /* 24 MiB: many pieces */

__global__ void add(unsigned *p, unsigned n, unsigned what)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] += what;
}

/* Every other line of 16 words is the host's. */
__host__ __device__ static inline bool is_hosts(unsigned i)
{
    return i / 16 % 2 == 0;
}

__global__ void add_others(unsigned *p, unsigned n, const volatile unsigned *until)
{
    while (*until == 0)
        ;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (!is_hosts(i))
            p[i] += 1;
}

__global__ void ping_pong(volatile unsigned *ball, unsigned rounds)
{
    for (unsigned i = 1; i < 2 * rounds; i += 2) {
        while (*ball != i)
            ;
        *ball = i + 1;
        __threadfence_system();
    }
}

struct node {
    struct node *next;
    unsigned value;
};

__global__ void walk(struct node *n)
{
    for (; n; n = n->next)
        n->value = n->value * 3 + 1;
}

static unsigned count_wrong(const unsigned *p, unsigned n, unsigned want)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < n; i++)
        wrong += p[i] != i + want;
    return wrong;
}

static void in_turns(unsigned *p)
{
    for (unsigned i = 0; i < N; i++)
        p[i] = i;
    for (unsigned round = 0; round < 5; round++) {
        add<<<64, 256>>>(p, N, 1);
        cudaDeviceSynchronize();
        for (unsigned i = round; i < N; i += 5)
            p[i] += 1;
        add<<<64, 256>>>(p, N, 1);
        add<<<64, 256>>>(p, N, 1);
        cudaDeviceSynchronize();
    }
    CHECK(count_wrong(p, N, 16) == 0);
    add<<<64, 256>>>(p, N, 1);
    cudaEvent_t done;
    cudaEventCreate(&done);
    cudaEventRecord(done);
    while (cudaEventQuery(done) == cudaErrorNotReady)
        ;
    CHECK(p[N - 1] == N - 1 + 17);
    add<<<64, 256>>>(p, N, 1);
    while (cudaStreamQuery(0) == cudaErrorNotReady)
        ;
    CHECK(p[N - 1] == N - 1 + 18);
    cudaEventDestroy(done);
}

/* The host writes its lines while a kernel, which waits for the host, is to write the others. */
static void both_at_once(unsigned *p)
{
    unsigned *go, wrong = 0;
    MUST(cudaHostAlloc(&go, sizeof(*go), cudaHostAllocMapped));
    *go = 0;
    for (unsigned i = 0; i < N; i++)
        p[i] = i;
    add_others<<<64, 256>>>(p, N, go);
    for (unsigned i = 0; i < N / 2; i++)
        if (is_hosts(i))
            p[i] += 1;
    *(volatile unsigned *)go = 1;
    for (unsigned i = N / 2; i < N; i++)
        if (is_hosts(i))
            p[i] += 1;
    SAY(cudaDeviceSynchronize());
    for (unsigned i = 0; i < N; i++)
        wrong += p[i] != i + 1;
    CHECK(wrong == 0);
    add<<<64, 256>>>(p, N, 1);
    SAY(cudaDeviceSynchronize());
    CHECK(count_wrong(p, N, 2) == 0);
    cudaFreeHost(go);
}

static void polled()
{
    volatile unsigned *ball;
    MUST(cudaMallocManaged((void **)&ball, 64));
    *ball = 0;
    ping_pong<<<1, 1>>>(ball, 10);
    for (unsigned i = 1; i < 20; i += 2) {
        *ball = i;
        while (*ball != i + 1)
            ;
    }
    SAY(cudaDeviceSynchronize());
    CHECK(*ball == 20);
    cudaFree((void *)ball);
}

__global__ void add_each(unsigned *word, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        atomicAdd_system(word, 1);
}

static void one_word(unsigned *p)
{
    const unsigned kernels = 64 * 256 * 20, hosts = 100000;
    p[0] = 0;
    for (unsigned round = 1; round <= 3; round++) {
        add_each<<<64, 256>>>(p, 20);
        for (unsigned i = 0; i < hosts; i++)
            __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST);
        SAY(cudaDeviceSynchronize());
        CHECK(p[0] == round * (kernels + hosts));
    }
}

static void linked_list()
{
    struct node *first = NULL, *n;
    unsigned wrong = 0;
    for (unsigned i = 0; i < 1000; i++) {
        cudaMallocManaged(&n, sizeof(*n));
        n->next = first;
        n->value = i;
        first = n;
    }
    walk<<<1, 1>>>(first);
    SAY(cudaDeviceSynchronize());
    first->value += 1;
    walk<<<1, 1>>>(first);
    SAY(cudaDeviceSynchronize());
    unsigned i = 1000;
    for (n = first; n; n = n->next) {
        i--;
        wrong += n->value != (i * 3 + 1 + (n == first)) * 3 + 1;
    }
    CHECK(i == 0);
    CHECK(wrong == 0);
    while (first) {
        n = first->next;
        cudaFree(first);
        first = n;
    }
}

static void by_the_system(unsigned *p)
{
    char name[] = "/tmp/coherence.XXXXXX";
    int fd = mkstemp(name);
    for (unsigned i = 0; i < N; i++)
        p[i] = i;
    add<<<64, 256>>>(p, N, 1);
    SAY(cudaDeviceSynchronize());
    CHECK(pwrite(fd, p, N * sizeof(*p), 0) == (ssize_t)(N * sizeof(*p)));
    add<<<64, 256>>>(p, N, 7);
    SAY(cudaDeviceSynchronize());
    CHECK(pread(fd, p, N * sizeof(*p), 0) == (ssize_t)(N * sizeof(*p)));
    add<<<64, 256>>>(p, N, 1);
    SAY(cudaDeviceSynchronize());
    CHECK(count_wrong(p, N, 2) == 0);
    close(fd);
    unlink(name);
}

static void CUDART_CB from_the_host(void *p)
{
    for (unsigned i = 0; i < N; i += 4096)
        ((unsigned *)p)[i] *= 2;
}

static void host_functions(unsigned *p)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < N; i++)
        p[i] = i;
    for (unsigned round = 0; round < 3; round++) {
        add<<<64, 256>>>(p, N, 1);
        cudaLaunchHostFunc(0, from_the_host, p);
    }
    add<<<64, 256>>>(p, N, 1);
    SAY(cudaDeviceSynchronize());
    for (unsigned i = 0; i < N; i++)
        wrong += p[i] != (i % 4096 ? i + 4 : ((i + 1) * 2 + 1) * 4 + 3);
    CHECK(wrong == 0);
}

static void graphs(unsigned *p)
{
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    for (unsigned i = 0; i < N; i++)
        p[i] = i;
    MUST(cudaStreamCreate(&s));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add<<<64, 256, 0, s>>>(p, N, 1);
    add<<<64, 256, 0, s>>>(p, N, 1);
    MUST(cudaStreamEndCapture(s, &graph));
    MUST(instantiate(&exec, graph));
    for (unsigned round = 0; round < 3; round++) {
        SAY(cudaGraphLaunch(exec, s));
        SAY(cudaStreamSynchronize(s));
        for (unsigned i = 0; i < N; i++)
            p[i] += 1;
    }
    CHECK(count_wrong(p, N, 9) == 0);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(s);
}

static void copies(unsigned *p)
{
    unsigned *device, *host = (unsigned *)malloc(N * sizeof(*host)), *other;
    MUST(cudaMalloc(&device, N * sizeof(*device)));
    MUST(cudaMallocManaged(&other, N * sizeof(*other)));
    for (unsigned i = 0; i < N; i++)
        p[i] = i;
    SAY(cudaMemcpy(device, p, N * sizeof(*p), cudaMemcpyDefault));
    add<<<64, 256>>>(device, N, 1);
    SAY(cudaMemcpy(p, device, N * sizeof(*p), cudaMemcpyDeviceToHost));
    CHECK(count_wrong(p, N, 1) == 0);
    SAY(cudaMemcpy(other, p, N * sizeof(*p), cudaMemcpyDefault));
    add<<<64, 256>>>(other, N, 1);
    SAY(cudaMemcpy(host, other, N * sizeof(*p), cudaMemcpyDefault));
    CHECK(count_wrong(host, N, 2) == 0);
    SAY(cudaMemcpyAsync(p, host, N * sizeof(*p), cudaMemcpyHostToDevice));
    add<<<64, 256>>>(p, N, 1);
    SAY(cudaDeviceSynchronize());
    CHECK(count_wrong(p, N, 3) == 0);
    SAY(cudaMemset(p, 0, N / 2 * sizeof(*p)));
    SAY(cudaDeviceSynchronize());
    CHECK(p[N / 2 - 1] == 0 && p[N / 2] == N / 2 + 3);
    cudaFree(device);
    cudaFree(other);
    free(host);
}

static void *own_part(void *p)
{
    unsigned *mine = (unsigned *)p;
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < 1000; i++)
            mine[i] += 1;
        add<<<1, 256, 0, s>>>(mine, 1000, 1);
        cudaStreamSynchronize(s);
    }
    cudaStreamDestroy(s);
    return NULL;
}

static void threads(unsigned *p)
{
    pthread_t t[4];
    unsigned wrong = 0;
    for (unsigned i = 0; i < 4000; i++)
        p[i] = 0;
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, own_part, p + 1000 * i);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    for (unsigned i = 0; i < 4000; i++)
        wrong += p[i] != 100;
    CHECK(wrong == 0);
}

int main()
{
    unsigned *p;
    MUST(cudaMallocManaged(&p, N * sizeof(*p)));
    CHECK(p[0] == 0 && p[N - 1] == 0);
    in_turns(p);
    one_word(p);
    both_at_once(p);
    polled();
    linked_list();
    by_the_system(p);
    host_functions(p);
    graphs(p);
    copies(p);
    threads(p);
    SAY(cudaFree(p));
    return verdict();
}
