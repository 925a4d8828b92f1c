/* An old name that programs still include: everything is in cuda_runtime.h. */
#ifndef GMUX_CUDA_HOST_CONFIG_H
#define GMUX_CUDA_HOST_CONFIG_H
#include "cuda_runtime.h"
#endif
