/* Profiler, core dumps, checkpoints, memory and semaphores of other interfaces, private tables. */
#include "answers.h"

#include <unistd.h>

static void profiler(void)
{
    CALL(cuProfilerStart());
    CALL(cuProfilerStop());
    CALL(cuCtxSetCurrent(NULL));
    CALL(cuProfilerStart());
    CALL(cuProfilerStop());
}

static void coredumps(void)
{
    bool yes = true;
    char path[1024] = "";
    size_t size = sizeof(yes);
    CALL(cuCoredumpGetAttributeGlobal(CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, &size));
    NUM(yes);
    NUM(size);
    size = sizeof(yes);
    CALL(cuCoredumpGetAttributeGlobal(CU_COREDUMP_TRIGGER_HOST, &yes, &size));
    NUM(yes);
    CALL(cuCoredumpGetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, &yes, &size));
    NUM(yes);
    CALL(cuCoredumpGetAttributeGlobal(CU_COREDUMP_ENABLE_USER_TRIGGER, &yes, &size));
    NUM(yes);
    size = sizeof(path);
    CALL(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, path, &size));
    MACHINE(size);
    size = sizeof(yes);
    CALL(cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, &size));
    NUM(yes);
    yes = true;
    CALL(cuCoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &yes, &size));
    CALL(cuCoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &yes, &size));
    NUM(yes);
    CALL(cuCoredumpGetAttribute((CUcoredumpSettings)99, &yes, &size));
    size = 0;
    CALL(cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, NULL, &size));
    NUM(size);
    CALL(cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, NULL));
    char name[] = "core.%p";
    size = sizeof(name);
    CALL(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
}

static void checkpoints(void)
{
    CUprocessState state = 99;
    int tid = 0;
    CALL(cuCheckpointProcessGetState(getpid(), &state));
    NUM(state);
    CALL(cuCheckpointProcessGetState(-5, &state));
    CALL(cuCheckpointProcessGetState(getpid(), NULL));
    CALL(cuCheckpointProcessGetRestoreThreadId(getpid(), &tid));
    CALL(cuCheckpointProcessUnlock(getpid(), NULL));
}

static void external(void)
{
    CUexternalMemory m;
    CUexternalSemaphore s;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC md = { .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                            .handle = { .fd = -1 },
                                            .size = 4096 };
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC sd = { .type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD,
                                               .handle = { .fd = -1 } };
    CALL(cuImportExternalMemory(&m, NULL));
    CALL(cuImportExternalMemory(NULL, &md));
    CALL(cuImportExternalMemory(&m, &md));
    CALL(cuImportExternalSemaphore(&s, NULL));
    CALL(cuImportExternalSemaphore(NULL, &sd));
    CALL(cuImportExternalSemaphore(&s, &sd));
}

static void export_tables(void)
{
    const void *table = NULL;
    CUuuid id = { { 0 } };
    CALL(cuGetExportTable(&table, &id));
    CALL(cuGetExportTable(NULL, &id));
    CALL(cuGetExportTable(&table, NULL));
}

static void tensor_maps(void)
{
    CUtensorMap map;
    CUdeviceptr p;
    cuuint64_t size[2] = { 64, 64 }, stride[1] = { 256 };
    cuuint32_t box[2] = { 16, 16 }, step[2] = { 1, 1 };
    CALL(cuMemAlloc(&p, 64 * 256));
    CALL(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(uintptr_t)p,
                                size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    CALL(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)p));
    CALL(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)(p + 1)));
    stride[0] = 100;
    CALL(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(uintptr_t)p,
                                size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    stride[0] = 256;
    CALL(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0, (void *)(uintptr_t)p,
                                size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    CALL(cuTensorMapEncodeTiled(NULL, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(uintptr_t)p,
                                size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

static void CUDA_CB notified(CUasyncNotificationInfo *info, void *data,
                             CUasyncCallbackHandle handle)
{
    (void)info;
    (void)data;
    (void)handle;
}

static void notifications(void)
{
    CUasyncCallbackHandle h;
    CALL(cuDeviceRegisterAsyncNotification(0, notified, NULL, &h));
    CALL(cuDeviceUnregisterAsyncNotification(0, h));
    CALL(cuDeviceRegisterAsyncNotification(1000, notified, NULL, &h));
    CALL(cuDeviceRegisterAsyncNotification(0, NULL, NULL, &h));
}

const struct answers_case answers_misc[] = {
    CASE(profiler),      CASE(coredumps),   CASE(checkpoints),   CASE(external),
    CASE(export_tables), CASE(tensor_maps), CASE(notifications), END,
};
