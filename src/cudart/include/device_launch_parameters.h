/* An old name that programs still include: everything is in cuda_runtime.h. */
#ifndef GMUX_CUDA_DEVICE_LAUNCH_PARAMETERS_H
#define GMUX_CUDA_DEVICE_LAUNCH_PARAMETERS_H
#define __DEVICE_LAUNCH_PARAMETERS_H__ /* programs look for the toolkit's */
#include "cuda_runtime.h"
#endif
