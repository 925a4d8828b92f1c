/*
 * A client with a context and a little memory that does nothing: prints "ready", and when its input
 * has a line or ends, looks whether its memory still holds what it wrote. Status 0 if so.
 */
#include <cuda.h>
#include <stdio.h>

#include "example.h"

int main(void)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr p;
    unsigned char kept[4096];

    EX_CHECK(cuInit(0));
    EX_CHECK(cuDeviceGet(&device, 0));
    EX_CHECK(cuDevicePrimaryCtxRetain(&context, device));
    EX_CHECK(cuCtxSetCurrent(context));
    EX_CHECK(cuMemAlloc(&p, sizeof(kept)));
    EX_CHECK(cuMemsetD8(p, 1, sizeof(kept)));
    EX_CHECK(cuCtxSynchronize());
    printf("ready\n");
    fflush(stdout);
    (void)getchar();
    EX_CHECK(cuMemsetD8(p + sizeof(kept) / 2, 2, sizeof(kept) / 2));
    EX_CHECK(cuMemcpyDtoH(kept, p, sizeof(kept)));
    if (kept[0] != 1 || kept[sizeof(kept) - 1] != 2) {
        fprintf(stderr, "the memory is not what it was\n");
        return 1;
    }
    return 0;
}
