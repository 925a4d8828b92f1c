/* Many copies by one call, copies between contexts, and what peers of one device may say to each
 * other. */
#include "tap.h"

#include <string.h>

static void many(void)
{
    CUstream s;
    CUdeviceptr p, dsts[3], srcs[3];
    unsigned char from[300], to[100];
    size_t sizes[3] = { 100, 50, 100 }, index = 0;
    CUmemcpyAttributes attributes = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 1000));
    OK(cuMemsetD8(p, 0, 1000));
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < sizeof(from); i++)
        from[i] = (unsigned char)i;
    dsts[0] = p;
    srcs[0] = (CUdeviceptr)(uintptr_t)from;
    dsts[1] = p + 200;
    srcs[1] = p + 10;
    dsts[2] = (CUdeviceptr)(uintptr_t)to;
    srcs[2] = p + 150;
    /* Copies of one batch have no order among themselves. */
    for (unsigned i = 0; i < 3; i++) {
        OK(cuMemcpyBatchAsync_v2(&dsts[i], &srcs[i], &sizes[i], 1, &attributes, &index, 1, s));
        OK(cuStreamSynchronize(s));
    }
    EQ(to[49], 0);
    EQ(to[50], 10);
    EQ(to[99], 59);
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    dsts[1] = p + 500;
    srcs[1] = (CUdeviceptr)(uintptr_t)(from + 100);
    OK(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, &attributes, &index, 1, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH(to, p + 500, 50));
    EQ(to[49], 149);
    TRUE(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 0, &attributes, &index, 1, s) != CUDA_SUCCESS);
    index = 1;
    TRUE(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, &attributes, &index, 1, s) != CUDA_SUCCESS);
    index = 0;
    TRUE(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, &attributes, &index, 1, NULL) != CUDA_SUCCESS);
    OK(cuMemFree(p));
    OK(cuStreamDestroy(s));
}

