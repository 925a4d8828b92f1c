/*
 * Nodes of graphs: added, asked, changed. What a node writes is a region of its own, so that the
 * result of a launch does not depend on the order of nodes. A copy may read the region of the node
 * that it depends on; such an edge is never removed.
 */
#include "random.h"

#define ARENA_BYTES (64u << 10)
#define REGION      128u

CUdeviceptr random_region(unsigned *number)
{
    static unsigned count;
    int slot = random_pick_owned(ARENA);
    if (slot < 0) {
        CUdeviceptr p = 0;
        if (random_current() < 0)
            return 0;
        slot = random_free_slot(ARENA);
        random_settle();
        random_say("cuMemAlloc(%s, %u)", random_name(ARENA, slot), ARENA_BYTES);
        if (random_done(cuMemAlloc(&p, ARENA_BYTES)) != CUDA_SUCCESS)
            return 0;
        random_say("cuMemsetD8(%s, 3)", random_name(ARENA, slot));
        if (random_done(cuMemsetD8(p, 3, ARENA_BYTES)) != CUDA_SUCCESS)
            return 0;
        random_used(-1);
        random_settle();
        random_keep(ARENA, slot, p, ARENA_BYTES);
    }
    *number = count++ % (ARENA_BYTES / REGION);
    return random_handle(ARENA, slot) + *number * REGION;
}

void random_look_arena(void)
{
    static unsigned char seen[ARENA_BYTES];
    for (int i = 0; i < SLOTS; i++) {
        if (!random_handle(ARENA, i))
            continue;
        random_say("cuMemcpyDtoH(%s)", random_name(ARENA, i));
        if (random_done(cuMemcpyDtoH(seen, random_handle(ARENA, i), ARENA_BYTES)) == CUDA_SUCCESS)
            random_out("%08x", random_hash(seen, ARENA_BYTES));
    }
}

static const char *node(int slot)
{
    return random_name(NODE, slot);
}

/* A node's region: where it writes, in `size`. */
static CUdeviceptr region_of(int slot)
{
    return slot < 0 ? 0 : (CUdeviceptr)random_at(NODE, slot)->size;
}

enum { EMPTY, KERNEL_NODE, MEMSET, MEMCPY, READER, HOST_NODE, CHILD, RECORD, WAIT };

/* What a new node depends on: up to two nodes, of its graph if all is well. */
struct after {
    int slot[2];
    CUgraphNode list[2];
    size_t count;
    char text[40];
};

static struct after some_dependencies(int graph)
{
    struct after a = { { -1, -1 }, { NULL, NULL }, random_below(3), "" };
    for (size_t i = 0; i < a.count; i++) {
        int slot = random_pick(NODE);
        if (slot >= 0 && random_at(NODE, slot)->how != graph && random_below(16))
            slot = -1;
        if (slot < 0 && random_below(16)) {
            a.count = i;
            break;
        }
        a.slot[i] = slot;
        a.list[i] = HANDLE(CUgraphNode, NODE, slot);
    }
    strcpy(a.text, "{");
    for (size_t i = 0; i < a.count; i++) {
        strcat(a.text, i ? " " : "");
        strcat(a.text, node(a.slot[i]));
    }
    strcat(a.text, "}");
    return a;
}

static void keep(int slot, CUgraphNode n, int graph, unsigned mark, CUdeviceptr region)
{
    if (graph < 0)
        return;
    random_keep(NODE, slot, (uintptr_t)n, region);
    random_at(NODE, slot)->how = graph;
    random_at(NODE, slot)->mark = mark;
    random_at(NODE, slot)->owner = random_at(GRAPH, graph)->owner;
}

static CUDA_MEMSET_NODE_PARAMS fill_params(CUdeviceptr to)
{
    CUDA_MEMSET_NODE_PARAMS p = {
        .dst = to,
        .pitch = 32,
        .elementSize = ONE_OF(unsigned, 1, 2, 4, 4, 1, 2, 4, 3, 0),
        .width = random_chance(10) ? 0 : 1 + random_below(8),
        .height = 1 + random_below(4),
    };
    /* What becomes of a value that does not fit its element is not defined. */
    p.value = random_below(UINT32_MAX) >> (p.elementSize == 1 ? 24 : p.elementSize == 2 ? 16 : 0);
    return p;
}

