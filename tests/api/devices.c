/* Several devices in one program, and in two. Skipped where there is one. */
#include "nodes.h"
#include "peer.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define MIB (1u << 20)

static CUcontext contexts[2];
static struct peer other;

static void need_two(void)
{
    int n = 0;
    OK(cuDeviceGetCount(&n));
    if (n < 2)
        tap_skip("there is one device");
    for (int i = 0; i < 2; i++)
        OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
}

static void leave(void)
{
    OK(cuCtxSetCurrent(contexts[0]));
    for (int i = 0; i < 2; i++)
        OK(cuDevicePrimaryCtxRelease(i));
}

static CUdeviceptr allocate(int device, size_t size, unsigned char value)
{
    CUdeviceptr p;
    OK(cuCtxSetCurrent(contexts[device]));
    OK(cuMemAlloc(&p, size));
    OK(cuMemsetD8(p, value, size));
    OK(cuCtxSynchronize());
    return p;
}

static void each_is_itself(void)
{
    char bus[2][32];
    CUuuid uuid[2];
    need_two();
    for (int i = 0; i < 2; i++) {
        CUdevice found = -1, d = -1;
        int attribute = -1;
        OK(cuDeviceGet(&d, i));
        EQ(d, i);
        OK(cuDeviceGetPCIBusId(bus[i], sizeof(bus[i]), i));
        OK(cuDeviceGetByPCIBusId(&found, bus[i]));
        EQ(found, i);
        OK(cuDeviceGetUuid(&uuid[i], i));
        OK(cuDeviceGetAttribute(&attribute, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, i));
        TRUE(attribute > 0);
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuCtxGetDevice(&d));
        EQ(d, i);
    }
    TRUE(strcmp(bus[0], bus[1]) != 0);
    TRUE(memcmp(&uuid[0], &uuid[1], sizeof(uuid[0])) != 0);
    TRUE(contexts[0] != contexts[1]);
    leave();
}

static void memory_is_of_the_current_device(void)
{
    size_t before[2], after[2], total;
    CUdeviceptr p;
    int ordinal = -1;
    CUcontext context = NULL;
    need_two();
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuMemGetInfo(&before[i], &total));
    }
    p = allocate(1, 64 * MIB, 3);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    EQ(ordinal, 1);
    OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    TRUE(context == contexts[1]);
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuMemGetInfo(&after[i], &total));
    }
    if (tap_alone()) {
        TRUE(after[0] > before[0] - 32 * MIB); /* the driver may have taken a little for itself */
        TRUE(before[1] - after[1] >= 64 * MIB);
    }
    OK(cuCtxSetCurrent(contexts[0])); /* whichever is current */
    EQ(tap_byte(p + 64 * MIB - 1), 3);
    OK(cuMemFree(p));
    leave();
}

