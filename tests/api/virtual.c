/* Virtual memory management: addresses, memory, and one at the other. */
#include "peer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static struct peer peers[2], pokers[3];

static const CUmemAllocationProp plain = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 }
};
static const CUmemAccessDesc both = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
                                      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static size_t unit(void)
{
    size_t size = 0;
    OK(cuMemGetAllocationGranularity(&size, &plain, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    TRUE(size && (size & (size - 1)) == 0);
    return size;
}

static void supported(void)
{
    int value = 0;
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    EQ(value, 1);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                            0));
    EQ(value, 1);
    EQ(unit(), 2 << 20);
}

/* As NCCL asks: the granularity first, of a device that may not have such memory. */
static void of_a_numa_node(void)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp node = plain;
    size_t size = 0;
    int can = 0;
    OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                            0));
    node.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    OK(cuMemGetAllocationGranularity(&size, &node, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    TRUE(size && (size & (size - 1)) == 0);
    int r = cuMemCreate(&handle, size, &node, 0);
    if (can)
        OK(r);
    else
        TRUE(r == CUDA_ERROR_NOT_SUPPORTED || r == CUDA_ERROR_NOT_PERMITTED);
    if (r == CUDA_SUCCESS)
        OK(cuMemRelease(handle));
}

static void from_the_beginning_to_the_end(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    unsigned long long access;
    size_t size = 4 * unit();
    OK(cuMemAddressReserve(&p, size, 0, 0, 0));
    EQ(p % unit(), 0);
    OK(cuMemCreate(&handle, size, &plain, 0));
    OK(cuMemMap(p, size, 0, handle, 0));
    OK(cuMemGetAccess(&access, &plain.location, p));
    EQ(access, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemSetAccess(p, size, &both, 1));
    OK(cuMemGetAccess(&access, &plain.location, p + size - 1));
    EQ(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemRelease(handle)); /* the mapping keeps it */
    OK(cuMemsetD8(p, 9, size));
    EQ(tap_byte(p), 9);
    EQ(tap_byte(p + size - 1), 9);
    OK(cuMemUnmap(p, size));
    TRUE(cuMemsetD8(p, 0, 1) != CUDA_SUCCESS);
    OK(cuMemAddressFree(p, size));
    IS(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

#define COPIED (512u << 10)

struct reader {
    CUcontext context;
    CUdeviceptr from;
    CUstream stream;
    CUresult result;
    _Atomic int over;
};

static void *read_in_stream(void *arg)
{
    static unsigned char out[COPIED];
    struct reader *r = arg;
    r->result = cuCtxSetCurrent(r->context);
    if (r->result == CUDA_SUCCESS)
        r->result = cuMemcpyDtoHAsync(out, r->from, sizeof(out), r->stream);
    r->over = 1;
    return NULL;
}

/* A copy between such memory and the program's own that has to wait for its stream holds up no
 * other stream's. */
static void copies_beside_each_other(void)
{
    static unsigned char bytes[COPIED];
    static _Atomic int go;
    static struct reader r;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    CUstream other, busy;
    pthread_t thread;
    OK(cuMemAddressReserve(&p, unit(), 0, 0, 0));
    OK(cuMemCreate(&handle, unit(), &plain, 0));
    OK(cuMemMap(p, unit(), 0, handle, 0));
    OK(cuMemSetAccess(p, unit(), &both, 1));
    OK(cuMemsetD8(p, 4, unit()));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(busy, tap_hold, &go));
    OK(cuCtxGetCurrent(&r.context));
    r.from = p;
    r.stream = busy;
    EQ(pthread_create(&thread, NULL, read_in_stream, &r), 0);
    for (unsigned i = 0; i < 500; i++) { /* long enough for that thread to be there */
        OK(cuMemcpyDtoHAsync(bytes, p + COPIED, COPIED, other));
        OK(cuMemcpyHtoDAsync(p + COPIED, bytes, COPIED, other));
    }
    TRUE(r.over == 0 || tap_genuine()); /* which may put such a copy off */
    hold_set(&go, 1);
    EQ(pthread_join(thread, NULL), 0);
    IS(r.result, CUDA_SUCCESS);
    OK(cuCtxSynchronize());
    OK(cuMemUnmap(p, unit()));
    OK(cuMemAddressFree(p, unit()));
    OK(cuMemRelease(handle));
    OK(cuStreamDestroy(other));
    OK(cuStreamDestroy(busy));
}

/* As expandable segments grow: pieces side by side, used as one. */
/* A wish: what was granted is what the handle says, and a device that cannot compress grants
 * nothing. */
static void compressible(void)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp wish = plain, is = { 0 };
    CUdeviceptr p;
    size_t one = unit();
    int can = 0;
    OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0));
    wish.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    OK(cuMemGetAllocationGranularity(&one, &wish, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemCreate(&handle, one, &wish, 0));
    OK(cuMemGetAllocationPropertiesFromHandle(&is, handle));
    TRUE(is.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_NONE ||
         (can && is.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC));
    printf("# compression %s, and %s\n", can ? "supported" : "not supported",
           is.allocFlags.compressionType ? "granted" : "not granted");
    OK(cuMemAddressReserve(&p, one, 0, 0, 0));
    OK(cuMemMap(p, one, 0, handle, 0));
    OK(cuMemRelease(handle));
    OK(cuMemSetAccess(p, one, &both, 1));
    OK(cuMemsetD8(p, 3, one));
    EQ(tap_byte(p + one - 1), 3);
    OK(cuMemUnmap(p, one));
    OK(cuMemAddressFree(p, one));
    OK(cuMemCreate(&handle, unit(), &plain, 0));
    OK(cuMemGetAllocationPropertiesFromHandle(&is, handle));
    EQ(is.allocFlags.compressionType, CU_MEM_ALLOCATION_COMP_NONE);
    OK(cuMemRelease(handle));
}

