/* Graphs: their edges, clones, user objects, executable graphs, updates and launches. */
#include "random.h"

static const char *graph(int slot)
{
    return random_name(GRAPH, slot);
}

static const char *exec(int slot)
{
    return random_name(EXEC, slot);
}

static const char *node(int slot)
{
    return random_name(NODE, slot);
}

static void create(void)
{
    int slot = random_free_slot(GRAPH);
    unsigned flags = random_chance(10);
    CUgraph g = NULL;
    if (random_current() < 0)
        return;
    random_say("cuGraphCreate(%s, %u)", graph(slot), flags);
    if (random_done(cuGraphCreate(&g, flags)) == CUDA_SUCCESS) {
        random_drop_of(NODE, slot);
        random_keep(GRAPH, slot, (uintptr_t)g, 0);
    }
}

static void destroy(void)
{
    int slot = random_pick_or_null(GRAPH);
    random_settle();
    random_say("cuGraphDestroy(%s)", graph(slot));
    if (random_done(cuGraphDestroy(HANDLE(CUgraph, GRAPH, slot))) == CUDA_SUCCESS && slot >= 0) {
        random_drop(GRAPH, slot);
        random_drop_of(NODE, slot);
    }
}

static void destroy_node(void)
{
    int slot = random_pick_or_null(NODE);
    random_say("cuGraphDestroyNode(%s)", node(slot));
    if (random_done(cuGraphDestroyNode(HANDLE(CUgraphNode, NODE, slot))) == CUDA_SUCCESS)
        random_drop(NODE, slot);
}

static void clone(void)
{
    int from = random_pick_or_null(GRAPH), slot = random_free_slot(GRAPH), n = random_pick(NODE);
    CUgraph g = NULL;
    CUgraphNode found = NULL;
    if (from == slot)
        return;
    random_say("cuGraphClone(%s, %s)", graph(slot), graph(from));
    if (random_done(cuGraphClone(&g, HANDLE(CUgraph, GRAPH, from))) != CUDA_SUCCESS)
        return;
    random_drop_of(NODE, slot);
    random_keep(GRAPH, slot, (uintptr_t)g, 0);
    random_at(GRAPH, slot)->owner = from < 0 ? random_current() : random_at(GRAPH, from)->owner;
    random_at(GRAPH, slot)->mark = 1;
    if (n < 0)
        return;
    random_say("cuGraphNodeFindInClone(%s of %s, %s)", node(n), graph(random_at(NODE, n)->how),
               graph(slot));
    if (random_done(cuGraphNodeFindInClone(&found, HANDLE(CUgraphNode, NODE, n), g)) ==
        CUDA_SUCCESS)
        random_out("%s", found ? "a node" : "none");
}

static void ask(void)
{
    int slot = random_pick_or_null(GRAPH);
    CUgraph g = HANDLE(CUgraph, GRAPH, slot);
    size_t nodes = 0, roots = 0, edges = 0;
    CUgraphNode list[3] = { NULL, NULL, NULL };
    random_say("cuGraphGetNodes(%s)", graph(slot));
    if (random_done(cuGraphGetNodes(g, NULL, &nodes)) == CUDA_SUCCESS)
        random_out("%zu", nodes);
    random_say("cuGraphGetRootNodes(%s)", graph(slot));
    if (random_done(cuGraphGetRootNodes(g, NULL, &roots)) == CUDA_SUCCESS)
        random_out("%zu", roots);
    random_say("cuGraphGetEdges(%s)", graph(slot));
    if (random_done(cuGraphGetEdges(g, NULL, NULL, NULL, &edges)) == CUDA_SUCCESS)
        random_out("%zu", edges);
    nodes = 3;
    random_say("cuGraphGetNodes(%s, 3)", graph(slot));
    if (random_done(cuGraphGetNodes(g, list, &nodes)) == CUDA_SUCCESS)
        random_out("%zu: %s %s %s", nodes, node(random_find(NODE, (uintptr_t)list[0])),
                   node(random_find(NODE, (uintptr_t)list[1])),
                   node(random_find(NODE, (uintptr_t)list[2])));
}