static CUDA_MEMCPY3D copy_params(CUdeviceptr to, CUdeviceptr from)
{
    CUDA_MEMCPY3D p = {
        .srcMemoryType = from ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .srcDevice = from,
        .srcHost = random_source,
        .srcPitch = 32,
        .srcHeight = 4,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = to,
        .dstPitch = ONE_OF(size_t, 32, 32, 32, 0, 8),
        .dstHeight = 4,
        .WidthInBytes = random_below(33),
        .Height = 1 + random_below(4),
        .Depth = 1,
    };
    return p;
}

static CUcontext current(void)
{
    return HANDLE(CUcontext, CONTEXT, random_current());
}

static void add_memory_node(int graph, int slot, const struct after *a, CUdeviceptr to,
                            unsigned number)
{
    CUgraph g = HANDLE(CUgraph, GRAPH, graph);
    CUgraphNode n = NULL;
    bool fill = random_chance(2),
         reader = !fill && a->count && region_of(a->slot[0]) && random_chance(2);
    CUDA_MEMSET_NODE_PARAMS f = fill_params(to);
    CUDA_MEMCPY3D c = copy_params(to, reader ? region_of(a->slot[0]) : 0);
    if (fill)
        random_say("cuGraphAddMemsetNode(%s, %s, %s, region %u, %#x, %u bytes, %zu x %zu)",
                   node(slot), random_name(GRAPH, graph), a->text, number, f.value, f.elementSize,
                   f.width, f.height);
    else
        random_say("cuGraphAddMemcpyNode(%s, %s, %s, region %u, %s, %zu x %zu, pitch %zu)",
                   node(slot), random_name(GRAPH, graph), a->text, number,
                   reader ? node(a->slot[0]) : "source", c.WidthInBytes, c.Height, c.dstPitch);
    if (random_done(fill ? cuGraphAddMemsetNode(&n, g, a->list, a->count, &f, current())
                         : cuGraphAddMemcpyNode(&n, g, a->list, a->count, &c, current())) ==
        CUDA_SUCCESS)
        keep(slot, n, graph, fill ? MEMSET : reader ? READER : MEMCPY, to);
}

static void add_kernel_node(int graph, int slot, const struct after *a, CUdeviceptr to,
                            unsigned number)
{
    CUDA_KERNEL_NODE_PARAMS p;
    CUgraphNode n = NULL;
    const char *name = random_node_kernel(&p, to);
    if (!name)
        return;
    random_say("cuGraphAddKernelNode(%s, %s, %s, region %u, %s, %u, %u)", node(slot),
               random_name(GRAPH, graph), a->text, number, name, p.blockDimX, p.sharedMemBytes);
    if (random_done(cuGraphAddKernelNode(&n, HANDLE(CUgraph, GRAPH, graph), a->list, a->count,
                                         &p)) == CUDA_SUCCESS)
        keep(slot, n, graph, KERNEL_NODE, to);
}

