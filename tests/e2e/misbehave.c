/*
 * A driver-API program for the tests of faults; what it does is its first argument:
 *
 *   fault KIND     one kernel that does what it may not; prints the results of what follows:
 *                  synchronise, synchronise again, allocate, launch
 *   wait KIND      the same, for those kinds that write: has its kernel loaded, prints "ready" and
 *                  waits for a line first
 *   hold MIB MS    fills so much device memory and has a kernel of so many milliseconds; prints
 *                  "running" when that has begun, then the result of waiting for it, which is its
 *                  status
 *   leave MIB MS   the same, and exits when the kernel has begun
 *   free           prints "ready", and for each line until "end" how many MiB are free
 *   spin           an endless kernel; prints "running", then the result of waiting for it
 *   ask WHAT       an endless kernel, and asks whether its "stream" is done, or an "event" behind
 *                  it, until it hears something else than that it is not; prints "running", then
 *                  that
 *   other          waits for an event of a process of its own that is behind an endless kernel;
 *                  prints "running", then the result
 *   hog STREAMS    an endless kernel, then as many others as the library takes, on so many streams;
 *                  prints "running"
 *   liar STREAMS   the same, and writes into its session that all of it is done
 *   idle           reads lines until "end": for each, a kernel that counts in a global of its
 *                  module and a look at four MiB of memory that only it writes; prints the count,
 *                  or the error
 *   steady         adds to numbers until there is something to read; prints how often, if they were
 *                  right all the time
 *   limit          what cuMemGetInfo says is there, and the result of allocating more than that
 *   fill           allocates and fills until that is refused, prints the error and how much it has;
 *                  for each line until "end" whether it is still there
 *   eat PID MIB    takes memory until that process is gone, which is success, or it has so much
 *   mess SEED      everything at once until it is killed, or has had enough
 *   churn ROUNDS   that many "mess", four at once, each killed, or stopped and killed, at a random
 *                  point
 */
#include <cuda.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "transport/session.h"

#define ELEMENTS (1u << 20)
#define AT_ONCE  4u

static uint32_t state = 7;

static uint32_t next(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void must(CUresult r, const char *what)
{
    if (r == CUDA_SUCCESS)
        return;
    printf("%s: %d\n", what, (int)r);
    exit(1);
}
#define MUST(call) must((call), #call)

static CUmodule module;

static CUfunction function(const char *name)
{
    CUfunction f;
    MUST(cuModuleGetFunction(&f, module, name));
    return f;
}

static CUresult launch(CUfunction f, unsigned blocks, unsigned threads, CUdeviceptr argument,
                       CUstream stream)
{
    void *params[] = { &argument };
    return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

static void start(void)
{
    CUdevice device;
    CUcontext context;
    setvbuf(stdout, NULL, _IOLBF, 0);
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoad(&module, FAULTS_PTX));
}

/* Kernels on the GPU are loaded when they are first launched, and that waits for others' kernels.
 */
static void get_ready(CUfunction f, CUdeviceptr harmless)
{
    char line[64];
    MUST(launch(f, 1, 1, harmless, NULL));
    MUST(cuCtxSynchronize());
    printf("ready\n");
    if (!fgets(line, sizeof(line), stdin))
        exit(1);
}

static int fault(const char *kind, bool waits)
{
    static const struct {
        const char *kind, *kernel;
        uint64_t offset;
        bool absolute;
    } kinds[] = {
        { "null", "poke", 0, true },
        { "host", "poke", 0x7fff00000000, true }, /* where programs have their stacks */
        { "far", "poke", UINT64_MAX - 3, true },
        { "unmapped", "poke", 64u << 20, false },
        { "misaligned", "poke", 2, false },
        { "trap", "stop", 0, false },
        { "divide", "divide", 0, false },
    };
    static const int32_t by_zero[] = { 5, 0, 5, 0 }, overflow[] = { INT32_MIN, -1, INT32_MIN, -1 };
    CUdeviceptr p, more;
    start();
    MUST(cuMemAlloc(&p, 4096));
    MUST(cuMemcpyHtoD(p, by_zero, sizeof(by_zero)));
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        CUfunction f = function(kinds[i].kernel);
        if (waits)
            get_ready(f, p);
        MUST(launch(f, 1, 1, kinds[i].absolute ? kinds[i].offset : p + kinds[i].offset, NULL));
        if (strcmp(kind, "divide") == 0) {
            MUST(cuCtxSynchronize());
            MUST(cuMemcpyHtoD(p, overflow, sizeof(overflow)));
            MUST(launch(f, 1, 32, p, NULL));
        }
        CUresult first = cuCtxSynchronize();
        CUresult second = cuCtxSynchronize();
        CUresult third = cuMemAlloc(&more, 4096);
        printf("%d %d %d %d\n", (int)first, (int)second, (int)third, (int)launch(f, 1, 1, p, NULL));
        return 0;
    }
    return 2;
}

