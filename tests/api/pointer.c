/* Pointer attributes. */
#include "tap.h"

static void device_pointer(void)
{
    CUdeviceptr p, base = 0, self = 0;
    CUcontext c, current;
    unsigned type = 0, managed = 9, mapped = 0;
    int ordinal = -1;
    size_t size = 0;
    unsigned long long id1 = 0, id2 = 0;
    void *host;
    OK(cuCtxGetCurrent(&current));
    OK(cuMemAlloc(&p, 5000));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 100));
    EQ(type, CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    TRUE(c == current);
    OK(cuPointerGetAttribute(&self, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 100));
    TRUE(self == p + 100);
    IS(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p),
       CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    EQ(managed, 0);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    EQ(ordinal, 0);
    OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 4999));
    TRUE(base == p);
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
    EQ(size, 5000);
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, p));
    EQ(mapped, 1);
    OK(cuPointerGetAttribute(&id1, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    OK(cuMemFree(p));
    OK(cuMemAlloc(&p, 5000));
    OK(cuPointerGetAttribute(&id2, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    TRUE(id1 != id2);
    OK(cuMemFree(p));
    OK(cuMemAllocAsync(&p, 5000, NULL)); /* of a pool, and so of no context */
    OK(cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    TRUE(c == NULL);
    OK(cuMemFree(p));
}

static void host_pointer(void)
{
    void *h, *back = NULL;
    unsigned type = 0;
    CUdeviceptr d = 0;
    OK(cuMemHostAlloc(&h, 100, 0));
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)h;
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    EQ(type, CU_MEMORYTYPE_HOST);
    OK(cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
    TRUE(back == h);
    OK(cuPointerGetAttribute(&d, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p));
    TRUE(d == p);
    OK(cuMemFreeHost(h));
}

static void managed_pointer(void)
{
    CUdeviceptr p;
    unsigned managed = 0;
    OK(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL));
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    EQ(managed, 1);
    OK(cuMemFree(p));
}

static void nobodys(void)
{
    int on_stack;
    unsigned type = 77, managed = 77, mapped;
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)&on_stack;
    CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                         CU_POINTER_ATTRIBUTE_IS_MANAGED };
    void *data[] = { &type, &managed };
    IS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CUDA_ERROR_INVALID_VALUE);
    IS(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, p), CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttributes(2, attributes, data, p));
    EQ(type, 0);
    EQ(managed, 0);
    OK(cuMemAlloc(&p, 16));
    OK(cuPointerGetAttributes(2, attributes, data, p));
    EQ(type, CU_MEMORYTYPE_DEVICE);
    OK(cuMemFree(p));
    IS(cuPointerGetAttributes(0, attributes, data, p), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(device_pointer),
        TEST(host_pointer),
        TEST(managed_pointer),
        TEST(nobodys),
    };
    return tap_main(tests, COUNT(tests));
}
