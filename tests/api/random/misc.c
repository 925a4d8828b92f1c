/* What needs no object: errors' names, versions of functions, devices. */
#include "random.h"

typedef const char *text;

static void error_name(void)
{
    CUresult code =
        (CUresult)(random_chance(3) ? ONE_OF(int, -1, 9999, INT32_MAX) : (int)random_below(1001));
    text name = NULL, string = NULL;
    random_say("cuGetErrorName(%d)", (int)code);
    if (random_done(cuGetErrorName(code, &name)) == CUDA_SUCCESS)
        random_out("%s", name);
    random_say("cuGetErrorString(%d)", (int)code);
    if (random_done(cuGetErrorString(code, &string)) == CUDA_SUCCESS)
        random_out("%s", string);
}

static void address(void)
{
    text name = ONE_OF(
        text, "cuInit", "cuMemAlloc", "cuMemAlloc_v2", "cuCtxCreate", "cuStreamQuery",
        "cuGraphInstantiate", "cuMemcpyHtoD", "cuLaunchKernel", "cuLaunchKernel_ptsz",
        "cuGetProcAddress", "cuStreamGetCaptureInfo", "cuGraphAddNode", "cuMemPrefetchAsync",
        "cuEventElapsedTime", "cuDeviceGetUuid", "cuCtxSynchronize", "cuDevicePrimaryCtxRelease",
        "cuStreamBeginCapture", "cuMemcpyBatchAsync", "cuArrayCreate", "cuTexRefSetAddress2D",
        "cuNothing", "", "cuGLInit", "cuProfilerInitialize", "cuGraphExecUpdate", "cuMemAdvise",
        "cuGraphKernelNodeGetParams", "cuCtxGetDevice", "cuLogsCurrent");
    int version = ONE_OF(int, 0, 2000, 3020, 4000, 5000, 7000, 7050, 9000, 10000, 11000, 11010,
                         11030, 11040, 12000, 12020, 12030, 12040, 12080, 13000, 99999, -1, 1);
    cuuint64_t flags = ONE_OF(cuuint64_t, 0, 0, 1, 2, 3, 4);
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)9;
    void *f = NULL;
    bool none = random_chance(6);
    random_say("cuGetProcAddress(%s, %d, %llu%s)", name, version, (unsigned long long)flags,
               none ? ", NULL" : "");
    CUresult r = random_done(cuGetProcAddress(name, &f, version, flags, none ? NULL : &status));
    random_out("%s, %d", f ? "a function" : "none", none || (r && status == 9) ? -1 : (int)status);
}

static void attribute(void)
{
    int what = ONE_OF(int, 0, -1, 148, 149, 160, 1000, (int)random_below(150)), value = -77;
    CUdevice d = random_chance(8) ? ONE_OF(int, -1, 99) : 0;
    random_say("cuDeviceGetAttribute(%d, %d)", what, d);
    random_done(cuDeviceGetAttribute(&value, (CUdevice_attribute)what, d));
}

static void device(void)
{
    CUdevice d = -77, other = random_chance(2) ? 99 : 0;
    int ordinal = ONE_OF(int, 0, -1, 99, INT32_MAX), value = 0;
    char name[8] = "";
    size_t bytes = 0;
    random_say("cuDeviceGet(%d)", ordinal);
    random_done(cuDeviceGet(&d, ordinal));
    random_say("cuDeviceGetName(%d)", other);
    random_done(cuDeviceGetName(name, ONE_OF(int, 8, 1, 0), other));
    random_say("cuDeviceTotalMem(%d)", other);
    random_done(cuDeviceTotalMem(&bytes, other));
    random_say("cuDeviceCanAccessPeer(0, %d)", other);
    if (random_done(cuDeviceCanAccessPeer(&value, 0, other)) == CUDA_SUCCESS)
        random_out("%d", value);
}

static void peers(void)
{
    int a = random_pick_or_null(CONTEXT), what = ONE_OF(int, 0, 1, 2, 3, 4, 5, -1), value = 0;
    unsigned flags = random_chance(4);
    random_say("cuCtxEnablePeerAccess(%s, %u)", random_name(CONTEXT, a), flags);
    random_done(cuCtxEnablePeerAccess(HANDLE(CUcontext, CONTEXT, a), flags));
    random_say("cuCtxDisablePeerAccess(%s)", random_name(CONTEXT, a));
    random_done(cuCtxDisablePeerAccess(HANDLE(CUcontext, CONTEXT, a)));
    random_say("cuDeviceGetP2PAttribute(%d, 0, 0)", what);
    random_done(cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)what, 0, 0));
}

static void start(void)
{
    unsigned flags = ONE_OF(unsigned, 0, 1, UINT32_MAX);
    int version = 0;
    CUmoduleLoadingMode mode = (CUmoduleLoadingMode)9;
    random_say("cuInit(%u)", flags);
    random_done(cuInit(flags));
    random_say("cuDriverGetVersion()");
    random_done(cuDriverGetVersion(&version));
    random_say("cuModuleGetLoadingMode()");
    if (random_done(cuModuleGetLoadingMode(&mode)) == CUDA_SUCCESS)
        random_out("%d", (int)mode);
}

static void affinity(void)
{
    int value = -1, type = ONE_OF(int, 0, 1, -1);
    CUdevice d = random_chance(4) ? 99 : 0;
    random_say("cuDeviceGetExecAffinitySupport(%d, %d)", type, d);
    random_done(cuDeviceGetExecAffinitySupport(&value, (CUexecAffinityType)type, d));
}

static const struct random_generator others[] = {
    GENERATOR(error_name, 4), GENERATOR(address, 10), GENERATOR(attribute, 6), GENERATOR(device, 2),
    GENERATOR(peers, 1),      GENERATOR(start, 1),    GENERATOR(affinity, 1),
};
const struct random_subject random_misc = SUBJECT(others, NULL);
