/*
 * Kernels on the CUDA driver API. The few entry points are declared here and looked up by name, so
 * that neither headers nor a library are needed to build it.
 */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

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

static bool find(void *library, void *entry, const char *name)
{
    void *address = dlsym(library, name);
    if (!address)
        printf("# no %s\n", name);
    memcpy(entry, &address, sizeof(address));
    return address != NULL;
}

static bool load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("# %s\n", dlerror());
        return false;
    }
    return find(library, &cu.init, "cuInit") && find(library, &cu.device_get, "cuDeviceGet") &&
           find(library, &cu.ctx_create, "cuCtxCreate_v2") &&
           find(library, &cu.ctx_synchronize, "cuCtxSynchronize") &&
           find(library, &cu.module_load, "cuModuleLoadDataEx") &&
           find(library, &cu.module_unload, "cuModuleUnload") &&
           find(library, &cu.function, "cuModuleGetFunction") &&
           find(library, &cu.alloc, "cuMemAlloc_v2") &&
           find(library, &cu.release, "cuMemFree_v2") &&
           find(library, &cu.to_device, "cuMemcpyHtoD_v2") &&
           find(library, &cu.from_device, "cuMemcpyDtoH_v2") &&
           find(library, &cu.launch, "cuLaunchKernel");
}

bool driver_open(void)
{
    int device;
    void *context;
    return load() && cu.init(0) == 0 && cu.device_get(&device, 0) == 0 &&
           cu.ctx_create(&context, 0, device) == 0;
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

bool driver_run(const struct driver_launch *l, enum ptx_fault *fault, char *why, size_t why_size)
{
    cu_pointer buffers[PTX_ARGS_MAX] = { 0 };
    void *params[PTX_ARGS_MAX], *module, *function;
    cu_result r = cu.module_load(&module, l->text, 0, NULL, NULL);
    if (r != 0 || (r = cu.function(&function, module, l->kernel)) != 0) {
        snprintf(why, why_size, "module: error %d", r);
        return false;
    }
    for (size_t k = 0; k < l->arg_count && r == 0; k++) {
        const struct driver_arg *a = &l->args[k];
        params[k] = a->is_value ? a->data : (void *)&buffers[k];
        if (!a->is_value && (r = cu.alloc(&buffers[k], a->bytes)) == 0)
            r = cu.to_device(buffers[k], a->data, a->bytes);
    }
    if (r == 0)
        r = cu.launch(function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
                      l->block[2], l->shared, NULL, params, NULL);
    if (r != 0) {
        snprintf(why, why_size, "launch: error %d", r);
        return false;
    }
    r = cu.ctx_synchronize();
    *fault = fault_of(r);
    if (*fault == PTX_FAULT_OTHER)
        printf("# error %d\n", r);
    for (size_t k = 0; k < l->arg_count && *fault == PTX_FAULT_NONE; k++) {
        if (l->args[k].is_value)
            continue;
        cu.from_device(l->args[k].data, buffers[k], l->args[k].bytes);
        cu.release(buffers[k]);
    }
    if (*fault == PTX_FAULT_NONE)
        cu.module_unload(module);
    return true;
}
