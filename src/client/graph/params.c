/*
 * Parameters of the nodes that neither launch a kernel nor contain graphs. A node's records have no
 * stream and no sequence number; each launch has its own.
 */
#include "client/graph/params.h"

#include <stdlib.h>
#include <string.h>

#include "client/graph/graph.h"
#include "client/graph/memory.h"
#include "client/memory/fill.h"
#include "client/stream/event.h"

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
    if (fill.element < 4) /* the value's other bits do not matter */
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

void rt_memops_finish(struct rt_memops *m)
{
    free(m->described.paramArray);
    free(m->ops);
}

int rt_memops_clone(struct rt_memops *m, const struct rt_memops *from)
{
    const unsigned count = from->described.count;
    m->described.paramArray = calloc(count + 1, sizeof(*m->described.paramArray));
    m->ops = calloc(count + 1, sizeof(*m->ops));
    if (!m->described.paramArray || !m->ops) {
        rt_memops_finish(m);
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
    return rt_memops_clone(&p->memops, &all);
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
    p->memory.described.accessDescs = NULL; /* the device has access, and so have its peers */
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
