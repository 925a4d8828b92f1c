/*
 * cuModule* and cuLibrary*.
 */
#include <stdlib.h>
#include <string.h>

#include "client/gen/api.h"
#include "client/module/module.h"
#include "client/session/attach.h"
#include "client/memory/reference.h"
#include "client/stream/capture.h"
#include "client/stream/reach.h"
#include "fatbin/fatbin.h"

struct rt_table rt_libraries = RT_TABLE(RT_KIND_LIBRARY, struct rt_library);

static int enter_module(CUmodule handle, struct rt_module **m)
{
    int r = rt_enter_any();
    if (r)
        return r;
    *m = rt_object_find(&rt_modules, handle);
    return *m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Finds a variable. A library has a variable of its own on each device, unless it is managed; the
 * one on the current context's device is meant. */
static int find_variable(struct rt_module *m, const char *name, const struct rt_variable **v)
{
    int device = rt_current.context ? rt_current_device() : m->device;
    struct rt_entry *e;
    int r = CUDA_SUCCESS;
    if (m->device != device && !m->context &&
        !(rt_module_find_managed(m, name, v) == CUDA_SUCCESS && *v))
        r = rt_module_on(&m, device);
    r = r ? r : rt_module_find_variable(m, name, v);
    return r == CUDA_ERROR_NOT_FOUND && rt_module_find_entry(m, name, &e) == CUDA_SUCCESS
               ? CUDA_ERROR_INVALID_VALUE
               : r;
}

CUresult rt_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                               CUjit_option *options, void **optionValues)
{
    struct rt_context *c;
    struct rt_module *m;
    struct rt_jit_log log;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_jit_log_options(&log, numOptions, options, optionValues);
    r = r ? r : rt_module_load(c, image, &log, &m);
    if (r == CUDA_SUCCESS)
        *module = rt_module_handle(m);
    return r;
}

CUresult rt_cuModuleLoadData(CUmodule *module, const void *image)
{
    return rt_cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

/* The argument is the fat binary itself, without the structure in which nvcc wraps it for the
 * runtime. */
CUresult rt_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    const uint32_t wrapper = FB_WRAPPER_MAGIC;
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (fatCubin && strncmp(fatCubin, (const char *)&wrapper, sizeof(wrapper)) == 0)
        return CUDA_ERROR_INVALID_IMAGE;
    return rt_cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult rt_cuModuleLoad(CUmodule *module, const char *fname)
{
    struct rt_context *c;
    struct rt_module *m;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!module || !fname)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_module_load_file(c, fname, NULL, &m);
    if (r == CUDA_SUCCESS)
        *module = rt_module_handle(m);
    return r;
}

CUresult rt_cuModuleUnload(CUmodule hmod)
{
    struct rt_module *m;
    int r = enter_module(hmod, &m);
    r = r ? r : rt_capture_unsafe();
    if (r)
        return r;
    if (!m->context)
        return CUDA_ERROR_NOT_PERMITTED; /* a module of a library ends with the library */
    r = rt_reach_wait(rt_reach_of_device(m->device));
    if (r == CUDA_SUCCESS)
        rt_module_destroy(m);
    return r;
}

/* On a GPU functions are loaded when they are first asked for, unless the program's environment
 * says otherwise, as with the genuine library; then the program's own runtime asks early. On other
 * devices images are loaded at once. */
