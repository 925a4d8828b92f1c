/* Before cuInit; devices, their names and attributes; what the library says of itself. */
#include "answers.h"

static void before_init(void)
{
    int n;
    CUdevice d;
    CUcontext c;
    const char *text;
    CALL(cuDeviceGetCount(&n));
    CALL(cuDeviceGet(&d, 0));
    CALL(cuCtxGetCurrent(&c));
    CALL(cuCtxSynchronize());
    CALL(cuDriverGetVersion(&n));
    NUM(n >= 12000);
    CALL(cuDriverGetVersion(NULL));
    CALL(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text));
    TEXT(text);
    CALL(cuInit(1));
    CALL(cuInit(0));
    CALL(cuInit(0));
    CALL(cuDeviceGetCount(&n));
    NUM(n > 0);
    CALL(cuCtxGetCurrent(&c));
    NUM(c == NULL);
    CALL(cuCtxSynchronize());
}

static void error_texts(void)
{
    const char *text;
    for (int i = 0; i < 1000; i++) {
        if (cuGetErrorName((CUresult)i, &text) != CUDA_SUCCESS)
            continue;
        NUM(i);
        TEXT(text);
    }
    CALL(cuGetErrorName((CUresult)12345, &text));
    NUM(text == NULL);
    CALL(cuGetErrorString((CUresult)12345, &text));
    NUM(text == NULL);
}

static void device_handles(void)
{
    CUdevice d = 99;
    int count = 0;
    CALL(cuDeviceGetCount(&count));
    CALL(cuDeviceGetCount(NULL));
    CALL(cuDeviceGet(&d, 0));
    NUM(d);
    CALL(cuDeviceGet(&d, -1));
    CALL(cuDeviceGet(&d, count));
    CALL(cuDeviceGet(NULL, 0));
}

static void device_names(void)
{
    char name[64];
    CUuuid id, again;
    char luid[8];
    unsigned mask;
    CALL(cuDeviceGetName(name, sizeof(name), 0));
    NUM(strlen(name) > 3);
    CALL(cuDeviceGetName(name, 4, 0));
    NUM(strlen(name));
    CALL(cuDeviceGetName(name, 1, 0));
    NUM(strlen(name));
    CALL(cuDeviceGetName(NULL, 4, 0));
    CALL(cuDeviceGetName(name, 4, -1));
    CALL(cuDeviceGetUuid(&id, 0));
    CALL(cuDeviceGetUuid(&again, 0));
    NUM(memcmp(&id, &again, sizeof(id)));
    CALL(cuDeviceGetUuid(NULL, 0));
    CALL(cuDeviceGetUuid(&id, 1000));
    CALL(cuDeviceGetLuid(luid, &mask, 0));
    CALL(cuDeviceGetLuid(NULL, NULL, 0));
}

static void pci_bus_ids(void)
{
    char id[20], low[20];
    CUdevice d = 99;
    int domain, bus, device;
    CALL(cuDeviceGetPCIBusId(id, sizeof(id), 0));
    NUM(strlen(id));
    CALL(cuDeviceGetAttribute(&domain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0));
    CALL(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0));
    CALL(cuDeviceGetAttribute(&device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0));
    snprintf(low, sizeof(low), "%04X:%02X:%02X.0", (unsigned)domain & 0xffffu,
             (unsigned)bus & 0xffu, (unsigned)device & 0xffu);
    NUM(strcmp(id, low));
    CALL(cuDeviceGetByPCIBusId(&d, id));
    NUM(d);
    CALL(cuDeviceGetByPCIBusId(&d, "ffff:ff:1f.0"));
    CALL(cuDeviceGetByPCIBusId(&d, "nonsense"));
    CALL(cuDeviceGetByPCIBusId(&d, ""));
    CALL(cuDeviceGetByPCIBusId(&d, NULL));
    CALL(cuDeviceGetByPCIBusId(NULL, id));
    CALL(cuDeviceGetPCIBusId(id, 5, 0));
    NUM(strlen(id));
    CALL(cuDeviceGetPCIBusId(id, 12, 0));
    NUM(strlen(id));
    CALL(cuDeviceGetPCIBusId(id, 0, 0));
    CALL(cuDeviceGetPCIBusId(NULL, 20, 0));
}

