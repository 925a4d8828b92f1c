/* Before cuInit, cuInit itself, versions, error texts, function lookup. */
#include "tap.h"

#include <string.h>

static void before_init(void)
{
    int n, version = 0;
    CUcontext c;
    CUdeviceptr p;
    IS(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    IS(cuCtxGetCurrent(&c), CUDA_ERROR_NOT_INITIALIZED);
    IS(cuMemAlloc(&p, 16), CUDA_ERROR_NOT_INITIALIZED);
    IS(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
    /* Some arguments are looked at before that. */
    CUstream s;
    CUgraphExec e;
    float ms;
    IS(cuStreamCreate(&s, 0x2), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamCreate(&s, 0), CUDA_ERROR_NOT_INITIALIZED);
    IS(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuStreamBeginCapture(NULL, (CUstreamCaptureMode)3), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_NOT_INITIALIZED);
    IS(cuEventQuery(NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuEventSynchronize(NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuEventElapsedTime(&ms, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuEventDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    IS(cuGraphInstantiateWithFlags(&e, NULL, 0x10), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphInstantiateWithFlags(&e, NULL, 0), CUDA_ERROR_NOT_INITIALIZED);
    IS(cuCtxDestroy(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuDriverGetVersion(&version));
    TRUE(version >= 12000);
    IS(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
}

static void init(void)
{
    int n = 0;
    CUcontext c = (CUcontext)&n;
    CUdeviceptr p;
    IS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    TRUE(n >= 1);
    OK(cuCtxGetCurrent(&c));
    TRUE(c == NULL);
    IS(cuMemAlloc(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
}

static void error_texts(void)
{
    const char *s = NULL;
    OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &s));
    TRUE(strcmp(s, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    OK(cuGetErrorName(CUDA_SUCCESS, &s));
    TRUE(strcmp(s, "CUDA_SUCCESS") == 0);
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &s));
    TRUE(strcmp(s, "out of memory") == 0);
    IS(cuGetErrorName((CUresult)12345, &s), CUDA_ERROR_INVALID_VALUE);
    IS(cuGetErrorString((CUresult)12345, &s), CUDA_ERROR_INVALID_VALUE);
}

static void proc_address(void)
{
    void *f = NULL, *g = NULL;
    CUdriverProcAddressQueryResult status;
    CUresult (*get_count)(int *);
    int n = 0;
    OK(cuGetProcAddress("cuDeviceGetCount", &f, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    memcpy(&get_count, &f, sizeof(f));
    OK(get_count(&n));
    TRUE(n >= 1);
    OK(cuGetProcAddress("cuMemAlloc", &f, 2000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    OK(cuGetProcAddress("cuMemAlloc", &g, 3020, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    TRUE(f != g); /* the 32-bit one and the one that is used */
    OK(cuGetProcAddress("cuLaunchKernel", &f, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
    OK(cuGetProcAddress("cuLaunchKernel", &g, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                        &status));
    TRUE(f != NULL && g != NULL && f != g);
    OK(cuGetProcAddress("cuLaunchKernel", &g, 12000,
                        CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                            CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                        &status));
    TRUE(g != NULL);
    OK(cuGetProcAddress("cuDeviceGetUuid", &g, -1, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    TRUE(g != NULL);
    (void)cuGetProcAddress("cuNoSuchFunction", &f, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    TRUE(f == NULL);
}

static void export_table_unknown(void)
{
    const CUuuid nobody = { { 1, 2, 3 } };
    const void *table = &nobody;
    TRUE(cuGetExportTable(&table, &nobody) != CUDA_SUCCESS);
    TRUE(table == NULL);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(before_init),          TEST(init), TEST(error_texts), TEST(proc_address),
        TEST(export_table_unknown),
    };
    return tap_main_bare(tests, COUNT(tests));
}
