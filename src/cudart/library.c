/*
 * Libraries that a program loads itself: passed on to the driver.
 */
#include <stdint.h>

#include "cudart/cudart.h"

cudaError_t crt_cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                    enum cudaJitOption *jitOptions, void **jitOptionsValues,
                                    unsigned int numJitOptions,
                                    enum cudaLibraryOption *libraryOptions,
                                    void **libraryOptionValues, unsigned int numLibraryOptions)
{
    return crt_of(cuLibraryLoadData(library, code, (CUjit_option *)jitOptions, jitOptionsValues,
                                    numJitOptions, (CUlibraryOption *)libraryOptions,
                                    libraryOptionValues, numLibraryOptions));
}

cudaError_t crt_cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName,
                                        enum cudaJitOption *jitOptions, void **jitOptionsValues,
                                        unsigned int numJitOptions,
                                        enum cudaLibraryOption *libraryOptions,
                                        void **libraryOptionValues, unsigned int numLibraryOptions)
{
    return crt_of(cuLibraryLoadFromFile(
        library, fileName, (CUjit_option *)jitOptions, jitOptionsValues, numJitOptions,
        (CUlibraryOption *)libraryOptions, libraryOptionValues, numLibraryOptions));
}

cudaError_t crt_cudaLibraryUnload(cudaLibrary_t library)
{
    cudaError_t r = crt_of(cuLibraryUnload(library));
    if (!r)
        crt_forget_kernels(library);
    return r;
}

cudaError_t crt_cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    CUkernel k;
    if (!kernel || !name)
        return cudaErrorInvalidValue;
    cudaError_t r = crt_of(cuLibraryGetKernel(&k, library, name));
    if (!r)
        r = crt_note_kernel(k, library);
    if (!r)
        *kernel = k;
    return r;
}

cudaError_t crt_cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library)
{
    return crt_of(cuLibraryGetKernelCount(count, library));
}

cudaError_t crt_cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int numKernels,
                                            cudaLibrary_t library)
{
    unsigned count;
    cudaError_t r = crt_of(cuLibraryEnumerateKernels(kernels, numKernels, library));
    if (!r)
        r = crt_of(cuLibraryGetKernelCount(&count, library));
    for (unsigned i = 0; !r && i < numKernels && i < count; i++)
        r = crt_note_kernel(kernels[i], library);
    return r;
}

cudaError_t crt_cudaLibraryGetGlobal(void **p, size_t *bytes, cudaLibrary_t library,
                                     const char *name)
{
    CUdeviceptr address;
    cudaError_t r = crt_of(cuLibraryGetGlobal(&address, bytes, library, name));
    if (!r && p)
        *p = (void *)(uintptr_t)address;
    return r;
}

cudaError_t crt_cudaLibraryGetManaged(void **p, size_t *bytes, cudaLibrary_t library,
                                      const char *name)
{
    CUdeviceptr address;
    cudaError_t r = crt_of(cuLibraryGetManaged(&address, bytes, library, name));
    if (!r && p)
        *p = (void *)(uintptr_t)address;
    return r;
}

cudaError_t crt_cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library,
                                              const char *symbol)
{
    return crt_of(cuLibraryGetUnifiedFunction(function, library, symbol));
}

cudaError_t crt_cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr,
                                                int value, int device)
{
    return crt_of(cuKernelSetAttribute((CUfunction_attribute)attr, value, kernel, device));
}
