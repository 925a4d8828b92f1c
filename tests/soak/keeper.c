/*
 * A program that keeps data on the device and checks every word of it, over and over, while soak.py
 * does its worst around it.
 *
 *   keeper FILE SLOT SEED [hog]
 *
 * FILE is shared memory: the first slot says when to end, the others what each keeper is at (struct
 * slot). What a buffer should hold is known here: word i is a + b * i. With `hog`: takes all it can
 * get, of everything, and ends.
 *
 * Exit status: 0 all was right to the end; 3 a call failed, the slot says which error and since
 * when work was in flight; 4 a word was wrong.
 */
#include <cuda.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BUFFERS   12u
#define STREAMS   4u
#define WORDS_MAX (64u << 10)
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

/* soak.py reads it: 8 words of 64 bits. */
struct slot {
    _Atomic uint64_t stop;              /* of the first slot only */
    _Atomic uint64_t started, attached; /* ns */
    _Atomic uint64_t began;             /* since then something may be in flight; 0: nothing is */
    _Atomic uint64_t failed;
    _Atomic uint64_t result;
    _Atomic uint64_t words; /* compared */
    uint64_t pad;
};

static struct slot *slots, *mine;

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry ramp(.param .u64 p, .param .u32 n, .param .u32 a, .param .u32 b)\n{\n"
    " .reg .pred %q;\n .reg .b32 %r<8>;\n .reg .b64 %d<4>;\n"
    " ld.param.u64 %d0, [p];\n ld.param.u32 %r0, [n];\n ld.param.u32 %r1, [a];\n"
    " ld.param.u32 %r2, [b];\n"
    " mov.u32 %r3, %ctaid.x;\n mov.u32 %r4, %ntid.x;\n mov.u32 %r5, %tid.x;\n"
    " mad.lo.u32 %r6, %r3, %r4, %r5;\n setp.ge.u32 %q, %r6, %r0;\n @%q bra end;\n"
    " mad.lo.u32 %r7, %r6, %r2, %r1;\n mul.wide.u32 %d1, %r6, 4;\n add.u64 %d2, %d0, %d1;\n"
    " st.global.u32 [%d2], %r7;\nend:\n ret;\n}\n"
    ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 a, .param .u32 b)\n{\n"
    " .reg .pred %q;\n .reg .b32 %r<9>;\n .reg .b64 %d<4>;\n"
    " ld.param.u64 %d0, [p];\n ld.param.u32 %r0, [n];\n ld.param.u32 %r1, [a];\n"
    " mov.u32 %r3, %ctaid.x;\n mov.u32 %r4, %ntid.x;\n mov.u32 %r5, %tid.x;\n"
    " mad.lo.u32 %r6, %r3, %r4, %r5;\n setp.ge.u32 %q, %r6, %r0;\n @%q bra end;\n"
    " mul.wide.u32 %d1, %r6, 4;\n add.u64 %d2, %d0, %d1;\n"
    " ld.global.u32 %r7, [%d2];\n add.u32 %r8, %r7, %r1;\n"
    " st.global.u32 [%d2], %r8;\nend:\n ret;\n}\n";

static struct buffer {
    CUdeviceptr at; /* 0: none */
    uint32_t words, a, b;
} buffers[BUFFERS];
static CUstream streams[STREAMS];
static CUmodule module;
static CUfunction ramp, add;
static uint32_t host[WORDS_MAX];
static uint64_t state;

static uint32_t next(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check(CUresult r, const char *call)
{
    if (r == CUDA_SUCCESS)
        return;
    mine->failed = now();
    mine->result = r;
    printf("%s: %d\n", call, (int)r);
    exit(3);
}
#define OK(call) check((call), #call)

/* --- one step each ---------------------------------------------------------------------------- */

static CUstream any_stream(void)
{
    return streams[next() % STREAMS];
}

static void launch(CUfunction f, struct buffer *b, uint32_t x, uint32_t y)
{
    void *params[] = { &b->at, &b->words, &x, &y };
    OK(cuLaunchKernel(f, (b->words + 127) / 128, 1, 1, 128, 1, 1, 0, any_stream(), params, NULL));
}

static void make(struct buffer *b)
{
    uint32_t words = 1 + next() % (1u << (1 + next() % 16));
    CUresult r = cuMemAlloc(&b->at, words * sizeof(uint32_t));
    if (r == CUDA_ERROR_OUT_OF_MEMORY) { /* a hog has it */
        b->at = 0;
        return;
    }
    OK(r);
    b->words = words;
    b->a = next();
    b->b = 0;
    OK(cuMemsetD32Async(b->at, b->a, words, any_stream()));
}

static void verify(const struct buffer *b)
{
    OK(cuMemcpyDtoH(host, b->at, b->words * sizeof(uint32_t)));
    for (uint32_t i = 0; i < b->words; i++)
        if (host[i] != b->a + b->b * i) {
            printf("WRONG: word %u of %u at %#llx is %#x, not %#x\n", i, b->words,
                   (unsigned long long)b->at, host[i], b->a + b->b * i);
            exit(4);
        }
    mine->words += b->words;
}

static void change(struct buffer *b)
{
    uint32_t a = next(), step = next();
    struct buffer *from = &buffers[next() % BUFFERS];
    switch (next() % 6) {
    case 0:
        launch(ramp, b, a, step);
        b->a = a;
        b->b = step;
        break;
    case 1:
        launch(add, b, a, 0);
        b->a += a;
        break;
    case 2:
        OK(cuMemsetD32Async(b->at, a, b->words, any_stream()));
        b->a = a;
        b->b = 0;
        break;
    case 3:
        for (uint32_t i = 0; i < b->words; i++)
            host[i] = a + step * i;
        OK(cuMemcpyHtoD(b->at, host, b->words * sizeof(uint32_t)));
        b->a = a;
        b->b = step;
        break;
    case 4:
        if (!from->at || from->words < b->words)
            break;
        OK(cuMemcpyDtoDAsync(b->at, from->at, b->words * sizeof(uint32_t), any_stream()));
        b->a = from->a;
        b->b = from->b;
        break;
    default:
        OK(cuMemFree(b->at));
        b->at = 0;
    }
}

static void load(void)
{
    if (module)
        OK(cuModuleUnload(module));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&ramp, module, "ramp"));
    OK(cuModuleGetFunction(&add, module, "add"));
}

