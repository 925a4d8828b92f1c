/*
 * What these programs share. Each call and each check is one line of output, the same in every run that goes the same
 * way: the runs of one program, natively and through gmux, are compared line by line. A check that fails is also the
 * program's exit status, so that a native run is judged, too.
 */
#ifndef GMUX_TESTS_RUNTIMES_CHECK_CUH
#define GMUX_TESTS_RUNTIMES_CHECK_CUH

#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime.h>

static int failures;

static int said(const char *call, int result)
{
    printf("%s = %d\n", call, result);
    fflush(stdout);
    return result;
}

/* A call whose result is written down, whatever it is; its value. */
#define SAY(call) said(#call, (int)(call))

static bool checked(const char *what, bool holds)
{
    printf("%s: %s\n", holds ? "ok" : "WRONG", what);
    fflush(stdout);
    failures += !holds;
    return holds;
}

#define CHECK(condition) checked(#condition, (condition))

/* A call without which the rest makes no sense. */
#define MUST(call)                                                                                                   \
    do {                                                                                                             \
        if (SAY(call) != 0) {                                                                                        \
            printf("WRONG: that had to succeed\n");                                                                  \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

/* To be the end of main(). */
static int verdict(void)
{
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}

/* A block of the host's memory; old compilers do not know the host's C++ library, so that these programs use none. */
template <typename T> struct block {
    T *p;
    explicit block(size_t n, T first = T()) : p((T *)malloc(n * sizeof(T)))
    {
        for (size_t i = 0; i < n; i++)
            p[i] = first;
    }
    ~block()
    {
        free(p);
    }
    T &operator[](size_t i) const
    {
        return p[i];
    }
    T *data() const
    {
        return p;
    }

private:
    block(const block &);
};

/* A number that is the same in every run, and looks random. */
static inline unsigned scrambled(unsigned i)
{
    i = (i ^ 61) ^ (i >> 16);
    i *= 9;
    i ^= i >> 4;
    i *= 0x27d4eb2d;
    return i ^ (i >> 15);
}

/* cudaGraphInstantiate() has fewer parameters since 12.0. */
static inline cudaError_t instantiate(cudaGraphExec_t *exec, cudaGraph_t graph)
{
#if CUDART_VERSION >= 12000
    return cudaGraphInstantiate(exec, graph, 0);
#else
    return cudaGraphInstantiate(exec, graph, NULL, NULL, 0);
#endif
}

#endif