static void copies_between_devices(void)
{
    unsigned char bytes[256];
    CUdeviceptr p[2];
    CUstream s;
    need_two();
    for (int i = 0; i < 2; i++)
        p[i] = allocate(i, MIB, (unsigned char)(10 + i));
    OK(cuMemcpyPeer(p[0], contexts[0], p[1], contexts[1], 1000));
    EQ(tap_byte(p[0] + 999), 11);
    EQ(tap_byte(p[0] + 1000), 10);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING)); /* of device 1 */
    OK(cuMemsetD8Async(p[1], 77, MIB, s));
    OK(cuMemcpyPeerAsync(p[0], contexts[0], p[1], contexts[1], MIB, s));
    OK(cuStreamSynchronize(s));
    EQ(tap_byte(p[0] + MIB - 1), 77);
    OK(cuMemsetD8(p[1], 5, 256));
    OK(cuCtxSynchronize());
    /* Memory of one device by way of the other's streams. */
    OK(cuCtxSetCurrent(contexts[0]));
    memset(bytes, 0, sizeof(bytes));
    OK(cuMemcpyDtoH(bytes, p[1], sizeof(bytes)));
    for (size_t i = 0; i < sizeof(bytes); i++)
        EQ(bytes[i], 5);
    memset(bytes, 6, sizeof(bytes));
    OK(cuMemcpyHtoD(p[1], bytes, sizeof(bytes)));
    OK(cuMemcpyDtoD(p[1] + 256, p[1], 256));
    OK(cuMemcpy(p[0], p[1] + 256, 256));
    EQ(tap_byte(p[0] + 255), 6);
    const CUDA_MEMCPY3D_PEER box = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                     .srcDevice = p[1],
                                     .srcContext = contexts[1],
                                     .srcPitch = 64,
                                     .srcHeight = 4,
                                     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                     .dstDevice = p[0] + 4096,
                                     .dstContext = contexts[0],
                                     .dstPitch = 128,
                                     .dstHeight = 4,
                                     .WidthInBytes = 32,
                                     .Height = 4,
                                     .Depth = 2 };
    OK(cuMemcpy3DPeer(&box));
    EQ(tap_byte(p[0] + 4096 + 7 * 128 + 31), 6);
    EQ(tap_byte(p[0] + 4096 + 7 * 128 + 32), 77);
    OK(cuStreamDestroy(s));
    for (int i = 0; i < 2; i++)
        OK(cuMemFree(p[i]));
    leave();
}

static void launch_add(CUfunction f, CUdeviceptr p, uint32_t by, CUstream s)
{
    void *params[] = { &p, &by };
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
}

static void kernels_and_events(void)
{
    CUdeviceptr p[2];
    CUmodule m[2];
    CUfunction f[2];
    CUstream s[2];
    CUevent e[2];
    need_two();
    if (!tap_computes())
        tap_skip("the null device runs no kernels");
    for (int i = 0; i < 2; i++) {
        p[i] = allocate(i, 4096, 0);
        OK(cuModuleLoadData(&m[i], tap_ptx));
        OK(cuModuleGetFunction(&f[i], m[i], "add_to"));
        OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&e[i], CU_EVENT_DEFAULT));
        launch_add(f[i], p[i], 7 + (uint32_t)i, s[i]);
        OK(cuEventRecord(e[i], s[i]));
    }
    OK(cuStreamWaitEvent(s[1], e[0], 0));
    OK(cuMemcpyPeerAsync(p[1] + 4, contexts[1], p[0], contexts[0], 4, s[1]));
    OK(cuStreamSynchronize(s[1]));
    EQ(read_word(p[1]), 8);
    EQ(read_word(p[1] + 4), 7);
    /* Neither a stream nor an event serves the other device's. */
    void *params[] = { &p[0], &(uint32_t) { 1 } };
    TRUE(cuLaunchKernel(f[0], 1, 1, 1, 1, 1, 1, 0, s[1], params, NULL) != CUDA_SUCCESS);
    TRUE(cuEventRecord(e[0], s[1]) != CUDA_SUCCESS);
    EQ(read_word(p[0]), 7);
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuEventDestroy(e[i]));
        OK(cuStreamDestroy(s[i]));
        OK(cuModuleUnload(m[i]));
        OK(cuMemFree(p[i]));
    }
    leave();
}

static void a_library_is_on_all(void)
{
    static const char text[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .global .align 4 .u32 kept = 5;\n"
        ".visible .entry keep(.param .u32 v)\n"
        "{\n .reg .b32 %r<3>;\n ld.param.u32 %r1, [v];\n ld.global.u32 %r2, [kept];\n"
        " add.u32 %r1, %r1, %r2;\n st.global.u32 [kept], %r1;\n ret;\n}\n";
    CUlibrary library;
    CUkernel kernel;
    CUdeviceptr kept[2];
    size_t size;
    need_two();
    if (!tap_computes())
        tap_skip("the null device runs no kernels");
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "keep"));
    for (int i = 0; i < 2; i++) {
        uint32_t by = 10u * (uint32_t)(i + 1);
        void *params[] = { &by };
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuLaunchKernel((CUfunction)(void *)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        OK(cuLibraryGetGlobal(&kept[i], &size, library, "kept"));
        EQ(size, 4);
        OK(cuCtxSynchronize());
    }
    TRUE(kept[0] != kept[1]); /* a variable of its own on each */
    EQ(read_word(kept[0]), 15);
    EQ(read_word(kept[1]), 25);
    OK(cuLibraryUnload(library));
    leave();
}