static void add_other_node(int graph, int slot, const struct after *a)
{
    CUgraph g = HANDLE(CUgraph, GRAPH, graph);
    CUgraphNode n = NULL;
    CUresult r;
    unsigned what = random_below(5);
    int e = random_pick_or_null(EVENT), child = random_pick_or_null(GRAPH), *by = random_step();
    CUDA_HOST_NODE_PARAMS h = { random_chance(12) ? NULL : random_count, by };
    if (what == 4 && child >= 0 && (random_at(GRAPH, child)->mark || child == graph))
        what = 0; /* its nodes would write the same regions twice */
    random_say("cuGraphAdd%sNode(%s, %s, %s, %s)",
               what == 0   ? "Empty"
               : what == 1 ? "Host"
               : what == 2 ? "EventRecord"
               : what == 3 ? "EventWait"
                           : "ChildGraph",
               node(slot), random_name(GRAPH, graph), a->text,
               what == 0   ? "-"
               : what == 1 ? h.fn ? "count" : "NULL"
               : what < 4  ? random_name(EVENT, e)
                           : random_name(GRAPH, child));
    if (what == 0)
        r = cuGraphAddEmptyNode(&n, g, a->list, a->count);
    else if (what == 1)
        r = cuGraphAddHostNode(&n, g, a->list, a->count, &h);
    else if (what == 2)
        r = cuGraphAddEventRecordNode(&n, g, a->list, a->count, HANDLE(CUevent, EVENT, e));
    else if (what == 3)
        r = cuGraphAddEventWaitNode(&n, g, a->list, a->count, HANDLE(CUevent, EVENT, e));
    else
        r = cuGraphAddChildGraphNode(&n, g, a->list, a->count, HANDLE(CUgraph, GRAPH, child));
    if (random_done(r) != CUDA_SUCCESS)
        return;
    if (what == 4 && child >= 0)
        random_at(GRAPH, child)->mark = 1;
    keep(slot, n, graph,
         what == 0   ? EMPTY
         : what == 1 ? HOST_NODE
         : what == 2 ? RECORD
         : what == 3 ? WAIT
                     : CHILD,
         0);
}

void random_add_node(void)
{
    int graph = random_pick_or_null(GRAPH), slot = random_free_slot(NODE);
    unsigned way = random_below(4), number = 0;
    if (graph >= 0 && random_at(GRAPH, graph)->owner != random_current())
        return;
    CUdeviceptr to = way < 3 ? random_region(&number) : 0;
    struct after a = some_dependencies(graph);
    if (way < 2 && to)
        add_memory_node(graph, slot, &a, to, number);
    else if (way == 2 && to)
        add_kernel_node(graph, slot, &a, to, number);
    else
        add_other_node(graph, slot, &a);
}

/* Sets the parameters of a node: of the graph's, or of an executable graph's. */
void random_set_params(void)
{
    int slot = random_pick(NODE), exec = random_chance(2) ? random_pick(EXEC) : -1,
        e = random_pick_or_null(EVENT);
    if (slot < 0 || random_at(NODE, slot)->owner != random_current())
        return;
    const struct random_object *o = random_at(NODE, slot);
    CUgraphNode n = HANDLE(CUgraphNode, NODE, slot);
    CUgraphExec x = HANDLE(CUgraphExec, EXEC, exec);
    CUresult r;
    CUDA_KERNEL_NODE_PARAMS k;
    CUDA_HOST_NODE_PARAMS h = { random_count, random_step() };
    CUDA_MEMSET_NODE_PARAMS f = fill_params(o->size);
    CUDA_MEMCPY3D c = copy_params(o->size, 0);
    const char *name = o->mark == KERNEL_NODE ? random_node_kernel(&k, o->size) : "";
    if (exec >= 0)
        random_settle();
    if (!name || (o->mark != KERNEL_NODE && o->mark != MEMSET && o->mark != MEMCPY &&
                  o->mark != HOST_NODE && o->mark != RECORD && o->mark != WAIT))
        return;
    random_say("cuGraph%sNodeSetParams(%s%s%s", exec >= 0 ? "Exec" : "",
               exec >= 0 ? random_name(EXEC, exec) : "", exec >= 0 ? ", " : "", node(slot));
    if (o->mark == KERNEL_NODE) {
        random_put(", %s, %u, %u)", name, k.blockDimX, k.sharedMemBytes);
        r = exec >= 0 ? cuGraphExecKernelNodeSetParams(x, n, &k)
                      : cuGraphKernelNodeSetParams(n, &k);
    } else if (o->mark == MEMSET) {
        random_put(", %#x, %u bytes, %zu x %zu)", f.value, f.elementSize, f.width, f.height);
        r = exec >= 0 ? cuGraphExecMemsetNodeSetParams(x, n, &f, current())
                      : cuGraphMemsetNodeSetParams(n, &f);
    } else if (o->mark == MEMCPY) {
        random_put(", source, %zu x %zu, pitch %zu)", c.WidthInBytes, c.Height, c.dstPitch);
        r = exec >= 0 ? cuGraphExecMemcpyNodeSetParams(x, n, &c, current())
                      : cuGraphMemcpyNodeSetParams(n, &c);
    } else if (o->mark == HOST_NODE) {
        random_put(", %d)", *(int *)h.userData);
        r = exec >= 0 ? cuGraphExecHostNodeSetParams(x, n, &h) : cuGraphHostNodeSetParams(n, &h);
    } else {
        CUevent event = HANDLE(CUevent, EVENT, e);
        random_put(", %s)", random_name(EVENT, e));
        if (o->mark == RECORD)
            r = exec >= 0 ? cuGraphExecEventRecordNodeSetEvent(x, n, event)
                          : cuGraphEventRecordNodeSetEvent(n, event);
        else
            r = exec >= 0 ? cuGraphExecEventWaitNodeSetEvent(x, n, event)
                          : cuGraphEventWaitNodeSetEvent(n, event);
    }
    random_done(r);
}

