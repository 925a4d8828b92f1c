/* An old name that programs still include: everything is in cuda_runtime.h. */
#ifndef GMUX_CUDA_CUDA_SURFACE_TYPES_H
#define GMUX_CUDA_CUDA_SURFACE_TYPES_H
#include "cuda_runtime.h"
#endif