static void peers(void)
{
    CUdeviceptr p;
    CUmodule m;
    CUfunction f;
    int can = -1, value = -1;
    need_two();
    OK(cuDeviceCanAccessPeer(&can, 0, 0));
    EQ(can, 0);
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    EQ(can, value);
    if (!can)
        tap_skip("these devices cannot be peers");
    p = allocate(1, 4096, 0);
    OK(cuCtxSetCurrent(contexts[0]));
    IS(cuCtxDisablePeerAccess(contexts[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(cuCtxEnablePeerAccess(contexts[1], 0));
    IS(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    IS(cuCtxEnablePeerAccess(contexts[1], 1), CUDA_ERROR_INVALID_VALUE);
    if (tap_computes()) {
        CUdeviceptr later = allocate(1, 4096, 0); /* what comes later, too */
        OK(cuCtxSetCurrent(contexts[0]));
        OK(cuModuleLoadData(&m, tap_ptx));
        OK(cuModuleGetFunction(&f, m, "add_to"));
        launch_add(f, p, 9, NULL);
        launch_add(f, later, 8, NULL);
        OK(cuCtxSynchronize());
        EQ(read_word(p), 9);
        EQ(read_word(later), 8);
        OK(cuModuleUnload(m));
        OK(cuMemFree(later));
    }
    OK(cuCtxDisablePeerAccess(contexts[1]));
    IS(cuCtxDisablePeerAccess(contexts[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(cuMemFree(p));
    leave();
}

/* Unlike copies, fills are for who may touch the memory: streams of its device, and peers. */
static void fills(void)
{
    CUdeviceptr p;
    CUstream mine, its;
    int can = -1;
    need_two();
    p = allocate(1, MIB, 1);
    OK(cuStreamCreate(&its, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
    IS(cuMemsetD8(p, 2, 256), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemsetD32Async(p, 2, 64, mine), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemsetD2D8(p, 64, 2, 32, 4), CUDA_ERROR_INVALID_VALUE);
    EQ(tap_byte(p), 1);
    OK(cuMemsetD8Async(p, 3, 256, its)); /* it is the stream that counts */
    OK(cuStreamSynchronize(its));
    EQ(tap_byte(p + 255), 3);
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    if (can) {
        OK(cuCtxEnablePeerAccess(contexts[1], 0));
        OK(cuMemsetD8(p, 4, 256));
        OK(cuMemsetD32Async(p + 256, 5, 64, mine));
        OK(cuCtxSynchronize());
        EQ(tap_byte(p + 255), 4);
        EQ(tap_byte(p + 256), 5);
        OK(cuCtxDisablePeerAccess(contexts[1]));
        IS(cuMemsetD8(p, 6, 256), CUDA_ERROR_INVALID_VALUE);
    }
    OK(cuStreamDestroy(mine));
    OK(cuStreamDestroy(its));
    OK(cuMemFree(p));
    leave();
}

static void virtual_memory(void)
{
    const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                     .id = 1 } };
    CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 },
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    const CUmemLocation first = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
    CUmemGenericAllocationHandle handle;
    unsigned long long flags = 99;
    CUdeviceptr p;
    size_t size = 0;
    int can = 0, ordinal = -1;
    need_two();
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemAddressReserve(&p, size, 0, 0, 0));
    OK(cuMemCreate(&handle, size, &prop, 0));
    OK(cuMemMap(p, size, 0, handle, 0));
    OK(cuMemSetAccess(p, size, &access, 1));
    OK(cuMemGetAccess(&flags, &access.location, p));
    EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemGetAccess(&flags, &first, p));
    EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    EQ(ordinal, 1);
    OK(cuMemsetD8(p, 4, size));
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    if (can) {
        access.location.id = 0;
        OK(cuMemSetAccess(p, size, &access, 1));
        OK(cuMemGetAccess(&flags, &first, p));
        EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    EQ(tap_byte(p + size - 1), 4);
    OK(cuCtxSynchronize());
    OK(cuMemUnmap(p, size));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(p, size));
    leave();
}

static void pools(void)
{
    CUmemoryPool pool[2];
    CUmemAccess_flags flags;
    CUmemLocation location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
    CUdeviceptr p;
    int ordinal = -1;
    need_two();
    for (int i = 0; i < 2; i++)
        OK(cuDeviceGetDefaultMemPool(&pool[i], i));
    TRUE(pool[0] != pool[1]);
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuMemAllocAsync(&p, 4096, NULL));
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    EQ(ordinal, 1);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuMemAllocFromPoolAsync(&p, 4096, pool[0],
                               NULL)); /* the other's memory in a stream of this one */
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    EQ(ordinal, 0);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuCtxSynchronize());
    IS(cuDeviceSetMemPool(0, pool[1]), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolGetAccess(&flags, pool[0], &location));
    EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    location.id = 1;
    OK(cuMemPoolGetAccess(&flags, pool[0], &location));
    EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    leave();
}

static CUmemoryPool shared_pool(int *fd)
{
    static const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                          .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                        .id = 1 } };
    CUmemoryPool pool;
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemPoolExportToShareableHandle(fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    return pool;
}

