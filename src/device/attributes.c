/*
 * The attribute table of the devices that are made of a CPU. A value is what a program that adapts
 * to it should see: limits are the ones that launches are really checked against, features are 1
 * only where they work.
 */
#include "device/attributes.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/uuid.h"
#include "device/cgroup.h"

#define PRIORITIES 6u /* 0 .. -5, as GPUs have them */

/* Limits of a context, by CUlimit; as GPUs have them, too. */
static const uint64_t limits[DEV_LIMITS] = {
    [0] = 1024,    /* stack */
    [1] = 1 << 20, /* buffer of printf */
    [2] = 8 << 20, /* heap of malloc */
    [4] = 2048,    /* launches by kernels that wait */
    [5] = 64,      /* bytes that the L2 cache fetches */
    [7] = DEV_SHARED_OPTIN_BYTES,
};

/* CUdevice_attribute numbers, as in the driver API's header. */
enum {
    ATTR_MAX_THREADS_PER_BLOCK = 1,
    ATTR_MAX_BLOCK_DIM_X = 2,
    ATTR_MAX_BLOCK_DIM_Y = 3,
    ATTR_MAX_BLOCK_DIM_Z = 4,
    ATTR_MAX_GRID_DIM_X = 5,
    ATTR_MAX_GRID_DIM_Y = 6,
    ATTR_MAX_GRID_DIM_Z = 7,
    ATTR_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    ATTR_TOTAL_CONSTANT_MEMORY = 9,
    ATTR_WARP_SIZE = 10,
    ATTR_MAX_PITCH = 11,
    ATTR_MAX_REGISTERS_PER_BLOCK = 12,
    ATTR_CLOCK_RATE = 13,
    ATTR_TEXTURE_ALIGNMENT = 14,
    ATTR_GPU_OVERLAP = 15,
    ATTR_MULTIPROCESSOR_COUNT = 16,
    ATTR_CAN_MAP_HOST_MEMORY = 19,
    ATTR_TEXTURE1D_WIDTH = 21,
    ATTR_TEXTURE2D_WIDTH = 22,
    ATTR_TEXTURE2D_HEIGHT = 23,
    ATTR_TEXTURE3D_WIDTH = 24,
    ATTR_TEXTURE3D_HEIGHT = 25,
    ATTR_TEXTURE3D_DEPTH = 26,
    ATTR_TEXTURE2D_LAYERED_WIDTH = 27,
    ATTR_TEXTURE2D_LAYERED_HEIGHT = 28,
    ATTR_TEXTURE2D_LAYERED_LAYERS = 29,
    ATTR_SURFACE_ALIGNMENT = 30,
    ATTR_CONCURRENT_KERNELS = 31,
    ATTR_PCI_BUS_ID = 33,
    ATTR_PCI_DEVICE_ID = 34,
    ATTR_MEMORY_CLOCK_RATE = 36,
    ATTR_GLOBAL_MEMORY_BUS_WIDTH = 37,
    ATTR_L2_CACHE_SIZE = 38,
    ATTR_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    ATTR_ASYNC_ENGINE_COUNT = 40,
    ATTR_UNIFIED_ADDRESSING = 41,
    ATTR_TEXTURE1D_LAYERED_WIDTH = 42,
    ATTR_TEXTURE1D_LAYERED_LAYERS = 43,
    ATTR_CAN_TEX2D_GATHER = 44,
    ATTR_TEXTURE2D_GATHER_WIDTH = 45,
    ATTR_TEXTURE2D_GATHER_HEIGHT = 46,
    ATTR_TEXTURE3D_WIDTH_ALTERNATE = 47,
    ATTR_TEXTURE3D_HEIGHT_ALTERNATE = 48,
    ATTR_TEXTURE3D_DEPTH_ALTERNATE = 49,
    ATTR_PCI_DOMAIN_ID = 50,
    ATTR_TEXTURE_PITCH_ALIGNMENT = 51,
    ATTR_TEXTURECUBEMAP_WIDTH = 52,
    ATTR_TEXTURECUBEMAP_LAYERED_WIDTH = 53,
    ATTR_TEXTURECUBEMAP_LAYERED_LAYERS = 54,
    ATTR_SURFACE1D_WIDTH = 55,
    ATTR_SURFACE2D_WIDTH = 56,
    ATTR_SURFACE2D_HEIGHT = 57,
    ATTR_SURFACE3D_WIDTH = 58,
    ATTR_SURFACE3D_HEIGHT = 59,
    ATTR_SURFACE3D_DEPTH = 60,
    ATTR_SURFACE1D_LAYERED_WIDTH = 61,
    ATTR_SURFACE1D_LAYERED_LAYERS = 62,
    ATTR_SURFACE2D_LAYERED_WIDTH = 63,
    ATTR_SURFACE2D_LAYERED_HEIGHT = 64,
    ATTR_SURFACE2D_LAYERED_LAYERS = 65,
    ATTR_SURFACECUBEMAP_WIDTH = 66,
    ATTR_SURFACECUBEMAP_LAYERED_WIDTH = 67,
    ATTR_SURFACECUBEMAP_LAYERED_LAYERS = 68,
    ATTR_TEXTURE1D_LINEAR_WIDTH = 69,
    ATTR_TEXTURE2D_LINEAR_WIDTH = 70,
    ATTR_TEXTURE2D_LINEAR_HEIGHT = 71,
    ATTR_TEXTURE2D_LINEAR_PITCH = 72,
    ATTR_TEXTURE2D_MIPMAPPED_WIDTH = 73,
    ATTR_TEXTURE2D_MIPMAPPED_HEIGHT = 74,
    ATTR_COMPUTE_CAPABILITY_MAJOR = 75,
    ATTR_COMPUTE_CAPABILITY_MINOR = 76,
    ATTR_TEXTURE1D_MIPMAPPED_WIDTH = 77,
    ATTR_STREAM_PRIORITIES_SUPPORTED = 78,
    ATTR_GLOBAL_L1_CACHE_SUPPORTED = 79,
    ATTR_LOCAL_L1_CACHE_SUPPORTED = 80,
    ATTR_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    ATTR_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    ATTR_MANAGED_MEMORY = 83,
    ATTR_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87,
    ATTR_CONCURRENT_MANAGED_ACCESS = 89,
    ATTR_COMPUTE_PREEMPTION_SUPPORTED = 90,
    ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    ATTR_HOST_REGISTER_SUPPORTED = 99,
    ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
    ATTR_READ_ONLY_HOST_REGISTER_SUPPORTED = 113,
    ATTR_MPS_ENABLED = 133,
};