CUresult rt_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    int r = rt_ready();
    if (r)
        return r;
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    const char *wanted = secure_getenv("CUDA_MODULE_LOADING");
    *mode =
        wanted && strcmp(wanted, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

static int get_function(struct rt_module *m, const char *name, void **out)
{
    struct rt_entry *e;
    int r = rt_module_find_entry(m, name, &e);
    if (r)
        return r;
    struct rt_function *f = rt_module_function(m, e);
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = rt_object_handle(&rt_functions, &f->object);
    return CUDA_SUCCESS;
}

/* Lists the functions. It writes their entries first, and then replaces each by its handle. */
static int get_functions(struct rt_module *m, void **out, unsigned capacity)
{
    uint32_t count;
    int r = rt_module_list(m, (struct rt_entry **)out, capacity, &count);
    for (uint32_t i = 0; i < GM_MIN(capacity, count) && r == CUDA_SUCCESS; i++) {
        struct rt_function *f = rt_module_function(m, out[i]);
        if (!f)
            return CUDA_ERROR_OUT_OF_MEMORY;
        out[i] = rt_object_handle(&rt_functions, &f->object);
    }
    return r;
}

static int get_count(struct rt_module *m, unsigned *count)
{
    return count ? rt_module_list(m, NULL, 0, count) : CUDA_ERROR_INVALID_VALUE;
}

static int give_variable(int r, const struct rt_variable *v, CUdeviceptr *dptr, size_t *bytes)
{
    if (r || !v)
        return r;
    if (dptr)
        *dptr = v->address;
    if (bytes)
        *bytes = v->size;
    return CUDA_SUCCESS;
}

CUresult rt_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct rt_module *m;
    void *f;
    int r = enter_module(hmod, &m);
    if (r)
        return r;
    if (!hfunc || !name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    r = get_function(m, name, &f);
    if (r == CUDA_SUCCESS)
        *hfunc = f;
    return r;
}

CUresult rt_cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    struct rt_module *m;
    int r = enter_module(mod, &m);
    if (r)
        return r;
    return get_count(m, count);
}

CUresult rt_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
                                       CUmodule mod)
{
    struct rt_module *m;
    int r = enter_module(mod, &m);
    if (r)
        return r;
    if (!functions)
        return CUDA_ERROR_INVALID_VALUE;
    return get_functions(m, (void **)functions, numFunctions);
}

CUresult rt_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    struct rt_module *m;
    int r = enter_module(hmod, &m);
    if (r)
        return r;
    if (!name || !*name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    const struct rt_variable *v = NULL;
    r = find_variable(m, name, &v);
    if (r == CUDA_SUCCESS && v->reference)
        return CUDA_ERROR_INVALID_VALUE;
    return give_variable(r, v, dptr, bytes);
}

/* Finds a reference that the module's text declares. There is none on a GPU, because compilers do
 * not make them any more. */
static int find_reference(CUmodule hmod, const void *out, const char *name, uint32_t kind,
                          struct rt_module **m, uint64_t *address)
{
    const struct rt_variable *v = NULL;
    int r = enter_module(hmod, m);
    if (r)
        return r;
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (rt_session->memory_apart || !(*m)->context || find_variable(*m, name, &v) != CUDA_SUCCESS ||
        v->reference != kind)
        return CUDA_ERROR_NOT_FOUND;
    *address = v->address;
    return CUDA_SUCCESS;
}

CUresult rt_cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
    struct rt_module *m;
    uint64_t address;
    int r = find_reference(hmod, (const void *)pTexRef, name, WIRE_REFERENCE_TEXTURE, &m, &address);
    return r ? r : rt_reference_find_texture(m->context, address, pTexRef);
}

CUresult rt_cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
    struct rt_module *m;
    uint64_t address;
    int r =
        find_reference(hmod, (const void *)pSurfRef, name, WIRE_REFERENCE_SURFACE, &m, &address);
    return r ? r : rt_reference_find_surface(m->context, address, pSurfRef);
}

/* --- libraries: modules that belong to no context, by which cudart loads its images
 * ----------------- */

static int enter_library(CUlibrary handle, struct rt_library **l)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    *l = rt_object_find(&rt_libraries, handle);
    return *l ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Finds what the library is in the current context. */
static int enter_library_here(CUlibrary handle, struct rt_library **l)
{
    int r = rt_enter_any();
    r = r ? r : enter_library(handle, l);
    return r || rt_current.context ? r : CUDA_ERROR_INVALID_CONTEXT;
}

