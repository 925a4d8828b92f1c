/*
 * Part of cuda_runtime.h: textures and surfaces in kernels.
 */
#ifndef GMUX_CUDA_TEXTURE_FETCH_FUNCTIONS_H
#define GMUX_CUDA_TEXTURE_FETCH_FUNCTIONS_H

#endif
