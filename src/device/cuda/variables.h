/*
 * Variables of a module that lie in the client's memory, which the server keeps, instead of the
 * executor's context. So the values that a program and its kernels give them outlive an executor.
 */
#ifndef GMUX_DEVICE_CUDA_VARIABLES_H
#define GMUX_DEVICE_CUDA_VARIABLES_H

#include "device/cuda/state.h"

struct cuda_variables;

/* All on the thread that loads the module. */

/* The module's library was just made: sets m->variables; NULL: no variable of its image can be
 * moved.
 */
void cuda_variables_open(struct dev_module *m);
/* How much memory they need. */
uint64_t cuda_variables_size(const struct dev_module *m);
/* Loads the module's code again, with its variables at this address; with `initialise`, gives them
 * their first values. If the code cannot be loaded in that form, m->variables becomes NULL and the
 * module is as it was. CUresult of writing the values. */
int cuda_variables_place(struct dev_module *m, uint64_t address, bool initialise);
/* NULL is accepted. */
void cuda_variables_close(struct cuda_variables *v);

/* Where a variable lies. False: it is none of these. The client's thread. */
bool cuda_variables_find(const struct dev_module *m, const char *name, uint64_t *address,
                         uint64_t *size);

#endif
