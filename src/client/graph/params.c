/*
 * A kernel's parameters lie in its launch record; what the program reads back points into it. A
 * node's records know neither stream nor sequence number: those are a launch's.
 */
#include "client/graph/params.h"

#include <stdlib.h>
#include <string.h>

#include "client/graph/graph.h"
#include "client/graph/memory.h"
#include "client/memory/fill.h"
#include "client/stream/event.h"

/* --- kernels ---------------------------------------------------------------------------------- */

static uint8_t *params_of(struct wire_rec_launch *record)
{
    return record->params + record->attributes * sizeof(CUlaunchAttribute);
}

/* A copy of `record` becomes the kernel's. */
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

static void kernel_finish(struct rt_kernel *k)
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
    if (f->module->library) /* by which runtimes of 13.0 know it */
        k->kern = (CUkernel)(uintptr_t)function;
    k->ctx = rt_context_handle(f->context ? f->context : rt_current.context);
    k->values = malloc((e->param_count + 1) * sizeof(void *));
    int r = k->values ? take_record(k, &l->record) : CUDA_ERROR_OUT_OF_MEMORY;
    r = r ? r : take_attributes(k, attributes, count);
    if (r) {
        kernel_finish(k);
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
    if (from->ctx)
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

/* The record with other attributes. */
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
        id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) /* in a graph those are edges */
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

/* `k` is a copy of `from`, member by member. */
static int kernel_clone(struct rt_kernel *k, const struct rt_kernel *from)
{
    k->record = NULL;
    k->attributes = NULL;
    k->values = malloc((from->values_count + 1) * sizeof(void *));
    int r = k->values ? take_record(k, from->record) : CUDA_ERROR_OUT_OF_MEMORY;
    r = r ? r : take_attributes(k, from->attributes, from->attributes_count);
    if (r) {
        kernel_finish(k);
        return r;
    }
    for (uint32_t i = 0; i < from->values_count; i++)
        k->values[i] =
            (uint8_t *)k->record + ((uint8_t *)from->values[i] - (uint8_t *)from->record);
    return CUDA_SUCCESS;
}

/* --- the others ------------------------------------------------------------------------------- */

int rt_params_copy(struct rt_params *p, const CUDA_MEMCPY3D *from, CUcontext ctx)
{
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_MEMCPY,
                              .copy = { .described = *from, .ctx = ctx } };
    if (ctx && !rt_context_find(ctx, true))
        return CUDA_ERROR_INVALID_CONTEXT;
    struct rt_box *b = &p->copy.box;
    int r = rt_copy_describe(from, b);
    r = r ? r : rt_copy_plan(b, &p->copy.plan);
    if (r == CUDA_SUCCESS && (rt_copy_is_apart(&b->dst) || rt_copy_is_apart(&b->src)))
        rt_copy_array_record(b, p->copy.plan.dst, p->copy.plan.src, &p->copy.array);
    return r;
}

int rt_params_fill(struct rt_params *p, const CUDA_MEMSET_NODE_PARAMS *from, CUcontext ctx)
{
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_MEMSET,
                              .fill = { .described = *from, .ctx = ctx } };
    if (ctx && !rt_context_find(ctx, true))
        return CUDA_ERROR_INVALID_CONTEXT;
    struct rt_fill fill = { .dst = from->dst,
                            .pitch = from->pitch,
                            .value = from->value,
                            .element = from->elementSize,
                            .width = from->width,
                            .height = from->height };
    struct rt_range range;
    if (fill.element != 1 && fill.element != 2 && fill.element != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (fill.element < 4) /* the rest of the value is of no account */
        fill.value &= (1u << (8 * fill.element)) - 1;
    int r = rt_fill_prepare(&fill, &p->fill.record);
    if (r == CUDA_SUCCESS && p->fill.record.width)
        p->fill.nowhere = rt_fill_place(&p->fill.record, &range) != CUDA_SUCCESS;
    return r;
}

int rt_params_host(struct rt_params *p, const CUDA_HOST_NODE_PARAMS *from)
{
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_HOST, .host = *from };
    return from->fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int rt_params_event(struct rt_params *p, CUgraphNodeType type, CUevent event)
{
    *p = (struct rt_params) { .type = type, .event = event };
    if (!event)
        return CUDA_ERROR_INVALID_VALUE;
    if (!rt_event_exists(event))
        return CUDA_ERROR_INVALID_HANDLE;
    static atomic_bool said;
    return rt_event_shared(event)
               ? (int)rt_not_supported("a graph with an interprocess event", &said)
               : CUDA_SUCCESS;
}

static void memops_finish(struct rt_memops *m)
{
    free(m->described.paramArray);
    free(m->ops);
}

