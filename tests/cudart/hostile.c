/*
 * Registrations as no compiler makes them: wrong magic, no names, handles that were not given out,
 * images that are none. None may crash; what cannot work says so when it is used.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "check.h"

extern void **__cudaRegisterFatBinary(void *);
extern void __cudaRegisterFatBinaryEnd(void **);
extern void __cudaUnregisterFatBinary(void **);
extern void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *,
                                   uint3 *, dim3 *, dim3 *, int *);
extern void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
extern void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
extern char __cudaInitModule(void **);
extern unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, struct CUstream_st *);
extern cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);

extern cudaError_t __cudaGetKernel(void **, const void *);
extern cudaError_t __cudaLaunchKernel(void *, dim3, dim3, void **, size_t, struct CUstream_st *);

static char stubs[300]; /* their addresses stand for kernels */

/* What CUDA 13 says of an address that it does not know, and what CUDA 12 says. */
static const cudaError_t none =
    CUDART_VERSION >= 13000 ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;

static cudaError_t launch(const void *stub)
{
    dim3 one = { 1, 1, 1 };
    (void)cudaGetLastError();
    return cudaLaunchKernel(stub, one, one, NULL, 0, NULL);
}

/* As nvcc 13 has it, which does not look at the first call's answer. */
static cudaError_t launch_of_13(const void *stub)
{
    dim3 one = { 1, 1, 1 };
    void *kernel = NULL;
    (void)__cudaGetKernel(&kernel, stub);
    (void)cudaGetLastError();
    return __cudaLaunchKernel(kernel, one, one, NULL, 0, NULL);
}

int main(void)
{
    struct {
        uint32_t magic, version;
        const void *data, *list;
    } wrapper = { 0x466243b1, 1, NULL, NULL };
    uint64_t image[64] = { 0 };
    dim3 d = { 1, 1, 1 }, e;
    size_t shared;
    void *stream;

    /* an image without a magic number, with one and nothing behind it, with sizes beyond its end */
    wrapper.magic = 1;
    void **h = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(h, &stubs[0], NULL, "k", -1, NULL, NULL, NULL, NULL, NULL);
    CHECK(launch(&stubs[0]) == cudaErrorInvalidKernelImage);
    CHECK(cudaGetLastError() == cudaErrorInvalidKernelImage);
    CHECK(launch_of_13(&stubs[0]) == cudaErrorInvalidKernelImage);
    __cudaUnregisterFatBinary(h);
    CHECK(launch(&stubs[0]) == none);
    wrapper.magic = 0x466243b1;
    wrapper.data = image;
    for (int kind = 0; kind < 4; kind++) {
        memset(image, kind == 3 ? 0xff : 0, sizeof(image));
        if (kind) {
            image[0] = 0x0010000100000000ull | 0xba55ed50u;
            image[1] = kind == 1 ? 0 : kind == 2 ? UINT64_MAX : 128;
        }
        h = __cudaRegisterFatBinary(&wrapper);
        __cudaRegisterFunction(h, &stubs[1], NULL, "k", -1, NULL, NULL, NULL, NULL, NULL);
        __cudaRegisterFatBinaryEnd(h);
        CHECK(launch(&stubs[1]) != cudaSuccess);
        CHECK(!__cudaInitModule(h));
        __cudaUnregisterFatBinary(h);
    }
    /* handles that are none */
    h = __cudaRegisterFatBinary(NULL);
    __cudaRegisterFunction(NULL, &stubs[2], NULL, "k", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction((void **)image, &stubs[2], NULL, "k", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(h, NULL, NULL, "k", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(h, &stubs[2], NULL, NULL, -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(h, NULL, NULL, NULL, 0, SIZE_MAX, 0, 0);
    __cudaRegisterManagedVar((void **)image, (void **)image, NULL, "m", 0, 1, 0, 0);
    CHECK(launch(&stubs[2]) == none);
    CHECK(!__cudaInitModule((void **)image));
    __cudaUnregisterFatBinary((void **)image);
    __cudaUnregisterFatBinary(NULL);
    /* many of them, one address twice, a variable where a kernel is wanted and the other way round
     */
    for (int i = 0; i < 300; i++)
        __cudaRegisterFunction(h, &stubs[i], NULL, "k", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(h, &stubs[7], NULL, "v", 0, 4, 0, 0);
    CHECK(launch(&stubs[7]) == none);
    CHECK(cudaGetSymbolSize(&shared, &stubs[8]) == cudaErrorInvalidSymbol);
    __cudaUnregisterFatBinary(h);
    __cudaUnregisterFatBinary(h);
    for (int i = 0; i < 300; i++)
        CHECK(launch(&stubs[i]) == none);
    /* configurations: taken without one, and more of them than a program can nest */
    CHECK(__cudaPopCallConfiguration(&d, &e, &shared, &stream) == cudaErrorMissingConfiguration);
    unsigned pushed = 0;
    while (pushed < 100000 && __cudaPushCallConfiguration(d, d, 0, NULL) == 0)
        pushed++;
    CHECK(pushed >= 4 && pushed < 100000);
    while (pushed--)
        CHECK(__cudaPopCallConfiguration(&d, &e, &shared, &stream) == cudaSuccess);
    CHECK(launch(NULL) == cudaErrorInvalidDeviceFunction);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