static const struct {
    int attribute;
    int32_t value;
} fixed[] = {
    { ATTR_MAX_THREADS_PER_BLOCK, DEV_BLOCK_THREADS },
    { ATTR_MAX_BLOCK_DIM_X, DEV_BLOCK_XY },
    { ATTR_MAX_BLOCK_DIM_Y, DEV_BLOCK_XY },
    { ATTR_MAX_BLOCK_DIM_Z, DEV_BLOCK_Z },
    { ATTR_MAX_GRID_DIM_X, DEV_GRID_X },
    { ATTR_MAX_GRID_DIM_Y, DEV_GRID_YZ },
    { ATTR_MAX_GRID_DIM_Z, DEV_GRID_YZ },
    { ATTR_MAX_SHARED_MEMORY_PER_BLOCK, DEV_SHARED_BYTES },
    { ATTR_TOTAL_CONSTANT_MEMORY, 65536 },
    { ATTR_WARP_SIZE, 32 },
    { ATTR_MAX_PITCH, 0x7fffffff },
    { ATTR_MAX_REGISTERS_PER_BLOCK, 65536 },
    { ATTR_TEXTURE_ALIGNMENT, 512 },
    { ATTR_GPU_OVERLAP, 1 },
    { ATTR_CAN_MAP_HOST_MEMORY, 1 },
    { ATTR_SURFACE_ALIGNMENT, 512 },
    { ATTR_CONCURRENT_KERNELS, 1 },
    { ATTR_GLOBAL_MEMORY_BUS_WIDTH, 64 },
    { ATTR_MAX_THREADS_PER_MULTIPROCESSOR, DEV_BLOCK_THREADS },
    { ATTR_ASYNC_ENGINE_COUNT, 2 },
    { ATTR_UNIFIED_ADDRESSING, 1 },
    { ATTR_TEXTURE_PITCH_ALIGNMENT, 32 },
    { ATTR_COMPUTE_CAPABILITY_MAJOR, DEV_CAPABILITY / 10 },
    { ATTR_COMPUTE_CAPABILITY_MINOR, DEV_CAPABILITY % 10 },
    { ATTR_STREAM_PRIORITIES_SUPPORTED, 1 },
    { ATTR_GLOBAL_L1_CACHE_SUPPORTED, 1 },
    { ATTR_LOCAL_L1_CACHE_SUPPORTED, 1 },
    { ATTR_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, DEV_SHARED_OPTIN_BYTES },
    { ATTR_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536 },
    { ATTR_MANAGED_MEMORY, 1 },
    { ATTR_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2 },
    { ATTR_CONCURRENT_MANAGED_ACCESS, 1 },
    { ATTR_COMPUTE_PREEMPTION_SUPPORTED, 1 },
    { ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, DEV_SHARED_OPTIN_BYTES },
    { ATTR_HOST_REGISTER_SUPPORTED, 1 },
    { ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR, DEV_BLOCKS_PER_MULTIPROCESSOR },
    { ATTR_READ_ONLY_HOST_REGISTER_SUPPORTED, 1 },
    { ATTR_MPS_ENABLED, 1 },
    /* Arrays and textures have the limits of GPUs of this compute capability. */
    { ATTR_CAN_TEX2D_GATHER, 1 },
    { ATTR_TEXTURE1D_WIDTH, 131072 },
    { ATTR_TEXTURE2D_WIDTH, 131072 },
    { ATTR_TEXTURE2D_HEIGHT, 65536 },
    { ATTR_TEXTURE3D_WIDTH, 16384 },
    { ATTR_TEXTURE3D_HEIGHT, 16384 },
    { ATTR_TEXTURE3D_DEPTH, 16384 },
    { ATTR_TEXTURE2D_LAYERED_WIDTH, 32768 },
    { ATTR_TEXTURE2D_LAYERED_HEIGHT, 32768 },
    { ATTR_TEXTURE2D_LAYERED_LAYERS, 2048 },
    { ATTR_TEXTURE1D_LAYERED_WIDTH, 32768 },
    { ATTR_TEXTURE1D_LAYERED_LAYERS, 2048 },
    { ATTR_TEXTURE2D_GATHER_WIDTH, 32768 },
    { ATTR_TEXTURE2D_GATHER_HEIGHT, 32768 },
    { ATTR_TEXTURE3D_WIDTH_ALTERNATE, 8192 },
    { ATTR_TEXTURE3D_HEIGHT_ALTERNATE, 8192 },
    { ATTR_TEXTURE3D_DEPTH_ALTERNATE, 32768 },
    { ATTR_TEXTURECUBEMAP_WIDTH, 32768 },
    { ATTR_TEXTURECUBEMAP_LAYERED_WIDTH, 32768 },
    { ATTR_TEXTURECUBEMAP_LAYERED_LAYERS, 2046 },
    { ATTR_SURFACE1D_WIDTH, 32768 },
    { ATTR_SURFACE2D_WIDTH, 131072 },
    { ATTR_SURFACE2D_HEIGHT, 65536 },
    { ATTR_SURFACE3D_WIDTH, 16384 },
    { ATTR_SURFACE3D_HEIGHT, 16384 },
    { ATTR_SURFACE3D_DEPTH, 16384 },
    { ATTR_SURFACE1D_LAYERED_WIDTH, 32768 },
    { ATTR_SURFACE1D_LAYERED_LAYERS, 2048 },
    { ATTR_SURFACE2D_LAYERED_WIDTH, 32768 },
    { ATTR_SURFACE2D_LAYERED_HEIGHT, 32768 },
    { ATTR_SURFACE2D_LAYERED_LAYERS, 2048 },
    { ATTR_SURFACECUBEMAP_WIDTH, 32768 },
    { ATTR_SURFACECUBEMAP_LAYERED_WIDTH, 32768 },
    { ATTR_SURFACECUBEMAP_LAYERED_LAYERS, 2046 },
    { ATTR_TEXTURE1D_LINEAR_WIDTH, 268435456 },
    { ATTR_TEXTURE2D_LINEAR_WIDTH, 131072 },
    { ATTR_TEXTURE2D_LINEAR_HEIGHT, 65000 },
    { ATTR_TEXTURE2D_LINEAR_PITCH, 2097120 },
    { ATTR_TEXTURE2D_MIPMAPPED_WIDTH, 32768 },
    { ATTR_TEXTURE2D_MIPMAPPED_HEIGHT, 32768 },
    { ATTR_TEXTURE1D_MIPMAPPED_WIDTH, 32768 },
};