static int spin(void)
{
    CUdeviceptr p;
    start();
    MUST(cuMemAlloc(&p, 4096));
    MUST(launch(function("add"), 1, 32, p, NULL));
    MUST(cuCtxSynchronize());
    MUST(launch(function("spin"), 4, 64, p, NULL));
    printf("running\n");
    printf("%d\n", (int)cuCtxSynchronize());
    return 0;
}

static int ask(const char *what)
{
    CUdeviceptr p;
    CUevent event;
    CUresult r;
    start();
    MUST(cuMemAlloc(&p, 4096));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(launch(function("spin"), 4, 64, p, NULL));
    MUST(cuEventRecord(event, NULL));
    printf("running\n");
    do
        r = strcmp(what, "event") == 0 ? cuEventQuery(event) : cuStreamQuery(NULL);
    while (r == CUDA_ERROR_NOT_READY);
    printf("%d\n", (int)r);
    return 0;
}

/* The process that the event is of. */
static void record_behind_endless(int to)
{
    CUipcEventHandle handle;
    CUdeviceptr p;
    CUevent event;
    start();
    MUST(cuMemAlloc(&p, 4096));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    MUST(launch(function("spin"), 4, 64, p, NULL));
    MUST(cuEventRecord(event, NULL));
    MUST(cuIpcGetEventHandle(&handle, event));
    if (write(to, &handle, sizeof(handle)) == (ssize_t)sizeof(handle))
        (void)cuCtxSynchronize();
    _exit(0);
}

