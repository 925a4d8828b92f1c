/* Types of data that libraries name: a part of driver_types.h. */
#ifndef GMUX_CUDA_LIBRARY_TYPES_H
#define GMUX_CUDA_LIBRARY_TYPES_H
#include "driver_types.h"
#endif