uint32_t dev_worker_count(void)
{
    const char *text = secure_getenv("GMUX_SOFT_WORKERS");
    uint64_t n;
    if (text && gm_parse_u64(text, 1024, &n) && n > 0)
        return (uint32_t)n;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

static uint64_t fnv1a(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

/* The device's uuid: the same at every start on this machine, and different on other machines and
 * for other devices. */
static void uuid_make(uint8_t uuid[16], const char *name, uint32_t device)
{
    char machine[64] = "";
    FILE *f = fopen("/etc/machine-id", "re");
    if (f) {
        if (!fgets(machine, sizeof(machine), f))
            machine[0] = '\0';
        fclose(f);
    }
    if (machine[0] == '\0')
        (void)gethostname(machine, sizeof(machine) - 1);
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t hash = fnv1a(0xcbf29ce484222325u + half, machine, strlen(machine));
        hash = fnv1a(hash, name, strlen(name) + 1);
        if (device)
            hash = fnv1a(hash, &device, sizeof(device));
        memcpy(uuid + 8 * half, &hash, 8);
    }
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80); /* version 8: of our own making */
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

/* In kHz, as CUDA counts; 0 if unknown is fine for programs, but none expects it: then 1 GHz. */
static int32_t clock_khz(void)
{
    static const char path[] = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq";
    unsigned long khz = 0;
    FILE *f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%lu", &khz) != 1)
            khz = 0;
        fclose(f);
    }
    if (khz == 0 && (f = fopen("/proc/cpuinfo", "re")) != NULL) {
        char line[256];
        double mhz = 0;
        while (fgets(line, sizeof(line), f))
            if (sscanf(line, "cpu MHz : %lf", &mhz) == 1)
                break;
        fclose(f);
        if (mhz > 0 && mhz < 100000)
            khz = (unsigned long)(mhz * 1000);
    }
    return khz > 0 && khz < INT32_MAX ? (int32_t)khz : 1000000;
}

