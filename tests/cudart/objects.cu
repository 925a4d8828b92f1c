/*
 * Copies between arrays and to peers, textures read back, libraries that the program loads, and
 * their kernels where the program's own can stand.
 */
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "check.h"

__global__ void mixed(char c, double d, short s, double *out)
{
    *out = c + d + s;
}

static const char *const ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.visible .entry add(.param .u64 p, .param .u32 n)
{
    .reg .u64 %rd<3>;
    .reg .u32 %r<4>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r3, [counter];
    add.u32 %r3, %r3, %r1;
    add.u32 %r3, %r3, %r2;
    st.global.u32 [%rd1], %r3;
    ret;
}
.visible .entry other() { ret; }
)";

/* Bytes in a row, over the ends of rows of different lengths. */
static void rows()
{
    cudaChannelFormatDesc bytes = cudaCreateChannelDesc<unsigned char>();
    cudaArray_t a, b;
    unsigned char in[60], out[60];
    cudaStream_t s;
    OK(cudaStreamCreate(&s));
    OK(cudaMallocArray(&a, &bytes, 12, 5));
    OK(cudaMallocArray(&b, &bytes, 20, 3));
    for (int i = 0; i < 60; i++)
        in[i] = (unsigned char)(i * 7 + 1);
    OK(cudaMemcpyToArrayAsync(a, 0, 0, in, 60, cudaMemcpyHostToDevice, s));
    OK(cudaStreamSynchronize(s));
    OK(cudaMemcpyArrayToArray(b, 0, 0, a, 0, 0, 60));
    OK(cudaMemcpy2DFromArray(out, 20, b, 0, 0, 20, 3, cudaMemcpyDeviceToHost));
    CHECK(!memcmp(in, out, 60));
    memset(out, 0, 60);
    OK(cudaMemcpyArrayToArray(b, 5, 1, a, 3, 2, 31));
    OK(cudaMemcpyFromArrayAsync(out, b, 5, 1, 31, cudaMemcpyDeviceToHost, s));
    OK(cudaStreamSynchronize(s));
    CHECK(!memcmp(out, in + 27, 31) && !out[31]);
    OK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 2, 1, 6, 3));
    OK(cudaMemcpy2DFromArray(out, 6, b, 0, 0, 6, 3, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 3; y++)
        CHECK(!memcmp(out + 6 * y, in + 12 * (y + 1) + 2, 6));
    CHECK(cudaMemcpyArrayToArray(b, 0, 0, a, 0, 0, 61) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyArrayToArray(b, 20, 0, a, 0, 0, 1) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyArrayToArray(b, 0, 0, a, 0, 0, 1, cudaMemcpyHostToDevice) ==
          cudaErrorInvalidMemcpyDirection);
    cudaGetLastError();

    cudaMemcpy3DPeerParms p = {};
    p.srcArray = a;
    p.dstPtr = make_cudaPitchedPtr(out, 12, 12, 5);
    p.extent = make_cudaExtent(12, 5, 1);
    memset(out, 0, 60);
    OK(cudaMemcpy3DPeer(&p));
    CHECK(!memcmp(in, out, 60));
    p.dstDevice = 100;
    CHECK(cudaMemcpy3DPeerAsync(&p, s) == cudaErrorInvalidDevice);
    cudaGetLastError();
    OK(cudaFreeArray(a));
    OK(cudaFreeArray(b));
    OK(cudaStreamDestroy(s));
}

static void textures()
{
    cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>();
    cudaArray_t a;
    cudaTextureObject_t t;
    cudaResourceDesc r = {}, r2;
    cudaTextureDesc d = {}, d2;
    OK(cudaMallocArray(&a, &bytes, 8, 8));
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    d.addressMode[0] = cudaAddressModeMirror;
    d.addressMode[1] = cudaAddressModeBorder;
    d.borderColor[2] = 0.5f;
    d.filterMode = cudaFilterModeLinear;
    d.readMode = cudaReadModeNormalizedFloat;
    d.normalizedCoords = 1;
    OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
    OK(cudaGetTextureObjectResourceDesc(&r2, t));
    OK(cudaGetTextureObjectTextureDesc(&d2, t));
    CHECK(r2.resType == cudaResourceTypeArray && r2.res.array.array == a);
    CHECK(d2.addressMode[0] == cudaAddressModeMirror &&
          d2.addressMode[1] == cudaAddressModeBorder && d2.borderColor[2] == 0.5f);
    CHECK(d2.filterMode == cudaFilterModeLinear && d2.readMode == cudaReadModeNormalizedFloat &&
          d2.normalizedCoords == 1 && d2.sRGB == 0);
    OK(cudaDestroyTextureObject(t));
    CHECK(cudaGetTextureObjectResourceDesc(&r2, t) == cudaErrorInvalidValue);
    OK(cudaFreeArray(a));

    float4 *p;
    r = {};
    d = {};
    OK(cudaMalloc(&p, 64 * sizeof(*p)));
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = p;
    r.res.linear.desc = cudaCreateChannelDesc<float4>();
    r.res.linear.sizeInBytes = 64 * sizeof(*p);
    OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
    OK(cudaGetTextureObjectResourceDesc(&r2, t));
    OK(cudaGetTextureObjectTextureDesc(&d2, t));
    CHECK(r2.resType == cudaResourceTypeLinear && r2.res.linear.devPtr == p &&
          r2.res.linear.sizeInBytes == 1024 && r2.res.linear.desc.w == 32 &&
          r2.res.linear.desc.f == cudaChannelFormatKindFloat);
    CHECK(d2.readMode == cudaReadModeElementType && d2.normalizedCoords == 0);
    OK(cudaDestroyTextureObject(t));
    OK(cudaFree(p));
    cudaGetLastError();
}

