/*
 * What the library exports: functions that it refuses are there (the program is linked with all names bound at its start,
 * as many distributions do it), and the driver's functions that a program asks for use the stream 0 that it means.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

/* Not in our headers: programs that other compilers built call them. */
extern "C" cudaError_t cudaGraphicsUnregisterResource(void *resource);
extern "C" cudaError_t cudaImportExternalMemory(void **memory, const void *description);
extern "C" cudaError_t cudaWaitExternalSemaphoresAsync_ptsz(const void *semaphores, cudaStream_t stream);

static void refusals()
{
    void *memory = NULL;
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaGraphicsUnregisterResource(NULL) == cudaErrorNotSupported);
    CHECK(cudaGetLastError() == cudaErrorNotSupported && cudaGetLastError() == cudaSuccess);
    CHECK(cudaImportExternalMemory(&memory, NULL) == cudaErrorNotSupported && !memory);
    CHECK(cudaWaitExternalSemaphoresAsync_ptsz(NULL, NULL) == cudaErrorNotSupported);
    CHECK(cudaGetLastError() == cudaErrorNotSupported);
}

static void driver_functions()
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY), *found = NULL;
    enum cudaDriverEntryPointQueryResult status;
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    const char *mine = "cuStreamSynchronize_ptsz";
#else
    const char *mine = "cuStreamSynchronize";
#endif
    CHECK(library);
    CHECK(cudaGetDriverEntryPoint("cuStreamSynchronize", &found, cudaEnableDefault, &status) == cudaSuccess);
    CHECK(status == cudaDriverEntryPointSuccess && found && found == dlsym(library, mine));
    CHECK(cudaGetDriverEntryPoint("cuStreamSynchronize", &found, cudaEnableLegacyStream, &status) == cudaSuccess);
    CHECK(found == dlsym(library, "cuStreamSynchronize"));
    CHECK(cudaGetDriverEntryPointByVersion("cuStreamSynchronize", &found, 12000, cudaEnablePerThreadDefaultStream, &status) ==
          cudaSuccess);
    CHECK(found == dlsym(library, "cuStreamSynchronize_ptsz"));
    CHECK(cudaGetDriverEntryPoint("cuNoSuchFunction", &found, cudaEnableDefault, &status) == cudaSuccess ||
          cudaGetLastError() != cudaSuccess);
    CHECK(status == cudaDriverEntryPointSymbolNotFound);
}

static void pool_access()
{
    cudaMemPool_t pool;
    struct cudaMemLocation here = { cudaMemLocationTypeDevice, 0 };
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
    CHECK(cudaMemPoolGetAccess(&flags, pool, &here) == cudaSuccess && flags == cudaMemAccessFlagsProtReadWrite);
    CHECK(cudaMemPoolGetAccess(NULL, pool, &here) == cudaErrorInvalidValue);
}

int main()
{
    refusals();
    driver_functions();
    pool_access();
    printf(failures ? "failed\n" : "passed\n");
    return failures != 0;
}