static void boxes(void)
{
    CUstream s;
    CUdeviceptr p, q;
    unsigned char bytes[16 * 4], out[16];
    CUDA_MEMCPY3D_BATCH_OP op;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, sizeof(bytes)));
    OK(cuMemAlloc(&q, 64));
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)i;
    OK(cuMemcpyHtoD(p, bytes, sizeof(bytes)));
    OK(cuMemsetD8(q, 0xff, 64));
    memset(&op, 0, sizeof(op));
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = p + 2;
    op.src.op.ptr.rowLength = 16;
    op.src.op.ptr.layerHeight = 2;
    op.dst.op.ptr.ptr = q; /* packed */
    op.extent = (CUextent3D) { .width = 4, .height = 2, .depth = 2 };
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    OK(cuStreamSynchronize(NULL));
    OK(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH(out, q, sizeof(out)));
    EQ(out[0], 2);
    EQ(out[3], 5);
    EQ(out[4], 18);
    EQ(out[8], 34);
    EQ(out[15], 53);
    /* Into an array, where an element has two bytes: rows of 3 from 2, 2. */
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR d = {
        .Width = 8, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT16, .NumChannels = 1
    };
    OK(cuArrayCreate(&array, &d));
    op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    op.dst.op.array.array = array;
    op.dst.op.array.offset = (CUoffset3D) { .x = 2, .y = 2 };
    op.src.op.ptr.rowLength = 8;
    op.extent = (CUextent3D) { .width = 3, .height = 2, .depth = 1 };
    OK(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
    op.src = op.dst;
    op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.dst.op.ptr.ptr = q;
    op.dst.op.ptr.rowLength = op.dst.op.ptr.layerHeight = 0;
    OK(cuMemcpy3DBatchAsync_v2(1, &op, 0, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH(out, q, sizeof(out)));
    EQ(out[0], 2);
    EQ(out[5], 7);
    EQ(out[6], 18);
    EQ(out[11], 23);
    op.src.op.array.offset.x = 6; /* the row ends at 8 */
    IS(cuMemcpy3DBatchAsync_v2(1, &op, 0, s), CUDA_ERROR_INVALID_VALUE);
    op.src.op.array.offset.x = ~(size_t)0 / 2 + 1;
    if (!tap_genuine()) /* 580.159 multiplies without a look: success */
        IS(cuMemcpy3DBatchAsync_v2(1, &op, 0, s), CUDA_ERROR_INVALID_VALUE);
    /* Between arrays whose elements have different sizes. */
    CUarray bytes_array;
    d.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    OK(cuArrayCreate(&bytes_array, &d));
    op.src.op.array.offset.x = 0;
    op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    op.dst.op.array.array = bytes_array;
    op.dst.op.array.offset = (CUoffset3D) { 0 };
    IS(cuMemcpy3DBatchAsync_v2(1, &op, 0, s), CUDA_ERROR_INVALID_VALUE);
    OK(cuArrayDestroy(bytes_array));
    OK(cuArrayDestroy(array));
    op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.dst.op.ptr.ptr = q;
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    TRUE(cuMemcpy3DBatchAsync_v2(1, &op, 0, s) != CUDA_SUCCESS);
    OK(cuMemFree(p));
    OK(cuMemFree(q));
    OK(cuStreamDestroy(s));
}

static void between_contexts(void)
{
    CUcontext here;
    CUdeviceptr p, q;
    uint32_t word = 0;
    OK(cuCtxGetCurrent(&here));
    OK(cuMemAlloc(&p, 64));
    OK(cuMemAlloc(&q, 64));
    OK(cuMemsetD32(p, 5, 16));
    CUDA_MEMCPY3D_PEER copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = p,
                                .srcContext = here,
                                .srcPitch = 16,
                                .srcHeight = 4,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = q,
                                .dstContext = here,
                                .dstPitch = 16,
                                .dstHeight = 4,
                                .WidthInBytes = 16,
                                .Height = 4,
                                .Depth = 1 };
    OK(cuMemcpy3DPeer(&copy));
    OK(cuMemcpyDtoH(&word, q + 60, 4));
    EQ(word, 5);
    OK(cuMemsetD32(p, 6, 16));
    OK(cuMemcpy3DPeerAsync(&copy, NULL));
    OK(cuMemcpyDtoH(&word, q + 60, 4));
    EQ(word, 6);
    OK(cuMemFree(p));
    OK(cuMemFree(q));
}

static void peers(void)
{
    CUcontext here;
    int value;
    OK(cuCtxGetCurrent(&here));
    IS(cuCtxEnablePeerAccess(here, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    IS(cuCtxEnablePeerAccess(here, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuCtxEnablePeerAccess(NULL, 1), CUDA_ERROR_INVALID_CONTEXT);
    TRUE(cuCtxDisablePeerAccess(here) != CUDA_SUCCESS);
    IS(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0),
       CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 99),
       CUDA_ERROR_INVALID_DEVICE);
}

static void synchronous_on_request(void)
{
    CUdeviceptr p, q;
    unsigned on = 1, is = 0;
    void *host;
    OK(cuMemAlloc(&p, 1 << 20));
    OK(cuMemAlloc(&q, 1 << 20));
    OK(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    EQ(is, 0);
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 100));
    OK(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    EQ(is, 1);
    for (unsigned i = 0; i < 20; i++) {
        OK(cuMemsetD8(p, (unsigned char)i, 1 << 20));
        OK(cuStreamQuery(NULL)); /* it has waited */
        OK(cuMemcpyDtoD(q, p, 1 << 20));
        OK(cuStreamQuery(NULL));
    }
    TRUE(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_IS_MANAGED, p) != CUDA_SUCCESS);
    TRUE(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0x1000) != CUDA_SUCCESS);
    OK(cuMemAllocHost(&host, 64));
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (uintptr_t)host));
    OK(cuMemFreeHost(host));
    OK(cuMemFree(p));
    OK(cuMemFree(q));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(many), TEST(boxes), TEST(between_contexts), TEST(peers), TEST(synchronous_on_request),
    };
    return tap_main(tests, COUNT(tests));
}
