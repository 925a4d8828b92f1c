/*
 * Runs PTX cases through the CUDA driver API of whatever libcuda.so.1 the loader finds: a genuine
 * one, which makes this the check of the cases themselves, or this project's. Prints TAP.
 *
 * The few entry points are declared here and looked up by name, so that neither headers nor a
 * library are needed to build it. A fault leaves a process without a usable device for good, so
 * cases run in child processes: one goes on until a case ends with a fault, then the next one takes
 * over.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "paths.h"

typedef int cu_result;
typedef unsigned long long cu_pointer;

static struct {
    cu_result (*init)(unsigned);
    cu_result (*device_get)(int *, int);
    cu_result (*ctx_create)(void **, unsigned, int);
    cu_result (*ctx_synchronize)(void);
    cu_result (*module_load)(void **, const void *, unsigned, int *, void **);
    cu_result (*module_unload)(void *);
    cu_result (*function)(void **, void *, const char *);
    cu_result (*alloc)(cu_pointer *, size_t);
    cu_result (*release)(cu_pointer);
    cu_result (*to_device)(cu_pointer, const void *, size_t);
    cu_result (*from_device)(void *, cu_pointer, size_t);
    cu_result (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, void *, void **, void **);
} cu;

static void *library;
static bool record;

static void find(void *entry, const char *name)
{
    void *address = dlsym(library, name);
    if (!address) {
        printf("Bail out! no %s\n", name);
        exit(1);
    }
    memcpy(entry, &address, sizeof(address));
}

static void load_driver(void)
{
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("# %s\n", dlerror());
        exit(1);
    }
    find(&cu.init, "cuInit");
    find(&cu.device_get, "cuDeviceGet");
    find(&cu.ctx_create, "cuCtxCreate_v2");
    find(&cu.ctx_synchronize, "cuCtxSynchronize");
    find(&cu.module_load, "cuModuleLoadDataEx");
    find(&cu.module_unload, "cuModuleUnload");
    find(&cu.function, "cuModuleGetFunction");
    find(&cu.alloc, "cuMemAlloc_v2");
    find(&cu.release, "cuMemFree_v2");
    find(&cu.to_device, "cuMemcpyHtoD_v2");
    find(&cu.from_device, "cuMemcpyDtoH_v2");
    find(&cu.launch, "cuLaunchKernel");
}

/* CUresult of a finished launch. What trap and misaligned accesses give is told apart by the
 * driver, too. */
static enum ptx_fault fault_of(cu_result r)
{
    switch (r) {
    case 0:
        return PTX_FAULT_NONE;
    case 700:
        return PTX_FAULT_ADDRESS;
    case 710:
        return PTX_FAULT_ASSERT;
    case 716:
        return PTX_FAULT_MISALIGNED;
    case 718:
        return PTX_FAULT_PC;
    case 719:
        return PTX_FAULT_TRAP;
    default:
        return PTX_FAULT_OTHER;
    }
}

static bool run(struct ptx_case *c, enum ptx_fault *fault, char *why, size_t why_size)
{
    cu_pointer buffers[PTX_ARGS_MAX] = { 0 };
    void *params[PTX_ARGS_MAX], *module, *function;
    cu_result r = cu.module_load(&module, c->text, 0, NULL, NULL);
    if (r != 0 || (r = cu.function(&function, module, c->kernel)) != 0) {
        snprintf(why, why_size, "module: error %d", r);
        return false;
    }
    ptx_case_reset(c);
    for (size_t k = 0; k < c->arg_count && r == 0; k++) {
        struct ptx_arg *a = &c->args[k];
        params[k] = a->is_value ? (void *)a->data : (void *)&buffers[k];
        if (!a->is_value && (r = cu.alloc(&buffers[k], a->bytes)) == 0)
            r = cu.to_device(buffers[k], a->data, a->bytes);
    }
    if (r == 0)
        r = cu.launch(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
                      c->block[2], c->shared, NULL, params, NULL);
    if (r != 0) {
        snprintf(why, why_size, "launch: error %d", r);
        return false;
    }
    r = cu.ctx_synchronize();
    *fault = fault_of(r);
    if (*fault == PTX_FAULT_OTHER)
        printf("# error %d\n", r);
    for (size_t k = 0; k < c->arg_count && *fault == PTX_FAULT_NONE; k++) {
        if (c->args[k].is_value)
            continue;
        cu.from_device(c->args[k].data, buffers[k], c->args[k].bytes);
        cu.release(buffers[k]);
    }
    if (*fault == PTX_FAULT_NONE)
        cu.module_unload(module);
    else if (*fault == PTX_FAULT_ASSERT)
        for (size_t k = 0; k < c->arg_count; k++) /* lost with the context */
            c->args[k].is_checked = false;
    return true;
}