/* Asks for a node's parameters as if it were of a kind, which it mostly is. */
void random_get_params(void)
{
    int slot = random_pick_or_null(NODE);
    unsigned kind =
        slot < 0 || random_chance(6) ? random_below(WAIT + 1) : random_at(NODE, slot)->mark;
    CUgraphNode n = HANDLE(CUgraphNode, NODE, slot);
    CUDA_KERNEL_NODE_PARAMS k;
    CUDA_HOST_NODE_PARAMS h;
    CUDA_MEMSET_NODE_PARAMS f;
    CUDA_MEMCPY3D c;
    CUevent e = NULL;
    random_say("cuGraphNodeGetParams(%s, as %u)", node(slot), kind);
    if (kind == KERNEL_NODE) {
        if (random_done(cuGraphKernelNodeGetParams(n, &k)) == CUDA_SUCCESS)
            random_out("%s %u %u %u, %u %u %u, %u",
                       random_name(FUNCTION, random_find(FUNCTION, (uintptr_t)k.func)), k.gridDimX,
                       k.gridDimY, k.gridDimZ, k.blockDimX, k.blockDimY, k.blockDimZ,
                       k.sharedMemBytes);
    } else if (kind == MEMSET) {
        if (random_done(cuGraphMemsetNodeGetParams(n, &f)) == CUDA_SUCCESS)
            random_out("%s %#x, %u bytes, %zu x %zu",
                       f.dst == region_of(slot) ? "there" : "elsewhere", f.value, f.elementSize,
                       f.width, f.height);
    } else if (kind == MEMCPY || kind == READER) {
        if (random_done(cuGraphMemcpyNodeGetParams(n, &c)) == CUDA_SUCCESS)
            random_out("%d to %d, %zu x %zu x %zu, pitch %zu", (int)c.srcMemoryType,
                       (int)c.dstMemoryType, c.WidthInBytes, c.Height, c.Depth, c.dstPitch);
    } else if (kind == HOST_NODE) {
        if (random_done(cuGraphHostNodeGetParams(n, &h)) == CUDA_SUCCESS)
            random_out("%d", h.fn == random_count ? *(int *)h.userData : -1);
    } else if (kind == RECORD || kind == WAIT) {
        if (random_done(kind == RECORD ? cuGraphEventRecordNodeGetEvent(n, &e)
                                       : cuGraphEventWaitNodeGetEvent(n, &e)) == CUDA_SUCCESS)
            random_out("%s", random_name(EVENT, random_find(EVENT, (uintptr_t)e)));
    } else {
        CUgraph g = NULL;
        random_done(cuGraphChildGraphNodeGetGraph(n, &g));
    }
}

/* Whether removing an edge would leave a reader without the node that it reads. */
bool random_edge_may_go(int from, int to)
{
    return to < 0 || random_at(NODE, to)->mark != READER || from < 0;
}
