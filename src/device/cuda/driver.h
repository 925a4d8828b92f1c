/*
 * The functions of the genuine driver that the cuda device calls, found by name: nothing is linked with NVIDIA's
 * library, and one that is too old is refused once, at the start.
 */
#ifndef GMUX_DEVICE_CUDA_DRIVER_H
#define GMUX_DEVICE_CUDA_DRIVER_H

#include <cuda.h>

#include "base/attr.h"

/* Exported symbols, version included: what cuda.h calls cuMemAlloc is cuMemAlloc_v2. */
#define CUDA_DRIVER_FUNCTIONS(X)                                                                                     \
    X(cuInit)                                                                                                        \
    X(cuDriverGetVersion)                                                                                            \
    X(cuDeviceGetCount)                                                                                              \
    X(cuDeviceGet)                                                                                                   \
    X(cuDeviceGetName)                                                                                               \
    X(cuDeviceGetUuid_v2)                                                                                            \
    X(cuDeviceTotalMem_v2)                                                                                           \
    X(cuDeviceGetAttribute)                                                                                          \
    X(cuDevicePrimaryCtxRetain)                                                                                      \
    X(cuCtxCreate_v2)                                                                                                \
    X(cuCtxSetCurrent)                                                                                               \
    X(cuMemGetInfo_v2)                                                                                               \
    X(cuMemAddressReserve)                                                                                           \
    X(cuMemAddressFree)                                                                                              \
    X(cuMemImportFromShareableHandle)                                                                                \
    X(cuMemRelease)                                                                                                  \
    X(cuMemMap)                                                                                                      \
    X(cuMemUnmap)                                                                                                    \
    X(cuMemSetAccess)                                                                                                \
    X(cuMemHostRegister_v2)                                                                                          \
    X(cuMemHostUnregister)                                                                                           \
    X(cuMemHostGetDevicePointer_v2)                                                                                  \
    X(cuModuleLoadDataEx)                                                                                            \
    X(cuModuleGetFunction)                                                                                           \
    X(cuLibraryLoadData)                                                                                             \
    X(cuLibraryUnload)                                                                                               \
    X(cuLibraryGetModule)                                                                                            \
    X(cuLibraryGetKernel)                                                                                            \
    X(cuLibraryGetKernelCount)                                                                                       \
    X(cuLibraryEnumerateKernels)                                                                                     \
    X(cuLibraryGetGlobal)                                                                                            \
    X(cuLibraryGetManaged)                                                                                           \
    X(cuLinkCreate_v2)                                                                                               \
    X(cuLinkAddData_v2)                                                                                              \
    X(cuLinkComplete)                                                                                                \
    X(cuLinkDestroy)                                                                                                 \
    X(cuKernelGetName)                                                                                               \
    X(cuKernelGetFunction)                                                                                           \
    X(cuKernelGetParamInfo)                                                                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                                   \
    X(cuOccupancyMaxActiveClusters)                                                                                  \
    X(cuOccupancyMaxPotentialClusterSize)                                                                            \
    X(cuFuncGetAttribute)                                                                                            \
    X(cuFuncSetAttribute)                                                                                            \
    X(cuKernelGetAttribute)                                                                                          \
    X(cuKernelSetAttribute)                                                                                          \
    X(cuStreamCreateWithPriority)                                                                                    \
    X(cuStreamDestroy_v2)                                                                                            \
    X(cuStreamQuery)                                                                                                 \
    X(cuStreamWaitEvent)                                                                                             \
    X(cuStreamWriteValue64_v2)                                                                                       \
    X(cuEventCreate)                                                                                                 \
    X(cuEventDestroy_v2)                                                                                             \
    X(cuEventQuery)                                                                                                  \
    X(cuEventRecord)                                                                                                 \
    X(cuTensorMapEncodeTiled)                                                                                        \
    X(cuTensorMapEncodeIm2col)                                                                                       \
    X(cuTensorMapReplaceAddress)                                                                                     \
    X(cuLaunchKernel)                                                                                                \
    X(cuLaunchKernelEx)                                                                                              \
    X(cuLaunchHostFunc)                                                                                              \
    X(cuMemcpyAsync)                                                                                                 \
    X(cuMemcpyPeerAsync)                                                                                             \
    X(cuMemcpy3DPeerAsync)                                                                                           \
    X(cuMemcpyHtoDAsync_v2)                                                                                          \
    X(cuMemcpy3DAsync_v2)                                                                                            \
    X(cuArray3DCreate_v2)                                                                                            \
    X(cuArrayDestroy)                                                                                                \
    X(cuMipmappedArrayCreate)                                                                                        \
    X(cuMipmappedArrayGetLevel)                                                                                      \
    X(cuMipmappedArrayDestroy)                                                                                       \
    X(cuTexObjectCreate)                                                                                             \
    X(cuTexObjectDestroy)                                                                                            \
    X(cuSurfObjectCreate)                                                                                            \
    X(cuSurfObjectDestroy)                                                                                           \
    X(cuMemsetD8Async)                                                                                               \
    X(cuMemsetD16Async)                                                                                              \
    X(cuMemsetD32Async)                                                                                              \
    X(cuMemsetD2D8Async)                                                                                             \
    X(cuMemsetD2D16Async)                                                                                            \
    X(cuMemsetD2D32Async)                                                                                            \
    X(cuCtxGetLimit)                                                                                                 \
    X(cuCtxSetLimit)                                                                                                 \
    X(cuStreamBatchMemOp_v2)                                                                                         \
    X(cuStreamSynchronize)                                                                                           \
    X(cuStreamBeginCapture_v2)                                                                                       \
    X(cuStreamEndCapture)                                                                                            \
    X(cuGraphInstantiateWithFlags)                                                                                   \
    X(cuGraphDestroy)                                                                                                \
    X(cuGraphCreate)                                                                                                 \
    X(cuGraphAddKernelNode_v2)                                                                                       \
    X(cuGraphExecKernelNodeSetParams_v2)                                                                             \
    X(cuGraphLaunch)                                                                                                 \
    X(cuGraphExecDestroy)                                                                                            \
    X(cuCtxGetStreamPriorityRange)                                                                                   \
    X(cuDeviceGetDevResource)                                                                                        \
    X(cuDevSmResourceSplitByCount)                                                                                   \
    X(cuDevResourceGenerateDesc)                                                                                     \
    X(cuCtxFromGreenCtx)                                                                                             \
    X(cuGreenCtxCreate)                                                                                              \
    X(cuGreenCtxDestroy)                                                                                             \
    X(cuGreenCtxGetDevResource)                                                                                      \
    X(cuGreenCtxStreamCreate)

struct cuda_driver {
#define X(name) __typeof__(name) *name;
    CUDA_DRIVER_FUNCTIONS(X)
#undef X
};

/* Finds all of them. 0; -ENOENT with a one-line reason in `why`. */
GM_MUST_CHECK int cuda_driver_load(struct cuda_driver *d, char *why, size_t why_size);

#endif