static void libraries()
{
    cudaLibrary_t library;
    cudaKernel_t k, all[3] = {};
    unsigned count = 0;
    void *counter;
    size_t size, offset;
    unsigned *p, v[4], n = 100;
    OK(cudaLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(cudaLibraryGetKernelCount(&count, library));
    CHECK(count == 2);
    OK(cudaLibraryEnumerateKernels(all, 3, library));
    OK(cudaLibraryGetKernel(&k, library, "add"));
    CHECK(k == all[0] || k == all[1]);
    CHECK(cudaLibraryGetKernel(&k, library, "none") == cudaErrorSymbolNotFound);
    OK(cudaLibraryGetGlobal(&counter, &size, library, "counter"));
    CHECK(size == 4);
    OK(cudaMalloc(&p, sizeof(v)));
    void *args[] = { &p, &n };
    OK(cudaLaunchKernel((const void *)k, dim3(1), dim3(4), args, 0, nullptr));
    OK(cudaMemcpy(v, p, sizeof(v), cudaMemcpyDeviceToHost));
    CHECK(v[0] == 105 && v[3] == 108);
    n = 200;
    OK(cudaMemcpy(counter, &n, 4, cudaMemcpyHostToDevice));
    OK(cudaLaunchKernel((const void *)k, dim3(1), dim3(4), args, 0, nullptr));
    OK(cudaMemcpy(v, p, sizeof(v), cudaMemcpyDeviceToHost));
    CHECK(v[0] == 400 && v[3] == 403);
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, (const void *)k));
    OK(cudaFuncGetParamInfo((const void *)k, 1, &offset, &size));
    CHECK(offset == 8 && size == 4);
    OK(cudaLibraryUnload(library));
    CHECK(cudaLaunchKernel((const void *)k, dim3(1), dim3(4), args, 0, nullptr) ==
          (CUDART_VERSION < 13000 ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidResourceHandle));
    CHECK(cudaLibraryUnload(library) != cudaSuccess);
    CHECK(cudaLibraryLoadData(&library, "no image", nullptr, nullptr, 0, nullptr, nullptr, 0) !=
          cudaSuccess);
    CHECK(cudaLibraryLoadFromFile(&library, "/none", nullptr, nullptr, 0, nullptr, nullptr, 0) !=
          cudaSuccess);
    cudaGetLastError();
    OK(cudaFree(p));

    const size_t offsets[] = { 0, 8, 16, 24 }, sizes[] = { 1, 8, 2, 8 };
    for (size_t i = 0; i < 4; i++) {
        OK(cudaFuncGetParamInfo((const void *)mixed, i, &offset, &size));
        CHECK(offset == offsets[i] && size == sizes[i]);
    }
    CHECK(cudaFuncGetParamInfo((const void *)mixed, 4, &offset, &size) == cudaErrorInvalidValue);
    cudaGetLastError();
}

/* What was freed is nobody's, and not the program's own memory. */
static void freed()
{
    char *device, *host, own[16] = "unchanged";
    OK(cudaMalloc(&device, 4096));
    OK(cudaMallocHost(&host, 4096));
    OK(cudaMemset(device, 1, 4096));
    OK(cudaFree(device));
    OK(cudaFreeHost(host));
    CHECK(cudaMemcpy(own, device, 16, cudaMemcpyDefault) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(device, own, 16, cudaMemcpyDefault) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(own, host, 16, cudaMemcpyDefault) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(device, host, 16, cudaMemcpyHostToHost) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyAsync(own, device, 16, cudaMemcpyDefault, nullptr) == cudaErrorInvalidValue);
    CHECK(!strcmp(own, "unchanged"));
    cudaGetLastError();
}

/* Banks of shared memory have one size on all devices of today; asking for another one is no error. */
static void banks()
{
    enum cudaSharedMemConfig config = cudaSharedMemBankSizeDefault;
    OK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
    OK(cudaDeviceGetSharedMemConfig(&config));
    CHECK(config == cudaSharedMemBankSizeFourByte);
    OK(cudaFuncSetSharedMemConfig((const void *)mixed, cudaSharedMemBankSizeFourByte));
    CHECK(cudaDeviceSetSharedMemConfig((enum cudaSharedMemConfig)9) == cudaErrorInvalidValue);
    cudaGetLastError();
}

int main()
{
    freed();
    banks();
    rows();
    textures();
    libraries();
    CHECK(cudaGetLastError() == cudaSuccess);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
