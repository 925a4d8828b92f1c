/* Memory, events, pools and memory objects of one process in another, which is started before
 * cuInit. */
#include "answers.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(void)
{
    CUcontext c;
    CALL(cuInit(0));
    CALL(cuDevicePrimaryCtxRetain(&c, 0));
    CALL(cuCtxSetCurrent(c));
}

/* The other process's part; its lines come when it is done, behind those of this one. */
static void beside(void (*other)(int socket), void (*here)(int socket))
{
    int ends[2], out[2], status = 0;
    char text[8192];
    ssize_t n;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) || pipe(out))
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        close(ends[0]);
        start();
        other(ends[1]);
        exit(0);
    }
    close(ends[1]);
    close(out[1]);
    start();
    here(ends[0]);
    close(ends[0]);
    puts("-- the other process");
    while ((n = read(out[0], text, sizeof(text))) > 0)
        fwrite(text, 1, (size_t)n, stdout);
    waitpid(pid, &status, 0);
    NUM(status);
}

static void send_fd(int socket, int fd)
{
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec v = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    NUM(sendmsg(socket, &m, 0));
}

static int receive_fd(int socket)
{
    int fd = -1;
    char byte, control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec v = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    NUM(recvmsg(socket, &m, 0));
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c)
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd;
}

/* --- memory ----------------------------------------------------------------------------------- */