/* `m` is a copy of `from`, member by member, whose arrays may be the program's. */
static int memops_clone(struct rt_memops *m, const struct rt_memops *from)
{
    const unsigned count = from->described.count;
    m->described.paramArray = calloc(count + 1, sizeof(*m->described.paramArray));
    m->ops = calloc(count + 1, sizeof(*m->ops));
    if (!m->described.paramArray || !m->ops) {
        memops_finish(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (count)
        memcpy(m->described.paramArray, from->described.paramArray,
               count * sizeof(*m->described.paramArray));
    if (from->count)
        memcpy(m->ops, from->ops, from->count * sizeof(*m->ops));
    return CUDA_SUCCESS;
}

int rt_params_memops(struct rt_params *p, const CUDA_BATCH_MEM_OP_NODE_PARAMS *from)
{
    struct rt_memop ops[RT_MEMOPS_MAX];
    struct rt_memops all = { .described = *from, .ops = ops };
    if (!from->ctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!rt_context_find(from->ctx, true))
        return CUDA_ERROR_INVALID_CONTEXT;
    int r = rt_memops_read(from->paramArray, from->count, from->flags, ops, &all.count);
    if (r)
        return r;
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memops = all };
    return memops_clone(&p->memops, &all);
}

int rt_params_alloc(struct rt_params *p, const CUDA_MEM_ALLOC_NODE_PARAMS *from,
                    const struct rt_graph *g, const CUgraphNode *dependencies, size_t count)
{
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                              .memory = { .described = *from } };
    const CUmemPoolProps *pool = &from->poolProps;
    if (from->bytesize == 0 || (from->accessDescCount && !from->accessDescs) ||
        pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE || pool->location.id < 0 ||
        (unsigned)pool->location.id >= rt_session->device_count ||
        pool->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    p->memory.described.accessDescs = NULL; /* its device has access, and that device's peers */
    p->memory.described.accessDescCount = 0;
    int r = CUDA_SUCCESS;
    p->memory.memory =
        rt_graph_memory_reuse(g, dependencies, count, pool->location.id, from->bytesize);
    if (p->memory.memory)
        rt_graph_memory_ref(p->memory.memory);
    else
        r = rt_graph_memory_create(rt_current.context, pool->location.id, from->bytesize,
                                   &p->memory.memory);
    if (r == CUDA_SUCCESS)
        p->memory.described.dptr = rt_graph_memory_address(p->memory.memory);
    return r;
}

int rt_params_free(struct rt_params *p, CUdeviceptr address)
{
    struct rt_graph_memory *m = rt_graph_memory_find(address);
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_MEM_FREE,
                              .memory = { .described.dptr = address, .memory = m } };
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_memory_ref(m);
    return CUDA_SUCCESS;
}

int rt_params_child(struct rt_params *p, const struct rt_graph *child)
{
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_GRAPH };
    if (rt_graph_has_conditions(child))
        return CUDA_ERROR_NOT_SUPPORTED;
    return rt_graph_clone(child, &p->child);
}

int rt_params_generic(struct rt_params *p, const CUgraphNodeParams *from)
{
    static atomic_bool said;
    const struct rt_graph *child;
    if (from->reserved0[0] || from->reserved0[1] || from->reserved0[2] || from->reserved2)
        return CUDA_ERROR_INVALID_VALUE;
    switch (from->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS kernel;
        _Static_assert(sizeof(kernel) == sizeof(from->kernel), "the same by another name");
        memcpy(&kernel, &from->kernel, sizeof(kernel));
        return rt_params_kernel(p, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (from->memcpy.flags || from->memcpy.reserved)
            return CUDA_ERROR_INVALID_VALUE;
        return rt_params_copy(p, &from->memcpy.copyParams, from->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        const CUDA_MEMSET_NODE_PARAMS fill = { .dst = from->memset.dst,
                                               .pitch = from->memset.pitch,
                                               .value = from->memset.value,
                                               .elementSize = from->memset.elementSize,
                                               .width = from->memset.width,
                                               .height = from->memset.height };
        return rt_params_fill(p, &fill, from->memset.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
        return rt_params_host(
            p, &(CUDA_HOST_NODE_PARAMS) { .fn = from->host.fn, .userData = from->host.userData });
    case CU_GRAPH_NODE_TYPE_GRAPH:
        child = rt_graph_find(from->graph.graph);
        return child ? rt_params_child(p, child) : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_EMPTY };
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return rt_params_event(p, from->type, from->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return rt_params_event(p, from->type, from->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        _Static_assert(sizeof(alloc) == sizeof(from->alloc), "the same by another name");
        memcpy(&alloc, &from->alloc, sizeof(alloc));
        return rt_params_alloc(p, &alloc, NULL, NULL, 0);
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return rt_params_free(p, from->free.dptr);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        return rt_not_supported("a graph node for semaphores", &said);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return rt_params_conditional(p, &from->conditional);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
        CUDA_BATCH_MEM_OP_NODE_PARAMS ops;
        _Static_assert(sizeof(ops) == sizeof(from->memOp), "the same by another name");
        memcpy(&ops, &from->memOp, sizeof(ops));
        return rt_params_memops(p, &ops);
    }
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

int rt_params_clone(struct rt_params *p, const struct rt_params *from)
{
    *p = *from;
    switch (from->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_clone(&p->kernel, &from->kernel);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return rt_graph_clone(from->child, &p->child);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return rt_conditional_clone(&p->conditional, &from->conditional);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return memops_clone(&p->memops, &from->memops);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        rt_graph_memory_ref(p->memory.memory);
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

void rt_params_finish(struct rt_params *p)
{
    if (p->type == CU_GRAPH_NODE_TYPE_KERNEL)
        kernel_finish(&p->kernel);
    else if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
        rt_graph_destroy(p->child);
    else if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        rt_conditional_finish(&p->conditional);
    else if (p->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        memops_finish(&p->memops);
    else if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        rt_graph_memory_unref(p->memory.memory);
}
