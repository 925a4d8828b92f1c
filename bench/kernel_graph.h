/* Graphs of kernels of one thread, one behind the other: the parameters of a node, and the graph.
 */
#ifndef GMUX_BENCH_KERNEL_GRAPH_H
#define GMUX_BENCH_KERNEL_GRAPH_H

#include "example.h"

static inline CUDA_KERNEL_NODE_PARAMS one_thread_node(CUfunction function, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS) { .func = function,
                                       .gridDimX = 1,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 1,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .kernelParams = params };
}

/* Fills nodes[length]. What is returned can be destroyed when they are no longer needed. */
static inline CUgraph kernel_graph_make(const CUDA_KERNEL_NODE_PARAMS *kernel, CUgraphNode *nodes,
                                        long length, CUgraphExec *exec)
{
    CUgraph g;
    EX_CHECK(cuGraphCreate(&g, 0));
    for (long i = 0; i < length; i++)
        EX_CHECK(cuGraphAddKernelNode(&nodes[i], g, i ? &nodes[i - 1] : NULL, i != 0, kernel));
    EX_CHECK(cuGraphInstantiateWithFlags(exec, g, 0));
    return g;
}

#endif
