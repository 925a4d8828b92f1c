/* An old name that programs still include: everything is in cuda_runtime.h. */
#ifndef GMUX_CUDA_SURFACE_TYPES_H
#define GMUX_CUDA_SURFACE_TYPES_H
#define __SURFACE_TYPES_H__ /* programs look for the toolkit's */
#include "cuda_runtime.h"
#endif
