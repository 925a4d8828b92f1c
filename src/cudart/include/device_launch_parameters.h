/* A name of old: all of it is in cuda_runtime.h. */
#ifndef GMUX_CUDA_DEVICE_LAUNCH_PARAMETERS_H
#define GMUX_CUDA_DEVICE_LAUNCH_PARAMETERS_H
#include "cuda_runtime.h"
#endif
