/*
 * Samples of textures and surfaces: a program that runs on whatever libcuda.so.1 there is and says
 * what kernels saw.
 */
#ifndef GMUX_TESTS_TEXTURE_SAMPLES_H
#define GMUX_TESTS_TEXTURE_SAMPLES_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SAMPLE_WORDS 12 /* inputs of one: x y z layer, then level or derivatives */

/* PTX, until the next of them is asked for. */
const char *sample_kernels(void);
const char *sample_questions(void);

#endif
