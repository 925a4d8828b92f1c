/*
 * What one process gets out of a GPU with several threads, each with a stream of its own: launches
 * of an empty kernel, waited for after each thousand, or, with -us, kernels of that many
 * microseconds, each waited for. Natively this is the most that programs can have together which
 * share a context. With -row the launches are rows of so many, each row a graph whose kernels get
 * other parameters every time. With -words a kernel is waited for by as many words that the GPU
 * stores behind it, in one call, as the executor does. Prints: name, number per second, of all
 * threads.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "example.h"
#include "kernel_graph.h"

#define BATCH       1000
#define THREADS_MAX 64
#define ROW_MAX     64
#define WORDS_MAX   8

struct worker {
    pthread_t thread;
    CUcontext context;
    CUfunction function;
    CUstream stream;
    unsigned long long ns;
    long row, words;
    _Atomic unsigned long long *word; /* as many words, in host memory that the GPU reaches */
    CUdeviceptr at;                   /* of `word`, for the GPU */
    double seconds, per_second;
    pthread_barrier_t *start;
};

struct row {
    long length;
    CUgraphExec exec;
    CUgraphNode nodes[ROW_MAX];
    CUDA_KERNEL_NODE_PARAMS kernel;
};

static void launch_row(const struct row *r, unsigned long long *ns, CUstream s)
{
    for (long i = 0; i < r->length; i++) {
        *ns = !*ns;
        EX_CHECK(cuGraphExecKernelNodeSetParams(r->exec, r->nodes[i], &r->kernel));
    }
    EX_CHECK(cuGraphLaunch(r->exec, s));
}

static void wait_for_words(struct worker *w, unsigned long long n)
{
    CUstreamBatchMemOpParams ops[WORDS_MAX] = { 0 };
    for (long i = 0; i < w->words; i++)
        ops[i].writeValue = (struct CUstreamMemOpWriteValueParams_st) {
            .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64,
            .address = w->at + (CUdeviceptr)i * sizeof(*w->word),
            .value64 = n,
        };
    EX_CHECK(cuStreamBatchMemOp_v2(w->stream, (unsigned)w->words, ops, 0));
    while (atomic_load(&w->word[w->words - 1]) < n)
        ;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    void *params[] = { &w->ns };
    long n = 0, batch = w->ns ? 1 : BATCH;
    struct row row;
    EX_CHECK(cuCtxSetCurrent(w->context));
    if (w->row) {
        row.length = w->row;
        row.kernel = one_thread_node(w->function, params);
        (void)kernel_graph_make(&row.kernel, row.nodes, row.length, &row.exec);
    }
    pthread_barrier_wait(w->start);
    double start = ex_seconds(), now = start;
    for (; now - start < w->seconds; now = ex_seconds()) {
        for (long i = 0; w->row && i < batch; i += w->row, n += w->row)
            launch_row(&row, &w->ns, w->stream);
        for (long i = 0; !w->row && i < batch; i++, n++)
            EX_CHECK(cuLaunchKernel(w->function, 1, 1, 1, 1, 1, 1, 0, w->stream, params, NULL));
        if (w->words)
            wait_for_words(w, (unsigned long long)n);
        else
            EX_CHECK(cuStreamSynchronize(w->stream));
    }
    w->per_second = (double)n / (now - start);
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = 8, us = 0, ms = 1000, row = 0, words = 0;
    for (int i = 1; i < argc; i++)
        if (!ex_option(argv[i], "threads", 1, THREADS_MAX, &threads) &&
            !ex_option(argv[i], "us", 0, 1000000, &us) &&
            !ex_option(argv[i], "ms", 1, 600000, &ms) &&
            !ex_option(argv[i], "row", 1, ROW_MAX, &row) &&
            !ex_option(argv[i], "words", 1, WORDS_MAX, &words))
            return 2;
    if (row && us)
        return 2;
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "spin");
    struct worker w[THREADS_MAX];
    pthread_barrier_t start;
    double sum = 0;

    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++) {
        w[i] = (struct worker) { .function = f,
                                 .ns = 1000ull * (unsigned long long)us,
                                 .seconds = 1e-3 * (double)ms,
                                 .row = row,
                                 .words = words,
                                 .start = &start };
        EX_CHECK(cuCtxGetCurrent(&w[i].context));
        void *memory;
        EX_CHECK(
            cuMemHostAlloc(&memory, WORDS_MAX * sizeof(*w[i].word), CU_MEMHOSTALLOC_DEVICEMAP));
        EX_CHECK(cuMemHostGetDevicePointer(&w[i].at, memory, 0));
        w[i].word = memory;
        memset(memory, 0, WORDS_MAX * sizeof(*w[i].word));
        EX_CHECK(cuStreamCreate(&w[i].stream, CU_STREAM_NON_BLOCKING));
    }
    for (long i = 0; i < threads; i++)
        if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
            return 1;
    for (long i = 0; i < threads; i++) {
        pthread_join(w[i].thread, NULL);
        sum += w[i].per_second;
        EX_CHECK(cuStreamDestroy(w[i].stream));
    }
    printf("%s %.0f\n", us ? "kernels" : "launches", sum);
    ex_close(&d);
    return 0;
}
