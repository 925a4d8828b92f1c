/*
 * Several pieces of memory by one call: copies, also of arrays, places of managed memory, and what
 * is wrong about them. Pools by places, the memory of arrays, atomic operations of the link.
 */
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "check.h"

enum { PIECES = 5, BYTES = 4096, SIDE = 16 };

static cudaStream_t stream;

static void copies()
{
    unsigned char *host = (unsigned char *)malloc(PIECES * BYTES), *back = (unsigned char *)malloc(PIECES * BYTES);
    void *to[PIECES], *from[PIECES], *device;
    size_t sizes[PIECES], first = 0;
    cudaMemcpyAttributes how = {};
    how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    OK(cudaMalloc(&device, PIECES * BYTES));
    OK(cudaMemset(device, 0, PIECES * BYTES));
    memset(back, 1, PIECES * BYTES);
    for (int i = 0; i < PIECES * BYTES; i++)
        host[i] = (unsigned char)(i * 13 + i / BYTES);
    for (int i = 0; i < PIECES; i++) {
        sizes[i] = BYTES - i * 100;
        from[i] = host + i * BYTES;
        to[i] = (char *)device + i * BYTES;
    }
#if CUDART_VERSION >= 13000
    OK(cudaMemcpyBatchAsync(to, from, sizes, PIECES, &how, &first, 1, stream));
    CHECK(cudaMemcpyBatchAsync((unsigned char **)from, (const void **)to, sizes, 0, how, stream) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyBatchAsync(to, from, sizes, PIECES, &how, &first, 0, stream) == cudaErrorInvalidValue);
#else
    size_t failed = 7;
    OK(cudaMemcpyBatchAsync(to, from, sizes, PIECES, &how, &first, 1, &failed, stream));
    CHECK(cudaMemcpyBatchAsync(to, from, sizes, PIECES, &how, &first, 0, &failed, stream) == cudaErrorInvalidValue);
#endif
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(back, device, PIECES * BYTES, cudaMemcpyDeviceToHost));
    for (int i = 0; i < PIECES * BYTES; i++)
        if (back[i] != ((size_t)(i % BYTES) < sizes[i / BYTES] ? host[i] : 0)) {
            printf("byte %d: %d\n", i, back[i]);
            failures++;
            break;
        }
    (void)cudaGetLastError();
    OK(cudaFree(device));
    free(host);
    free(back);
}

// A block of memory goes into an array.
static void arrays()
{
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    cudaArray_t array;
    int *device, host[SIDE * SIDE];
    OK(cudaMallocArray(&array, &format, SIDE, SIDE));
    OK(cudaMallocManaged(&device, sizeof(host)));
    for (int i = 0; i < SIDE * SIDE; i++)
        device[i] = i * 3;
    cudaMemcpy3DBatchOp op = {};
    op.src.type = cudaMemcpyOperandTypePointer;
    op.src.op.ptr.ptr = device;
    op.src.op.ptr.locHint.type = cudaMemLocationTypeDevice;
    op.src.op.ptr.rowLength = SIDE;
    op.src.op.ptr.layerHeight = SIDE;
    op.dst.type = cudaMemcpyOperandTypeArray;
    op.dst.op.array.array = array;
    op.extent = make_cudaExtent(SIDE, SIDE, 1);
    op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
#if CUDART_VERSION >= 13000
    OK(cudaMemcpy3DBatchAsync(1, &op, 0, stream));
    CHECK(cudaMemcpy3DBatchAsync(1, &op, 1, stream) == cudaErrorInvalidValue);
#else
    size_t failed = 7;
    OK(cudaMemcpy3DBatchAsync(1, &op, &failed, 0, stream));
    CHECK(cudaMemcpy3DBatchAsync(1, &op, &failed, 1, stream) == cudaErrorInvalidValue);
#endif
    (void)cudaGetLastError();
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy2DFromArray(host, SIDE * sizeof(int), array, 0, 0, SIDE * sizeof(int), SIDE, cudaMemcpyDeviceToHost));
    CHECK(memcmp(host, device, sizeof(host)) == 0);
    OK(cudaFreeArray(array));
    OK(cudaFree(device));
}

#if CUDART_VERSION >= 13000
static void places()
{
    int *managed[2];
    size_t sizes[2] = { 1 << 20, 1 << 20 }, first = 0;
    cudaMemLocation here = { cudaMemLocationTypeDevice, 0 }, host = { cudaMemLocationTypeHost, 0 };
    for (int i = 0; i < 2; i++) {
        OK(cudaMallocManaged(&managed[i], sizes[i]));
        managed[i][100] = i + 1;
    }
    OK(cudaMemPrefetchBatchAsync(managed, sizes, 2, &here, &first, 1, 0, stream));
    OK(cudaMemPrefetchBatchAsync(managed, sizes, 2, host, 0, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(managed[0][100] == 1 && managed[1][100] == 2);
    CHECK(cudaMemPrefetchBatchAsync(managed, sizes, 2, host, 1, stream) == cudaErrorInvalidValue);
    OK(cudaMemDiscardBatchAsync((void **)managed, sizes, 2, 0, stream));
    OK(cudaMemDiscardAndPrefetchBatchAsync(managed, sizes, 2, here, 0, stream));
    OK(cudaStreamSynchronize(stream));
    (void)cudaGetLastError();

    cudaMemPool_t pool, same, own;
    OK(cudaMemGetDefaultMemPool(&pool, &here, cudaMemAllocationTypePinned));
    OK(cudaDeviceGetDefaultMemPool(&same, 0));
    CHECK(pool == same);
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location = here;
    OK(cudaMemPoolCreate(&own, &props));
    OK(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, own));
    OK(cudaMemGetMemPool(&same, &here, cudaMemAllocationTypePinned));
    CHECK(same == own);
    OK(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, pool));
    OK(cudaMemPoolDestroy(own));

    const cudaAtomicOperation operations[2] = { cudaAtomicOperationIntegerAdd, cudaAtomicOperationCAS };
    unsigned int can[2] = { ~0u, ~0u };
    OK(cudaDeviceGetHostAtomicCapabilities(can, operations, 2, 0));
    CHECK(can[0] != ~0u && can[1] != ~0u);
    CHECK(cudaDeviceGetHostAtomicCapabilities(can, operations, 2, 4711) == cudaErrorInvalidDevice);
    (void)cudaGetLastError();
    for (int i = 0; i < 2; i++)
        OK(cudaFree(managed[i]));
}
#else
static void places()
{
}
#endif

int main()
{
    OK(cudaStreamCreate(&stream));
    copies();
    arrays();
    places();
    OK(cudaStreamDestroy(stream));
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