static void step(void)
{
    struct buffer *b = &buffers[next() % BUFFERS];
    mine->began = now();
    if (next() % 40 == 0)
        load();
    for (unsigned n = 1 + next() % 4; n; n--) {
        if (!b->at)
            make(b);
        else
            change(b);
        OK(cuCtxSynchronize()); /* so that streams need not wait for each other */
    }
    if (b->at)
        verify(b);
    mine->began = 0;
}

/* --- a program that wants it all -------------------------------------------------------------- */

static int take_all(void)
{
    static CUmodule modules[300];
    CUdeviceptr p;
    CUstream s;
    CUevent e;
    void *h;
    mine->began = now();
    for (size_t size = (size_t)1 << 34; size >= 4096; size /= 2)
        for (unsigned i = 0; i < 50 && cuMemAlloc(&p, size) == CUDA_SUCCESS; i++)
            (void)cuMemsetD32(p, 1, 1024);
    for (unsigned i = 0; i < 50 && cuMemHostAlloc(&h, (size_t)1 << 20, 0) == CUDA_SUCCESS; i++)
        memset(h, 1, 4096);
    for (unsigned i = 0; i < 2000 && cuStreamCreate(&s, 0) == CUDA_SUCCESS; i++)
        ;
    for (unsigned i = 0; i < 2000 && cuEventCreate(&e, 0) == CUDA_SUCCESS; i++)
        ;
    for (unsigned i = 0; i < COUNT(modules) && cuModuleLoadData(&modules[i], ptx) == CUDA_SUCCESS;
         i++)
        ;
    return 0;
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    int fd = argc >= 4 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    slots =
        size > 0 ? mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (slots == MAP_FAILED)
        return fprintf(stderr, "usage: keeper FILE SLOT SEED [hog]\n"), 2;
    mine = &slots[strtoul(argv[2], NULL, 10)];
    state = strtoull(argv[3], NULL, 10);
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuCtxCreate(&context, NULL, 0, device));
    mine->attached = now();
    if (argc > 4)
        return take_all();
    mine->began = now();
    for (unsigned i = 0; i < STREAMS; i++)
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    load();
    mine->began = 0;
    while (!slots->stop) {
        step();
        if (next() % 4 == 0) /* nothing is in flight meanwhile */
            (void)poll(NULL, 0, (int)(next() % 10));
    }
    mine->began = now();
    for (unsigned i = 0; i < BUFFERS; i++)
        if (buffers[i].at) {
            verify(&buffers[i]);
            OK(cuMemFree(buffers[i].at));
        }
    OK(cuCtxDestroy(context));
    mine->began = 0;
    return 0;
}