/* Half of the memory that there is for this process, for all devices, in whole MiB: the rest stays
 * with the programs that use them, and with what is around a kernel. */
static uint64_t memory_total(uint32_t devices)
{
    struct sysinfo si;
    if (sysinfo(&si) != 0)
        return 1ull << 30;
    uint64_t all = GM_MIN((uint64_t)si.totalram * si.mem_unit,
                          dev_cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup"));
    uint64_t half = all / 2 / devices;
    return GM_MAX(half & ~((1ull << 20) - 1), 64ull << 20);
}

uint32_t dev_device_count(void)
{
    const char *text = secure_getenv("GMUX_SOFT_DEVICES");
    uint64_t n;
    return text && gm_parse_u64(text, DEV_DEVICES, &n) && n > 0 ? (uint32_t)n : 1;
}

/* The device that the first entry of a list names; `count`: none. */
static uint32_t device_named(const char *entry, const char *name, uint32_t count)
{
    char word[64], text[4 + GM_UUID_TEXT] = "GPU-";
    uint8_t uuid[16];
    uint64_t number;
    const size_t n = strcspn(entry, ",");
    if (n < 1 || n >= sizeof(word))
        return count;
    memcpy(word, entry, n);
    word[n] = '\0';
    if (gm_parse_u64(word, count - 1, &number))
        return (uint32_t)number;
    for (uint32_t i = 0; n >= 5 && i < count; i++) {
        uuid_make(uuid, name, i);
        gm_uuid_text(text + 4, uuid);
        if (strncmp(word, text, n) == 0)
            return i;
    }
    return count;
}

uint32_t dev_device_numbers(const char *name, uint32_t numbers[DEV_DEVICES])
{
    const uint32_t count = dev_device_count();
    const char *list = secure_getenv("GMUX_VISIBLE_DEVICES");
    uint32_t n = 0, one;
    if (!list || !*list)
        for (; n < count; n++)
            numbers[n] = n;
    else
        for (; *list && n < count && (one = device_named(list, name, count)) < count;
             list += strcspn(list, ","), list += *list == ',')
            numbers[n++] = one;
    return n;
}

void dev_info_describe(struct dev_info *info, const char *name, uint32_t multiprocessors,
                       uint32_t device, uint32_t devices)
{
    memset(info, 0, sizeof(*info));
    snprintf(info->name, sizeof(info->name), "%s", name);
    uuid_make(info->uuid, name, device);
    info->pci_bus = device;
    info->memory_total = memory_total(devices);
    info->multiprocessors = multiprocessors;
    /* As NVIDIA's MPS rounds on bigger devices. */
    info->multiprocessors_step = multiprocessors >= 16 ? 2 : 1;
    info->multiprocessors_shared = multiprocessors - multiprocessors % info->multiprocessors_step;
    info->priorities = PRIORITIES;
    memcpy(info->limits, limits, sizeof(limits));
    info->driver_version = 13000;

    int32_t *a = info->attributes;
    for (size_t i = 0; i < GM_ARRAY_LEN(fixed); i++)
        a[fixed[i].attribute] = fixed[i].value;
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    a[ATTR_L2_CACHE_SIZE] = l2 > 0 && l2 < INT32_MAX ? (int32_t)l2 : 1 << 20;
    a[ATTR_CLOCK_RATE] = clock_khz();
    a[ATTR_MEMORY_CLOCK_RATE] = a[ATTR_CLOCK_RATE];
    a[ATTR_MULTIPROCESSOR_COUNT] = (int32_t)multiprocessors;
    a[ATTR_PCI_DOMAIN_ID] = (int32_t)info->pci_domain;
    a[ATTR_PCI_BUS_ID] = (int32_t)info->pci_bus;
    a[ATTR_PCI_DEVICE_ID] = (int32_t)info->pci_device;
}
