/* An old name that programs still include: everything is in cuda_runtime.h. */
#ifndef GMUX_CUDA_DEVICE_FUNCTIONS_H
#define GMUX_CUDA_DEVICE_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