static void ask_node(void)
{
    int slot = random_pick_or_null(NODE);
    CUgraphNode n = HANDLE(CUgraphNode, NODE, slot), list[2] = { NULL, NULL };
    CUgraphNodeType type = (CUgraphNodeType)99;
    size_t count = 99;
    random_say("cuGraphNodeGetType(%s)", node(slot));
    if (random_done(cuGraphNodeGetType(n, &type)) == CUDA_SUCCESS)
        random_out("%d", (int)type);
    random_say("cuGraphNodeGetDependencies(%s)", node(slot));
    if (random_done(cuGraphNodeGetDependencies(n, NULL, NULL, &count)) == CUDA_SUCCESS)
        random_out("%zu", count);
    count = 2;
    random_say("cuGraphNodeGetDependentNodes(%s, 2)", node(slot));
    if (random_done(cuGraphNodeGetDependentNodes(n, list, NULL, &count)) == CUDA_SUCCESS)
        random_out("%zu", count);
}

/* Mostly another node of the graph. */
static int other_node(int slot)
{
    int other = random_pick_or_null(NODE);
    for (unsigned i = 0; i < 8 && slot >= 0 && other >= 0; i++) {
        if (random_at(NODE, slot)->how == random_at(NODE, other)->how && slot != other)
            break;
        other = random_pick(NODE);
    }
    return other;
}

static void add_edge(void)
{
    int from = random_pick_or_null(NODE), to = other_node(from);
    int slot = to < 0 || random_chance(10) ? random_pick_or_null(GRAPH) : random_at(NODE, to)->how;
    CUgraphNode f = HANDLE(CUgraphNode, NODE, from), t = HANDLE(CUgraphNode, NODE, to);
    size_t count = random_below(12) != 0;
    random_say("cuGraphAddDependencies(%s, %s, %s, %zu)", graph(slot), node(from), node(to), count);
    random_done(cuGraphAddDependencies(HANDLE(CUgraph, GRAPH, slot), &f, &t, NULL, count));
}

static void remove_edge(void)
{
    int from = random_pick_or_null(NODE), to = other_node(from);
    int slot = to < 0 || random_chance(10) ? random_pick_or_null(GRAPH) : random_at(NODE, to)->how;
    CUgraphNode f = HANDLE(CUgraphNode, NODE, from), t = HANDLE(CUgraphNode, NODE, to);
    if (!random_edge_may_go(from, to))
        return;
    random_say("cuGraphRemoveDependencies(%s, %s, %s)", graph(slot), node(from), node(to));
    random_done(cuGraphRemoveDependencies(HANDLE(CUgraph, GRAPH, slot), &f, &t, NULL, 1));
}

static void instantiate(void)
{
    int slot = random_free_slot(EXEC), from = random_pick_or_null(GRAPH);
    unsigned long long flags = ONE_OF(unsigned long long, 0, 0, 0, 1, 8, 9, 16, 1ull << 40);
    CUgraphExec x = NULL;
    random_settle();
    random_say("cuGraphInstantiateWithFlags(%s, %s, %#llx)", exec(slot), graph(from), flags);
    if (random_done(cuGraphInstantiateWithFlags(&x, HANDLE(CUgraph, GRAPH, from), flags)) !=
        CUDA_SUCCESS)
        return;
    random_keep(EXEC, slot, (uintptr_t)x, 0);
    random_at(EXEC, slot)->owner = random_at(GRAPH, from)->owner;
}

static void instantiate_with_params(void)
{
    int slot = random_free_slot(EXEC), from = random_pick_or_null(GRAPH), s = random_pick_stream();
    CUDA_GRAPH_INSTANTIATE_PARAMS p;
    CUgraphExec x = NULL;
    memset(&p, 0, sizeof(p));
    p.flags = ONE_OF(unsigned long long, 0, 2, 2, 1, 8, 32);
    p.hUploadStream = random_stream(s);
    p.result_out = (CUgraphInstantiateResult)77;
    random_settle();
    random_say("cuGraphInstantiateWithParams(%s, %s, %#llx, %s)", exec(slot), graph(from),
               (unsigned long long)p.flags, random_name(STREAM, s));
    CUresult r = random_done(cuGraphInstantiateWithParams(&x, HANDLE(CUgraph, GRAPH, from), &p));
    random_used(s);
    random_out("%d", (int)p.result_out);
    if (r != CUDA_SUCCESS)
        return;
    random_keep(EXEC, slot, (uintptr_t)x, 0);
    random_at(EXEC, slot)->owner = random_at(GRAPH, from)->owner;
}

