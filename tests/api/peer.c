#include "peer.h"

#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    CUstream stream;
    CUevent event;
    CUmemoryPool pool;
    _Atomic int open;
} own;

#define TRY(call)                                                                                  \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_ != CUDA_SUCCESS)                                                                    \
            return r_;                                                                             \
    } while (0)

static CUresult begin(void)
{
    CUcontext context;
    CUdevice device;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    TRY(cuDevicePrimaryCtxRetain(&context, device));
    TRY(cuCtxSetCurrent(context));
    return cuStreamCreate(&own.stream, CU_STREAM_NON_BLOCKING);
}

/* Needs no context: NVIDIA's runtime has none at that time. */
static CUresult import_pointer(struct peer_message *m)
{
    CUcontext context;
    TRY(cuCtxPopCurrent(&context));
    CUresult r = cuMemPoolImportPointer(&m->pointer, own.pool, &m->pointer_data);
    TRY(cuCtxPushCurrent(context));
    return r;
}

static CUresult import(struct peer_message *m, int fd)
{
    CUmemGenericAllocationHandle handle;
    const CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    TRY(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    TRY(cuMemAddressReserve(&m->pointer, m->size, 0, 0, 0));
    TRY(cuMemMap(m->pointer, m->size, 0, handle, 0));
    TRY(cuMemSetAccess(m->pointer, m->size, &access, 1));
    return cuMemRelease(handle);
}

static CUresult map_access(struct peer_message *m)
{
    CUmemGenericAllocationHandle handle;
    const CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
    const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here };
    const CUmemAccessDesc both = { .location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    const CUmemAccessDesc wanted = { .location = here, .flags = (CUmemAccess_flags)m->value };
    TRY(cuMemAddressReserve(&m->pointer, 2 << 20, 0, 0, 0));
    TRY(cuMemCreate(&handle, 2 << 20, &prop, 0));
    TRY(cuMemMap(m->pointer, 2 << 20, 0, handle, 0));
    TRY(cuMemSetAccess(m->pointer, 2 << 20, &both, 1));
    TRY(cuMemsetD8(m->pointer, 1, 2 << 20));
    TRY(cuCtxSynchronize());
    return cuMemSetAccess(m->pointer, 2 << 20, &wanted, 1);
}

static CUresult launch_with(const char *kernel, CUdeviceptr at)
{
    CUmodule module;
    CUfunction f;
    void *params[] = { &at };
    TRY(cuModuleLoadData(&module, tap_ptx));
    TRY(cuModuleGetFunction(&f, module, kernel));
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, own.stream, params, NULL);
}