static int other(void)
{
    CUipcEventHandle handle;
    CUevent event;
    int ends[2];
    if (pipe(ends) < 0)
        return 1;
    pid_t child = fork();
    if (child == 0)
        record_behind_endless(ends[1]);
    if (child < 0 || read(ends[0], &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
        return 1;
    start();
    MUST(cuIpcOpenEventHandle(&event, handle));
    printf("running\n");
    printf("%d\n", (int)cuEventSynchronize(event));
    return waitpid(child, NULL, 0) == child ? 0 : 1;
}

static int hold(unsigned long mib, unsigned long ms, bool leaves)
{
    CUdeviceptr p, flag;
    uint32_t *begun;
    uint64_t ns = ms * 1000000;
    void *params[] = { &flag, &ns };
    start();
    MUST(cuMemAlloc(&p, mib << 20));
    MUST(cuMemsetD8(p, 1, mib << 20));
    MUST(cuMemHostAlloc((void **)&begun, sizeof(*begun), CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&flag, begun, 0));
    *begun = 0;
    MUST(cuCtxSynchronize());
    MUST(cuLaunchKernel(function("busy"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    while (*(volatile uint32_t *)begun == 0)
        if (cuStreamQuery(NULL) != CUDA_ERROR_NOT_READY)
            break;
    printf("running\n");
    if (leaves)
        return 0;
    CUresult r = cuCtxSynchronize();
    printf("%d\n", (int)r);
    return r != CUDA_SUCCESS;
}

static int watch_free(void)
{
    size_t available, total;
    char line[64];
    start();
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
        MUST(cuMemGetInfo(&available, &total));
        printf("%zu\n", available >> 20);
    }
    return 0;
}

/* Where this process has its session. */
static struct tp_stream_slot *find_session(void)
{
    char line[512];
    unsigned long at = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "memfd:gmux-session"))
            at = strtoul(line, NULL, 16);
    if (!at) {
        printf("no session\n");
        exit(1);
    }
    return (struct tp_stream_slot *)(at + TP_STREAMS_AT);
}

static void *lie(void *slots)
{
    struct tp_stream_slot *s = slots;
    for (;;) {
        for (unsigned i = 0; i < TP_STREAMS; i++)
            atomic_store(&s[i].completed.value, TP_SEQ_FAILED - 1);
        sched_yield();
    }
    return NULL;
}

static int hog(unsigned count, bool lies)
{
    CUstream streams[512];
    CUdeviceptr p;
    pthread_t thread;
    start();
    if (count == 0 || count > sizeof(streams) / sizeof(streams[0]))
        return 2;
    CUfunction add = function("add"), endless = function("spin");
    MUST(cuMemAlloc(&p, 4096));
    for (unsigned i = 0; i < count; i++)
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    MUST(launch(add, 1, 32, p, streams[0]));
    MUST(cuStreamSynchronize(streams[0]));
    MUST(launch(endless, 1, 32, p, streams[0]));
    if (lies && pthread_create(&thread, NULL, lie, find_session()) != 0)
        return 1;
    for (unsigned i = 0;; i++) {
        if (i == 1000) /* after which it may stand still */
            printf("running\n");
        MUST(launch(add, 1, 32, p, streams[i % count]));
    }
}

/* What has been counted, or the negative error; -1000: the memory is not as it was left. */
static int tick(CUdeviceptr own, CUdeviceptr out, uint32_t *copy)
{
    uint32_t count = 0;
    CUresult r = launch(function("tick"), 1, 1, out, NULL);
    r = r ? r : cuMemcpyDtoH(&count, out, sizeof(count));
    r = r ? r : cuMemcpyDtoH(copy, own, ELEMENTS * 4);
    for (uint32_t i = 0; r == CUDA_SUCCESS && i < ELEMENTS; i++)
        if (copy[i] != (i ^ 0x5a5a5a5au))
            return -1000;
    return r ? -(int)r : (int)count;
}

static int idle(void)
{
    CUdeviceptr own, out;
    char line[64];
    start();
    uint32_t *data = malloc(ELEMENTS * 4);
    if (!data)
        return 1;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        data[i] = i ^ 0x5a5a5a5au;
    MUST(cuMemAlloc(&own, ELEMENTS * 4));
    MUST(cuMemAlloc(&out, 4));
    MUST(cuMemcpyHtoD(own, data, ELEMENTS * 4));
    memset(data, 0, ELEMENTS * 4);
    printf("%d\n", tick(own, out, data));
    while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0)
        printf("%d\n", tick(own, out, data));
    free(data);
    return 0;
}

static int steady(void)
{
    enum { NUMBERS = 4096 };
    static uint32_t numbers[NUMBERS];
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    CUdeviceptr p;
    uint32_t rounds = 0;
    start();
    CUfunction add = function("add");
    MUST(cuMemAlloc(&p, sizeof(numbers)));
    MUST(cuMemsetD32(p, 0, NUMBERS));
    do {
        MUST(launch(add, NUMBERS / 256, 256, p, NULL));
        MUST(cuMemcpyDtoH(numbers, p, sizeof(numbers)));
        if (rounds++ == 0)
            printf("running\n");
        for (unsigned i = 0; i < NUMBERS; i++)
            if (numbers[i] != rounds) {
                printf("wrong in round %u\n", rounds);
                return 1;
            }
    } while (poll(&in, 1, 0) == 0);
    printf("right %u times\n", rounds);
    return 0;
}

static int limit(void)
{
    size_t available, total;
    CUdeviceptr p, q;
    start();
    MUST(cuMemGetInfo(&available, &total));
    CUresult over = cuMemAlloc(&p, available + (1 << 20));
    CUresult within = cuMemAlloc(&p, available / 2);
    CUresult again = cuMemAlloc(&q, available / 2 + (1 << 20));
    size_t left;
    MUST(cuMemGetInfo(&left, &total));
    printf("%zu %zu %d %d %d %zu\n", available >> 10, total >> 10, (int)over, (int)within,
           (int)again, left >> 10);
    return 0;
}

/* Copies fill it, so that the pages are the executor's. */
static int fill(void)
{
    enum { PIECE = 16 << 20 };
    CUdeviceptr piece[4096];
    char line[64];
    unsigned n = 0;
    uint32_t word;
    CUresult r;
    start();
    while (n < 4096 && (r = cuMemAlloc(&piece[n], PIECE)) == CUDA_SUCCESS) {
        MUST(cuMemsetD32(piece[n], n, PIECE / 4));
        MUST(cuCtxSynchronize());
        n++;
    }
    printf("%d after %u MiB\n", (int)r, n * 16);
    while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
        r = CUDA_SUCCESS;
        for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++)
            if ((r = cuMemcpyDtoH(&word, piece[i] + PIECE - 4, sizeof(word))) == CUDA_SUCCESS &&
                word != i)
                r = CUDA_ERROR_UNKNOWN;
        printf("still: %d\n", (int)r);
    }
    return 0;
}

/* Its memory is given back before it ends: of a process that ends the kernel forgets the memory
 * before all of it is free, and would kill another one meanwhile. */
static int eat(pid_t until, unsigned long most_mib)
{
    enum { BITE = 64 << 10 };
    size_t size = most_mib << 20, eaten = 0;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return 1;
    for (; eaten < size && kill(until, 0) == 0; eaten += BITE)
        memset(p + eaten, 1, BITE);
    munmap(p, size);
    return eaten == size;
}

