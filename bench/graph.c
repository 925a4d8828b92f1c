/*
 * What the launch of a graph of 100 small kernels costs, beside 100 launches: the client's side
 * alone, and until all of it is done. Driver API only, so that the same program measures gmux,
 * NVIDIA's MPS and the driver alone. The two take turns. Prints one line per measure: name, median,
 * 99th percentile in nanoseconds for the hundred.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

#define KERNELS 100
#define ROUNDS  500

enum measure { LAUNCHES, LAUNCHES_DONE, GRAPH, GRAPH_DONE, MEASURES };
static const char *const names[MEASURES] = { "launches_enqueue", "launches_done", "graph_enqueue",
                                             "graph_done" };
static double ns[MEASURES][ROUNDS];

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void launch_all(CUfunction f, CUstream stream)
{
    void *no_params[] = { NULL };
    for (int i = 0; i < KERNELS; i++)
        EX_CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, no_params, NULL));
}

/* One round of either; `e` NULL: launches. */
static void round_of(CUfunction f, CUgraphExec e, CUstream stream, double *enqueue, double *done)
{
    double t0 = ex_seconds();
    if (e)
        EX_CHECK(cuGraphLaunch(e, stream));
    else
        launch_all(f, stream);
    double t1 = ex_seconds();
    EX_CHECK(cuStreamSynchronize(stream));
    double t2 = ex_seconds();
    *enqueue = 1e9 * (t1 - t0);
    *done = 1e9 * (t2 - t0);
}

int main(void)
{
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "empty");
    CUstream stream;
    CUgraph graph;
    CUgraphExec e;
    double unused;

    EX_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EX_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch_all(f, stream);
    EX_CHECK(cuStreamEndCapture(stream, &graph));
    EX_CHECK(cuGraphInstantiateWithFlags(&e, graph, 0));
    for (int i = 0; i < 50; i++) {
        round_of(f, NULL, stream, &unused, &unused);
        round_of(f, e, stream, &unused, &unused);
    }
    for (int i = 0; i < ROUNDS; i++) {
        round_of(f, NULL, stream, &ns[LAUNCHES][i], &ns[LAUNCHES_DONE][i]);
        round_of(f, e, stream, &ns[GRAPH][i], &ns[GRAPH_DONE][i]);
    }
    for (int m = 0; m < MEASURES; m++) {
        qsort(ns[m], ROUNDS, sizeof(ns[m][0]), by_value);
        printf("%s %.1f %.1f\n", names[m], ns[m][ROUNDS / 2], ns[m][ROUNDS * 99 / 100]);
    }
    EX_CHECK(cuGraphExecDestroy(e));
    EX_CHECK(cuGraphDestroy(graph));
    EX_CHECK(cuStreamDestroy(stream));
    ex_close(&d);
    return 0;
}