static CUresult perform(struct peer_message *m, int fd)
{
    unsigned char byte = 0;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    switch (m->op) {
    case PEER_ALLOC:
        return cuMemAlloc(&m->pointer, m->size);
    case PEER_FREE:
        return cuMemFree(m->pointer);
    case PEER_SET:
        TRY(cuMemsetD8Async(m->pointer, (unsigned char)m->value, m->size, own.stream));
        return CUDA_SUCCESS;
    case PEER_GET:
        TRY(cuMemcpyDtoH(&byte, m->pointer, 1));
        m->value = byte;
        return CUDA_SUCCESS;
    case PEER_GET_HANDLE:
        return cuIpcGetMemHandle(&m->memory, m->pointer);
    case PEER_OPEN:
        return cuIpcOpenMemHandle(&m->pointer, m->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    case PEER_CLOSE:
        return cuIpcCloseMemHandle(m->pointer);
    case PEER_EVENT:
        TRY(cuEventCreate(&own.event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
        return cuIpcGetEventHandle(&m->event, own.event);
    case PEER_EVENT_OPEN:
        return cuIpcOpenEventHandle(&own.event, m->event);
    case PEER_RECORD:
        return cuEventRecord(own.event, own.stream);
    case PEER_EVENT_END:
        return cuEventDestroy(own.event);
    case PEER_HOLD:
        own.open = 0;
        return cuLaunchHostFunc(own.stream, tap_hold, &own.open);
    case PEER_LET_GO:
        hold_set(&own.open, 1);
        return CUDA_SUCCESS;
    case PEER_EVENT_QUERY:
        return cuEventQuery(own.event);
    case PEER_EVENT_WAIT:
        return cuEventSynchronize(own.event);
    case PEER_STREAM_WAIT:
        return cuStreamWaitEvent(own.stream, own.event, 0);
    case PEER_SYNC:
        return cuStreamSynchronize(own.stream);
    case PEER_QUERY:
        return cuStreamQuery(own.stream);
    case PEER_IMPORT:
        return import(m, fd);
    case PEER_MAP_ACCESS:
        return map_access(m);
    case PEER_POOL_IMPORT:
        return cuMemPoolImportFromShareableHandle(&own.pool, (void *)(intptr_t)fd,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    case PEER_POOL_POINTER:
        return import_pointer(m);
    case PEER_POOL_ACCESS:
        TRY(cuMemPoolGetAccess(&access, own.pool,
                               &(CUmemLocation) { CU_MEM_LOCATION_TYPE_DEVICE, (int)m->value }));
        m->value = access;
        return CUDA_SUCCESS;
    case PEER_POOL_LET:
        return cuMemPoolSetAccess(
            own.pool,
            &(CUmemAccessDesc) { { CU_MEM_LOCATION_TYPE_DEVICE, (int)m->value },
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
            1);
    case PEER_FREE_ASYNC:
        return cuMemFreeAsync(m->pointer, own.stream);
    case PEER_POOL_END:
        return cuMemPoolDestroy(own.pool);
    case PEER_POKE:
        TRY(launch_with("poke", m->pointer));
        return cuStreamSynchronize(own.stream);
    case PEER_DEEP:
        TRY(launch_with("deep", m->pointer));
        return cuStreamSynchronize(own.stream);
    case PEER_AWAIT:
        return launch_with("await", m->pointer);
    case PEER_VALUE_WAIT:
        return cuStreamWaitValue32(own.stream, m->pointer, m->value, CU_STREAM_WAIT_VALUE_EQ);
    case PEER_EXIT:
        _exit(0);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static ssize_t receive(int socket, struct peer_message *m, int *fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .bytes = { 0 } };
    struct iovec part = { m, sizeof(*m) };
    struct msghdr packet = { .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes) };
    ssize_t n = recvmsg(socket, &packet, 0);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&packet) : NULL;
    *fd = -1;
    if (c)
        memcpy(fd, CMSG_DATA(c), sizeof(int));
    return n;
}

static _Noreturn void serve(int socket)
{
    struct peer_message m;
    CUresult r = CUDA_ERROR_NOT_INITIALIZED;
    int fd;
    bool begun = false;
    while (receive(socket, &m, &fd) == (ssize_t)sizeof(m)) {
        if (!begun)
            r = begin();
        begun = true;
        m.result = r ? r : perform(&m, fd);
        if (fd >= 0)
            close(fd);
        if (send(socket, &m, sizeof(m), 0) != (ssize_t)sizeof(m))
            break;
    }
    _exit(0);
}

void peer_start(struct peer *p)
{
    peer_start_as(p, 0);
}

void peer_start_as(struct peer *p, unsigned uid)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || (p->pid = fork()) < 0)
        _exit(99);
    if (p->pid == 0) {
        if (uid && (setgroups(0, NULL) != 0 || setgid(uid) != 0 || setuid(uid) != 0))
            _exit(98);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        serve(pair[1]);
    }
    close(pair[1]);
    p->socket = pair[0];
}

void peer_ask_fd(struct peer *p, struct peer_message *m, int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .bytes = { 0 } };
    struct iovec part = { m, sizeof(*m) };
    struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };
    int none;
    if (fd >= 0) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&packet);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
    }
    if (sendmsg(p->socket, &packet, MSG_NOSIGNAL) != (ssize_t)sizeof(*m) ||
        receive(p->socket, m, &none) != (ssize_t)sizeof(*m))
        tap_fail(__FILE__, __LINE__, "the other process is gone");
}

void peer_ask(struct peer *p, struct peer_message *m)
{
    peer_ask_fd(p, m, -1);
}

void peer_wait(struct peer *p)
{
    int status;
    waitpid(p->pid, &status, 0);
    close(p->socket);
}

struct peer_message peer_answer(struct peer *p, struct peer_message m)
{
    peer_ask(p, &m);
    return m;
}

unsigned peer_byte(struct peer *p, CUdeviceptr pointer)
{
    struct peer_message m = ASK(*p, .op = PEER_GET, .pointer = pointer);
    tap_check_result(__FILE__, __LINE__, "a read in the other process", m.result, CUDA_SUCCESS);
    return m.value;
}

void peer_kill(struct peer *p)
{
    kill(p->pid, SIGKILL);
    peer_wait(p);
}

void peer_exit(struct peer *p)
{
    const struct peer_message m = { .op = PEER_EXIT };
    if (send(p->socket, &m, sizeof(m), MSG_NOSIGNAL) != (ssize_t)sizeof(m))
        tap_fail(__FILE__, __LINE__, "the other process is gone");
    peer_wait(p);
}
