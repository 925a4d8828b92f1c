/*
 * Parameters of a node of any kind, as cuGraphAddNode has them, and of nodes that contain graphs.
 */
#include <stdlib.h>
#include <string.h>

#include "client/graph/graph.h"

#define BODIES_MAX 1024u

static bool kind_ok(const CUDA_CONDITIONAL_NODE_PARAMS *from)
{
    switch (from->type) {
    case CU_GRAPH_COND_TYPE_IF:
        return from->size == 1 || from->size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
        return from->size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return from->size > 0 && from->size <= BODIES_MAX;
    default:
        return false;
    }
}

static int params_conditional(struct rt_params *p, struct rt_graph *g,
                              const CUDA_CONDITIONAL_NODE_PARAMS *from)
{
    struct rt_condition *condition = g ? rt_condition_find(g, from->handle) : NULL;
    if (!condition || condition->nodes || !kind_ok(from) ||
        (from->ctx && !rt_context_find(from->ctx, true)))
        return CUDA_ERROR_INVALID_VALUE;
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                              .conditional = { .condition = rt_condition_ref(condition),
                                               .kind = from->type,
                                               .count = from->size,
                                               .bodies =
                                                   calloc(from->size, sizeof(struct rt_graph *)),
                                               .handles = calloc(from->size, sizeof(CUgraph)),
                                               .ctx = from->ctx } };
    condition->nodes++;
    int r =
        p->conditional.bodies && p->conditional.handles ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < from->size && r == CUDA_SUCCESS; i++)
        r = rt_graph_create(&p->conditional.bodies[i]);
    for (unsigned i = 0; i < from->size && r == CUDA_SUCCESS; i++)
        p->conditional.handles[i] = rt_graph_handle(p->conditional.bodies[i]);
    if (r)
        rt_params_finish(p);
    return r;
}

int rt_params_child(struct rt_params *p, const struct rt_graph *child)
{
    *p = (struct rt_params) { .type = CU_GRAPH_NODE_TYPE_GRAPH };
    if (rt_graph_has_conditions(child))
        return CUDA_ERROR_NOT_SUPPORTED;
    return rt_graph_clone(child, &p->child);
}

int rt_params_generic(struct rt_params *p, struct rt_graph *g, const CUgraphNodeParams *from)
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
        return params_conditional(p, g, &from->conditional);
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
