/*
 * Stands in for NVIDIA's libcuda in the tests of pass-through: answers a few calls in a way that
 * nobody else would.
 */
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct frame { /* CUeglFrame */
    void *planes[3];
    unsigned rest[9];
};

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version,
                               unsigned long long flags, int *status);
EXPORT int cuGetExportTable(const void **table, const void *id);
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

/* One table, whatever is asked for: it has a size and no functions. */
int cuGetExportTable(const void **table, const void *id)
{
    static void *const words[13] = { (void *)sizeof(words) };
    *table = id ? words : NULL;
    return id ? 0 : 1;
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

/* --- functions of a newer driver -------------------------------------------------------------- */

static int shout(struct frame frame, double a, float b, int c, int d, int e, int f, int g, int h)
{
    return (int)(a + b) + c + d + e + f + g + h + (int)frame.rest[0];
}

static int synchronize_newer(int extra)
{
    return extra;
}

/* Knows cuShout, and a variant of cuCtxSynchronize that came with 13.1; cuInit is what it was. */
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        int *status)
{
    void *found = NULL;
    if (strcmp(name, "cuShout") == 0 && version >= 13010)
        found = (void *)shout;
    else if (strcmp(name, "cuCtxSynchronize") == 0 && version >= 13010)
        found = (void *)synchronize_newer;
    else if (strcmp(name, "cuInit") == 0)
        found = (void *)cuInit;
    *function = found;
    *status = found ? 0 : 1;
    return flags > 2;
}
