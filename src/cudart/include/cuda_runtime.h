/*
 * CUDA C++: the runtime API with its C++ templates, vector types, and what kernels may call.
 * gmux-cc includes this header before everything else, as other CUDA compilers do.
 */
#ifndef GMUX_CUDA_RUNTIME_H
#define GMUX_CUDA_RUNTIME_H
#define __CUDA_RUNTIME_H__ /* programs look for the toolkit's */
#define __CUDA_RUNTIME_H__
/* gmux-cc names this file by its path, which alone does not make it a header of the system. */
#pragma GCC system_header

/* Programs for NVRTC, which has no such types, define their own as long long: the system's have
 * other names here. libnvrtc's stdint.h gives them to programs that include it. */
#ifdef __CUDACC_RTC__
#define int64_t  gmux_int64_t
#define uint64_t gmux_uint64_t
#endif

#if defined(__CUDA__) && defined(__clang__)
/* In clang's order: C++'s functions are declared for kernels before the standard headers define
 * them for the host. */
#include <__clang_cuda_math_forward_declares.h>
#define __CUDACC__ 1 /* libstdc++ then leaves out what GPUs do not have */
#include <assert.h>
#include <cmath>
#include <cstdlib>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utility>
#undef __CUDACC__
#endif

#include "channel_descriptor.h"
#include "cuda_runtime_api.h"
#include "driver_functions.h"
#include "vector_functions.h"

#if defined(__CUDA__) && defined(__clang__)
#include "gmux_device.h"
#ifndef __CUDACC_RTC__
#include <new> /* clang's, with kernels' own operators */
#endif
#endif

#ifdef __cplusplus
#include "gmux_templates.h"
#endif

#ifdef __CUDACC_RTC__
#undef int64_t
#undef uint64_t
#endif

#endif
