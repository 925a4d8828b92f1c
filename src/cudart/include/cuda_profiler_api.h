/* cudaProfilerStart and cudaProfilerStop. */
#ifndef GMUX_CUDA_PROFILER_API_H
#define GMUX_CUDA_PROFILER_API_H
#define __CUDA_PROFILER_API_H__ /* programs look for the toolkit's */
#include "cuda_runtime_api.h"
#endif
