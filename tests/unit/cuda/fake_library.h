/*
 * What the fake driver and its libraries have in common.
 */
#ifndef GMUX_TESTS_UNIT_CUDA_FAKE_LIBRARY_H
#define GMUX_TESTS_UNIT_CUDA_FAKE_LIBRARY_H

#include <cuda.h>

struct cuda_gpu;
struct cuda_library;

/* A function is a handle of its library, and of the context in which it was loaded. */
CUfunction fake_function_of(const struct cuda_library *l, const struct cuda_gpu *g);
/* A call that waits until nothing runs in the context, with a lock that everybody needs (admit.h):
 * so nothing may run there then, unless nobody waits in this test. */
void fake_wait_for_all(void);

#endif