static void side_by_side(void)
{
    enum { PIECES = 6 };
    CUmemGenericAllocationHandle handle[PIECES];
    CUdeviceptr p;
    size_t one = unit();
    static unsigned char bytes[100];
    OK(cuMemAddressReserve(&p, 100 * one, 0, 0, 0));
    for (unsigned i = 0; i < PIECES; i++) {
        OK(cuMemCreate(&handle[i], one, &plain, 0));
        OK(cuMemMap(p + i * one, one, 0, handle[i], 0));
    }
    OK(cuMemSetAccess(p, PIECES * one, &both, 1));
    OK(cuMemsetD8(p, 1, PIECES * one));
    memset(bytes, 2, sizeof(bytes));
    OK(cuMemcpyHtoD(p + one - 50, bytes, sizeof(bytes))); /* across an edge */
    OK(cuMemcpyDtoD(p + 3 * one - 10, p + one - 60, 120));
    EQ(tap_byte(p + one - 51), 1);
    EQ(tap_byte(p + one - 50), 2);
    EQ(tap_byte(p + one + 49), 2);
    EQ(tap_byte(p + 3 * one - 1), 1);
    EQ(tap_byte(p + 3 * one), 2);
    EQ(tap_byte(p + 3 * one + 99), 2);
    EQ(tap_byte(p + 3 * one + 100), 1);
    TRUE(cuMemsetD8(p, 1, PIECES * one + 1) != CUDA_SUCCESS);
    OK(cuMemUnmap(p + one, one)); /* one in the middle goes */
    TRUE(cuMemsetD8(p, 1, 2 * one) != CUDA_SUCCESS);
    OK(cuMemsetD8(p + 2 * one, 1, 2 * one));
    OK(cuMemMap(p + one, one, 0, handle[1], 0)); /* and comes again, with what was in it */
    OK(cuMemSetAccess(p + one, one, &both, 1));
    EQ(tap_byte(p + one), 2);
    for (unsigned i = 0; i < PIECES; i++)
        OK(cuMemRelease(handle[i]));
    OK(cuCtxSynchronize());
    OK(cuMemUnmap(p, PIECES * one));
    OK(cuMemAddressFree(p, 100 * one));
}

static void grow(CUdeviceptr p, size_t piece, unsigned from, unsigned to)
{
    CUmemGenericAllocationHandle handle[16];
    for (unsigned i = from; i < to; i++)
        OK(cuMemCreate(&handle[i], piece, &plain, 0));
    for (unsigned i = from; i < to; i++)
        OK(cuMemMap(p + i * piece, piece, 0, handle[i], 0));
    for (unsigned i = from; i < to; i++) /* the mapping keeps it */
        OK(cuMemRelease(handle[i]));
    OK(cuMemSetAccess(p + from * piece, (to - from) * piece, &both, 1));
}

static void expect_bytes(CUdeviceptr p, size_t size, unsigned value)
{
    EQ(tap_byte(p), value);
    EQ(tap_byte(p + size - 1), value);
}

