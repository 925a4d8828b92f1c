/*
 * Stands in for NVIDIA's libcuda in the tests of pass-through: answers a few calls in a way that nobody else would.
 */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

struct frame { /* CUeglFrame */
    void *planes[3];
    unsigned rest[9];
};

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuGLGetDevices_v2(unsigned *count, int *devices, unsigned room, unsigned list);
EXPORT int cuEGLStreamProducerPresentFrame(void *connection, struct frame frame, void **stream);

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

int cuGLGetDevices_v2(unsigned *count, int *devices, unsigned room, unsigned list)
{
    *count = room + list;
    devices[0] = 5;
    return 0;
}

int cuEGLStreamProducerPresentFrame(void *connection, struct frame frame, void **stream)
{
    *stream = frame.planes[2];
    return connection ? (int)frame.rest[8] : 1;
}
