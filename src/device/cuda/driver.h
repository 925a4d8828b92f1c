/*
 * The functions of the genuine driver that the cuda device calls. They are found by name, so
 * nothing is linked with NVIDIA's library, and a library that is too old is refused at the start.
 */
#ifndef GMUX_DEVICE_CUDA_DRIVER_H
#define GMUX_DEVICE_CUDA_DRIVER_H

#include <cuda.h>

#include "base/attr.h"

/* When a call waits for what runs in its context (admit.h; docs/measurements.md has the table,
 * docs/adr/0013-calls-that-wait.md the decision). */
enum cuda_call_class {
    CUDA_FREE,  /* never: it returns at once, whatever runs there */
    CUDA_IDLE,  /* always, and everybody waits with it */
    CUDA_GROWS, /* like CUDA_IDLE if it needs more of the context than there has been, such as the
                   first kernel of a library or one more stream than ever; else like CUDA_FREE */
};

/* Exported symbols, version included: what cuda.h calls cuMemAlloc is cuMemAlloc_v2. */
#define CUDA_DRIVER_FUNCTIONS(X)                                                                   \
    X(cuInit, FREE)                                                                                \
    X(cuDriverGetVersion, FREE)                                                                    \
    X(cuDeviceGetCount, FREE)                                                                      \
    X(cuDeviceGet, FREE)                                                                           \
    X(cuDeviceGetName, FREE)                                                                       \
    X(cuDeviceGetUuid_v2, FREE)                                                                    \
    X(cuDeviceTotalMem_v2, FREE)                                                                   \
    X(cuDeviceGetAttribute, FREE)                                                                  \
    X(cuDevicePrimaryCtxRetain, FREE)                                                              \
    X(cuCtxCreate_v2, FREE)                                                                        \
    X(cuCtxSetCurrent, FREE)                                                                       \
    X(cuMemGetInfo_v2, FREE)                                                                       \
    X(cuMemAddressReserve, FREE)                                                                   \
    X(cuMemAddressFree, FREE)                                                                      \
    X(cuMemImportFromShareableHandle, FREE)                                                        \
    X(cuMemRelease, FREE)                                                                          \
    X(cuMemMap, FREE)                                                                              \
    X(cuMemUnmap, FREE)                                                                            \
    X(cuMemSetAccess, FREE)                                                                        \
    X(cuMemHostRegister_v2, FREE)                                                                  \
    X(cuMemHostUnregister, IDLE)                                                                   \
    X(cuMemHostGetDevicePointer_v2, FREE)                                                          \
    X(cuModuleLoadDataEx, FREE)                                                                    \
    X(cuModuleGetFunction, FREE)                                                                   \
    X(cuLibraryLoadData, FREE)                                                                     \
    X(cuLibraryUnload, IDLE)                                                                       \
    X(cuLibraryGetModule, IDLE)                                                                    \
    X(cuLibraryGetKernel, FREE)                                                                    \
    X(cuLibraryGetKernelCount, FREE)                                                               \
    X(cuLibraryEnumerateKernels, FREE)                                                             \
    X(cuLibraryGetGlobal, GROWS)                                                                   \
    X(cuLibraryGetManaged, FREE)                                                                   \
    X(cuLinkCreate_v2, FREE)                                                                       \
    X(cuLinkAddData_v2, FREE)                                                                      \
    X(cuLinkComplete, FREE)                                                                        \
    X(cuLinkDestroy, FREE)                                                                         \
    X(cuKernelGetName, FREE)                                                                       \
    X(cuKernelGetFunction, GROWS)                                                                  \
    X(cuKernelGetParamInfo, FREE)                                                                  \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, FREE)                                           \
    X(cuOccupancyMaxActiveClusters, FREE)                                                          \
    X(cuOccupancyMaxPotentialClusterSize, FREE)                                                    \
    X(cuFuncGetAttribute, FREE)                                                                    \
    X(cuFuncSetAttribute, FREE)                                                                    \
    X(cuKernelGetAttribute, FREE)                                                                  \
    X(cuKernelSetAttribute, FREE)                                                                  \
    X(cuStreamCreateWithPriority, GROWS)                                                           \
    X(cuStreamDestroy_v2, FREE)                                                                    \
    X(cuStreamQuery, FREE)                                                                         \
    X(cuStreamWaitEvent, FREE)                                                                     \
    X(cuStreamWriteValue64_v2, FREE)                                                               \
    X(cuEventCreate, FREE)                                                                         \
    X(cuEventDestroy_v2, FREE)                                                                     \
    X(cuEventRecord, FREE)                                                                         \
    X(cuTensorMapEncodeTiled, FREE)                                                                \
    X(cuTensorMapEncodeIm2col, FREE)                                                               \
    X(cuTensorMapReplaceAddress, FREE)                                                             \
    X(cuLaunchKernel, GROWS)                                                                       \
    X(cuLaunchKernelEx, GROWS)                                                                     \
    X(cuLaunchHostFunc, FREE)                                                                      \
    X(cuMemcpyAsync, FREE)                                                                         \
    X(cuMemcpyPeerAsync, FREE)                                                                     \
    X(cuMemcpy3DPeerAsync, FREE)                                                                   \
    X(cuMemcpyHtoDAsync_v2, FREE)                                                                  \
    X(cuMemcpy3DAsync_v2, FREE)                                                                    \
    X(cuArray3DCreate_v2, FREE)                                                                    \
    X(cuArrayDestroy, IDLE)                                                                        \
    X(cuMipmappedArrayCreate, FREE)                                                                \
    X(cuMipmappedArrayGetLevel, FREE)                                                              \
    X(cuMipmappedArrayDestroy, IDLE)                                                               \
    X(cuTexObjectCreate, FREE)                                                                     \
    X(cuTexObjectDestroy, FREE)                                                                    \
    X(cuSurfObjectCreate, FREE)                                                                    \
    X(cuSurfObjectDestroy, FREE)                                                                   \
    X(cuMemsetD8Async, FREE)                                                                       \
    X(cuMemsetD16Async, FREE)                                                                      \
    X(cuMemsetD32Async, FREE)                                                                      \
    X(cuMemsetD2D8Async, FREE)                                                                     \
    X(cuMemsetD2D16Async, FREE)                                                                    \
    X(cuMemsetD2D32Async, FREE)                                                                    \
    X(cuCtxGetLimit, FREE)                                                                         \
    X(cuCtxSetLimit, IDLE)                                                                         \
    X(cuStreamBatchMemOp_v2, FREE)                                                                 \
    X(cuStreamSynchronize, FREE)                                                                   \
    X(cuStreamBeginCapture_v2, FREE)                                                               \
    X(cuStreamEndCapture, FREE)                                                                    \
    X(cuStreamBeginCaptureToGraph, FREE)                                                           \
    X(cuStreamGetCaptureInfo_v3, FREE)                                                             \
    X(cuStreamUpdateCaptureDependencies_v2, FREE)                                                  \
    X(cuGraphConditionalHandleCreate, FREE)                                                        \
    X(cuGraphAddNode_v2, FREE)                                                                     \
    X(cuGraphInstantiateWithFlags, GROWS)                                                          \
    X(cuGraphDestroy, FREE)                                                                        \
    X(cuGraphCreate, FREE)                                                                         \
    X(cuGraphAddKernelNode_v2, FREE)                                                               \
    X(cuGraphExecKernelNodeSetParams_v2, FREE)                                                     \
    X(cuGraphLaunch, FREE)                                                                         \
    X(cuGraphExecDestroy, FREE)                                                                    \
    X(cuCtxGetStreamPriorityRange, FREE)                                                           \
    X(cuDeviceGetDevResource, FREE)                                                                \
    X(cuDevSmResourceSplitByCount, FREE)                                                           \
    X(cuDevResourceGenerateDesc, FREE)                                                             \
    X(cuCtxFromGreenCtx, FREE)                                                                     \
    X(cuGreenCtxCreate, IDLE)                                                                      \
    X(cuGreenCtxDestroy, FREE)                                                                     \
    X(cuGreenCtxGetDevResource, FREE)                                                              \
    X(cuGreenCtxStreamCreate, GROWS)

struct cuda_driver {
#define X(name, class) __typeof__(name) *name;
    CUDA_DRIVER_FUNCTIONS(X)
#undef X
};

enum {
#define X(name, class) CUDA_CLASS_##name = CUDA_##class,
    CUDA_DRIVER_FUNCTIONS(X)
#undef X
};

/* Finds all of them. 0; -ENOENT with a one-line reason in `why`. */
GM_MUST_CHECK int cuda_driver_load(struct cuda_driver *d, char *why, size_t why_size);

#endif