static void memory_there(int socket)
{
    CUipcMemHandle h;
    CUdeviceptr p = 0, q = 0, base = 0;
    size_t size = 0;
    unsigned type = 0;
    NUM(read(socket, &h, sizeof(h)));
    CALL(cuIpcOpenMemHandle(&p, h, 0));
    CALL(cuIpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    NUM(answers_word(p));
    CALL(cuIpcOpenMemHandle(&q, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    NUM(p == q);
    CALL(cuMemGetAddressRange(&base, &size, p + 8));
    NUM(base == p);
    MACHINE(size);
    CALL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    NUM(type);
    CALL(cuMemFree(p));
    CALL(cuMemsetD32(p, 66, 1024));
    CALL(cuCtxSynchronize());
    CALL(cuIpcGetMemHandle(&h, p));
    CALL(cuIpcCloseMemHandle(p + 8));
    CALL(cuIpcCloseMemHandle(p));
    CALL(cuIpcCloseMemHandle(p));
    CALL(cuIpcCloseMemHandle(p));
    CALL(cuMemsetD32(p, 66, 1));
    NUM(write(socket, "x", 1));
    NUM(read(socket, &h, 1));
}

static void memory_here(int socket)
{
    CUdeviceptr p, q;
    CUipcMemHandle h, again;
    char c;
    void *host;
    CALL(cuMemAlloc(&p, 3 << 20));
    CALL(cuMemsetD32(p, 55, 1024));
    CALL(cuCtxSynchronize());
    CALL(cuIpcGetMemHandle(&h, p));
    CALL(cuIpcGetMemHandle(&again, p));
    NUM(memcmp(&h, &again, sizeof(h)));
    CALL(cuIpcOpenMemHandle(&q, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CALL(cuIpcGetMemHandle(NULL, p));
    CALL(cuIpcGetMemHandle(&again, 16));
    CALL(cuMemAllocHost(&host, 4096));
    CALL(cuIpcGetMemHandle(&again, (CUdeviceptr)(uintptr_t)host));
    CALL(cuMemAllocManaged(&q, 4096, CU_MEM_ATTACH_GLOBAL));
    CALL(cuIpcGetMemHandle(&again, q));
    CALL(cuIpcCloseMemHandle(p));
    CALL(cuIpcCloseMemHandle(16));
    memset(&again, 0x3c, sizeof(again));
    CALL(cuIpcOpenMemHandle(&q, again, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    NUM(write(socket, &h, sizeof(h)));
    NUM(read(socket, &c, 1));
    NUM(answers_word(p));
    NUM(answers_word(p + 4092));
    CALL(cuMemFree(p));
    NUM(write(socket, "y", 1));
}

static void ipc_memory(void)
{
    beside(memory_there, memory_here);
}

/* --- events ----------------------------------------------------------------------------------- */

static void events_there(int socket)
{
    CUipcEventHandle h;
    CUevent e;
    float ms;
    char c;
    NUM(read(socket, &h, sizeof(h)));
    CALL(cuIpcOpenEventHandle(&e, h));
    CALL(cuEventQuery(e));
    CALL(cuStreamWaitEvent(NULL, e, 0));
    CALL(cuStreamSynchronize(NULL));
    CALL(cuEventElapsedTime(&ms, e, e));
    CALL(cuEventRecord(e, NULL));
    CALL(cuEventSynchronize(e));
    CALL(cuIpcGetEventHandle(&h, e));
    CALL(cuEventDestroy(e));
    NUM(write(socket, "x", 1));
    NUM(read(socket, &c, 1));
}

static void events_here(int socket)
{
    CUipcEventHandle h, other;
    CUevent e, timed, f;
    char c;
    CALL(cuEventCreate(&timed, CU_EVENT_DEFAULT));
    CALL(cuIpcGetEventHandle(&other, timed));
    CALL(cuEventCreate(&f, CU_EVENT_INTERPROCESS));
    CALL(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    CALL(cuEventRecord(e, NULL));
    CALL(cuIpcGetEventHandle(&h, e));
    CALL(cuIpcGetEventHandle(NULL, e));
    CALL(cuIpcGetEventHandle(&other, e));
    CALL(cuStreamSynchronize(NULL));
    memset(&other, 0x3c, sizeof(other));
    CALL(cuIpcOpenEventHandle(&f, other));
    CALL(cuIpcOpenEventHandle(NULL, h));
    NUM(write(socket, &h, sizeof(h)));
    NUM(read(socket, &c, 1));
    CALL(cuEventQuery(e));
    CALL(cuEventSynchronize(e));
    CALL(cuEventDestroy(e));
    NUM(write(socket, "y", 1));
}

static void ipc_events(void)
{
    beside(events_there, events_here);
}

/* --- memory objects and pools over descriptors ------------------------------------------------ */

static const CUmemAccessDesc both = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
                                      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static void object_there(int socket)
{
    CUmemGenericAllocationHandle h = 0;
    CUdeviceptr p = 0;
    char c;
    int fd = receive_fd(socket);
    CALL(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CALL(cuMemAddressReserve(&p, 2 << 20, 0, 0, 0));
    CALL(cuMemMap(p, 2 << 20, 0, h, 0));
    CALL(cuMemSetAccess(p, 2 << 20, &both, 1));
    NUM(answers_word(p));
    CALL(answers_fill(NULL, p, 1000, 500));
    CALL(cuCtxSynchronize());
    NUM(write(socket, "x", 1));
    NUM(read(socket, &c, 1));
}

static void object_here(int socket)
{
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
    CUmemGenericAllocationHandle h = 0;
    CUdeviceptr p = 0;
    int fd = -1;
    char c;
    CALL(cuMemCreate(&h, 2 << 20, &prop, 0));
    CALL(cuMemAddressReserve(&p, 2 << 20, 0, 0, 0));
    CALL(cuMemMap(p, 2 << 20, 0, h, 0));
    CALL(cuMemSetAccess(p, 2 << 20, &both, 1));
    CALL(cuMemsetD32(p, 12, 1000));
    CALL(cuCtxSynchronize());
    CALL(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_fd(socket, fd);
    NUM(read(socket, &c, 1));
    NUM(answers_word(p + 3996));
    NUM(write(socket, "y", 1));
}

static void ipc_objects(void)
{
    beside(object_there, object_here);
}

static void pool_there(int socket)
{
    CUmemoryPool pool = NULL;
    CUmemPoolPtrExportData data;
    CUdeviceptr p = 0;
    char c;
    int fd = receive_fd(socket);
    NUM(read(socket, &data, sizeof(data)));
    CALL(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuMemPoolImportPointer(&p, pool, &data));
    NUM(answers_word(p));
    CALL(cuMemsetD32(p, 31, 100));
    CALL(cuCtxSynchronize());
    CALL(cuMemFreeAsync(p, NULL));
    CALL(cuMemPoolDestroy(pool));
    CALL(cuCtxSynchronize());
    NUM(write(socket, "x", 1));
    NUM(read(socket, &c, 1));
}

static void pool_here(int socket)
{
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                             .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
    CUmemPoolPtrExportData data;
    CUmemoryPool pool;
    CUdeviceptr p = 0;
    int fd = -1;
    char c;
    CALL(cuMemPoolCreate(&pool, &props));
    CALL(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL));
    CALL(cuMemsetD32(p, 30, 1024));
    CALL(cuCtxSynchronize());
    CALL(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CALL(cuMemPoolExportPointer(&data, p));
    send_fd(socket, fd);
    NUM(write(socket, &data, sizeof(data)));
    NUM(read(socket, &c, 1));
    NUM(answers_word(p));
    NUM(write(socket, "y", 1));
}

static void ipc_pools(void)
{
    beside(pool_there, pool_here);
}

const struct answers_case answers_ipc[] = { BARE(ipc_memory), BARE(ipc_events), BARE(ipc_objects),
                                            BARE(ipc_pools), END };