/* Whichever device is current. */
static void an_imported_pool_is_its_device_s(void)
{
    CUmemoryPool pool, again;
    CUmemLocation location = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
    CUmemAccess_flags flags;
    int fd = -1;
    need_two();
    OK(cuCtxSetCurrent(contexts[0]));
    pool = shared_pool(&fd);
    OK(cuMemPoolImportFromShareableHandle(&again, (void *)(intptr_t)fd,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(fd);
    OK(cuMemPoolGetAccess(&flags, again, &location));
    EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    location.id = 1;
    OK(cuMemPoolGetAccess(&flags, again, &location));
    EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemPoolDestroy(again));
    OK(cuMemPoolDestroy(pool));
    leave();
}

/* As the other program, whose current device is 0, has it. */
static void a_pool_for_another_program(void)
{
    CUmemoryPool pool;
    CUdeviceptr p;
    int fd = -1, can = 0;
    need_two();
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    if (!can) {
        leave();
        tap_skip("these devices cannot be peers");
    }
    OK(cuCtxSetCurrent(contexts[1]));
    pool = shared_pool(&fd);
    OK(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL));
    OK(cuMemsetD8(p, 6, 4096));
    OK(cuCtxSynchronize());
    struct peer_message m = { .op = PEER_POOL_IMPORT };
    peer_ask_fd(&other, &m, fd);
    close(fd);
    EQ(m.result, CUDA_SUCCESS);
    m = ASK(other, .op = PEER_POOL_ACCESS, .value = 0);
    EQ(m.result, CUDA_SUCCESS);
    EQ(m.value, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    ASK_OK(other, .op = PEER_POOL_LET, .value = 0);
    m = ASK(other, .op = PEER_POOL_ACCESS, .value = 0);
    EQ(m.value, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    m = (struct peer_message) { .op = PEER_POOL_POINTER };
    OK(cuMemPoolExportPointer(&m.pointer_data, p));
    peer_ask(&other, &m);
    EQ(m.result, CUDA_SUCCESS);
    EQ(peer_byte(&other, m.pointer + 4095), 6);
    if (tap_computes()) {
        ASK_OK(other, .op = PEER_POKE, .pointer = m.pointer); /* by a kernel of device 0 */
        EQ(read_word(p), 1);
    }
    ASK_OK(other, .op = PEER_FREE, .pointer = m.pointer);
    ASK_OK(other, .op = PEER_POOL_END);
    OK(cuMemFree(p));
    OK(cuMemPoolDestroy(pool));
    leave();
}

static void a_graph_on_both(void)
{
    CUdeviceptr p[2];
    CUmodule m[2];
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[3];
    CUstream s;
    need_two();
    if (!tap_computes())
        tap_skip("the null device runs no kernels");
    OK(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 2; i++) {
        CUfunction f;
        uint32_t by = 3;
        p[i] = allocate(i, 4096, 0);
        OK(cuModuleLoadData(&m[i], tap_ptx));
        OK(cuModuleGetFunction(&f, m[i], "add_to"));
        void *params[] = { &p[i], &by };
        const CUDA_KERNEL_NODE_PARAMS k = one_thread(f, params);
        OK(cuGraphAddKernelNode(&nodes[i], graph, nodes, (size_t)i, &k));
    }
    const CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .srcDevice = p[1],
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = p[0] + 4,
                                 .WidthInBytes = 4,
                                 .Height = 1,
                                 .Depth = 1 };
    OK(cuGraphAddMemcpyNode(&nodes[2], graph, &nodes[1], 1, &copy, contexts[1]));
    OK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 2; i++) { /* from a stream of either device */
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        OK(cuGraphLaunch(exec, s));
        OK(cuGraphLaunch(exec, s));
        OK(cuStreamSynchronize(s));
        OK(cuStreamDestroy(s));
        EQ(read_word(p[0]), 6 * (i + 1));
        EQ(read_word(p[1]), 6 * (i + 1));
        EQ(read_word(p[0] + 4), 6 * (i + 1));
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuModuleUnload(m[i]));
        OK(cuMemFree(p[i]));
    }
    leave();
}

