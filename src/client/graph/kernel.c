/*
 * Kernel nodes. A kernel's parameters lie in its launch record. What the program reads back points
 * into that.
 */
#include "client/graph/params.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *params_of(struct wire_rec_launch *record)
{
    return record->params + record->attributes * sizeof(CUlaunchAttribute);
}

/* Makes a copy of `record` the kernel's. */
static int take_record(struct rt_kernel *k, const struct wire_rec_launch *record)
{
    struct wire_rec_launch *copy = malloc(record->head.size);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, record, record->head.size);
    for (uint32_t i = 0; i < k->values_count && k->record; i++)
        k->values[i] = params_of(copy) + ((uint8_t *)k->values[i] - params_of(k->record));
    free(k->record);
    k->record = copy;
    return CUDA_SUCCESS;
}

void rt_kernel_finish(struct rt_kernel *k)
{
    free(k->record);
    free(k->values);
    free(k->attributes);
}

static int take_attributes(struct rt_kernel *k, const CUlaunchAttribute *attributes, uint32_t count)
{
    CUlaunchAttribute *copy = NULL;
    if (count) {
        copy = malloc(count * sizeof(*copy));
        if (!copy)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(copy, attributes, count * sizeof(*copy));
    }
    free(k->attributes);
    k->attributes = copy;
    k->attributes_count = count;
    return CUDA_SUCCESS;
}

int rt_kernel_device(const struct rt_kernel *k)
{
    const struct rt_context *c = rt_context_find(k->ctx, false);
    return c ? c->device : -1;
}

int rt_params_launch(struct rt_params *p, const void *function, const struct rt_launch *l,
                     const CUlaunchAttribute *attributes, unsigned count)
{
    const struct rt_function *f = rt_function_find(function);
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    const struct rt_entry *e = f->entry; /* the same on all devices */
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_KERNEL,
                              .kernel.func = (CUfunction)(uintptr_t)function };
    struct rt_kernel *k = &p->kernel;
    if (f->module->library) /* runtimes of 13.0 know it by this handle */
        k->kern = (CUkernel)(uintptr_t)function;
    k->ctx = rt_context_handle(f->context ? f->context : rt_current.context);
    k->values = malloc((e->param_count + 1) * sizeof(void *));
    int r = k->values ? take_record(k, &l->record) : CUDA_ERROR_OUT_OF_MEMORY;
    r = r ? r : take_attributes(k, attributes, count);
    if (r) {
        rt_kernel_finish(k);
        return r;
    }
    k->values_count = e->param_count;
    for (uint32_t i = 0; i < e->param_count; i++)
        k->values[i] = params_of(k->record) + e->params[i].offset;
    return CUDA_SUCCESS;
}

int rt_params_kernel(struct rt_params *p, const CUDA_KERNEL_NODE_PARAMS *from)
{
    struct rt_launch l;
    const void *handle = from->func ? (const void *)from->func : (const void *)from->kern;
    struct rt_function *f = rt_function_find(handle);
    struct rt_context *c = from->ctx ? rt_context_find(from->ctx, true) : rt_current.context;
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    /* Besides a function both other handles are ignored: programs leave something there. Those of a
     * node that is read and written back name a context all the same. */
    bool ignored = !c && from->func;
    if (ignored)
        c = rt_current.context;
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    int r = rt_function_on(&f, c->device);
    if (r)
        return r;
    l.record.grid_x = from->gridDimX;
    l.record.grid_y = from->gridDimY;
    l.record.grid_z = from->gridDimZ;
    l.record.block_x = from->blockDimX;
    l.record.block_y = from->blockDimY;
    l.record.block_z = from->blockDimZ;
    l.record.shared_bytes = from->sharedMemBytes;
    l.record.attributes = 0;
    l.multiprocessors = c->multiprocessors;
    r = rt_launch_prepare(&l, f, from->kernelParams, from->extra);
    r = r ? r : rt_params_launch(p, handle, &l, NULL, 0);
    if (r)
        return r;
    if (from->ctx && !ignored)
        p->kernel.ctx = from->ctx;
    return CUDA_SUCCESS;
}

