/*
 * What a client asks about a module, name by name. The driver loads a kernel when somebody first
 * asks for its attributes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "device/cuda/call.h"
#include "device/cuda/fallback.h"
#include "device/cuda/kernel.h"
#include "device/cuda/module.h"
#include "device/cuda/op.h"
#include "device/cuda/state.h"
#include "device/cuda/variables.h"
#include "device/modinfo.h"

#define PARAMS_MAX    4096u
#define FUNCTIONS_MAX 65536u
#define VARIABLES_MAX 65536u
#define NAMES_ROOM    4200u /* what one more name may take in an answer */

static uint32_t attribute(const struct cuda_gpu *g, CUkernel k, CUfunction_attribute a)
{
    int value = 0;
    return g->dev->api.cuKernelGetAttribute(&value, a, k, g->device) == CUDA_SUCCESS && value > 0
               ? (uint32_t)value
               : 0;
}

static uint32_t param_list(const struct dev *d, CUkernel k, struct dev_param *params,
                           uint32_t *bytes)
{
    uint32_t count = 0;
    size_t offset, size, end = 0;
    while (count < PARAMS_MAX &&
           d->api.cuKernelGetParamInfo(k, count, &offset, &size) == CUDA_SUCCESS) {
        params[count++] = (struct dev_param) { .offset = (uint32_t)offset, .size = (uint32_t)size };
        end = GM_MAX(end, offset + size);
    }
    *bytes = (uint32_t)end;
    return count;
}

static int describe(const struct cuda_gpu *g, struct cuda_function *f, const char *name,
                    struct wire_enc *reply)
{
    struct dev_param *params = malloc(PARAMS_MAX * sizeof(*params));
    if (!params)
        return GM_CUDA_OUT_OF_MEMORY;
    uint32_t count = param_list(g->dev, f->handle, params, &f->param_bytes);
    f->dynamic_max = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    f->in_clusters = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH) != 0;
    f->registers = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_NUM_REGS);
    f->shared_bytes = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    const struct wire_function_info info = {
        .name = name,
        .param_bytes = f->param_bytes,
        .params = { .data = params, .size = count * (uint32_t)sizeof(*params) },
        .max_threads = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .registers = f->registers,
        .shared_bytes = f->shared_bytes,
        .const_bytes = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES),
        .local_bytes = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        .ptx_version = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_PTX_VERSION),
        .binary_version = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_BINARY_VERSION),
        .cluster_x = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
        .cluster_y = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
        .cluster_z = attribute(g, f->handle, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH),
    };
    wire_put_function_info(reply, &info);
    free(params);
    return GM_CUDA_SUCCESS;
}

int cuda_function_find(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply)
{
    const struct dev *d = m->client->dev;
    struct wire_call_function_find w;
    struct cuda_function f = { 0 };
    wire_get_call_function_find(args, &w);
    if (args->fatal || w.index != m->functions_count)
        return GM_CUDA_INVALID_VALUE;
    if (!gm_array_room(&m->functions, sizeof(*m->functions), m->functions_count, FUNCTIONS_MAX))
        return GM_CUDA_OUT_OF_MEMORY;
    CUresult r = d->api.cuLibraryGetKernel(&f.handle, m->handle, w.name);
    if (r == CUDA_SUCCESS)
        r = cuda_library_find(m->client, m->gpu->index, m->library, &f);
    if (r == CUDA_SUCCESS)
        r = (CUresult)describe(m->gpu, &f, w.name, reply);
    if (r == CUDA_SUCCESS)
        m->functions[m->functions_count++] = f;
    return (int)r;
}

static int list(struct dev_module *m)
{
    const struct cuda_driver *api = &m->client->dev->api;
    unsigned count = 0;
    CUresult r = m->listed ? CUDA_SUCCESS : api->cuLibraryGetKernelCount(&count, m->handle);
    if (r != CUDA_SUCCESS || m->listed || count == 0)
        return (int)r;
    CUkernel *all = calloc(count, sizeof(CUkernel));
    r = all ? api->cuLibraryEnumerateKernels(all, count, m->handle) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        free(all);
        return (int)r;
    }
    m->listed = all;
    m->listed_count = count;
    return GM_CUDA_SUCCESS;
}