static int mess(uint32_t seed)
{
    CUdeviceptr held[8] = { 0 }, p;
    CUstream streams[3];
    void *pinned;
    state = seed;
    alarm(60);
    unsigned rounds = next() % 4 == 0 ? next() % 60 : UINT32_MAX;
    start();
    MUST(cuMemAlloc(&p, 1 << 20));
    MUST(cuMemHostAlloc(&pinned, 1 << 16, 0));
    for (unsigned i = 0; i < 3; i++)
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    CUfunction add = function("add"), endless = function("spin");
    for (unsigned i = 0; i < rounds; i++) {
        unsigned h = next() % 8;
        CUstream s = streams[next() % 3];
        CUmodule other;
        switch (next() % 8) {
        case 0:
            if (held[h])
                MUST(cuMemFree(held[h]));
            MUST(cuMemAlloc(&held[h], 1 + next() % (1u << next() % 22)));
            break;
        case 1:
            MUST(cuModuleLoad(&other, FAULTS_PTX));
            if (next() % 2)
                MUST(cuModuleUnload(other));
            break;
        case 2:
            MUST(cuMemcpyHtoDAsync(p, pinned, 1 << 16, s));
            break;
        case 3:
            MUST(cuMemsetD32Async(p, i, 1 << 18, s));
            break;
        case 4:
            MUST(cuStreamSynchronize(s));
            break;
        default:
            MUST(launch(add, 64, 256, p, s));
            break;
        }
        if (i == 40 && next() % 4 == 0) { /* and now it never ends */
            MUST(launch(endless, 8, 128, p, s));
            pause();
        }
    }
    if (next() % 2) /* with whatever is under way */
        _exit(0);
    return 0;
}

static void rest_ms(unsigned ms)
{
    struct timespec t = { .tv_nsec = (long)ms * 1000000 };
    nanosleep(&t, NULL);
}

static bool ended_well(pid_t pid)
{
    int status;
    return waitpid(pid, &status, 0) == pid &&
           (WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
}

static int churn(const char *self, unsigned rounds)
{
    pid_t clients[AT_ONCE] = { 0 };
    unsigned failed = 0;
    for (unsigned i = 0; i < rounds + AT_ONCE; i++) {
        pid_t *c = &clients[i % AT_ONCE];
        if (*c) {
            rest_ms(next() % 40); /* the random point: nothing is waited for */
            if (next() % 3 == 0) {
                kill(*c, SIGSTOP);
                rest_ms(next() % 20);
            }
            if (next() %
                8) /* the others may end by themselves, if they are of the kind that does */
                kill(*c, SIGKILL);
            else
                alarm(60), kill(*c, SIGCONT), rest_ms(30), kill(*c, SIGKILL);
            failed += !ended_well(*c);
            *c = 0;
        }
        if (i < rounds) {
            char seed[16];
            snprintf(seed, sizeof(seed), "%u", next());
            *c = fork();
            if (*c == 0) {
                execl(self, self, "mess", seed, (char *)NULL);
                _exit(127);
            }
        }
    }
    printf("%u clients, %u failed\n", rounds, failed);
    return failed != 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *argument = argc > 2 ? argv[2] : "";
    const unsigned long number = strtoul(argument, NULL, 10);
    if (strcmp(what, "fault") == 0 || strcmp(what, "wait") == 0)
        return fault(argument, *what == 'w');
    if ((strcmp(what, "hold") == 0 || strcmp(what, "leave") == 0) && argc > 3)
        return hold(number, strtoul(argv[3], NULL, 10), *what == 'l');
    if (strcmp(what, "free") == 0)
        return watch_free();
    if (strcmp(what, "spin") == 0)
        return spin();
    if (strcmp(what, "ask") == 0)
        return ask(argument);
    if (strcmp(what, "other") == 0)
        return other();
    if (strcmp(what, "hog") == 0 || strcmp(what, "liar") == 0)
        return hog((unsigned)number, *what == 'l');
    if (strcmp(what, "idle") == 0)
        return idle();
    if (strcmp(what, "steady") == 0)
        return steady();
    if (strcmp(what, "limit") == 0)
        return limit();
    if (strcmp(what, "fill") == 0)
        return fill();
    if (strcmp(what, "eat") == 0 && argc > 3)
        return eat((pid_t)number, strtoul(argv[3], NULL, 10));
    if (strcmp(what, "mess") == 0)
        return mess((uint32_t)number);
    if (strcmp(what, "churn") == 0)
        return churn("/proc/self/exe", (unsigned)number);
    return 2;
}
