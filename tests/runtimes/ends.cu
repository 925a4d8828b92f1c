/*
 * Where programs begin and end, by the argument: "reset", calls after cudaDeviceReset; "exit", calls in handlers of exit and in
 * destructors of static objects; "fork", a child that begins before its parent, and one of a parent that has begun; "unload", the
 * shared runtime loaded, used and unloaded again and again, beside this program's own.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.cuh"

__device__ int total = 5;

__global__ void add(int *p, int n)
{
    *p += n;
}

/* What a program does; a line of what came of it. */
static void work(const char *when)
{
    int *p = NULL, host = -1, variable = -1;
    int r = cudaMalloc(&p, sizeof(*p));
    int m = cudaMemset(p, 0, sizeof(*p));
    add<<<1, 1>>>(p, 42);
    int l = cudaGetLastError();
    int c = cudaMemcpy(&host, p, sizeof(host), cudaMemcpyDeviceToHost);
    int s = cudaMemcpyFromSymbol(&variable, total, sizeof(variable));
    int f = cudaFree(p);
    printf("%s: malloc %d, memset %d, launch %d, copy %d, symbol %d, free %d: %d %d\n", when, r, m, l, c, s, f, host,
           variable);
    fflush(stdout);
    cudaGetLastError();
}

static void after_a_reset(void)
{
    int *p = NULL, count = -1;
    cudaStream_t s = NULL;
    cudaEvent_t e = NULL;
    work("before");
    SAY(cudaMalloc(&p, 4096));
    SAY(cudaStreamCreate(&s));
    SAY(cudaEventCreate(&e));
    SAY(cudaDeviceReset());
    SAY(cudaPeekAtLastError());
    SAY(cudaGetDeviceCount(&count));
    SAY(cudaFree(p));
    SAY(cudaGetLastError());
    work("after");
    SAY(cudaDeviceReset());
    SAY(cudaDeviceReset());
    SAY(cudaDeviceSynchronize());
    work("after two");
    for (int i = 0; i < 5; i++) {
        SAY(cudaSetDevice(0));
        SAY(cudaDeviceReset());
    }
    work("after many");
}

struct last {
    const char *name;
    ~last()
    {
        if (name)
            work(name);
    }
};
static struct last first_made;

static void at_exit(void)
{
    work("in a handler");
    SAY(cudaDeviceSynchronize());
    SAY(cudaDeviceReset());
    work("in a handler, after a reset");
}

static void forks(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        work("a child before its parent");
        fflush(stdout);
        _exit(3);
    }
    waitpid(pid, &status, 0);
    printf("status %x\n", status);
    work("the parent");
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        int count = -1;
        work("a child of a parent that has begun");
        SAY(cudaGetDeviceCount(&count));
        SAY(cudaDeviceReset());
        work("the same after a reset");
        fflush(stdout);
        _exit(4);
    }
    waitpid(pid, &status, 0);
    printf("status %x\n", status);
    work("the parent, again");
}

static void unloads(void)
{
#if CUDART_VERSION >= 13000
    static const char name[] = "libcudart.so.13";
#else
    static const char name[] = "libcudart.so.12";
#endif
    work("before");
    for (int i = 0; i < 4; i++) {
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            printf("there is none\n"); /* beside a static one, perhaps */
            return;
        }
        cudaError_t (*allocate)(void **, size_t) = (cudaError_t (*)(void **, size_t))dlsym(library, "cudaMalloc");
        cudaError_t (*release)(void *) = (cudaError_t (*)(void *))dlsym(library, "cudaFree");
        cudaError_t (*fill)(void *, int, size_t) = (cudaError_t (*)(void *, int, size_t))dlsym(library, "cudaMemset");
        void *p = NULL;
        printf("round %d: %d", i, (int)allocate(&p, 4096));
        printf(" %d", (int)fill(p, 1, 4096));
        printf(" %d\n", (int)release(p));
        dlclose(library);
        work("beside it");
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "reset") == 0) {
        after_a_reset();
    } else if (strcmp(what, "exit") == 0) {
        atexit(at_exit);
        first_made.name = "in a destructor";
        work("before");
    } else if (strcmp(what, "fork") == 0) {
        forks();
    } else {
        unloads();
    }
    return verdict();
}
