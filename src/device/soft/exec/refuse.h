/*
 * Which launches are refused.
 */
#ifndef GMUX_SOFT_EXEC_REFUSE_H
#define GMUX_SOFT_EXEC_REFUSE_H

#include "device/device.h"

struct soft_kernel;

/* Stack per thread for recursive functions. A frame here holds the registers that the text names, a
 * frame on a GPU only those that the compiler keeps. The limit is scaled so that one found by trial
 * on a GPU is enough here, too. */
uint32_t soft_stack_bytes(const struct soft_kernel *k);

/* Bytes of the parameters, which stand behind the attributes. */
size_t soft_param_bytes(const struct dev_launch *l);

/* How many a block has. UINT32_MAX: too many. */
uint64_t soft_thread_count(const struct dev_launch *l);

/* Why the kernel cannot be launched so, with the client's error in *result; NULL: it can. Any
 * thread. */
const char *soft_refusal(const struct soft_kernel *k, const struct dev_launch *l, int *result);

#endif