int cuda_function_names(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_names w;
    wire_get_call_names(args, &w);
    int r = list(m);
    if (r != 0)
        return r;
    size_t capacity = reply->capacity - 64;
    uint8_t *bytes = malloc(capacity);
    if (!bytes)
        return GM_CUDA_OUT_OF_MEMORY;
    struct wire_enc names;
    wire_enc_init(&names, bytes, capacity);
    for (uint32_t i = w.first; i < m->listed_count && capacity - names.size > NAMES_ROOM; i++) {
        const char *name = NULL;
        if (m->client->dev->api.cuKernelGetName(&name, m->listed[i]) != CUDA_SUCCESS)
            name = "";
        wire_put_call_name(&names, &(struct wire_call_name) { .text = name });
    }
    const struct wire_call_names_are answer = {
        .total = m->listed_count, .names = { .data = bytes, .size = (uint32_t)names.size }
    };
    wire_put_call_names_are(reply, &answer);
    free(bytes);
    return GM_CUDA_SUCCESS;
}

int cuda_variable_find(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply)
{
    struct dev_client *c = m->client;
    struct wire_call_variable_find w;
    struct wire_call_variable_found found = { 0 };
    CUdeviceptr address = 0;
    size_t size = 0;
    wire_get_call_variable_find(args, &w);
    if (args->fatal)
        return GM_CUDA_INVALID_VALUE;
    if (w.managed) /* clients find them themselves (client/module/managed.c) */
        return GM_CUDA_NOT_FOUND;
    if (cuda_variables_find(m, w.name, &found.address, &found.size)) {
        wire_put_call_variable_found(reply, &found);
        return GM_CUDA_SUCCESS;
    }
    CUresult r = cuda_library_variable(c, m->gpu->index, m->library, w.name, &address, &size);
    if (r == CUDA_SUCCESS &&
        cuda_library_is_shared(m->library)) { /* one client must not write what others read */
        r = (CUresult)cuda_library_own(m);
        if (r == CUDA_SUCCESS)
            r = cuda_library_variable(c, m->gpu->index, m->library, w.name, &address, &size);
    }
    if (r != CUDA_SUCCESS)
        return (int)r;
    pthread_mutex_lock(&c->modules_lock);
    bool ok = gm_array_room(&m->globals, sizeof(*m->globals), m->globals_count, VARIABLES_MAX);
    if (ok)
        m->globals[m->globals_count++] = (struct cuda_global) { address, size };
    pthread_mutex_unlock(&c->modules_lock);
    if (!ok)
        return GM_CUDA_OUT_OF_MEMORY;
    found = (struct wire_call_variable_found) { address, size };
    wire_put_call_variable_found(reply, &found);
    return GM_CUDA_SUCCESS;
}

static struct cuda_function *function(const struct dev_module *m, uint32_t index)
{
    return index < m->functions_count ? &m->functions[index] : NULL;
}

/* *out: the kernel as a function of the client's context, if the client is away or the kernel is
 * not loaded in the primary context, where a call about it would load it while everybody waits.
 * Else NULL. */
static CUresult find_apart(struct dev_module *m, struct cuda_function *f, CUfunction *out)
{
    struct dev_client *c = m->client;
    *out = NULL;
    if (GM_LIKELY(f->loaded && !cuda_home(c, m->gpu->index)->is_fallback))
        return CUDA_SUCCESS;
    return cuda_library_function(c, m->gpu->index, m->library, f->handle, out);
}

int cuda_attribute_get(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply)
{
    const struct dev *d = m->client->dev;
    struct wire_call_attribute w;
    int value = 0;
    wire_get_call_attribute(args, &w);
    struct cuda_function *f = function(m, w.index);
    if (!f)
        return GM_CUDA_INVALID_HANDLE;
    CUfunction loaded;
    CUresult r = find_apart(m, f, &loaded);
    if (r == CUDA_SUCCESS)
        r = loaded ? d->api.cuFuncGetAttribute(&value, (CUfunction_attribute)w.attribute, loaded)
                   : d->api.cuKernelGetAttribute(&value, (CUfunction_attribute)w.attribute,
                                                 f->handle, m->gpu->device);
    if (w.attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED &&
        cuda_library_is_shared(m->library))
        value = f->non_portable;
    if (r == CUDA_SUCCESS)
        wire_put_call_value(reply, &(struct wire_call_value) { .value = value });
    return (int)r;
}

/* True for a hint or a permission: setting it changes nothing for others who use the kernel. */
static bool is_harmless(uint32_t attribute)
{
    return attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ||
           attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
}

/* True for attributes that the kernel keeps when its client goes to another context: each launch
 * sets them, or they are only hints. */
