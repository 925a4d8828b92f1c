/* Memory pools between processes. */
#include "peer.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static struct peer peers[3]; /* the last is killed */

static const CUmemPoolProps shareable = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                          .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                        .id = 0 } };

static CUmemoryPool make_pool(void)
{
    CUmemoryPool pool;
    OK(cuMemPoolCreate(&pool, &shareable));
    return pool;
}

static CUdeviceptr allocate(CUmemoryPool pool, size_t size, unsigned char value)
{
    CUdeviceptr p;
    OK(cuMemAllocFromPoolAsync(&p, size, pool, NULL));
    OK(cuMemsetD8Async(p, value, size, NULL));
    OK(cuCtxSynchronize());
    return p;
}

static void send_pool(struct peer *to, CUmemoryPool pool)
{
    struct peer_message m = { .op = PEER_POOL_IMPORT };
    int fd = -1;
    OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    TRUE(fd >= 0);
    EQ(fcntl(fd, F_GETFD), 0); /* programs that are started inherit it */
    peer_ask_fd(to, &m, fd);
    close(fd);
    tap_check_result(__FILE__, __LINE__, "the pool in the other process", m.result, CUDA_SUCCESS);
}

static CUdeviceptr send_pointer(struct peer *to, CUdeviceptr p)
{
    struct peer_message m = { .op = PEER_POOL_POINTER };
    OK(cuMemPoolExportPointer(&m.pointer_data, p));
    peer_ask(to, &m);
    tap_check_result(__FILE__, __LINE__, "the pointer in the other process", m.result,
                     CUDA_SUCCESS);
    return m.pointer;
}

