/*
 * Memory of a GPU: for each mapping a handle of the genuine driver, and the descriptor by which the
 * executor maps it. The driver is initialised here, but no context is ever made, so this process
 * costs no memory on the device and cannot fault there. Freed memory goes back to the driver in the
 * kernel, which clears it before anybody gets it again.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/result.h"
#include "device/genuine/genuine.h"
#include "server/keeper.h"
#include "server/memory.h"

#define KEEPER_FUNCTIONS(X)                                                                        \
    X(cuInit)                                                                                      \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetUuid_v2)                                                                          \
    X(cuMemCreate)                                                                                 \
    X(cuMemGetAllocationPropertiesFromHandle)                                                      \
    X(cuMemRelease)                                                                                \
    X(cuMemExportToShareableHandle)

/* There is one driver in a process, so there is one of these. */
static struct {
#define X(name) __typeof__(name) *name;
    KEEPER_FUNCTIONS(X)
#undef X
    CUdevice devices[TP_DEVICES]; /* in the executor's order */
} driver;

static int load(char *why, size_t why_size)
{
    const char *missing = NULL;
    void *library = dev_genuine_library(why, why_size);
    if (!library)
        return -ENOENT;
#define X(name)                                                                                    \
    driver.name = (__typeof__(driver.name))dlsym(library, #name);                                  \
    if (!driver.name)                                                                              \
        missing = #name;
    KEEPER_FUNCTIONS(X)
#undef X
    if (!missing)
        return 0;
    (void)snprintf(why, why_size, "the NVIDIA driver has no %s", missing);
    return -ENOENT;
}

static CUresult count_devices(int *count)
{
    *count = 0;
    /* The driver must find neither our daemon nor NVIDIA's. */
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/gmux", 1);
    CUresult r = driver.cuInit(0);
    return r == CUDA_SUCCESS ? driver.cuDeviceGetCount(count) : r;
}

bool srv_keeper_cuda_present(void)
{
    char why[256];
    int count = 0;
    return load(why, sizeof(why)) == 0 && count_devices(&count) == CUDA_SUCCESS && count > 0;
}

int srv_keeper_cuda_open(uint32_t device, const uint8_t uuid[16], char *why, size_t why_size)
{
    int count = 0;
    int r = load(why, why_size);
    if (r < 0)
        return r;
    CUresult result = count_devices(&count);
    for (int i = 0; result == CUDA_SUCCESS && i < count; i++) {
        CUuuid is;
        CUdevice found;
        result = driver.cuDeviceGet(&found, i);
        if (result == CUDA_SUCCESS)
            result = driver.cuDeviceGetUuid_v2(&is, found);
        if (result == CUDA_SUCCESS && memcmp(is.bytes, uuid, sizeof(is.bytes)) == 0) {
            driver.devices[device] = found;
            return 0;
        }
    }
    (void)snprintf(why, why_size,
                   "the executor's device %u is not among this process's %d (error %d)", device,
                   count, (int)result);
    return -ENODEV;
}

static CUresult create(uint32_t device, uint64_t size, unsigned char compression,
                       CUmemGenericAllocationHandle *made, int *fd)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = driver.devices[device] },
        .allocFlags.compressionType = compression,
    };
    CUresult r = driver.cuMemCreate(made, size, &prop, 0);
    if (r != CUDA_SUCCESS)
        return r;
    r = driver.cuMemExportToShareableHandle(fd, *made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (r != CUDA_SUCCESS)
        (void)driver.cuMemRelease(*made);
    return r;
}

static bool is_compressible(CUmemGenericAllocationHandle handle)
{
    CUmemAllocationProp is = { 0 };
    return driver.cuMemGetAllocationPropertiesFromHandle(&is, handle) == CUDA_SUCCESS &&
           is.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC;
}

/* Compression is only a wish: a driver that cannot compress such memory may report that by
 * failing. */
int srv_keeper_cuda_create(uint32_t device, uint64_t size, bool *compressible, uint64_t *handle,
                           int *fd)
{
    CUmemGenericAllocationHandle made;
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;
    if (*compressible)
        r = create(device, size, CU_MEM_ALLOCATION_COMP_GENERIC, &made, fd);
    if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY) {
        *compressible = false;
        r = create(device, size, CU_MEM_ALLOCATION_COMP_NONE, &made, fd);
    }
    if (r != CUDA_SUCCESS)
        return (int)r;
    *compressible = *compressible && is_compressible(made);
    *handle = made;
    return GM_CUDA_SUCCESS;
}

void srv_keeper_cuda_release(uint64_t handle)
{
    (void)driver.cuMemRelease(handle);
}

static int take(struct srv_heap *h, struct srv_mapping *m)
{
    bool compressible = false;
    return srv_keeper_cuda_create(h->device, m->block->size, &compressible, &m->handle, &m->fd);
}

static void give(struct srv_heap *h, struct srv_mapping *m)
{
    if (m->fd < 0)
        return;
    m->fd = gm_close(m->fd);
    srv_keeper_cuda_release(m->handle);
}

const struct srv_keeper_ops srv_keeper_cuda = {
    .page = SRV_SLAB, .charged = SRV_SLAB, .take = take, .give = give
};
