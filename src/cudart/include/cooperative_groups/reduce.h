/* reduce() is in cooperative_groups.h. */
#ifndef GMUX_CUDA_COOPERATIVE_GROUPS_REDUCE_H
#define GMUX_CUDA_COOPERATIVE_GROUPS_REDUCE_H
#include "cooperative_groups.h"
#endif
