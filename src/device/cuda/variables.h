/*
 * Variables of a module that lie in the client's memory, which the server keeps, and not in the
 * executor's context: what a program and its kernels make of them outlives an executor.
 */
#ifndef GMUX_DEVICE_CUDA_VARIABLES_H
#define GMUX_DEVICE_CUDA_VARIABLES_H

#include "device/cuda/state.h"

struct cuda_variables;

/* All on the thread that loads the module. */

/* Of the image that the module's library was just made of: m->variables, or NULL if none of its
 * variables can be moved. */
void cuda_variables_open(struct dev_module *m);
/* What they take, to be given to cuda_variables_place(). */
uint64_t cuda_variables_size(const struct dev_module *m);
/* The module's code is loaded again, with its variables there; with `initialise`, they get their
 * first values. If the code is not to be had in that form, m->variables is NULL and the module is
 * as it was. CUresult, of the first values. */
int cuda_variables_place(struct dev_module *m, uint64_t address, bool initialise);
/* NULL is accepted. */
void cuda_variables_close(struct cuda_variables *v);

/* Client's thread: where the variable lies. False: it is not one of those. */
bool cuda_variables_find(const struct dev_module *m, const char *name, uint64_t *address,
                         uint64_t *size);

#endif