/* As caching allocators use it: large reservations side by side, each grown by several pieces at
 * once, shrunk by one or several, and given up in any order. */
static void expandable_segments(void)
{
    enum { SEGMENTS = 3, PIECES = 8 };
    CUdeviceptr p[SEGMENTS];
    size_t piece = 2 * unit(), size = 64 * piece, all = PIECES * piece;
    for (unsigned i = 0; i < SEGMENTS; i++)
        OK(cuMemAddressReserve(&p[i], size, 0, 0, 0));
    for (unsigned i = 0; i < SEGMENTS; i++) {
        grow(p[i], piece, 0, 5);
        grow(p[i], piece, 5, PIECES);
        OK(cuMemsetD8(p[i], (unsigned char)(10 + i), all));
    }
    for (unsigned i = 0; i < SEGMENTS; i++)
        expect_bytes(p[i], all, 10 + i);
    OK(cuMemUnmap(p[0] + piece, piece));
    OK(cuMemUnmap(p[0] + 3 * piece, 4 * piece));
    expect_bytes(p[0], piece, 10);
    expect_bytes(p[0] + 2 * piece, piece, 10);
    expect_bytes(p[0] + 7 * piece, piece, 10);
    grow(p[0], piece, 3, 7);
    OK(cuMemsetD8(p[0] + 2 * piece, 5, 6 * piece));
    expect_bytes(p[0] + 2 * piece, 6 * piece, 5);
    OK(cuMemUnmap(p[0], all)); /* with a hole */
    OK(cuMemUnmap(p[2], 4 * piece));
    OK(cuMemUnmap(p[2] + 4 * piece, 4 * piece));
    for (unsigned i = 0; i < PIECES; i++)
        OK(cuMemUnmap(p[1] + i * piece, piece));
    OK(cuMemAddressFree(p[1], size)); /* the one in the middle */
    OK(cuMemAddressFree(p[2], size));
    OK(cuMemAddressFree(p[0], size));
}

static void at_two_addresses(void)
{
    CUmemGenericAllocationHandle handle, again;
    CUmemAllocationProp prop;
    CUdeviceptr p;
    size_t one = unit();
    OK(cuMemAddressReserve(&p, 2 * one, 0, 0, 0));
    OK(cuMemCreate(&handle, one, &plain, 0));
    OK(cuMemMap(p, one, 0, handle, 0));
    OK(cuMemMap(p + one, one, 0, handle, 0));
    OK(cuMemSetAccess(p, 2 * one, &both, 1));
    OK(cuMemsetD8(p + 10, 3, 1));
    EQ(tap_byte(p + one + 10), 3);
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + one + 5)));
    OK(cuMemGetAllocationPropertiesFromHandle(&prop, again));
    EQ(prop.type, CU_MEM_ALLOCATION_TYPE_PINNED);
    EQ(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    EQ(prop.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    OK(cuMemRelease(again));
    OK(cuMemRelease(handle));
    OK(cuMemUnmap(p, one));
    EQ(tap_byte(p + one + 10), 3);
    OK(cuMemUnmap(p + one, one));
    OK(cuMemAddressFree(p, 2 * one));
}

static void a_kernel_uses_it(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    size_t one = unit();
    uint32_t n = 1000, words[1000];
    void *params[] = { &p, &n };
    if (!tap_computes())
        tap_skip("kernels are not run");
    OK(cuMemAddressReserve(&p, one, 0, 0, 0));
    OK(cuMemCreate(&handle, one, &plain, 0));
    OK(cuMemMap(p, one, 0, handle, 0));
    OK(cuMemSetAccess(p, one, &both, 1));
    OK(cuLaunchKernel(tap_function("store_index"), (n + 127) / 128, 1, 1, 128, 1, 1, 0, NULL,
                      params, NULL));
    OK(cuMemcpyDtoH(words, p, sizeof(words)));
    EQ(words[999], 999);
    OK(cuMemUnmap(p, one));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(p, one));
}