static void device_attributes(void)
{
    int value;
    char label[40];
    for (int i = 0; i < CU_DEVICE_ATTRIBUTE_MAX; i++) {
        value = -1;
        CUresult r = cuDeviceGetAttribute(&value, (CUdevice_attribute)i, 0);
        snprintf(label, sizeof(label), "attribute %d", i);
        answers_call(label, r);
        answers_number(label, value, true);
    }
    CALL(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0));
    CALL(cuDeviceGetAttribute(&value, (CUdevice_attribute)-1, 0));
    CALL(cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, 0));
    CALL(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    CALL(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000));
    CALL(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1));
}

#define ATTRIBUTE(name)                                                                            \
    do {                                                                                           \
        int v_ = -1;                                                                               \
        cuDeviceGetAttribute(&v_, CU_DEVICE_ATTRIBUTE_##name, 0);                                  \
        answers_number(#name, v_, false);                                                          \
    } while (0)

/* Those that any device of today answers alike. */
static void device_features(void)
{
    ATTRIBUTE(WARP_SIZE);
    ATTRIBUTE(MAX_THREADS_PER_BLOCK);
    ATTRIBUTE(MAX_BLOCK_DIM_X);
    ATTRIBUTE(MAX_BLOCK_DIM_Y);
    ATTRIBUTE(MAX_BLOCK_DIM_Z);
    ATTRIBUTE(MAX_GRID_DIM_X);
    ATTRIBUTE(MAX_GRID_DIM_Y);
    ATTRIBUTE(MAX_GRID_DIM_Z);
    ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK);
    ATTRIBUTE(TOTAL_CONSTANT_MEMORY);
    ATTRIBUTE(MAX_PITCH);
    ATTRIBUTE(MAX_REGISTERS_PER_BLOCK);
    ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR);
    ATTRIBUTE(TEXTURE_ALIGNMENT);
    ATTRIBUTE(TEXTURE_PITCH_ALIGNMENT);
    ATTRIBUTE(SURFACE_ALIGNMENT);
    ATTRIBUTE(GPU_OVERLAP);
    ATTRIBUTE(KERNEL_EXEC_TIMEOUT);
    ATTRIBUTE(INTEGRATED);
    ATTRIBUTE(CAN_MAP_HOST_MEMORY);
    ATTRIBUTE(COMPUTE_MODE);
    ATTRIBUTE(CONCURRENT_KERNELS);
    ATTRIBUTE(TCC_DRIVER);
    ATTRIBUTE(UNIFIED_ADDRESSING);
    ATTRIBUTE(STREAM_PRIORITIES_SUPPORTED);
    ATTRIBUTE(GLOBAL_L1_CACHE_SUPPORTED);
    ATTRIBUTE(LOCAL_L1_CACHE_SUPPORTED);
    ATTRIBUTE(MANAGED_MEMORY);
    ATTRIBUTE(CONCURRENT_MANAGED_ACCESS);
    ATTRIBUTE(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
    ATTRIBUTE(PAGEABLE_MEMORY_ACCESS);
    ATTRIBUTE(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    ATTRIBUTE(COMPUTE_PREEMPTION_SUPPORTED);
    ATTRIBUTE(HOST_REGISTER_SUPPORTED);
    ATTRIBUTE(READ_ONLY_HOST_REGISTER_SUPPORTED);
    ATTRIBUTE(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    ATTRIBUTE(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    ATTRIBUTE(HANDLE_TYPE_WIN32_HANDLE_SUPPORTED);
    ATTRIBUTE(MEMORY_POOLS_SUPPORTED);
    ATTRIBUTE(IPC_EVENT_SUPPORTED);
    ATTRIBUTE(CAN_USE_64_BIT_STREAM_MEM_OPS);
    ATTRIBUTE(CAN_USE_STREAM_WAIT_VALUE_NOR);
    ATTRIBUTE(UNIFIED_FUNCTION_POINTERS);
    ATTRIBUTE(NUMA_CONFIG);
}

static void device_properties(void)
{
    CUdevprop p;
    size_t total = 0;
    int major = 0, minor = 0, x;
    CALL(cuDeviceGetProperties(&p, 0));
    NUM(p.maxThreadsPerBlock);
    NUM(p.SIMDWidth);
    NUM(p.maxThreadsDim[2]);
    NUM(p.maxGridSize[0]);
    NUM(p.totalConstantMemory);
    NUM(p.memPitch);
    CALL(cuDeviceGetProperties(NULL, 0));
    CALL(cuDeviceGetProperties(&p, 1000));
    CALL(cuDeviceTotalMem(&total, 0));
    NUM(total > 0);
    CALL(cuDeviceTotalMem(NULL, 0));
    CALL(cuDeviceTotalMem(&total, 1000));
    CALL(cuDeviceComputeCapability(&major, &minor, 0));
    cuDeviceGetAttribute(&x, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    NUM(x == major);
    CALL(cuDeviceComputeCapability(NULL, &minor, 0));
    CALL(cuDeviceComputeCapability(&major, &minor, 1000));
}

static void device_affinity(void)
{
    int yes;
    size_t width;
    CALL(cuDeviceGetExecAffinitySupport(&yes, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    CALL(cuDeviceGetExecAffinitySupport(&yes, (CUexecAffinityType)7, 0));
    CALL(cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    CALL(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, 1000));
    CALL(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                    (CUflushGPUDirectRDMAWritesScope)3));
}

static void peers(void)
{
    int yes = 7, count = 1;
    CUcontext c;
    cuDeviceGetCount(&count);
    CALL(cuDeviceCanAccessPeer(&yes, 0, 0));
    NUM(yes);
    CALL(cuDeviceCanAccessPeer(&yes, 0, 1000));
    CALL(cuDeviceCanAccessPeer(NULL, 0, 0));
    CALL(cuDeviceGetP2PAttribute(&yes, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
    CALL(cuDeviceGetP2PAttribute(&yes, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1000));
    CALL(cuDeviceGetP2PAttribute(&yes, (CUdevice_P2PAttribute)77, 0, 0));
    cuCtxGetCurrent(&c);
    CALL(cuCtxEnablePeerAccess(c, 0));
    CALL(cuCtxEnablePeerAccess(NULL, 0));
    CALL(cuCtxDisablePeerAccess(c));
    CALL(cuCtxDisablePeerAccess(NULL));
}

/* cuGetProcAddress. */
static void procedures(void)
{
    CUdriverProcAddressQueryResult how;
    void *f, *g;
    CALL(cuGetProcAddress("cuMemAlloc", &f, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &how));
    NUM(how);
    NUM(f != NULL);
    CALL(cuGetProcAddress("cuMemAlloc", &g, 2000, CU_GET_PROC_ADDRESS_DEFAULT, &how));
    NUM(how);
    NUM(f != g);
    CALL(cuGetProcAddress("cuMemAlloc_v2", &g, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &how));
    NUM(how);
    CALL(cuGetProcAddress("cuNoSuchThing", &g, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &how));
    NUM(how);
    NUM(g == NULL);
    CALL(cuGetProcAddress("cuGraphCreate", &g, 5000, CU_GET_PROC_ADDRESS_DEFAULT, &how));
    NUM(how);
    NUM(g == NULL);
    CALL(cuGetProcAddress("cuGraphCreate", &g, 99000, CU_GET_PROC_ADDRESS_DEFAULT, &how));
    NUM(how);
    CALL(cuGetProcAddress("cuStreamSynchronize", &f, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                          &how));
    NUM(how);
    CALL(cuGetProcAddress("cuStreamSynchronize", &g, 12000,
                          CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &how));
    NUM(how);
    NUM(f != g);
    CALL(cuGetProcAddress("cuMemAlloc", &f, 12000, 77, &how));
    CALL(cuGetProcAddress("cuMemAlloc", &f, 12000, 0, NULL));
    CALL(cuGetProcAddress("", &f, 12000, 0, &how));
    CALL(cuGetProcAddress("cuCtxCreate", &f, 11030, 0, &how));
    CALL(cuGetProcAddress("cuCtxCreate", &g, 11040, 0, &how));
    NUM(f != g);
    CALL(cuGetProcAddress("cuCtxCreate", &f, 12050, 0, &how));
    NUM(f != g);
    CALL(cuGetProcAddress("cuInit", &f, 1000, 0, &how));
    NUM(how);
    CALL(cuGetProcAddress("cuGetProcAddress", &f, 11030, 0, &how));
    CALL(cuGetProcAddress("cuGetProcAddress", &g, 12000, 0, &how));
    NUM(f != g);
}

const struct answers_case answers_device[] = {
    BARE(before_init),     CASE(error_texts),       CASE(device_handles),
    CASE(device_names),    CASE(pci_bus_ids),       CASE(device_attributes),
    CASE(device_features), CASE(device_properties), CASE(device_affinity),
    CASE(peers),           CASE(procedures),        END,
};
