/*
 * cuGraphDebugDotPrint: writes the graph in Graphviz' language.
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "client/gen/api.h"
#include "client/graph/graph.h"

static const char *const names[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = "kernel",
    [CU_GRAPH_NODE_TYPE_MEMCPY] = "memcpy",
    [CU_GRAPH_NODE_TYPE_MEMSET] = "memset",
    [CU_GRAPH_NODE_TYPE_HOST] = "host",
    [CU_GRAPH_NODE_TYPE_GRAPH] = "graph",
    [CU_GRAPH_NODE_TYPE_EMPTY] = "empty",
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "event wait",
    [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "event record",
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "alloc",
    [CU_GRAPH_NODE_TYPE_MEM_FREE] = "free",
};

static bool wants(unsigned flags, unsigned flag)
{
    return flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

static void print_kernel(FILE *f, const struct rt_kernel *k, bool shape)
{
    const struct rt_function *function =
        rt_function_find(k->func ? (void *)k->func : (void *)k->kern);
    fprintf(f, "\\n%s", function ? function->entry->name : "?");
    if (shape)
        fprintf(f, "\\n%u,%u,%u x %u,%u,%u, %u bytes", k->record->grid_x, k->record->grid_y,
                k->record->grid_z, k->record->block_x, k->record->block_y, k->record->block_z,
                k->record->shared_bytes);
}

static void print_label(FILE *f, const struct rt_params *p, unsigned flags)
{
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        print_kernel(f, &p->kernel, wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS));
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
            fprintf(f, "\\n%#llx to %#llx, %llu x %llu x %llu",
                    (unsigned long long)p->copy.box.src.address,
                    (unsigned long long)p->copy.box.dst.address,
                    (unsigned long long)p->copy.box.width, (unsigned long long)p->copy.box.height,
                    (unsigned long long)p->copy.box.depth);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
            fprintf(f, "\\n%#llx, %#x, %zu x %zu", p->fill.described.dst, p->fill.described.value,
                    p->fill.described.width, p->fill.described.height);
        break;
    default:
        break;
    }
}

static void print_graph(FILE *f, const struct rt_graph *g, unsigned flags, int depth)
{
    fprintf(f, "%s graph_%u {\n", depth ? "subgraph cluster" : "digraph", g->object.index);
    gm_list_for_each (n, &g->nodes, struct rt_node, link) {
        fprintf(f, "node_%u [label=\"%s", n->object.index, names[n->params.type]);
        print_label(f, &n->params, flags);
        if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
            fprintf(f, "\\n%p", (void *)rt_node_handle(n));
        fputs("\"];\n", f);
        if (n->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
            print_graph(f, n->params.child, flags, depth + 1);
    }
    gm_list_for_each (n, &g->nodes, struct rt_node, link)
        for (uint32_t i = 0; i < n->out.count; i++)
            fprintf(f, "node_%u -> node_%u;\n", n->object.index, n->out.at[i].node->object.index);
    fputs("}\n", f);
}

CUresult rt_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct rt_graph *g = rt_graph_find(hGraph);
    r = g ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (g) {
        GM_AUTO_FILE FILE *f = fopen(path, "we");
        if (f)
            print_graph(f, g, flags, 0);
        r = f && !ferror(f) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
    }
    rt_graph_unlock();
    return r;
}
