/*
 * One program loads PTX that takes long to compile; another one goes on meanwhile. Under a daemon
 * the two have a server in common.
 */
#include "tap.h"

#include <stdlib.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_MS     500.0 /* what a load should take, so that there is something to see */
#define KERNELS_MAX 4096u /* at most so many, to make it take that long */
#define TRIES                                                                                      \
    4u /* a thread that waits does so each time; a machine with other things to do may look like   \
        * it once                                                                                  \
        */
#define STEPS      256u
#define STEP_BYTES 64u

#define HEAD                                                                                       \
    ".version 6.3\n"                                                                               \
    ".target sm_75\n"                                                                              \
    ".address_size 64\n"

static const char small[] = HEAD ".visible .entry nothing()\n{\n    ret;\n}\n";

static int from_child[2], to_child[2];
static pid_t child;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* --- the child -------------------------------------------------------------------------------- */

/* A kernel of so many steps, each of which needs the one before. The numbers see to it that no
 * cache has it. */
static char *add_kernel(char *out, unsigned kernel, uint32_t seed)
{
    out += sprintf(
        out,
        ".visible .entry k%u(.param .u64 p)\n{\n    .reg .b32 %%r<4>;\n    .reg .b64 %%rd<2>;\n",
        kernel);
    out += sprintf(
        out,
        "    ld.param.u64 %%rd1, [p];\n    ld.global.u32 %%r1, [%%rd1];\n    mov.u32 %%r2, %u;\n",
        seed);
    for (unsigned i = 0; i < STEPS; i++) {
        seed = seed * 1664525u + 1013904223u;
        out += sprintf(
            out, i % 2 ? "    xor.b32 %%r1, %%r1, %u;\n" : "    mad.lo.u32 %%r1, %%r1, %u, %%r2;\n",
            seed >> 8);
    }
    return out + sprintf(out, "    st.global.u32 [%%rd1], %%r1;\n    ret;\n}\n");
}

static char *make_ptx(unsigned kernels)
{
    char *text = malloc(sizeof(HEAD) + (size_t)kernels * (STEPS + 8) * STEP_BYTES);
    char *out = text;
    if (!text)
        _exit(2);
    out += sprintf(out, "%s", HEAD);
    for (unsigned k = 0; k < kernels; k++)
        out =
            add_kernel(out, k, (uint32_t)getpid() * 2654435761u + (uint32_t)now_ms() + k * kernels);
    return text;
}

static void say(char what)
{
    if (write(from_child[1], &what, 1) != 1)
        _exit(3);
}

/* Is told of how many kernels; says when the load begins ('b') and when it has ended ('e'). */
static int load_more_and_more(void)
{
    CUcontext c;
    CUmodule m;
    uint32_t kernels;
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&c, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(c) != CUDA_SUCCESS)
        return 4;
    while (read(to_child[0], &kernels, sizeof(kernels)) == sizeof(kernels)) {
        char *ptx = make_ptx(kernels);
        say('b');
        CUresult r = cuModuleLoadData(&m, ptx);
        say('e');
        if (r != CUDA_SUCCESS || cuModuleUnload(m) != CUDA_SUCCESS)
            return 5;
        free(ptx);
    }
    return 0;
}

/* --- the other one ---------------------------------------------------------------------------- */

static char hear(void)
{
    char what = 0;
    TRUE(read(from_child[0], &what, 1) == 1);
    return what;
}

static bool child_has_spoken(void)
{
    fd_set set;
    struct timeval none = { 0 };
    FD_ZERO(&set);
    FD_SET(from_child[0], &set);
    return select(from_child[0] + 1, &set, NULL, NULL, &none) > 0;
}

static void use_memory(void)
{
    CUdeviceptr p;
    unsigned char word[4];
    OK(cuMemAlloc(&p, 4 << 20));
    OK(cuMemsetD8(p, 3, 4));
    OK(cuMemcpyDtoH(word, p, sizeof(word)));
    EQ(word[3], 3);
    OK(cuMemFree(p));
}

static void use_module(void)
{
    CUmodule m;
    CUfunction f;
    OK(cuModuleLoadData(&m, small));
    OK(cuModuleGetFunction(&f, m, "nothing"));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(cuModuleUnload(m));
}

/* As often as it can while the child loads; how long that took, and what took longest here. */
static unsigned work_beside(void (*work)(void), uint32_t kernels, double *load, double *longest)
{
    unsigned times = 0;
    work();
    EQ(write(to_child[1], &kernels, sizeof(kernels)), sizeof(kernels));
    EQ(hear(), 'b');
    double begin = now_ms();
    for (*longest = 0; !child_has_spoken(); times++) {
        double at = now_ms();
        work();
        double took = now_ms() - at;
        *longest = took > *longest ? took : *longest;
    }
    EQ(hear(), 'e');
    *load = now_ms() - begin;
    return times;
}

static void goes_on(const char *what, void (*work)(void))
{
    double load = 0, longest = 0;
    unsigned tries = 0;
    for (uint32_t kernels = 16; kernels <= KERNELS_MAX;) {
        unsigned times = work_beside(work, kernels, &load, &longest);
        if (load < LONG_MS) {
            kernels *= 2;
            continue;
        }
        printf("# %s: %u times during a load of %.0f ms, the longest took %.1f ms\n", what, times,
               load, longest);
        if (longest < load * 2 / 3) /* a wait for the load takes nearly as long as the load */
            return;
        TRUE(++tries < TRIES);
    }
    tap_skip("nothing takes long to compile here");
}

static void memory(void)
{
    CUcontext c;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    goes_on("memory", use_memory);
}

static void modules(void)
{
    goes_on("modules", use_module);
}

static void child_was_well(void)
{
    int status = -1;
    close(to_child[1]);
    TRUE(waitpid(child, &status, 0) == child);
    EQ(status, 0);
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(memory), TEST(modules), TEST(child_was_well) };
    if (pipe(from_child) < 0 || pipe(to_child) < 0 || (child = fork()) < 0)
        return 1;
    if (child == 0) { /* before there is anything of CUDA's in the parent */
        close(to_child[1]);
        _exit(load_more_and_more());
    }
    close(to_child[0]);
    close(from_child[1]);
    return tap_main_bare(tests, COUNT(tests));
}