/* For make_probes.py: what the last argument holds, in hexadecimal, after the name of the case. */
static void print_outputs(const struct ptx_case *c, const char *name)
{
    const struct ptx_arg *a = &c->args[c->arg_count - 1];
    size_t size = ptx_type_size[a->type];
    printf("record %.*s", (int)strcspn(name, "."), name);
    for (size_t k = 0; k < a->count; k++) {
        uint64_t v = 0;
        memcpy(&v, a->data + k * size, size);
        printf(" %llx", (unsigned long long)v);
    }
    printf("\n");
}

/* What parent and children share. */
struct progress {
    size_t next; /* case to run */
    int failed;
    bool no_device;
};

/* False if the device is spoilt. */
static bool run_file(const char *path, unsigned number, struct progress *p)
{
    char why[512] = "";
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    struct ptx_case *c = ptx_case_load(path, why, sizeof(why));
    enum ptx_fault fault = PTX_FAULT_NONE;
    bool skip = c && c->only_soft, ok = c != NULL;
    if (c && !skip) {
        ok = run(c, &fault, why, sizeof(why));
        c->print[0] = c->printed[0] = 0; /* goes to standard output there */
        if (ok && record && fault == PTX_FAULT_NONE)
            print_outputs(c, name);
        ok = ok && ptx_case_check(c, fault, why, sizeof(why));
    }
    printf("%sok %u - %s%s\n", ok ? "" : "not ", number, name,
           skip ? " # SKIP only on the software device" : "");
    if (!ok)
        printf("# %s\n", why);
    fflush(stdout);
    ptx_case_destroy(c);
    p->failed += !ok;
    return fault == PTX_FAULT_NONE;
}

/* Seconds for a case, with its compilation. */
#define CASE_S 20u

static void child(const struct ptx_paths *paths, struct progress *p)
{
    int device;
    void *context;
    load_driver();
    if (cu.init(0) != 0 || cu.device_get(&device, 0) != 0 ||
        cu.ctx_create(&context, 0, device) != 0) {
        p->no_device = true;
        return;
    }
    bool good = true;
    while (good && p->next < paths->count) {
        size_t k = p->next++; /* counted before it runs: a child that dies takes its case with it */
        alarm(CASE_S);        /* a kernel that does not end is its case's failure, too */
        good = run_file(paths->at[k], (unsigned)k + 1, p);
    }
}

int main(int argc, char **argv)
{
    struct ptx_paths paths = { 0 };
    struct progress *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    record = argc > 1 && strcmp(argv[1], "--record") == 0;
    for (int k = 1 + record; k < argc; k++)
        ptx_paths_add(&paths, argv[k]);
    if (paths.count == 0 || p == MAP_FAILED) {
        fprintf(stderr, "usage: run_driver [--record] CASE.ptx|DIRECTORY ...\n");
        return 2;
    }
    printf("1..%zu\n", paths.count);
    fflush(stdout);
    while (p->next < paths.count && !p->no_device) {
        size_t first = p->next;
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            child(&paths, p);
            fflush(stdout);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || (status != 0 && p->next == first))
            return 1;
        if (status != 0) {
            printf("not ok %zu - %s\n# its process died\n", p->next, paths.at[p->next - 1]);
            fflush(stdout); /* the next child has what is in the buffer, too */
            p->failed++;
        }
    }
    if (p->no_device)
        printf("Bail out! no device\n");
    ptx_paths_finish(&paths);
    return p->failed != 0 || p->no_device;
}
