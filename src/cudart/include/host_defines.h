/*
 * Keywords of CUDA C: which side a function is for, and where a variable lies. For clang they are
 * attributes; for a plain host compiler they are empty.
 */
#ifndef GMUX_CUDA_HOST_DEFINES_H
#define GMUX_CUDA_HOST_DEFINES_H

#if defined(__CUDA__)
#define __host__   __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
/* The host may write constants by their names, which the compiler of kernels does not see. */
#define __constant__           __attribute__((constant, used))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#if __has_attribute(grid_constant) /* from clang 20 on; without it kernels copy the parameter */
#define __grid_constant__ __attribute__((grid_constant))
#else
#define __grid_constant__
#endif
/* clang has no such variables in CUDA: gmux-cc recognises them by their section (cc/managed.c). */
#define __managed__ __attribute__((device, section("gmux_managed")))
#else
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __launch_bounds__(...)
#define __grid_constant__
#endif

#define __align__(n)         __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __forceinline__      __inline__ __attribute__((always_inline))
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __device_builtin__
#define __cudart_builtin__
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDART_CB

#endif
