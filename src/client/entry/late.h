/*
 * Functions that a program asks cuGetProcAddress for before cuInit and that only the genuine driver
 * knows: those of a driver newer than this library. Whether that driver will serve the program is
 * not known yet, so that it gets a way to them that leads where cuInit says: to the driver, or to
 * CUDA_ERROR_NOT_SUPPORTED in a session.
 */
#ifndef GMUX_CLIENT_ENTRY_LATE_H
#define GMUX_CLIENT_ENTRY_LATE_H

#include <stdbool.h>

#include "client/entry/procaddr.h"

/* cuInit has decided: for the genuine driver, or not. What the program has got leads there from now
 * on. Once. */
void rt_late_decide(bool genuine);

#endif