static void supported(void)
{
    int types = 0;
    OK(cuDeviceGetAttribute(&types, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
    TRUE(types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/* Two allocations, a small and a large one, by two processes. */
static void seen_by_all(void)
{
    CUmemoryPool pool = make_pool();
    CUdeviceptr small = allocate(pool, 5000, 11), other = allocate(pool, 5000, 33),
                large = allocate(pool, 3 * MIB, 22);
    for (int i = 0; i < 2; i++) {
        send_pool(&peers[i], pool);
        CUdeviceptr s = send_pointer(&peers[i], small), l = send_pointer(&peers[i], large);
        EQ(peer_byte(&peers[i], s), 11);
        EQ(peer_byte(&peers[i], s + 4999), 11);
        EQ(peer_byte(&peers[i], l + 3 * MIB - 1), 22);
        ASK_OK(peers[i], .op = PEER_SET, .pointer = s, .size = 1, .value = 40 + i);
        ASK_OK(peers[i], .op = PEER_SET, .pointer = l + MIB, .size = 1, .value = 50 + i);
        ASK_OK(peers[i], .op = PEER_SYNC);
        EQ(tap_byte(small), 40 + i);
        EQ(tap_byte(large + MIB), 50 + i);
        EQ(tap_byte(small + 1), 11);
        ASK_OK(peers[i], .op = PEER_FREE, .pointer = s);
        ASK_OK(peers[i], .op = PEER_FREE_ASYNC, .pointer = l);
        ASK_OK(peers[i], .op = PEER_SYNC);
        ASK_OK(peers[i], .op = PEER_POOL_END);
        OK(cuMemsetD8(small, 11, 5000));
        OK(cuMemsetD8(large, 22, 3 * MIB));
        OK(cuCtxSynchronize()); /* before the next one looks */
    }
    EQ(tap_byte(other), 33);
    OK(cuMemFree(small));
    OK(cuMemFree(other));
    OK(cuMemFreeAsync(large, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemPoolDestroy(pool));
}

/* One allocation in the middle of another's use: what is freed here is used again, and the importer
 * still has its own. */
static void comes_and_goes(void)
{
    CUmemoryPool pool = make_pool();
    CUdeviceptr kept = allocate(pool, 4096, 7);
    send_pool(&peers[0], pool);
    CUdeviceptr there = send_pointer(&peers[0], kept);
    for (int i = 0; i < 50; i++) {
        CUdeviceptr p = allocate(pool, 4096, (unsigned char)i);
        CUdeviceptr other = send_pointer(&peers[0], p);
        TRUE(other != there);
        EQ(peer_byte(&peers[0], other), i);
        ASK_OK(peers[0], .op = PEER_FREE, .pointer = other);
        OK(cuMemFreeAsync(p, NULL));
    }
    EQ(peer_byte(&peers[0], there), 7);
    ASK_OK(peers[0], .op = PEER_FREE, .pointer = there);
    ASK_OK(peers[0], .op = PEER_POOL_END);
    OK(cuMemFree(kept));
    OK(cuMemPoolDestroy(pool));
}

static void importer_killed(void)
{
    CUmemoryPool pool = make_pool();
    CUdeviceptr p = allocate(pool, 100000, 9);
    send_pool(&peers[2], pool);
    CUdeviceptr there = send_pointer(&peers[2], p);
    EQ(peer_byte(&peers[2], there + 99999), 9);
    peer_kill(&peers[2]);
    EQ(tap_byte(p + 99999), 9);
    OK(cuMemFree(p));
    OK(cuMemPoolDestroy(pool));
}

/* Data of another pool, or made up. */
static void not_of_this_pool(void)
{
    CUmemoryPool a = make_pool(), b = make_pool();
    struct peer_message m = { .op = PEER_POOL_POINTER };
    CUdeviceptr p = allocate(b, 4096, 1);
    send_pool(&peers[0], a);
    memset(&m.pointer_data, 0x5a, sizeof(m.pointer_data));
    peer_ask(&peers[0], &m);
    EQ(m.result, CUDA_ERROR_INVALID_VALUE);
    if (tap_ours()) {
        OK(cuMemPoolExportPointer(&m.pointer_data, p));
        m.op = PEER_POOL_POINTER;
        peer_ask(&peers[0], &m);
        EQ(m.result, CUDA_ERROR_INVALID_VALUE);
    }
    ASK_OK(peers[0], .op = PEER_POOL_END);
    OK(cuMemFree(p));
    OK(cuMemPoolDestroy(a));
    OK(cuMemPoolDestroy(b));
}

static void refused(void)
{
    static const CUmemPoolProps plain = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                        .id = 0 } };
    CUmemPoolPtrExportData data;
    CUmemoryPool pool, none = NULL;
    CUdeviceptr p, q;
    int fd = -1, pipes[2];
    OK(cuMemPoolCreate(&pool, &plain));
    TRUE(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) !=
         CUDA_SUCCESS);
    p = allocate(pool, 4096, 1);
    TRUE(cuMemPoolExportPointer(&data, p) != CUDA_SUCCESS);
    OK(cuMemFree(p));
    OK(cuMemPoolDestroy(pool));
    OK(cuMemAlloc(&q, 4096));
    TRUE(cuMemPoolExportPointer(&data, q) != CUDA_SUCCESS);
    OK(cuMemFree(q));
    pool = make_pool();
    TRUE(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_WIN32, 0) != CUDA_SUCCESS);
    IS(cuMemPoolExportToShareableHandle(NULL, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
       CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolDestroy(pool));
    TRUE(pipe(pipes) == 0);
    TRUE(cuMemPoolImportFromShareableHandle(&none, (void *)(intptr_t)pipes[0],
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                            0) != CUDA_SUCCESS);
    close(pipes[0]);
    close(pipes[1]);
}

/* An imported pool has nothing to allocate; access is as with others. */
static void imported_at_home(void)
{
    CUmemoryPool pool = make_pool(), again;
    CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUdeviceptr p;
    int fd;
    OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemPoolImportFromShareableHandle(&again, (void *)(intptr_t)fd,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(fd);
    TRUE(again != pool);
    TRUE(cuMemAllocFromPoolAsync(&p, 4096, again, NULL) != CUDA_SUCCESS);
    TRUE(cuDeviceSetMemPool(0, again) != CUDA_SUCCESS);
    OK(cuMemPoolGetAccess(&flags, again, &here));
    EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemPoolDestroy(again));
    OK(cuMemPoolDestroy(pool));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(supported),        TEST(seen_by_all), TEST(comes_and_goes),   TEST(importer_killed),
        TEST(not_of_this_pool), TEST(refused),     TEST(imported_at_home),
    };
    for (unsigned i = 0; i < COUNT(peers); i++)
        peer_start(&peers[i]);
    return tap_main(tests, COUNT(tests));
}