static int make_library(struct rt_module *m, const void *image, CUlibrary *out)
{
    struct rt_library *l = rt_object_take(&rt_libraries);
    if (!l) {
        rt_module_destroy(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    l->module = m;
    l->handle = rt_module_handle(m);
    l->image = image;
    rt_object_publish(&l->object);
    m->library = rt_object_handle(&rt_libraries, &l->object);
    *out = m->library;
    return CUDA_SUCCESS;
}

/* Whether the program keeps the image. Some libraries pass options without values. */
static bool is_preserved(const CUlibraryOption *options, unsigned count)
{
    for (unsigned i = 0; options && i < count; i++)
        if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
            return true;
    return false;
}

CUresult rt_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                              void **jitOptionsValues, unsigned int numJitOptions,
                              CUlibraryOption *libraryOptions, void **libraryOptionValues GM_UNUSED,
                              unsigned int numLibraryOptions)
{
    struct rt_module *m;
    struct rt_jit_log log;
    int r = rt_ready();
    if (r)
        return r;
    if (!library || !code)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_jit_log_options(&log, numJitOptions, jitOptions, jitOptionsValues);
    r = r ? r : rt_module_load(NULL, code, &log, &m);
    return r ? r
             : make_library(m, is_preserved(libraryOptions, numLibraryOptions) ? code : NULL,
                            library);
}

CUresult rt_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                  CUjit_option *jitOptions, void **jitOptionsValues,
                                  unsigned int numJitOptions,
                                  CUlibraryOption *libraryOptions GM_UNUSED,
                                  void **libraryOptionValues GM_UNUSED,
                                  unsigned int numLibraryOptions GM_UNUSED)
{
    struct rt_module *m;
    struct rt_jit_log log;
    int r = rt_ready();
    if (r)
        return r;
    if (!library || !fileName)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_jit_log_options(&log, numJitOptions, jitOptions, jitOptionsValues);
    r = r ? r : rt_module_load_file(NULL, fileName, &log, &m);
    return r ? r : make_library(m, NULL, library);
}

CUresult rt_cuLibraryUnload(CUlibrary library)
{
    struct rt_library *l;
    int r = enter_library(library, &l);
    r = r ? r : rt_capture_unsafe();
    if (r)
        return r;
    r = rt_reach_wait(rt_library_reach(l->module));
    rt_module_destroy(l->module);
    rt_object_release(&rt_libraries, &l->object);
    return r;
}

CUresult rt_cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct rt_library *l;
    int r = enter_library_here(library, &l);
    if (r)
        return r;
    if (!pMod)
        return CUDA_ERROR_INVALID_VALUE;
    *pMod = l->handle;
    return CUDA_SUCCESS;
}

CUresult rt_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct rt_library *l;
    void *f;
    if (!pKernel || !name)
        return CUDA_ERROR_INVALID_VALUE;
    int r = enter_library(library, &l);
    if (r)
        return r;
    r = get_function(l->module, name, &f);
    if (r == CUDA_SUCCESS)
        *pKernel = f;
    return r;
}

CUresult rt_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    struct rt_library *l;
    int r = enter_library(lib, &l);
    if (r)
        return r;
    return get_count(l->module, count);
}

CUresult rt_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    struct rt_library *l;
    int r = enter_library(lib, &l);
    if (r)
        return r;
    if (!kernels)
        return CUDA_ERROR_INVALID_VALUE;
    return get_functions(l->module, (void **)kernels, numKernels);
}

CUresult rt_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                               const char *name)
{
    struct rt_library *l;
    if (!name || !*name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    int r = enter_library_here(library, &l);
    if (r)
        return r;
    const struct rt_variable *v = NULL;
    r = find_variable(l->module, name, &v);
    return give_variable(r, v, dptr, bytes);
}

CUresult rt_cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                const char *name)
{
    struct rt_library *l;
    if (!name || !*name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    int r = enter_library(library, &l);
    if (r)
        return r;
    const struct rt_variable *v = NULL;
    r = rt_module_find_managed(l->module, name, &v);
    return give_variable(r, v, dptr, bytes);
}

/* Unified functions exist on host and device. The device's attribute says that there are none. */
CUresult rt_cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
    struct rt_library *l;
    int r = enter_library(library, &l);
    if (r)
        return r;
    return CUDA_ERROR_INVALID_VALUE; /* like the genuine library for a symbol that is none */
}
