/*
 * cuFunc* and cuKernel*. A kernel is a function, so each pair of calls shares its code.
 */
#include "client/gen/api.h"
#include "client/module/module.h"
#include "client/session/attach.h"

static int enter(const void *handle, struct rt_function **f)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    *f = rt_function_find(handle);
    return *f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* For calls that do not work any more after the session's error. */
static int enter_working(const void *handle, struct rt_function **f)
{
    int r = rt_enter_any();
    return r ? r : enter(handle, f);
}

/* Finds the function on `device`, or with -1 on the device of the current context. */
static int enter_on(const void *handle, int device, struct rt_function **f)
{
    int r = enter(handle, f);
    if (r)
        return r;
    if (device < 0)
        device = rt_current.context ? rt_current_device() : (*f)->module->device;
    return rt_function_on(f, device);
}

static int get_attribute(int *pi, CUfunction_attribute attribute, const void *handle, int device)
{
    struct rt_function *f;
    int r = enter_on(handle, device, &f);
    if (r)
        return r;
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    const struct rt_entry *e = f->entry;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *pi = (int)e->max_threads;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *pi = (int)e->shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *pi = (int)e->const_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *pi = (int)e->local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *pi = (int)e->registers;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *pi = (int)e->ptx_version;
        break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *pi = (int)e->binary_version;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *pi = (int)atomic_load_explicit(&f->dynamic_limit, memory_order_relaxed);
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *pi = f->carveout;
        break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if (f->module->by_name)
            return rt_lookup_get_attribute(f, attribute, pi);
        *pi = attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED ? f->large_clusters
              : attribute == CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
                  ? f->cluster_policy
                  : 0;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Keeps a preference on a device without clusters. It has no effect, but the program may read it
 * again. */
static int keep_preference(struct rt_function *f, CUfunction_attribute attribute, int value)
{
    bool large = attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
    if (value < 0 || (!large && value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING))
        return CUDA_ERROR_INVALID_VALUE;
    *(large ? &f->large_clusters : &f->cluster_policy) = value;
    return CUDA_SUCCESS;
}

static int set_attribute(CUfunction_attribute attribute, int value, const void *handle, int device)
{
    struct rt_function *f;
    int r = rt_enter_any();
    r = r ? r : enter_on(handle, device, &f);
    if (r)
        return r;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
        const int32_t *a = rt_session->devices[f->module->device].attributes;
        int most =
            a[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] - (int)f->entry->shared_bytes;
        if (value < 0 || value > most)
            return CUDA_ERROR_INVALID_VALUE;
        atomic_store_explicit(&f->dynamic_limit, (uint32_t)value, memory_order_relaxed);
        return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        f->carveout = value;
        return f->module->by_name ? rt_lookup_set_attribute(f, attribute, value) : CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return f->module->by_name ? rt_lookup_set_attribute(f, attribute, value)
                                  : keep_preference(f, attribute, value);
    default:
        return f->module->by_name ? rt_lookup_set_attribute(f, attribute, value)
                                  : CUDA_ERROR_INVALID_VALUE;
    }
}

static int set_cache_config(const void *handle, CUfunc_cache config)
{
    struct rt_function *f;
    int r = enter_working(handle, &f);
    if (r)
        return r;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    f->cache_config = config;
    return CUDA_SUCCESS;
}

static int get_param_info(const void *handle, size_t index, size_t *offset, size_t *size)
{
    struct rt_function *f;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    int r = enter_working(handle, &f);
    if (r)
        return r;
    if (!offset || index >= f->entry->param_count)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = f->entry->params[index].offset;
    if (size)
        *size = f->entry->params[index].size;
    return CUDA_SUCCESS;
}

static int get_name(const void *handle, const char **name)
{
    struct rt_function *f;
    if (!name || !handle)
        return CUDA_ERROR_INVALID_VALUE;
    int r = enter(handle, &f);
    if (r)
        return r;
    *name = f->entry->name;
    return CUDA_SUCCESS;
}

CUresult rt_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    return get_attribute(pi, attrib, hfunc, -1);
}

CUresult rt_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    return set_attribute(attrib, value, hfunc, -1);
}

CUresult rt_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    return set_cache_config(hfunc, config);
}

CUresult rt_cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
    struct rt_function *f;
    int r = enter(hfunc, &f);
    if (r)
        return r;
    return (unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_SUCCESS
                                                                         : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                               size_t *paramSize)
{
    return get_param_info(func, paramIndex, paramOffset, paramSize);
}

CUresult rt_cuFuncGetName(const char **name, CUfunction hfunc)
{
    return get_name(hfunc, name);
}

CUresult rt_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    struct rt_function *f;
    if (!hmod || !hfunc)
        return CUDA_ERROR_INVALID_VALUE;
    int r = enter(hfunc, &f);
    if (r)
        return r;
    *hmod = rt_module_handle(f->module);
    return CUDA_SUCCESS;
}

CUresult rt_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    struct rt_function *f;
    int r = enter_working(function, &f);
    if (r)
        return r;
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult rt_cuFuncLoad(CUfunction function)
{
    struct rt_function *f;
    return enter_working(function, &f);
}

/* --- kernels ---------------------------------------------------------------------------------- */

static int kernel_on(CUkernel kernel, CUdevice dev)
{
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    return dev >= 0 && rt_session && (unsigned)dev < rt_session->device_count
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_DEVICE;
}

CUresult rt_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct rt_function *f;
    int r = enter_working(kernel, &f);
    if (r)
        return r;
    if (!pFunc)
        return CUDA_ERROR_INVALID_VALUE;
    if (!rt_current.context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *pFunc = (CUfunction)rt_object_handle(&rt_functions, &f->object);
    return CUDA_SUCCESS;
}

CUresult rt_cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    struct rt_function *f;
    int r = enter(kernel, &f);
    if (r)
        return r;
    if (!pLib)
        return CUDA_ERROR_INVALID_VALUE;
    if (!f->module->library)
        return CUDA_ERROR_INVALID_HANDLE;
    *pLib = f->module->library;
    return CUDA_SUCCESS;
}

CUresult rt_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel,
                                 CUdevice dev)
{
    int r = kernel_on(kernel, dev);
    return r ? r : get_attribute(pi, attrib, kernel, dev);
}

CUresult rt_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
                                 CUdevice dev)
{
    int r = kernel_on(kernel, dev);
    return r ? r : set_attribute(attrib, val, kernel, dev);
}

CUresult rt_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    int r = kernel_on(kernel, dev);
    return r ? r : set_cache_config(kernel, config);
}

CUresult rt_cuKernelGetName(const char **name, CUkernel hfunc)
{
    return get_name(hfunc, name);
}

CUresult rt_cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
                                 size_t *paramSize)
{
    return get_param_info(kernel, paramIndex, paramOffset, paramSize);
}
