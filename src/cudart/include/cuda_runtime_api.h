/*
 * The CUDA runtime API for C and C++: types and functions. cuda_runtime.h adds C++ templates and
 * what kernels use.
 */
#ifndef GMUX_CUDA_RUNTIME_API_H
#define GMUX_CUDA_RUNTIME_API_H
#define __CUDA_RUNTIME_API_H__ /* programs look for the toolkit's */
#define __CUDA_RUNTIME_API_H__

#include "driver_types.h"

#ifdef __cplusplus
#define GMUX_DEFAULT(value) = value
extern "C" {
#else
#define GMUX_DEFAULT(value)
#endif

#include "cuda_runtime_functions.h"

#ifdef __cplusplus
}
#endif
#undef GMUX_DEFAULT

#endif
