/*
 * NVIDIA's libcuda, for the parts that need the genuine one: the client library (pass-through), the
 * executor's cuda device, and the server, which keeps device memory. Never our own library of the
 * same name.
 */
#ifndef GMUX_DEVICE_GENUINE_GENUINE_H
#define GMUX_DEVICE_GENUINE_GENUINE_H

#include <stddef.h>

/* Its handle (dlopen), loaded on the first call and never closed, or NULL with the reason in `why`.
 * Nothing is initialised. GMUX_GENUINE_LIBCUDA names a file to take instead of the usual places, or
 * "none". Any thread. */
void *dev_genuine_library(char *why, size_t why_size);

#endif
