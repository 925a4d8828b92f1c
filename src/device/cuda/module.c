/*
 * Modules go to the driver as they are, and the driver says what is in them. Variables live where the driver put them,
 * outside the window: the client is told their addresses as offsets from zero.
 */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/state.h"
#include "device/modinfo.h"

#define LOG_BYTES     16384u
#define PARAMS_MAX    1024u
#define VARIABLES_MAX 65536u
#define ADDRESSES     (1ull << 57) /* no variable lies beyond */

struct load {
    const struct cuda_driver *api;
    struct dev_module *module;
    struct dev_modinfo info;
    uint32_t capacity;
    bool failed;
};

static void add_variable(void *arg, const char *name)
{
    struct load *l = arg;
    struct dev_module *m = l->module;
    CUdeviceptr address;
    size_t size;
    if (l->failed || l->api->cuModuleGetGlobal_v2(&address, &size, m->handle, name) != CUDA_SUCCESS || size == 0)
        return;
    for (uint32_t i = 0; i < m->globals_count; i++)
        if (m->globals[i].address == address)
            return;
    if (m->globals_count == l->capacity) {
        uint32_t more = l->capacity ? 2 * l->capacity : 16;
        void *grown = more <= VARIABLES_MAX ? realloc(m->globals, more * sizeof(*m->globals)) : NULL;
        if (!grown) {
            l->failed = true;
            return;
        }
        m->globals = grown;
        l->capacity = more;
    }
    m->globals[m->globals_count].address = address;
    m->globals[m->globals_count++].size = size;
    const struct wire_global_info info = { .name = name, .offset = address, .size = size };
    dev_modinfo_global(&l->info, &info);
}

static uint32_t attribute(const struct load *l, CUfunction f, CUfunction_attribute a)
{
    int value = 0;
    return l->api->cuFuncGetAttribute(&value, a, f) == CUDA_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

static CUresult add_function(struct load *l, struct cuda_function *f)
{
    static struct dev_param params[PARAMS_MAX]; /* main thread only */
    uint32_t count = 0;
    size_t offset, size, end = 0;
    const char *name = NULL;
    CUresult r = l->api->cuFuncGetName(&name, f->handle);
    if (r == CUDA_SUCCESS) /* what was enumerated is not loaded yet, and has no attributes */
        r = l->api->cuModuleGetFunction(&f->handle, l->module->handle, name);
    if (r != CUDA_SUCCESS)
        return r;
    while (count < PARAMS_MAX && l->api->cuFuncGetParamInfo(f->handle, count, &offset, &size) == CUDA_SUCCESS) {
        params[count++] = (struct dev_param) { .offset = (uint32_t)offset, .size = (uint32_t)size };
        end = GM_MAX(end, offset + size);
    }
    f->param_bytes = (uint32_t)end;
    const struct wire_function_info info = {
        .name = name,
        .param_bytes = f->param_bytes,
        .max_threads = attribute(l, f->handle, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .registers = attribute(l, f->handle, CU_FUNC_ATTRIBUTE_NUM_REGS),
        .shared_bytes = attribute(l, f->handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        .const_bytes = attribute(l, f->handle, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES),
        .local_bytes = attribute(l, f->handle, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        .ptx_version = attribute(l, f->handle, CU_FUNC_ATTRIBUTE_PTX_VERSION),
        .binary_version = attribute(l, f->handle, CU_FUNC_ATTRIBUTE_BINARY_VERSION),
    };
    f->dynamic_max = attribute(l, f->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    dev_modinfo_function(&l->info, &info, params, count);
    return CUDA_SUCCESS;
}

static CUresult add_functions(struct load *l)
{
    struct dev_module *m = l->module;
    unsigned count = 0;
    CUresult r = l->api->cuModuleGetFunctionCount(&count, m->handle);
    if (r != CUDA_SUCCESS || count == 0)
        return r;
    CUfunction *handles = calloc(count, sizeof(CUfunction));
    m->functions = calloc(count, sizeof(*m->functions));
    if (!handles || !m->functions)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS)
        r = l->api->cuModuleEnumerateFunctions(handles, count, m->handle);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++) {
        m->functions[i].handle = handles[i];
        r = add_function(l, &m->functions[i]);
    }
    m->functions_count = count;
    free(handles);
    return r;
}

/* The driver reads text up to a NUL, which the image need not have. */
static CUresult load(struct load *l, const void *image, size_t size, uint32_t kind, char **log)
{
    char *text = NULL, *errors = calloc(1, LOG_BYTES);
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { errors, (void *)(uintptr_t)LOG_BYTES };
    if (kind == WIRE_IMAGE_KIND_PTX) {
        text = malloc(size + 1);
        if (text) {
            memcpy(text, image, size);
            text[size] = '\0';
        }
        image = text;
    }
    CUresult r = errors && image ? l->api->cuModuleLoadDataEx(&l->module->handle, image, 2, options, values)
                                 : CUDA_ERROR_OUT_OF_MEMORY;
    free(text);
    if (errors && *errors) {
        *log = errors;
    } else {
        free(errors);
    }
    return r;
}

int cuda_module_load(struct dev_client *c, const void *image, size_t size, uint32_t kind, struct dev_module **out,
                     struct dev_module_info *info)
{
    struct dev_module *m = calloc(1, sizeof(*m));
    struct load l = { .api = &c->dev->api, .module = m };

    memset(info, 0, sizeof(*info));
    *out = NULL;
    if (!m)
        return GM_CUDA_OUT_OF_MEMORY;
    gm_list_init(&m->link);
    m->client = c;
    cuda_enter(c->dev);
    CUresult r = load(&l, image, size, kind, &info->log);
    if (r != CUDA_SUCCESS) {
        free(m);
        if (cuda_is_fatal(r) && r != CUDA_ERROR_UNKNOWN)
            cuda_die(c->dev, r);
        return (int)r;
    }
    dev_modinfo_init(&l.info);
    r = add_functions(&l);
    cuda_names(image, size, kind, add_variable, &l);
    if (r == CUDA_SUCCESS && !l.failed)
        r = (CUresult)dev_modinfo_finish(&l.info, 0, 0, ADDRESSES, 0, info);
    else
        dev_modinfo_drop(&l.info);
    info->globals_size = 0; /* the driver has given them their memory */
    if (r == CUDA_SUCCESS && l.failed)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    m->info = (void *)(uintptr_t)info->info.data;
    pthread_mutex_lock(&c->modules_lock);
    gm_list_append(&c->modules, &m->link);
    pthread_mutex_unlock(&c->modules_lock);
    if (r != CUDA_SUCCESS) {
        cuda_module_unload(m);
        return (int)r;
    }
    *out = m;
    return GM_CUDA_SUCCESS;
}

/* Under a second executor variables would have lost what the program made of them, and lie elsewhere. */
int cuda_module_place(struct dev_module *m, uint64_t globals_address, bool initialise)
{
    return initialise || m->globals_count == 0 ? GM_CUDA_SUCCESS : GM_CUDA_LAUNCH_FAILED;
}

/* Queued launches hold the module's code in the driver until they have run. */
void cuda_module_unload(struct dev_module *m)
{
    if (!m)
        return;
    struct dev_client *c = m->client;
    cuda_enter(c->dev);
    pthread_mutex_lock(&c->modules_lock);
    gm_list_remove(&m->link);
    pthread_mutex_unlock(&c->modules_lock);
    (void)c->dev->api.cuModuleUnload(m->handle);
    free(m->functions);
    free(m->globals);
    free(m->info);
    free(m);
}