static uint64_t graph_memory(int device)
{
    cuuint64_t used = 99;
    OK(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    return used;
}

static void a_graphs_memory_is_its_device_s(void)
{
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode n, freed;
    CUstream s;
    need_two();
    CUDA_MEM_ALLOC_NODE_PARAMS a = {
        .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } },
        .bytesize = 1 << 20,
    };
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemAllocNode(&n, graph, NULL, 0, &a));
    OK(cuGraphAddMemFreeNode(&freed, graph, &n, 1, a.dptr));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuGraphLaunch(exec, s));
    OK(cuStreamSynchronize(s));
    EQ(graph_memory(0), 0);
    EQ(graph_memory(1), 32 << 20);
    OK(cuDeviceGraphMemTrim(0));
    EQ(graph_memory(1), 32 << 20);
    OK(cuDeviceGraphMemTrim(1));
    EQ(graph_memory(1), 0);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy(s));
    leave();
}

static _Atomic int go;

/* A stream of device 0 that stands until `go`. */
static CUstream held_stream(void)
{
    CUstream s;
    go = 0;
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(s, tap_hold, &go));
    return s;
}

static void end_stream(CUstream s)
{
    hold_set(&go, 1);
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuStreamSynchronize(s));
    OK(cuStreamDestroy(s));
}

static CUdeviceptr map_one(size_t *size, CUmemGenericAllocationHandle *handle)
{
    const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                     .id = 1 } };
    const CUmemAccessDesc access = { .location = prop.location,
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUdeviceptr p;
    OK(cuMemGetAllocationGranularity(size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemAddressReserve(&p, *size, 0, 0, 0));
    OK(cuMemCreate(handle, *size, &prop, 0));
    OK(cuMemMap(p, *size, 0, *handle, 0));
    OK(cuMemSetAccess(p, *size, &access, 1));
    return p;
}

/* A kernel of one device may wait for one that the same thread launches on another only after it
 * has freed something there. */
static void nobody_waits_for_the_other_device(void)
{
    CUdeviceptr p, pooled, mapped;
    CUmemGenericAllocationHandle handle;
    CUmodule m;
    size_t size;
    need_two();
    p = allocate(1, MIB, 1);
    OK(cuMemAllocAsync(&pooled, MIB, NULL));
    OK(cuModuleLoadData(&m, tap_ptx));
    mapped = map_one(&size, &handle);
    OK(cuCtxSynchronize());
    CUstream s = held_stream();
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuMemFree(p));
    IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuMemFree(pooled));
    IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuMemUnmap(mapped, size));
    IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuModuleUnload(m));
    IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    end_stream(s);
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(mapped, size));
    leave();
}

