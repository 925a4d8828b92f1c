/*
 * Stands in for NVIDIA's libcuda in the tests of pass-through: answers a few calls in a way that nobody else would.
 */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuDeviceGetCount(int *count);

/* STAND_IN_INIT: what cuInit answers. */
int cuInit(unsigned flags)
{
    const char *result = getenv("STAND_IN_INIT");
    return flags ? 1 : result ? atoi(result) : 0;
}

int cuDriverGetVersion(int *version)
{
    *version = 12345;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = 77;
    return 0;
}
