/* What copies with arrays become in graphs: the records that a launch puts into the ring. No device
 * here has arrays, so the arrays are handles of this test's. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <string.h>

#include "client/memory/array.h"
#include "fake.h"

static struct fake fake;
static CUdeviceptr memory;
static CUarray array;
static CUstream stream;

static void setup(void)
{
    CUcontext c;
    fake_start(&fake, fake_serve_well, NULL);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&memory, 4096), CUDA_SUCCESS);
    cr_assert_eq(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    struct rt_array *a = rt_object_take(&rt_arrays);
    cr_assert_not_null(a);
    a->context = rt_current.context;
    a->number = 7;
    a->shape = (struct dev_array_shape) {
        .width = 16, .height = 8, .format = CU_AD_FORMAT_FLOAT, .channels = 1
    };
    rt_object_publish(&a->object);
    array = rt_array_handle(a);
}

/* The next record, which must be a copy with an array. */
static struct wire_rec_copy_array next(void)
{
    static uint8_t buffer[WIRE_RECORD_MAX] GM_ALIGNED(8);
    struct wire_rec_copy_array r;
    cr_assert_eq(tp_ring_peek(&fake.ring, buffer, sizeof(buffer)), 1);
    memcpy(&r, buffer, sizeof(r));
    cr_assert_eq(r.head.op, WIRE_OP_COPY_ARRAY);
    cr_assert_eq(r.head.size, sizeof(r));
    tp_ring_advance(&fake.ring);
    return r;
}

static CUDA_MEMCPY3D up(size_t x, size_t y, size_t width, size_t height)
{
    return (CUDA_MEMCPY3D) { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                             .srcDevice = memory,
                             .srcPitch = 128,
                             .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                             .dstArray = array,
                             .dstXInBytes = x,
                             .dstY = y,
                             .WidthInBytes = width,
                             .Height = height,
                             .Depth = 1 };
}

static void check(const struct wire_rec_copy_array *r, uint32_t x, uint32_t y, uint32_t height)
{
    cr_assert_eq(r->dst_array, 7);
    cr_assert_eq(r->src_array, 0);
    cr_assert_eq(r->src, memory);
    cr_assert_eq(r->src_pitch, 128);
    cr_assert_eq(r->dst_x, x);
    cr_assert_eq(r->dst_y, y);
    cr_assert_eq(r->width, 40);
    cr_assert_eq(r->height, height);
    cr_assert_eq(r->depth, 1);
}

TestSuite(array, .init = setup, .timeout = 20);

Test(array, a_node)
{
    CUgraph g;
    CUgraphNode n;
    CUgraphExec e;
    CUDA_MEMCPY3D c = up(8, 2, 40, 1);
    cr_assert_eq(cuGraphCreate(&g, 0), CUDA_SUCCESS);
    cr_assert_eq(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, NULL), CUDA_SUCCESS);
    cr_assert_eq(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_SUCCESS);
    cr_assert_eq(cuGraphLaunch(e, stream), CUDA_SUCCESS);
    struct wire_rec_copy_array r = next();
    check(&r, 8, 2, 1);
    c = up(4, 1, 40, 1); /* in the place of the old record */
    cr_assert_eq(cuGraphExecMemcpyNodeSetParams(e, n, &c, NULL), CUDA_SUCCESS);
    tp_word_publish(&fake.session.streams[r.head.stream].completed, r.head.seq);
    cr_assert_eq(cuGraphLaunch(e, stream), CUDA_SUCCESS);
    r = next();
    check(&r, 4, 1, 1);
}

Test(array, captured)
{
    CUgraph g;
    CUgraphNode n;
    CUgraphExec e;
    size_t count = 1;
    CUDA_MEMCPY3D is, c = up(8, 2, 40, 3);
    cr_assert_eq(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    cr_assert_eq(cuMemcpy3DAsync_v2(&c, stream), CUDA_SUCCESS);
    cr_assert_eq(cuStreamEndCapture(stream, &g), CUDA_SUCCESS);
    cr_assert_eq(cuGraphGetNodes(g, &n, &count), CUDA_SUCCESS);
    cr_assert_eq(count, 1);
    cr_assert_eq(cuGraphMemcpyNodeGetParams(n, &is), CUDA_SUCCESS);
    cr_assert_eq(is.dstArray, array);
    cr_assert_eq(is.dstXInBytes, 8);
    cr_assert_eq(is.dstY, 2);
    cr_assert_eq(is.srcPitch, 128);
    cr_assert_eq(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_SUCCESS);
    cr_assert_eq(cuGraphLaunch(e, stream), CUDA_SUCCESS);
    struct wire_rec_copy_array r = next();
    check(&r, 8, 2, 3);
}

Test(array, beyond_its_bounds)
{
    CUgraph g;
    CUgraphNode n;
    const CUDA_MEMCPY3D wide = up(28, 0, 40, 3), high = up(0, 6, 40, 3);
    cr_assert_eq(cuGraphCreate(&g, 0), CUDA_SUCCESS);
    cr_assert_eq(cuGraphAddMemcpyNode(&n, g, NULL, 0, &wide, NULL), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(cuGraphAddMemcpyNode(&n, g, NULL, 0, &high, NULL), CUDA_ERROR_INVALID_VALUE);
    /* Captured, it spoils the capture. */
    cr_assert_eq(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    cr_assert_eq(cuMemcpy3DAsync_v2(&wide, stream), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(cuStreamEndCapture(stream, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
