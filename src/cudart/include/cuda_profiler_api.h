/* cudaProfilerStart and cudaProfilerStop. */
#ifndef GMUX_CUDA_PROFILER_API_H
#define GMUX_CUDA_PROFILER_API_H
#include "cuda_runtime_api.h"
#endif