static void *let_go(void *arg)
{
    while (!atomic_load((_Atomic int *)arg))
        sched_yield();
    hold_set(&go, 1);
    return NULL;
}

/* A copy from there is waited for, whichever device makes it. */
static void copies_are_waited_for(void)
{
    CUdeviceptr p[2];
    pthread_t thread;
    _Atomic int freeing = 0;
    need_two();
    if (!tap_ours())
        tap_skip("whether the driver waits is not said anywhere");
    for (int i = 0; i < 2; i++)
        p[i] = allocate(i, MIB, (unsigned char)(i + 1));
    CUstream s = held_stream();
    OK(cuMemcpyPeerAsync(p[0], contexts[0], p[1], contexts[1], MIB, s));
    EQ(pthread_create(&thread, NULL, let_go, &freeing), 0);
    freeing = 1;
    OK(cuMemFree(p[1]));
    EQ(pthread_join(thread, NULL), 0);
    end_stream(s);
    EQ(tap_byte(p[0] + MIB - 1), 2);
    OK(cuMemFree(p[0]));
    leave();
}

/* The other program's device 0 is this one's, too; each works on one. */
static void two_programs(void)
{
    CUdeviceptr mine;
    need_two();
    struct peer_message m = { .op = PEER_ALLOC, .size = MIB };
    peer_ask(&other, &m);
    EQ(m.result, CUDA_SUCCESS);
    CUdeviceptr theirs = m.pointer;
    mine = allocate(1, MIB, 21);
    m = (struct peer_message) { .op = PEER_SET, .pointer = theirs, .size = MIB, .value = 20 };
    peer_ask(&other, &m);
    EQ(m.result, CUDA_SUCCESS);
    m = (struct peer_message) { .op = PEER_SYNC };
    peer_ask(&other, &m);
    EQ(m.result, CUDA_SUCCESS);
    EQ(tap_byte(mine), 21);
    m = (struct peer_message) { .op = PEER_GET, .pointer = theirs };
    peer_ask(&other, &m);
    EQ(m.value, 20);
    /* Shared memory has its device everywhere. */
    m = (struct peer_message) { .op = PEER_GET_HANDLE, .pointer = theirs };
    peer_ask(&other, &m);
    EQ(m.result, CUDA_SUCCESS);
    CUdeviceptr opened;
    int ordinal = -1;
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuIpcOpenMemHandle(&opened, m.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, opened));
    EQ(ordinal, 0);
    EQ(tap_byte(opened), 20);
    OK(cuMemcpyPeer(mine, contexts[1], opened, contexts[0], MIB));
    EQ(tap_byte(mine + MIB - 1), 20);
    OK(cuIpcCloseMemHandle(opened));
    m = (struct peer_message) { .op = PEER_FREE, .pointer = theirs };
    peer_ask(&other, &m);
    OK(cuMemFree(mine));
    leave();
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(each_is_itself),
                                             TEST(memory_is_of_the_current_device),
                                             TEST(copies_between_devices),
                                             TEST(kernels_and_events),
                                             TEST(a_library_is_on_all),
                                             TEST(peers),
                                             TEST(fills),
                                             TEST(virtual_memory),
                                             TEST(pools),
                                             TEST(an_imported_pool_is_its_device_s),
                                             TEST(a_pool_for_another_program),
                                             TEST(a_graph_on_both),
                                             TEST(a_graphs_memory_is_its_device_s),
                                             TEST(nobody_waits_for_the_other_device),
                                             TEST(copies_are_waited_for),
                                             TEST(two_programs) };
    peer_start(&other);
    return tap_main(tests, COUNT(tests));
}
