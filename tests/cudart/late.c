/*
 * Runtime libraries that a program loads while it runs, as Python's modules do: late LIBRARY...
 * The C library has little room for the fast thread-local variables of all such libraries.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dim3 {
    unsigned x, y, z;
};

struct runtime {
    int (*count)(int *);
    int (*reserve)(void **, size_t);
    int (*release)(void *);
    unsigned (*push)(struct dim3, struct dim3, size_t, void *);
    int (*pop)(struct dim3 *, struct dim3 *, size_t *, void **);
};

static bool find(void *library, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
    return *(void **)function != NULL;
}

/* A configuration comes back as it was pushed, and no other thread's does. */
static void *configure(void *arg)
{
    const struct runtime *r = arg;
    struct dim3 grid = { 0, 0, 0 }, block = { 0, 0, 0 };
    size_t shared = 0;
    void *stream = NULL;
    bool ok = r->pop(&grid, &block, &shared, &stream) != 0 &&
              r->push((struct dim3) { 7, 8, 9 }, (struct dim3) { 1, 2, 3 }, 40, &ok) == 0 &&
              r->pop(&grid, &block, &shared, &stream) == 0 && grid.x == 7 && grid.z == 9 &&
              block.y == 2 && shared == 40 && stream == &ok;
    return ok ? arg : NULL;
}

static bool works(const char *path)
{
    struct runtime r;
    int devices = 0;
    void *at = NULL, *same = NULL;
    pthread_t thread;
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        printf("# %s\n", dlerror());
        return false;
    }
    return find(library, "cudaGetDeviceCount", &r.count) &&
           find(library, "cudaMalloc", &r.reserve) && find(library, "cudaFree", &r.release) &&
           find(library, "__cudaPushCallConfiguration", &r.push) &&
           find(library, "__cudaPopCallConfiguration", &r.pop) && r.count(&devices) == 0 &&
           devices > 0 && r.reserve(&at, 4096) == 0 && r.release(at) == 0 && configure(&r) &&
           pthread_create(&thread, NULL, configure, &r) == 0 && pthread_join(thread, &same) == 0 &&
           same == &r;
}

int main(int count, char **paths)
{
    int failed = 0;
    printf("1..%d\n", count - 1);
    for (int i = 1; i < count; i++) {
        bool ok = works(paths[i]);
        failed += !ok;
        printf("%sok %d - %s\n", ok ? "" : "not ", i, paths[i]);
    }
    return failed != 0;
}
