/*
 * A client with a context and a little memory that does nothing: prints "ready", ends when its input does.
 */
#include <cuda.h>
#include <stdio.h>

#include "example.h"

int main(void)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr p;

    EX_CHECK(cuInit(0));
    EX_CHECK(cuDeviceGet(&device, 0));
    EX_CHECK(cuDevicePrimaryCtxRetain(&context, device));
    EX_CHECK(cuCtxSetCurrent(context));
    EX_CHECK(cuMemAlloc(&p, 4096));
    EX_CHECK(cuMemsetD8(p, 1, 4096));
    EX_CHECK(cuCtxSynchronize());
    printf("ready\n");
    fflush(stdout);
    (void)getchar();
    return 0;
}
