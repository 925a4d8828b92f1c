/* Graphs for tests: a stream of their own, and nodes that fill, copy and add. */
#ifndef GMUX_TESTS_API_NODES_H
#define GMUX_TESTS_API_NODES_H

#include "tap.h"

/* Made by nodes_main(). */
extern CUstream stream;

/* Runs the tests with a context and the stream. */
int nodes_main(const struct tap_test *tests, unsigned count);

uint32_t read_word(CUdeviceptr p);
/* Parameters of a kernel of one thread. */
CUDA_KERNEL_NODE_PARAMS one_thread(CUfunction f, void **params);
/* Parameters of a kernel that adds a number to a word, which has two. */
CUDA_KERNEL_NODE_PARAMS add_to_params(void **params);
/* Behind the `n` nodes at `after`. */
CUgraphNode add_kernel(CUgraph g, const CUgraphNode *after, size_t n, CUdeviceptr p, uint32_t by);
CUgraphNode add_fill(CUgraph g, const CUgraphNode *after, size_t n, CUdeviceptr p, uint32_t value,
                     size_t width);
CUgraphNode add_copy(CUgraph g, const CUgraphNode *after, size_t n, const CUDA_MEMCPY3D *m);
/* Parameters of a copy of `size` bytes. If there is a host address the device's is ignored. */
CUDA_MEMCPY3D copy_params(CUdeviceptr dst, void *dst_host, CUdeviceptr src, const void *src_host,
                          size_t size);
CUgraphExec make(CUgraph g);
/* Launches it, and waits. */
void run(CUgraphExec e);

#endif
