/*
 * Names and texts of errors. The texts are the driver's where it has the error; for the others this
 * file has the text of NVIDIA's documentation.
 */
#include "cudart/cudart.h"

const char *cudaGetErrorName(cudaError_t error)
{
    switch ((int)error) {
#define NAME(name, number)                                                                         \
    case number:                                                                                   \
        return #name;
        GMUX_CUDA_ERRORS(NAME)
#undef NAME
    default:
        return "unrecognized error code";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch ((int)error) {
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInvalidPitchValue:
        return "invalid pitch argument";
    case cudaErrorInvalidSymbol:
        return "invalid device symbol";
    case cudaErrorInvalidHostPointer:
        return "invalid host pointer";
    case cudaErrorInvalidDevicePointer:
        return "invalid device pointer";
    case cudaErrorInvalidTexture:
        return "invalid texture reference";
    case cudaErrorInvalidTextureBinding:
        return "texture is not bound to a pointer";
    case cudaErrorInvalidChannelDescriptor:
        return "invalid channel descriptor";
    case cudaErrorInvalidMemcpyDirection:
        return "invalid copy direction for memcpy";
    case cudaErrorInvalidFilterSetting:
        return "linear filtering not supported for non-float type";
    case cudaErrorInvalidNormSetting:
        return "read as normalized float not supported for 32-bit non float type";
    case cudaErrorNotYetImplemented:
        return "feature not yet implemented";
    case cudaErrorMemoryValueTooLarge:
        return "memory size or pointer value too large to fit in 32 bit";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorInvalidSurface:
        return "invalid surface reference";
    case cudaErrorIncompatibleDriverContext:
        return "incompatible driver context";
    case cudaErrorMissingConfiguration:
        return "__global__ function call is not configured";
    case cudaErrorPriorLaunchFailure:
        return "unspecified launch failure in prior launch";
    case cudaErrorInvalidDeviceFunction:
        return "invalid device function";
    case cudaErrorStartupFailure:
        return "startup failure in cuda runtime";
    case cudaErrorApiFailureBase:
        return "api failure base";
    default:
        break;
    }
    const char *text = NULL;
    if (!cuGetErrorString((CUresult)error, &text) && text)
        return text;
    return "unrecognized error code";
}
