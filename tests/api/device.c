/* What a device says of itself. */
#include "tap.h"

#include <string.h>

static void ordinals(void)
{
    CUdevice d = -1;
    int n;
    OK(cuDeviceGetCount(&n));
    OK(cuDeviceGet(&d, 0));
    EQ(d, 0);
    IS(cuDeviceGet(&d, n), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGet(&d, -1), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
}

static void name_and_memory(void)
{
    char name[128] = "", cut[4];
    size_t bytes = 0;
    OK(cuDeviceGetName(name, sizeof(name), 0));
    TRUE(strlen(name) > 3);
    OK(cuDeviceGetName(cut, sizeof(cut), 0));
    TRUE(strncmp(cut, name, 3) == 0 && cut[3] == '\0');
    if (!tap_genuine()) /* the genuine library, 580.159, writes all the same and dies */
        OK(cuDeviceGetName(cut, 0, 0));
    IS(cuDeviceGetName(name, sizeof(name), 77), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceTotalMem(&bytes, 0));
    TRUE(bytes >= 64u << 20);
    IS(cuDeviceTotalMem(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

static void attributes(void)
{
    static const struct {
        CUdevice_attribute attribute;
        int least, most;
    } wanted[] = {
        { CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024, 1024 },
        { CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32, 32 },
        { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1, 1024 },
        { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647, 2147483647 },
        { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535, 65535 },
        { CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64, 64 },
        { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152, 49152 },
        { CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1, 1 },
        { CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1, 1 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 6, 20 },
    };
    int v;
    for (size_t i = 0; i < COUNT(wanted); i++) {
        v = -1;
        OK(cuDeviceGetAttribute(&v, wanted[i].attribute, 0));
        if (v < wanted[i].least || v > wanted[i].most)
            tap_fail(__FILE__, __LINE__, "attribute %d is %d", (int)wanted[i].attribute, v);
    }
    IS(cuDeviceGetAttribute(&v, (CUdevice_attribute)0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetAttribute(&v, (CUdevice_attribute)100000, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_ERROR_INVALID_VALUE);
}

static void identity(void)
{
    CUuuid a, b;
    char bus[32] = "";
    CUdevice d = -1;
    OK(cuDeviceGetUuid(&a, 0));
    OK(cuDeviceGetUuid_v2(&b, 0));
    TRUE(memcmp(&a, &b, sizeof(a)) == 0);
    OK(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
    EQ(strlen(bus), 12);
    OK(cuDeviceGetByPCIBusId(&d, bus));
    EQ(d, 0);
    TRUE(cuDeviceGetByPCIBusId(&d, "nonsense") != CUDA_SUCCESS);
    TRUE(cuDeviceGetByPCIBusId(&d, "FFFF:FE:1D.0") != CUDA_SUCCESS);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(ordinals),
        TEST(name_and_memory),
        TEST(attributes),
        TEST(identity),
    };
    return tap_main(tests, COUNT(tests));
}