void rt_params_kernel_describe(const struct rt_params *p, CUDA_KERNEL_NODE_PARAMS *out)
{
    const struct rt_kernel *k = &p->kernel;
    *out = (CUDA_KERNEL_NODE_PARAMS) {
        .func = k->func,
        .kern = k->kern,
        .ctx = k->ctx,
        .gridDimX = k->record->grid_x,
        .gridDimY = k->record->grid_y,
        .gridDimZ = k->record->grid_z,
        .blockDimX = k->record->block_x,
        .blockDimY = k->record->block_y,
        .blockDimZ = k->record->block_z,
        .sharedMemBytes = k->record->shared_bytes,
        .kernelParams = k->values_count ? k->values : NULL,
    };
}

static CUlaunchAttribute *attribute_find(const struct rt_kernel *k, CUlaunchAttributeID id)
{
    for (uint32_t i = 0; i < k->attributes_count; i++)
        if (k->attributes[i].id == id)
            return &k->attributes[i];
    return NULL;
}

static bool attribute_known(CUlaunchAttributeID id)
{
    return id > CU_LAUNCH_ATTRIBUTE_IGNORE &&
           id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
}

/* Changes the attributes in the record. */
static int set_attributes(struct rt_kernel *k, const CUlaunchAttribute *attributes, uint32_t count)
{
    struct rt_launch l;
    memcpy(&l.record, k->record, sizeof(l.record));
    int r = rt_launch_take_attributes(&l, attributes, count);
    if (r)
        return r;
    size_t bytes = k->record->head.size - (size_t)(params_of(k->record) - (uint8_t *)k->record);
    memcpy(params_of(&l.record), params_of(k->record), bytes);
    l.record.head.size = (uint32_t)((size_t)(params_of(&l.record) - (uint8_t *)&l.record) + bytes);
    r = take_record(k, &l.record);
    return r ? r : take_attributes(k, attributes, count);
}

int rt_kernel_attribute_set(struct rt_kernel *k, CUlaunchAttributeID id,
                            const CUlaunchAttributeValue *value)
{
    if (id == CU_LAUNCH_ATTRIBUTE_IGNORE)
        return CUDA_SUCCESS;
    if (!attribute_known(id) || id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
        id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) /* in a graph these are edges */
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t count = k->attributes_count;
    CUlaunchAttribute *all = calloc(count + 1, sizeof(*all));
    if (!all)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (count)
        memcpy(all, k->attributes, count * sizeof(*all));
    const CUlaunchAttribute *old = attribute_find(k, id);
    CUlaunchAttribute *at = &all[old ? old - k->attributes : count];
    at->id = id;
    at->value = *value;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        at->value.priority = rt_stream_priority(GM_MAX(rt_kernel_device(k), 0), value->priority);
    int r = set_attributes(k, all, old ? count : count + 1);
    free(all);
    return r;
}

int rt_kernel_attribute_get(const struct rt_kernel *k, CUlaunchAttributeID id,
                            CUlaunchAttributeValue *value)
{
    if (!attribute_known(id))
        return CUDA_ERROR_INVALID_VALUE;
    const CUlaunchAttribute *a = attribute_find(k, id);
    if (a)
        *value = a->value;
    else
        memset(value, 0, sizeof(*value));
    return CUDA_SUCCESS;
}

int rt_kernel_attributes_copy(struct rt_kernel *k, const struct rt_kernel *from)
{
    return k == from || (!k->attributes_count && !from->attributes_count)
               ? CUDA_SUCCESS
               : set_attributes(k, from->attributes, from->attributes_count);
}

int rt_kernel_clone(struct rt_kernel *k, const struct rt_kernel *from)
{
    k->record = NULL;
    k->attributes = NULL;
    k->values = malloc((from->values_count + 1) * sizeof(void *));
    int r = k->values ? take_record(k, from->record) : CUDA_ERROR_OUT_OF_MEMORY;
    r = r ? r : take_attributes(k, from->attributes, from->attributes_count);
    if (r) {
        rt_kernel_finish(k);
        return r;
    }
    for (uint32_t i = 0; i < from->values_count; i++)
        k->values[i] =
            (uint8_t *)k->record + ((uint8_t *)from->values[i] - (uint8_t *)from->record);
    return CUDA_SUCCESS;
}
