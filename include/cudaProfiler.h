/* The profiler's functions are part of <cuda.h> here; this file is for programs that include them
 * by name. */
#ifndef GMUX_CUDAPROFILER_H
#define GMUX_CUDAPROFILER_H

#include <cuda.h>

#endif