static void destroy_exec(void)
{
    int slot = random_pick_or_null(EXEC);
    random_say("cuGraphExecDestroy(%s)", exec(slot));
    if (random_done(cuGraphExecDestroy(HANDLE(CUgraphExec, EXEC, slot))) == CUDA_SUCCESS)
        random_drop(EXEC, slot);
}

static void launch(void)
{
    int slot = random_pick_or_null(EXEC), s = random_pick_stream();
    random_settle();
    random_say("cuGraphLaunch(%s, %s)", exec(slot), random_name(STREAM, s));
    random_done(cuGraphLaunch(HANDLE(CUgraphExec, EXEC, slot), random_stream(s)));
    random_used(s);
    if (random_chance(3)) {
        random_say("cuGraphLaunch(%s, %s)", exec(slot), random_name(STREAM, s));
        random_done(cuGraphLaunch(HANDLE(CUgraphExec, EXEC, slot), random_stream(s)));
    }
}

static void upload(void)
{
    int slot = random_pick_or_null(EXEC), s = random_pick_stream();
    random_use(s);
    random_say("cuGraphUpload(%s, %s)", exec(slot), random_name(STREAM, s));
    random_done(cuGraphUpload(HANDLE(CUgraphExec, EXEC, slot), random_stream(s)));
    random_used(s);
}

static void exec_flags(void)
{
    int slot = random_pick_or_null(EXEC);
    cuuint64_t flags = 99;
    random_say("cuGraphExecGetFlags(%s)", exec(slot));
    if (random_done(cuGraphExecGetFlags(HANDLE(CUgraphExec, EXEC, slot), &flags)) == CUDA_SUCCESS)
        random_out("%#llx", (unsigned long long)flags);
}

