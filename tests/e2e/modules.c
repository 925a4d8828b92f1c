/*
 * Loads as many modules as its argument says, each another one, and prints "loaded". For each line
 * until "end" it runs the kernel of every module and prints how many did what theirs does.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = ".version 7.0\n"
                           ".target sm_75\n"
                           ".address_size 64\n"
                           ".visible .entry k(.param .u64 out)\n"
                           "{\n"
                           "    .reg .b64 %%d;\n"
                           "    ld.param.u64 %%d, [out];\n"
                           "    st.global.u32 [%%d], %u;\n"
                           "    ret;\n"
                           "}\n";

static void must(const char *what, CUresult r)
{
    if (r == CUDA_SUCCESS)
        return;
    printf("%s: error %d\n", what, (int)r);
    exit(1);
}

static CUfunction load(unsigned number)
{
    char image[sizeof(text) + 16];
    CUmodule m;
    CUfunction f;
    snprintf(image, sizeof(image), text, number);
    must("load", cuModuleLoadData(&m, image));
    must("function", cuModuleGetFunction(&f, m, "k"));
    return f;
}

static unsigned count_right(const CUfunction *kernels, unsigned count, CUdeviceptr words)
{
    uint32_t *seen = calloc(count, sizeof(*seen));
    unsigned right = 0;
    must("fill", cuMemsetD32(words, 0, count));
    for (unsigned i = 0; i < count; i++) {
        CUdeviceptr at = words + i * sizeof(*seen);
        void *params[] = { &at };
        must("launch", cuLaunchKernel(kernels[i], 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    }
    must("copy", cuMemcpyDtoH(seen, words, count * sizeof(*seen)));
    for (unsigned i = 0; i < count; i++)
        right += seen[i] == i + 1;
    free(seen);
    return right;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    CUfunction *kernels = calloc(count, sizeof(CUfunction));
    CUdevice device;
    CUcontext context;
    CUdeviceptr words;
    char line[16];
    setvbuf(stdout, NULL, _IOLBF, 0);
    must("init", cuInit(0));
    must("device", cuDeviceGet(&device, 0));
    must("context", cuDevicePrimaryCtxRetain(&context, device));
    must("context", cuCtxSetCurrent(context));
    must("memory", cuMemAlloc(&words, count * sizeof(uint32_t)));
    for (unsigned i = 0; i < count; i++)
        kernels[i] = load(i + 1);
    printf("loaded\n");
    while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0)
        printf("%u\n", count_right(kernels, count, words));
    free(kernels);
    return 0;
}
