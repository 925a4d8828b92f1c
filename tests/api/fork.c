/* Fork: the child has no CUDA, may run on without it, and harms nobody; what it executes has one of
 * its own. */
#include "tap.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t children_seen;

static void on_child(int signal_number)
{
    (void)signal_number;
    children_seen = children_seen + 1;
}

/* Status of a child that ran f. */
static int in_child(int (*f)(void))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(f());
    TRUE(pid > 0);
    TRUE(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static CUdeviceptr memory;
static CUstream stream;

static int child_is_refused(void)
{
    CUdeviceptr p;
    CUcontext c;
    int n;
    if (cuInit(0) != CUDA_ERROR_NOT_INITIALIZED)
        return 1;
    if (cuMemAlloc(&p, 16) == CUDA_SUCCESS || cuDeviceGetCount(&n) == CUDA_SUCCESS)
        return 2;
    if (cuMemcpyDtoH(&n, memory, 4) == CUDA_SUCCESS || cuStreamSynchronize(stream) == CUDA_SUCCESS)
        return 3;
    if (cuCtxGetCurrent(&c) == CUDA_SUCCESS || cuCtxSynchronize() == CUDA_SUCCESS)
        return 4;
    return 0;
}

/* exit(), not _exit(): handlers and destructors of the library run, too. */
static int child_exits(void)
{
    exit(0);
}

static void child(void)
{
    uint32_t word = 0;
    if (tap_genuine())
        tap_skip("what the genuine library does in a child is not defined");
    OK(cuMemAlloc(&memory, 4));
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemsetD32Async(memory, 7, 1, stream));
    EQ(in_child(child_is_refused), 0);
    EQ(in_child(child_exits), 0);
    OK(cuStreamSynchronize(stream)); /* the parent goes on */
    OK(cuMemcpyDtoH(&word, memory, 4));
    EQ(word, 7);
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(memory));
}

static volatile unsigned char *registered_bytes;
static int to_child[2];

#define REGISTERED (64u << 10)

/* Has what was there at the fork, and keeps to itself what it makes of it. */
static int child_has_registered(void)
{
    char go;
    for (unsigned i = 0; i < REGISTERED / 2; i++)
        registered_bytes[i] = 9;
    if (read(to_child[0], &go, 1) != 1)
        return 1;
    for (unsigned i = 0; i < REGISTERED; i++)
        if (registered_bytes[i] != (i < REGISTERED / 2 ? 9 : 5))
            return 2;
    return 0;
}

