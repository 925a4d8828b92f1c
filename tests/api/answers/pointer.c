/* cuPointerGetAttribute(s) of every kind of memory. */
#include "answers.h"

#include <stdlib.h>

/* Which attributes there are, and the values of those that no address shows in. */
static void attributes_of(CUdeviceptr p)
{
    static const CUpointer_attribute shown[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
        CU_POINTER_ATTRIBUTE_MAPPED,
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
    };
    char label[40];
    for (int a = 1; a <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; a++) {
        uint64_t value[8] = { 0 };
        CUpointer_attribute at = (CUpointer_attribute)a;
        void *to = value;
        snprintf(label, sizeof(label), "attribute %d", a);
        answers_call(label, cuPointerGetAttribute(value, at, p));
        CUresult r = cuPointerGetAttributes(1, &at, &to, p);
        snprintf(label, sizeof(label), "one of several, %d", a);
        answers_call(label, r);
    }
    for (unsigned i = 0; i < COUNT(shown); i++) {
        uint64_t value = 0;
        void *to = &value;
        CUpointer_attribute at = shown[i];
        cuPointerGetAttributes(1, &at, &to, p);
        bool machine = at == CU_POINTER_ATTRIBUTE_MAPPING_SIZE;
        snprintf(label, sizeof(label), "value of %d", (int)at);
        answers_number(label,
                       at == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (int)value : (long long)value,
                       machine);
    }
}

static void of_device(void)
{
    CUdeviceptr p, base = 0, at = 0;
    CUcontext c = NULL, current;
    void *host = &c;
    cuCtxGetCurrent(&current);
    CALL(cuMemAlloc(&p, 3000));
    attributes_of(p + 8);
    CALL(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 8));
    NUM(base == p);
    CALL(cuPointerGetAttribute(&at, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 8));
    NUM(at == p + 8);
    CALL(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p + 8));
    CALL(cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    NUM(c == current);
    CALL(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    CALL(cuPointerGetAttribute(&c, (CUpointer_attribute)0, p));
    CALL(cuPointerGetAttribute(&c, (CUpointer_attribute)99, p));
}

static void of_host(void)
{
    void *p, *back = NULL;
    CUdeviceptr at = 0;
    CALL(cuMemAllocHost(&p, 3000));
    attributes_of((CUdeviceptr)(uintptr_t)p + 8);
    CALL(cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                               (CUdeviceptr)(uintptr_t)p + 8));
    NUM((char *)back == (char *)p + 8);
    CALL(cuPointerGetAttribute(&at, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                               (CUdeviceptr)(uintptr_t)p + 8));
    NUM(at == (CUdeviceptr)(uintptr_t)p + 8);
}

static void of_registered(void)
{
    char *p = malloc(30000);
    void *back = NULL;
    CALL(cuMemHostRegister(p, 30000, 0));
    attributes_of((CUdeviceptr)(uintptr_t)p + 8);
    CALL(cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                               (CUdeviceptr)(uintptr_t)p + 8));
    NUM((char *)back == p + 8);
    CALL(cuMemHostUnregister(p));
    CALL(cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                               (CUdeviceptr)(uintptr_t)p + 8));
    free(p);
}

static void of_managed(void)
{
    CUdeviceptr p, at = 0;
    void *back = NULL;
    CALL(cuMemAllocManaged(&p, 3000, CU_MEM_ATTACH_GLOBAL));
    attributes_of(p + 8);
    CALL(cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER, p + 8));
    NUM((CUdeviceptr)(uintptr_t)back == p + 8);
    CALL(cuPointerGetAttribute(&at, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 8));
    NUM(at == p + 8);
}

static void of_pool(void)
{
    CUdeviceptr p;
    CUmemoryPool pool = NULL, standard = NULL;
    CALL(cuMemAllocAsync(&p, 3000, NULL));
    CALL(cuStreamSynchronize(NULL));
    attributes_of(p + 8);
    CALL(cuDeviceGetDefaultMemPool(&standard, 0));
    CALL(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    NUM(pool == standard);
}

static void of_nobody(void)
{
    int on_stack = 1;
    attributes_of((CUdeviceptr)(uintptr_t)&on_stack);
    attributes_of(0);
}

static void of_freed(void)
{
    CUdeviceptr p;
    unsigned type = 0;
    CALL(cuMemAlloc(&p, 3000));
    CALL(cuMemFree(p));
    CALL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
}

static void several_attributes(void)
{
    CUdeviceptr p, base = 0;
    size_t size = 0;
    unsigned type = 0, sync = 9;
    CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                    CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                    CU_POINTER_ATTRIBUTE_MEMORY_TYPE };
    void *to[] = { &base, &size, &type };
    CALL(cuMemAlloc(&p, 3000));
    CALL(cuPointerGetAttributes(3, which, to, p + 100));
    NUM(base == p);
    NUM(size);
    NUM(type);
    CALL(cuPointerGetAttributes(0, which, to, p));
    CALL(cuPointerGetAttributes(3, NULL, to, p));
    CALL(cuPointerGetAttributes(3, which, NULL, p));
    which[0] = (CUpointer_attribute)99;
    CALL(cuPointerGetAttributes(3, which, to, p));
    CALL(cuPointerSetAttribute(&(unsigned) { 1 }, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    CALL(cuPointerGetAttribute(&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    NUM(sync);
    CALL(cuPointerSetAttribute(&(unsigned) { 1 }, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    CALL(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    CALL(cuPointerSetAttribute(&(unsigned) { 1 }, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 16));
}

static void buffer_ids(void)
{
    CUdeviceptr p, q;
    unsigned long long a = 0, b = 0, again = 0;
    CALL(cuMemAlloc(&p, 3000));
    CALL(cuMemAlloc(&q, 3000));
    CALL(cuPointerGetAttribute(&a, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    CALL(cuPointerGetAttribute(&b, CU_POINTER_ATTRIBUTE_BUFFER_ID, q));
    CALL(cuPointerGetAttribute(&again, CU_POINTER_ATTRIBUTE_BUFFER_ID, p + 50));
    NUM(a != b);
    NUM(a == again);
    CALL(cuMemFree(p));
    CALL(cuMemAlloc(&p, 3000));
    CALL(cuPointerGetAttribute(&again, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    NUM(a != again);
}

const struct answers_case answers_pointer[] = {
    CASE(of_device), CASE(of_host),  CASE(of_registered), CASE(of_managed),         CASE(of_pool),
    CASE(of_nobody), CASE(of_freed), CASE(buffer_ids),    CASE(several_attributes), END,
};