static bool is_seen_to(CUfunction_attribute a)
{
    return a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
           a == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
}

int cuda_attribute_set(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply)
{
    const struct dev *d = m->client->dev;
    struct wire_call_attribute_set w;
    (void)reply;
    wire_get_call_attribute_set(args, &w);
    struct cuda_function *f = function(m, w.index);
    if (args->fatal || !f)
        return GM_CUDA_INVALID_HANDLE;
    bool permission = w.attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
    const CUfunction_attribute a = (CUfunction_attribute)w.attribute;
    CUfunction loaded = NULL;
    CUresult r = CUDA_SUCCESS;
    if (!is_harmless(w.attribute))
        r = (CUresult)cuda_library_own(m);
    if (r == CUDA_SUCCESS)
        r = find_apart(m, f, &loaded);
    if (r == CUDA_SUCCESS && !(permission && w.value == 0 && cuda_library_is_shared(m->library)))
        r = loaded ? d->api.cuFuncSetAttribute(loaded, a, w.value)
                   : d->api.cuKernelSetAttribute(a, w.value, f->handle, m->gpu->device);
    if (r == CUDA_SUCCESS && permission)
        f->non_portable = w.value != 0;
    if (r == CUDA_SUCCESS && !is_seen_to(a))
        m->altered = true;
    return (int)r;
}

void cuda_function_dynamic(struct cuda_gpu *g, struct cuda_function *f, uint32_t bytes)
{
    if (bytes > f->dynamic_max && bytes <= INT32_MAX &&
        cuda_library_raise_dynamic(g, f->handle, bytes))
        f->dynamic_max = bytes;
}

/* *out: the function about which the driver is to be asked, which may have so much dynamic shared
 * memory. */
static CUresult with_dynamic(struct dev_module *m, struct cuda_function *f, uint32_t bytes,
                             CUfunction *out)
{
    CUresult r = find_apart(m, f, out);
    if (r != CUDA_SUCCESS)
        return r;
    if (*out) {
        cuda_kernel_allow(m->client->dev, *out, bytes);
    } else {
        cuda_function_dynamic(m->gpu, f, bytes);
        *out = (CUfunction)f->handle;
    }
    return CUDA_SUCCESS;
}

int cuda_clusters(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply)
{
    struct dev *d = m->client->dev;
    CUlaunchAttribute attributes[DEV_LAUNCH_ATTRIBUTES_MAX];
    struct wire_call_clusters w;
    int value = 0;
    wire_get_call_clusters(args, &w);
    struct cuda_function *f = function(m, w.index);
    if (args->fatal || !f ||
        !cuda_attributes_take(attributes, w.attributes.data, w.attributes.size))
        return GM_CUDA_INVALID_VALUE;
    const CUlaunchConfig config = {
        .gridDimX = w.grid_x,
        .gridDimY = w.grid_y,
        .gridDimZ = w.grid_z,
        .blockDimX = w.block_x,
        .blockDimY = w.block_y,
        .blockDimZ = w.block_z,
        .sharedMemBytes = w.shared_bytes,
        .attrs = attributes,
        .numAttrs = (unsigned)(w.attributes.size / sizeof(*attributes)),
    };
    CUfunction found;
    CUresult r = with_dynamic(m, f, w.shared_bytes, &found);
    if (r == CUDA_SUCCESS)
        r = w.largest ? d->api.cuOccupancyMaxPotentialClusterSize(&value, found, &config)
                      : d->api.cuOccupancyMaxActiveClusters(&value, found, &config);
    if (r == CUDA_SUCCESS)
        wire_put_call_value(reply, &(struct wire_call_value) { .value = value });
    return (int)r;
}

int cuda_blocks(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply)
{
    struct dev *d = m->client->dev;
    struct wire_call_blocks w;
    int value = 0;
    wire_get_call_blocks(args, &w);
    struct cuda_function *f = function(m, w.index);
    if (args->fatal || !f || w.threads > INT32_MAX)
        return GM_CUDA_INVALID_VALUE;
    CUfunction found;
    CUresult r = with_dynamic(m, f, w.shared_bytes, &found);
    if (r == CUDA_SUCCESS)
        r = d->api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, found, (int)w.threads,
                                                               w.shared_bytes);
    if (r == CUDA_SUCCESS)
        wire_put_call_value(reply, &(struct wire_call_value) { .value = value });
    return (int)r;
}
