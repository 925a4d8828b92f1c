/* Logs, notifications, profilers, atomics over links, and what an image does not have. */
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void CUDA_CB on_message(void *data, CUlogLevel level, char *message, size_t length)
{
    (void)level;
    (void)message;
    (void)length;
    ++*(int *)data;
}

static void CUDA_CB on_notice(CUasyncNotificationInfo *info, void *data,
                              CUasyncCallbackHandle callback)
{
    (void)info;
    (void)callback;
    ++*(int *)data;
}

static void logs(void)
{
    static int count;
    CUlogIterator at = 0;
    CUlogsCallbackHandle h = NULL;
    char text[25600];
    char path[] = "/tmp/gmux-log-XXXXXX";
    size_t size = sizeof(text);
    int fd = mkstemp(path);
    TRUE(fd >= 0);
    OK(cuLogsRegisterCallback(on_message, &count, &h));
    TRUE(h != NULL);
    OK(cuLogsCurrent(&at, 0));
    memset(text, 'x', sizeof(text));
    OK(cuLogsDumpToMemory(&at, text, &size, 0)); /* from now on: nothing */
    EQ(size, 0);
    OK(cuLogsDumpToFile(&at, path, 0));
    IS(cuLogsCurrent(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuLogsCurrent(&at, 1));
    IS(cuLogsDumpToMemory(&at, NULL, &size, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuLogsDumpToFile(&at, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuLogsRegisterCallback(NULL, NULL, &h), CUDA_ERROR_INVALID_VALUE);
    OK(cuLogsUnregisterCallback(h));
    (void)close(fd);
    (void)unlink(path);
}

static void notifications(void)
{
    static int count;
    CUasyncCallbackHandle h = NULL;
    CUresult r = cuDeviceRegisterAsyncNotification(0, on_notice, &count, &h);
    if (r == CUDA_ERROR_NOT_SUPPORTED && tap_genuine())
        tap_skip("not on this system");
    OK(r);
    TRUE(h != NULL);
    OK(cuDeviceUnregisterAsyncNotification(0, h));
    IS(cuDeviceUnregisterAsyncNotification(1000, h), CUDA_ERROR_INVALID_DEVICE);
    if (!tap_genuine()) /* which may follow it */
        IS(cuDeviceUnregisterAsyncNotification(0, h), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceRegisterAsyncNotification(1000, on_notice, NULL, &h), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceRegisterAsyncNotification(0, NULL, NULL, &h), CUDA_ERROR_INVALID_VALUE);
    EQ(count, 0);
}

static void atomics(void)
{
    const CUatomicOperation operations[] = { CU_ATOMIC_OPERATION_INTEGER_ADD,
                                             CU_ATOMIC_OPERATION_CAS };
    const CUatomicOperation bad = CU_ATOMIC_OPERATION_MAX;
    unsigned got[] = { 77, 77 };
    int native = 0;
    OK(cuDeviceGetAttribute(&native, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0));
    CUresult r = cuDeviceGetHostAtomicCapabilities(got, operations, COUNT(operations), 0);
    if (native && r == CUDA_ERROR_NOT_SUPPORTED)
        tap_skip("the driver is older");
    OK(r);
    TRUE((got[0] != 0) == (native != 0));
    IS(cuDeviceGetHostAtomicCapabilities(got, operations, 0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetHostAtomicCapabilities(NULL, operations, 1, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetHostAtomicCapabilities(got, NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetHostAtomicCapabilities(got, &bad, 1, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetHostAtomicCapabilities(got, operations, 1, 1000), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGetP2PAtomicCapabilities(got, operations, 1, 0, 0), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGetP2PAtomicCapabilities(got, operations, 1, 0, 1000), CUDA_ERROR_INVALID_DEVICE);
}

static void remote_writes(void)
{
    int options = 0;
    OK(cuDeviceGetAttribute(&options, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0));
    if (tap_genuine() && !(options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST))
        tap_skip("not on this system");
    OK(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                  CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    IS(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                  (CUflushGPUDirectRDMAWritesScope)7),
       CUDA_ERROR_INVALID_VALUE);
}

static void profiler(void)
{
    OK(cuProfilerStart());
    OK(cuProfilerStop());
}

static void references(void)
{
    CUtexref texture;
    CUsurfref surface;
    CUlibrary library;
    void *function;
    IS(cuModuleGetTexRef(&texture, tap_module(), "nothing"), CUDA_ERROR_NOT_FOUND);
    IS(cuModuleGetSurfRef(&surface, tap_module(), "nothing"), CUDA_ERROR_NOT_FOUND);
    IS(cuModuleGetTexRef(&texture, tap_module(), NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuLibraryLoadData(&library, tap_ptx, NULL, NULL, 0, NULL, NULL, 0));
    IS(cuLibraryGetUnifiedFunction(&function, library, "nothing"), CUDA_ERROR_INVALID_VALUE);
    IS(cuLibraryGetUnifiedFunction(&function, library, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuLibraryUnload(library));
}

/* What other interfaces have: nothing of it is here. NVIDIA's driver follows such handles as
 * pointers. */
static void elsewhere(void)
{
    CUgraphicsResource resource = (CUgraphicsResource)(uintptr_t)64;
    CUexternalSemaphore semaphore = (CUexternalSemaphore)(uintptr_t)64;
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal = { 0 };
    CUexternalMemory memory;
    CUdeviceptr p;
    size_t size;
    if (tap_genuine())
        tap_skip("the genuine library follows handles as pointers");
    IS(cuGraphicsUnregisterResource(resource), CUDA_ERROR_INVALID_HANDLE);
    IS(cuGraphicsMapResources(1, &resource, NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuGraphicsMapResources(0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphicsResourceGetMappedPointer(&p, &size, resource), CUDA_ERROR_INVALID_HANDLE);
    IS(cuSignalExternalSemaphoresAsync(&semaphore, &signal, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuSignalExternalSemaphoresAsync(NULL, &signal, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuDestroyExternalMemory((CUexternalMemory)(uintptr_t)64), CUDA_ERROR_INVALID_HANDLE);
    IS(cuImportExternalMemory(&memory, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphicsUnregisterResource(NULL), CUDA_ERROR_INVALID_HANDLE);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(logs),     TEST(notifications), TEST(atomics),   TEST(remote_writes),
        TEST(profiler), TEST(references),    TEST(elsewhere),
    };
    return tap_main(tests, COUNT(tests));
}
