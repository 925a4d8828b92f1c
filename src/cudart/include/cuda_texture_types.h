/* A name of old: all of it is in cuda_runtime.h. */
#ifndef GMUX_CUDA_CUDA_TEXTURE_TYPES_H
#define GMUX_CUDA_CUDA_TEXTURE_TYPES_H
#include "cuda_runtime.h"
#endif