static void update(void)
{
    int slot = random_pick_or_null(EXEC), from = random_pick_or_null(GRAPH);
    CUgraphExecUpdateResultInfo info;
    memset(&info, 0, sizeof(info));
    info.result = (CUgraphExecUpdateResult)77;
    random_settle();
    random_say("cuGraphExecUpdate(%s, %s)", exec(slot), graph(from));
    CUresult r = random_done(
        cuGraphExecUpdate(HANDLE(CUgraphExec, EXEC, slot), HANDLE(CUgraph, GRAPH, from), &info));
    if (r == CUDA_SUCCESS || r == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        random_out("%d, %s, %s", (int)info.result, info.errorNode ? "a node" : "no node",
                   info.errorFromNode ? "from a node" : "from none");
}

static void enable(void)
{
    int slot = random_pick_or_null(EXEC), n = random_pick_or_null(NODE);
    unsigned on = random_below(2), got = 99;
    if (n >= 0 && random_at(NODE, n)->how < 0)
        return;
    random_settle();
    random_say("cuGraphNodeSetEnabled(%s, %s, %u)", exec(slot), node(n), on);
    random_done(
        cuGraphNodeSetEnabled(HANDLE(CUgraphExec, EXEC, slot), HANDLE(CUgraphNode, NODE, n), on));
    random_say("cuGraphNodeGetEnabled(%s, %s)", exec(slot), node(n));
    if (random_done(cuGraphNodeGetEnabled(HANDLE(CUgraphExec, EXEC, slot),
                                          HANDLE(CUgraphNode, NODE, n), &got)) == CUDA_SUCCESS)
        random_out("%u", got);
}

static void attributes(void)
{
    int a = random_pick_or_null(NODE), b = random_pick_or_null(NODE);
    CUkernelNodeAttrID id = (CUkernelNodeAttrID)ONE_OF(int, 2, 8, 8, 4, 1, 77);
    CUkernelNodeAttrValue value;
    memset(&value, 0, sizeof(value));
    value.priority = ONE_OF(int, 0, -1, 1, -9);
    random_say("cuGraphKernelNodeSetAttribute(%s, %d, %d)", node(a), (int)id, value.priority);
    random_done(cuGraphKernelNodeSetAttribute(HANDLE(CUgraphNode, NODE, a), id, &value));
    random_say("cuGraphKernelNodeCopyAttributes(%s, %s)", node(b), node(a));
    random_done(cuGraphKernelNodeCopyAttributes(HANDLE(CUgraphNode, NODE, b),
                                                HANDLE(CUgraphNode, NODE, a)));
    memset(&value, 0, sizeof(value));
    random_say("cuGraphKernelNodeGetAttribute(%s, %d)", node(b), (int)id);
    if (random_done(cuGraphKernelNodeGetAttribute(HANDLE(CUgraphNode, NODE, b), id, &value)) ==
        CUDA_SUCCESS)
        random_out("%d", value.priority);
}

static void create_object(void)
{
    int slot = random_free_slot(OBJECT), *by = random_step();
    unsigned count = ONE_OF(unsigned, 1, 1, 2, 3, 0, 0x80000000),
             flags = ONE_OF(unsigned, 1, 1, 1, 0, 2);
    CUuserObject o = NULL;
    random_say("cuUserObjectCreate(%s, %d, %u, %u)", random_name(OBJECT, slot), *by, count, flags);
    if (random_done(cuUserObjectCreate(&o, by, random_count, count, flags)) != CUDA_SUCCESS)
        return;
    random_keep(OBJECT, slot, (uintptr_t)o, 0);
    random_at(OBJECT, slot)->owner = -1;
    random_at(OBJECT, slot)->mark = count;
}

static void object_count(void)
{
    int slot = random_pick_or_null(OBJECT);
    unsigned n = ONE_OF(unsigned, 1, 1, 1, 0), have = slot < 0 ? 0 : random_at(OBJECT, slot)->mark;
    bool more = random_chance(3);
    random_settle();
    random_say("cuUserObject%s(%s, %u)", more ? "Retain" : "Release", random_name(OBJECT, slot), n);
    CUuserObject o = HANDLE(CUuserObject, OBJECT, slot);
    if (random_done(more ? cuUserObjectRetain(o, n) : cuUserObjectRelease(o, n)) != CUDA_SUCCESS)
        return;
    random_at(OBJECT, slot)->mark = more ? have + n : have - n;
    if (random_at(OBJECT, slot)->mark == 0)
        random_drop(OBJECT, slot);
}

static void object_of_graph(void)
{
    int o = random_pick_or_null(OBJECT), g = random_pick_or_null(GRAPH);
    unsigned n = ONE_OF(unsigned, 1, 1, 2, 0), flags = ONE_OF(unsigned, 0, 0, 2);
    bool less = random_chance(4);
    random_settle();
    random_say("cuGraph%sUserObject(%s, %s, %u, %u)", less ? "Release" : "Retain", graph(g),
               random_name(OBJECT, o), n, flags);
    random_done(less ? cuGraphReleaseUserObject(HANDLE(CUgraph, GRAPH, g),
                                                HANDLE(CUuserObject, OBJECT, o), n)
                     : cuGraphRetainUserObject(HANDLE(CUgraph, GRAPH, g),
                                               HANDLE(CUuserObject, OBJECT, o), n, flags));
}

void random_keep_graph(int slot, CUgraph g)
{
    random_drop_of(NODE, slot);
    random_keep(GRAPH, slot, (uintptr_t)g, 0);
}

static void begin_graphs(void)
{
    create();
    create();
    for (unsigned i = 0; i < 6; i++)
        random_add_node();
    instantiate();
    instantiate();
    create_object();
}

static const struct random_generator graphs[] = {
    GENERATOR(create, 6),
    GENERATOR(destroy, 2),
    GENERATOR(random_add_node, 24),
    GENERATOR(random_set_params, 8),
    GENERATOR(random_get_params, 6),
    GENERATOR(destroy_node, 2),
    GENERATOR(clone, 2),
    GENERATOR(ask, 4),
    GENERATOR(ask_node, 4),
    GENERATOR(add_edge, 5),
    GENERATOR(remove_edge, 3),
    GENERATOR(instantiate, 6),
    GENERATOR(instantiate_with_params, 2),
    GENERATOR(destroy_exec, 2),
    GENERATOR(launch, 12),
    GENERATOR(upload, 1),
    GENERATOR(exec_flags, 1),
    GENERATOR(update, 4),
    GENERATOR(enable, 3),
    GENERATOR(attributes, 2),
    GENERATOR(create_object, 2),
    GENERATOR(object_count, 2),
    GENERATOR(object_of_graph, 2),
    GENERATOR(random_look, 2),
};
const struct random_subject random_graph_subject = SUBJECT(graphs, begin_graphs);
