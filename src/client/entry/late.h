/*
 * Functions that a program asks cuGetProcAddress for before cuInit and that only the genuine driver
 * knows, because it is newer than this library. It is not known yet whether that driver will serve
 * the program. So the program gets a stub that leads where cuInit decides: to the driver or, in a
 * session, to CUDA_ERROR_NOT_SUPPORTED.
 */
#ifndef GMUX_CLIENT_ENTRY_LATE_H
#define GMUX_CLIENT_ENTRY_LATE_H

#include <stdbool.h>

#include "client/entry/procaddr.h"

/* cuInit has decided for the genuine driver, or against it: from now on the stubs lead there.
 * Called once. */
void rt_late_decide(bool genuine);

#endif