/* In other processes, since a fault is for ever. They need not be on our server. */
static void kernels_keep_to_the_access(void)
{
    static const struct {
        CUmemAccess_flags access;
        bool works;
    } cases[] = {
        { CU_MEM_ACCESS_FLAGS_PROT_READWRITE, true },
        { CU_MEM_ACCESS_FLAGS_PROT_READ, false },
        { CU_MEM_ACCESS_FLAGS_PROT_NONE, false },
    };
    if (!tap_computes())
        tap_skip("kernels are not run");
    if (!tap_alone())
        tap_skip("a fault may take others along");
    for (unsigned i = 0; i < COUNT(cases); i++) {
        struct peer_message m = { .op = PEER_MAP_ACCESS, .value = cases[i].access };
        peer_ask(&pokers[i], &m);
        EQ(m.result, CUDA_SUCCESS);
        m.op = PEER_POKE;
        peer_ask(&pokers[i], &m);
        if (cases[i].works)
            EQ(m.result, CUDA_SUCCESS);
        else
            EQ(m.result, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
}

static void charged(void)
{
    CUmemGenericAllocationHandle handle;
    size_t before, during, after, total, size = 32 * unit();
    OK(cuMemGetInfo(&before, &total));
    OK(cuMemCreate(&handle, size, &plain, 0));
    OK(cuMemGetInfo(&during, &total));
    OK(cuMemRelease(handle));
    OK(cuMemGetInfo(&after, &total));
    if (tap_alone() && !tap_genuine()) {
        TRUE(during <=
             before - size / 2); /* on a GPU it is the driver's word, who has a little at hand */
        TRUE(after >= during + size / 2);
    }
    IS(cuMemCreate(&handle, 1ull << 45, &plain, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void zeroed(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    size_t one = unit();
    OK(cuMemAddressReserve(&p, one, 0, 0, 0));
    for (unsigned i = 0; i < 3; i++) {
        OK(cuMemCreate(&handle, one, &plain, 0));
        OK(cuMemMap(p, one, 0, handle, 0));
        OK(cuMemSetAccess(p, one, &both, 1));
        if (!tap_genuine())
            EQ(tap_byte(p + 12345), 0);
        OK(cuMemsetD8(p, 1, one));
        OK(cuCtxSynchronize()); /* cuMemUnmap does not wait for what uses the memory */
        OK(cuMemUnmap(p, one));
        OK(cuMemRelease(handle));
    }
    OK(cuMemAddressFree(p, one));
}

static void wrong(void)
{
    CUmemGenericAllocationHandle handle, none;
    CUmemAllocationProp prop = plain;
    CUmemAccessDesc desc = both;
    CUdeviceptr p, q;
    size_t one = unit();
    int fd;
    IS(cuMemCreate(&handle, one + 1, &plain, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemCreate(&handle, 0, &plain, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemCreate(&handle, one, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemCreate(&handle, one, &plain, 1), CUDA_ERROR_INVALID_VALUE);
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    TRUE(cuMemCreate(&handle, one, &prop, 0) != CUDA_SUCCESS);
    IS(cuMemAddressReserve(&p, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAddressReserve(&p, one, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressReserve(&p, 2 * one, 0, 0, 0));
    OK(cuMemCreate(&handle, one, &plain, 0));
    TRUE(cuMemMap(p + 4096, one, 0, handle, 0) != CUDA_SUCCESS);
    TRUE(cuMemMap(p, one, one, handle, 0) != CUDA_SUCCESS);
    TRUE(cuMemMap(p, 2 * one, 0, handle, 0) != CUDA_SUCCESS);
    TRUE(cuMemMap(p + 2 * one, one, 0, handle, 0) != CUDA_SUCCESS);
    TRUE(cuMemMap(p, one, 0, handle + 1, 0) != CUDA_SUCCESS);
    TRUE(cuMemSetAccess(p, one, &both, 1) != CUDA_SUCCESS);
    OK(cuMemUnmap(p, one)); /* nothing is mapped there, and nothing is afterwards */
    OK(cuMemMap(p, one, 0, handle, 0));
    TRUE(cuMemMap(p, one, 0, handle, 0) != CUDA_SUCCESS);
    TRUE(cuMemSetAccess(p, 2 * one, &both, 1) != CUDA_SUCCESS);
    desc.location.id = 99;
    TRUE(cuMemSetAccess(p, one, &desc, 1) != CUDA_SUCCESS);
    TRUE(cuMemAddressFree(p, one) != CUDA_SUCCESS);
    TRUE(cuMemFree(p) != CUDA_SUCCESS);
    TRUE(cuMemRetainAllocationHandle(&none, (void *)(uintptr_t)(p + one)) != CUDA_SUCCESS);
    TRUE(cuMemImportFromShareableHandle(&none, (void *)(intptr_t)-1,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS);
    TRUE(cuMemImportFromShareableHandle(&none, (void *)(intptr_t)0,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS);
    OK(cuMemUnmap(p, one));
    OK(cuMemRelease(handle));
    IS(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    prop = plain;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    OK(cuMemCreate(&handle, one, &prop, 0));
    TRUE(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) !=
         CUDA_SUCCESS);
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(p, 2 * one));
    TRUE(cuMemAddressFree(p, 2 * one) != CUDA_SUCCESS);
    OK(cuMemAlloc(&q, 16));
    TRUE(cuMemUnmap(q, 16) != CUDA_SUCCESS);
    OK(cuMemFree(q));
}

static void exported_to_ourselves(void)
{
    CUmemGenericAllocationHandle handle, imported;
    CUdeviceptr p;
    size_t one = unit();
    int fd;
    OK(cuMemAddressReserve(&p, 2 * one, 0, 0, 0));
    OK(cuMemCreate(&handle, one, &plain, 0));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    OK(cuMemMap(p, one, 0, handle, 0));
    OK(cuMemMap(p + one, one, 0, imported, 0));
    OK(cuMemSetAccess(p, 2 * one, &both, 1));
    OK(cuMemsetD8(p + 7, 4, 1));
    EQ(tap_byte(p + one + 7), 4);
    OK(cuMemUnmap(p, 2 * one));
    OK(cuMemRelease(handle));
    OK(cuMemRelease(imported));
    OK(cuMemAddressFree(p, 2 * one));
}

static void exported_to_others(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    size_t size = 2 * unit();
    int fd;
    OK(cuMemAddressReserve(&p, size, 0, 0, 0));
    OK(cuMemCreate(&handle, size, &plain, 0));
    OK(cuMemMap(p, size, 0, handle, 0));
    OK(cuMemSetAccess(p, size, &both, 1));
    OK(cuMemsetD8(p, 6, size));
    OK(cuCtxSynchronize());
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    for (unsigned i = 0; i < 2; i++) {
        struct peer_message m = { .op = PEER_IMPORT, .size = size };
        peer_ask_fd(&peers[i], &m, fd);
        EQ(m.result, CUDA_SUCCESS);
        CUdeviceptr there = m.pointer;
        m = (struct peer_message) { .op = PEER_GET, .pointer = there + size - 1 };
        peer_ask(&peers[i], &m);
        EQ(m.result, CUDA_SUCCESS);
        EQ(m.value, 6);
        m = (struct peer_message) { .op = PEER_SET, .pointer = there, .size = 1, .value = 60 + i };
        peer_ask(&peers[i], &m);
        m = (struct peer_message) { .op = PEER_SYNC };
        peer_ask(&peers[i], &m);
        EQ(m.result, CUDA_SUCCESS);
        EQ(tap_byte(p), 60 + i);
    }
    peer_kill(&peers[1]); /* with it mapped */
    EQ(tap_byte(p + 1), 6);
    close(fd);
    OK(cuMemUnmap(p, size));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(p, size));
}

/* Reserving costs no memory: a program may reserve more than the device has, several times. */
static void large_reservations(void)
{
    CUdeviceptr p[3];
    size_t total, size;
    OK(cuDeviceTotalMem(&total, 0));
    size = (total + total / 8) / unit() * unit();
    for (unsigned i = 0; i < COUNT(p); i++)
        OK(cuMemAddressReserve(&p[i], size, 0, 0, 0));
    for (unsigned i = 0; i < COUNT(p); i++)
        OK(cuMemAddressFree(p[i], size));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(supported),
        TEST(of_a_numa_node),
        TEST(from_the_beginning_to_the_end),
        TEST(compressible),
        TEST(copies_beside_each_other),
        TEST(side_by_side),
        TEST(expandable_segments),
        TEST(at_two_addresses),
        TEST(a_kernel_uses_it),
        TEST(charged),
        TEST(zeroed),
        TEST(wrong),
        TEST(exported_to_ourselves),
        TEST(exported_to_others),
        TEST(large_reservations),
        TEST(kernels_keep_to_the_access),
    };
    for (unsigned i = 0; i < COUNT(peers); i++)
        peer_start(&peers[i]);
    for (unsigned i = 0; i < COUNT(pokers); i++)
        peer_start(&pokers[i]);
    return tap_main(tests, COUNT(tests));
}