static void registered(void)
{
    CUdeviceptr p;
    int status = -1;
    unsigned char *h =
        mmap(NULL, REGISTERED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TRUE(h != MAP_FAILED);
    memset(h, 5, REGISTERED);
    registered_bytes = h;
    OK(cuMemHostRegister(h, REGISTERED, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&p, h, 0));
    EQ(pipe(to_child), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child_has_registered());
    TRUE(pid > 0);
    OK(cuMemsetD8(p, 6, REGISTERED));
    OK(cuCtxSynchronize());
    OK(cuMemHostUnregister(h));
    EQ(write(to_child[1], "", 1), 1);
    TRUE(waitpid(pid, &status, 0) == pid);
    EQ(status, 0);
    for (unsigned i = 0; i < REGISTERED; i++)
        EQ(h[i], 6);
    close(to_child[0]);
    close(to_child[1]);
    EQ(munmap(h, REGISTERED), 0);
}

static int child_does_nothing(void)
{
    return 0;
}

static atomic_int step;

/* What a thread allocates first lies beside the state of its heap. It is registered once, and again
 * and again. */
static void *registers_its_heap(void *context)
{
    unsigned char *h = malloc(200);
    CUdeviceptr p;
    OK(cuCtxSetCurrent(context));
    memset(h, 5, 200);
    OK(cuMemHostRegister(h, 200, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&p, h, 0));
    for (atomic_store(&step, 1); atomic_load(&step) == 1;)
        free(malloc(1000)); /* beside forks */
    for (atomic_store(&step, 3); atomic_load(&step) == 3;) {
        OK(cuMemHostUnregister(h));
        OK(cuMemHostRegister(h, 200, CU_MEMHOSTREGISTER_DEVICEMAP));
    }
    OK(cuMemHostGetDevicePointer(&p, h, 0));
    OK(cuMemsetD8(p, 6, 100));
    OK(cuCtxSynchronize());
    TRUE(h[0] == 6 && h[99] == 6 && h[100] == 5 && h[199] == 5);
    OK(cuMemHostUnregister(h));
    free(h);
    return NULL;
}

/* The C library's child sets up all heaps anew. */
static void registered_heap(void)
{
    pthread_t thread;
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    EQ(pthread_create(&thread, NULL, registers_its_heap, context), 0);
    for (int now = 1; now <= 3; now += 2) {
        while (atomic_load(&step) != now)
            sched_yield();
        for (int i = 0; i < 50; i++)
            EQ(in_child(child_does_nothing), 0);
        atomic_store(&step, now + 1);
    }
    EQ(pthread_join(thread, NULL), 0);
}

/* Memory on the stack of the thread that registers it, and forks. */
static void *registers_its_stack(void *context)
{
    uint32_t numbers[300], back[300];
    CUdeviceptr p;
    for (uint32_t i = 0; i < COUNT(numbers); i++)
        numbers[i] = i;
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc(&p, sizeof(numbers)));
    OK(cuMemHostRegister(numbers, sizeof(numbers), 0));
    OK(cuMemcpyHtoD(p, numbers, sizeof(numbers)));
    for (int i = 0; i < 20; i++)
        EQ(in_child(child_does_nothing), 0);
    OK(cuMemcpyDtoH(back, p, sizeof(back)));
    OK(cuMemHostUnregister(numbers));
    EQ(memcmp(back, numbers, sizeof(back)), 0);
    OK(cuMemFree(p));
    return NULL;
}

static void registered_stack(void)
{
    pthread_t thread;
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    EQ(pthread_create(&thread, NULL, registers_its_stack, context), 0);
    EQ(pthread_join(thread, NULL), 0);
}

static int child_has_its_own(void)
{
    CUcontext c;
    CUdeviceptr p;
    return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&c, 0) == CUDA_SUCCESS &&
                   cuCtxSetCurrent(c) == CUDA_SUCCESS && cuMemAlloc(&p, 16) == CUDA_SUCCESS
               ? 0
               : 1;
}

static bool early_worked;

/* An exit handler that runs after the library has ended. */
static void late_handler(void)
{
    CUdeviceptr p;
    int n;
    bool refused = cuMemAlloc(&p, 16) == CUDA_ERROR_DEINITIALIZED &&
                   cuCtxSynchronize() == CUDA_ERROR_DEINITIALIZED &&
                   cuDeviceGetCount(&n) == CUDA_ERROR_DEINITIALIZED;
    _exit(early_worked && refused ? 0 : 2);
}

/* An exit handler that runs before that. */
static void early_handler(void)
{
    CUdeviceptr p;
    early_worked = cuMemAlloc(&p, 16) == CUDA_SUCCESS && cuMemFree(p) == CUDA_SUCCESS;
}

/* Handlers of exit run in turn, the last one first. */
static int child_uses_it_at_its_end(void)
{
    if (atexit(late_handler) || child_has_its_own() || atexit(early_handler))
        return 1;
    exit(0);
}

/* Runs first: before cuInit a fork is harmless, and cuInit leaves the program no child to find. */
static void before_init(void)
{
    signal(SIGCHLD, on_child);
    EQ(in_child(child_has_its_own), 0);
    EQ(in_child(child_uses_it_at_its_end), 0);
    int before = children_seen;
    OK(cuInit(0));
    EQ(children_seen, before);
    EQ(waitpid(-1, NULL, WNOHANG), -1); /* ECHILD: none */
    signal(SIGCHLD, SIG_DFL);
    CUcontext c;
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(before_init), TEST(child), TEST(registered),
                                             TEST(registered_stack), TEST(registered_heap) };
    return tap_main_bare(tests, COUNT(tests));
}
