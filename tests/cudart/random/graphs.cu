// Graphs: nodes of all kinds, looked at and changed, and what runs them.
#include "random.cuh"

Table<cudaGraph_t> graphs = { "graph" };
static Table<cudaGraphExec_t> execs = { "exec" };

// The graph's nodes, of which one is picked by its place.
static cudaGraphNode_t pick_node(const Table<cudaGraph_t>::Picked &g, std::string *name)
{
    cudaGraphNode_t nodes[32] = {};
    size_t count = 32;
    *name = "NULL";
    if (g.slot < 0 || cudaGraphGetNodes(g.handle, nodes, &count) != cudaSuccess || !count || chance(15))
        return nullptr;
    const unsigned n = draw((unsigned)(count < 32 ? count : 32));
    *name = "node " + std::to_string(n);
    return nodes[n];
}

static void CUDART_CB nothing(void *)
{
}

static cudaMemcpy3DParms copy_of(const Memory &to, const Memory &from)
{
    cudaMemcpy3DParms p = {};
    const size_t size = to.size < from.size ? to.size : from.size;
    p.srcPtr = make_cudaPitchedPtr(from.address, size, size, 1);
    p.dstPtr = make_cudaPitchedPtr(to.address, size, size, 1);
    p.extent = cudaExtent { draw((unsigned)size + 1), 1, 1 };
    p.kind = chance(6) ? (cudaMemcpyKind)draw(5) : cudaMemcpyDefault;
    return p;
}

static bool kernel_params(cudaKernelNodeParams *p, Arguments *a, std::string *text)
{
    std::string name, arguments;
    if (!pick_arguments(a, &arguments))
        return false;
    *p = {};
    p->func = (void *)pick_function(&name);
    p->gridDim = dim3(chance(20) ? 0 : 1 + draw(3));
    p->blockDim = dim3(chance(12) ? one_of({ 0u, 1025u }) : 1 + draw(64));
    p->sharedMemBytes = chance(12) ? 300 << 10 : 0;
    p->kernelParams = a->list;
    *text = name + " " + std::to_string(p->gridDim.x) + " x " + std::to_string(p->blockDim.x) + " " +
            std::to_string(p->sharedMemBytes) + ", " + arguments;
    return true;
}

static cudaMemsetParams fill_params(const Memory &m, std::string *text)
{
    cudaMemsetParams p = {};
    p.dst = m.address;
    p.elementSize = chance(10) ? 3 : 1u << draw(3);
    p.height = chance(10) ? 0 : 1 + draw(3);
    p.width = m.size ? draw((unsigned)(m.size / (p.elementSize * (p.height + 1)) + 1)) : 0;
    p.pitch = p.width * p.elementSize;
    p.value = draw(300);
    *text = std::to_string(p.value) + ", " + std::to_string(p.width) + " x " + std::to_string(p.height) + " of " +
            std::to_string(p.elementSize);
    return p;
}

static void add(const Table<cudaGraph_t>::Picked &g)
{
    std::string name, text;
    cudaGraphNode_t node = nullptr, before = pick_node(g, &name);
    const size_t count = before ? draw(2) : 0;
    const auto m = pick_memory(), n = pick_memory();
    const auto e = events.pick();
    const auto other = graphs.pick();
    Arguments a;
    cudaKernelNodeParams k;
    if (m.handle.kind == Memory::PAGEABLE || n.handle.kind == Memory::PAGEABLE)
        return;
    const char *after = count ? name.c_str() : "nothing";
    switch (draw(8)) {
    case 0:
    case 1:
        if (!kernel_params(&k, &a, &text))
            return;
        say("cudaGraphAddKernelNode(%s, after %s, %s)", g.name.c_str(), after, text.c_str());
        done(cudaGraphAddKernelNode(&node, g.handle, &before, count, &k));
        break;
    case 2: {
        const auto p = fill_params(m.handle, &text);
        say("cudaGraphAddMemsetNode(%s, after %s, %s, %s)", g.name.c_str(), after, m.name.c_str(), text.c_str());
        done(cudaGraphAddMemsetNode(&node, g.handle, &before, count, &p));
        break;
    }
    case 3: {
        const auto p = copy_of(m.handle, n.handle);
        say("cudaGraphAddMemcpyNode(%s, after %s, %s, %s, %zu, %d)", g.name.c_str(), after, m.name.c_str(), n.name.c_str(),
            p.extent.width, (int)p.kind);
        done(cudaGraphAddMemcpyNode(&node, g.handle, &before, count, &p));
        break;
    }
    case 4: {
        cudaHostNodeParams p = { chance(10) ? nullptr : nothing, nullptr };
        say("cudaGraphAddHostNode(%s, after %s, %s)", g.name.c_str(), after, p.fn ? "nothing" : "NULL");
        done(cudaGraphAddHostNode(&node, g.handle, &before, count, &p));
        break;
    }
    case 5:
        say("cudaGraphAddEventRecordNode(%s, after %s, %s)", g.name.c_str(), after, e.name.c_str());
        done(cudaGraphAddEventRecordNode(&node, g.handle, &before, count, e.handle));
        break;
    case 6:
        if (other.slot < 0 || other.slot == g.slot)
            return; // NVIDIA's library follows it, or itself for ever
        say("cudaGraphAddChildGraphNode(%s, after %s, %s)", g.name.c_str(), after, other.name.c_str());
        done(cudaGraphAddChildGraphNode(&node, g.handle, &before, count, other.handle));
        break;
    default:
        say("cudaGraphAddEmptyNode(%s, after %s)", g.name.c_str(), after);
        done(cudaGraphAddEmptyNode(&node, g.handle, &before, count));
    }
}

static void node_call(const Table<cudaGraph_t>::Picked &g)
{
    std::string name, other_name, text;
    const auto node = pick_node(g, &name), other = pick_node(g, &other_name);
    const auto m = pick_memory();
    cudaGraphNodeType type = cudaGraphNodeTypeCount;
    cudaKernelNodeParams k = {};
    cudaMemsetParams f = {};
    cudaMemcpy3DParms c = {};
    cudaHostNodeParams h = {};
    Arguments a;
    size_t count = 0, last = 0;
    if (!node && draw(8))
        return;
    switch (draw(11)) {
    case 0:
        say("cudaGraphNodeGetType(%s of %s)", name.c_str(), g.name.c_str());
        if (done(cudaGraphNodeGetType(node, &type)) == cudaSuccess)
            out("%d", (int)type);
        break;
    case 1:
        say("cudaGraphKernelNodeGetParams(%s of %s)", name.c_str(), g.name.c_str());
        if (done(cudaGraphKernelNodeGetParams(node, &k)) == cudaSuccess)
            out("%u %u %u, %u %u %u, %u, %s", k.gridDim.x, k.gridDim.y, k.gridDim.z, k.blockDim.x, k.blockDim.y, k.blockDim.z,
                k.sharedMemBytes, k.func ? "a function" : "NULL");
        break;
    case 2:
        say("cudaGraphMemsetNodeGetParams(%s of %s)", name.c_str(), g.name.c_str());
        if (done(cudaGraphMemsetNodeGetParams(node, &f)) == cudaSuccess)
            out("%u, %zu x %zu of %u by %zu", f.value, f.width, f.height, f.elementSize, f.height > 1 ? f.pitch : 0);
        break;
    case 3:
        say("cudaGraphMemcpyNodeGetParams(%s of %s)", name.c_str(), g.name.c_str());
        if (done(cudaGraphMemcpyNodeGetParams(node, &c)) == cudaSuccess)
            out("%zu x %zu x %zu, %d", c.extent.width, c.extent.height, c.extent.depth, (int)c.kind);
        break;
    case 4:
        say("cudaGraphHostNodeGetParams(%s of %s)", name.c_str(), g.name.c_str());
        if (done(cudaGraphHostNodeGetParams(node, &h)) == cudaSuccess)
            out("%s", h.fn == nothing ? "nothing" : "something");
        break;
    case 5:
        if (!kernel_params(&k, &a, &text))
            return;
        say("cudaGraphKernelNodeSetParams(%s of %s, %s)", name.c_str(), g.name.c_str(), text.c_str());
        done(cudaGraphKernelNodeSetParams(node, &k));
        break;
    case 6:
        if (m.handle.kind == Memory::PAGEABLE)
            return;
        f = fill_params(m.handle, &text);
        say("cudaGraphMemsetNodeSetParams(%s of %s, %s, %s)", name.c_str(), g.name.c_str(), m.name.c_str(), text.c_str());
        done(cudaGraphMemsetNodeSetParams(node, &f));
        break;
    case 7:
        say("cudaGraphAddDependencies(%s, %s, %s)", g.name.c_str(), name.c_str(), other_name.c_str());
        done(cudaGraphAddDependencies(g.handle, &node, &other, nullptr, 1));
        break;
    case 8:
        say("cudaGraphRemoveDependencies(%s, %s, %s)", g.name.c_str(), name.c_str(), other_name.c_str());
        done(cudaGraphRemoveDependencies(g.handle, &node, &other, nullptr, 1));
        break;
    case 9:
        say("cudaGraphNodeGetDependencies(%s of %s)", name.c_str(), g.name.c_str());
        if (done(cudaGraphNodeGetDependencies(node, nullptr, nullptr, &count)) == cudaSuccess &&
            cudaGraphNodeGetDependentNodes(node, nullptr, nullptr, &last) == cudaSuccess)
            out("%zu before, %zu behind", count, last);
        break;
    default:
        say("cudaGraphDestroyNode(%s of %s)", name.c_str(), g.name.c_str());
        done(cudaGraphDestroyNode(node));
    }
}

static void graph_call(const Table<cudaGraph_t>::Picked &g)
{
    const int i = graphs.place();
    size_t a = 0, b = 0, c = 0;
    switch (draw(5)) {
    case 0:
    case 1:
        if (i < 0)
            break;
        say("cudaGraphCreate(graph%d)", i);
        graphs.live[i] = done(cudaGraphCreate(&graphs.at[i], chance(12))) == cudaSuccess;
        break;
    case 2:
        say("cudaGraphDestroy(%s)", g.name.c_str());
        if (done(cudaGraphDestroy(g.handle)) == cudaSuccess && g.slot >= 0)
            graphs.live[g.slot] = false;
        break;
    case 3:
        if (i < 0)
            break;
        say("cudaGraphClone(graph%d, %s)", i, g.name.c_str());
        graphs.live[i] = done(cudaGraphClone(&graphs.at[i], g.handle)) == cudaSuccess;
        break;
    default:
        say("cudaGraphGetNodes(%s)", g.name.c_str());
        if (done(cudaGraphGetNodes(g.handle, nullptr, &a)) == cudaSuccess &&
            cudaGraphGetEdges(g.handle, nullptr, nullptr, nullptr, &b) == cudaSuccess &&
            cudaGraphGetRootNodes(g.handle, nullptr, &c) == cudaSuccess)
            out("%zu, %zu edges, %zu roots", a, b, c);
    }
}

static void exec_call(const Table<cudaGraph_t>::Picked &g)
{
    std::string name, text;
    const auto e = execs.pick();
    const auto s = pick_stream();
    const auto node = pick_node(g, &name);
    const int i = execs.place();
    const unsigned long long flags = one_of({ 0ull, 0ull, 0ull, 1ull, 8ull, 3ull, 64ull });
    cudaGraphExecUpdateResultInfo info = {};
    cudaKernelNodeParams k;
    Arguments a;
    unsigned on = draw(2);
    switch (draw(9)) {
    case 0:
    case 1:
        if (i < 0)
            break;
        say("cudaGraphInstantiate(exec%d, %s, %llu)", i, g.name.c_str(), flags);
        execs.live[i] = done(cudaGraphInstantiate(&execs.at[i], g.handle, flags)) == cudaSuccess;
        break;
    case 2:
        say("cudaGraphExecDestroy(%s)", e.name.c_str());
        if (done(cudaGraphExecDestroy(e.handle)) == cudaSuccess && e.slot >= 0)
            execs.live[e.slot] = false;
        break;
    case 3:
        say("cudaGraphExecUpdate(%s, %s)", e.name.c_str(), g.name.c_str());
        done(cudaGraphExecUpdate(e.handle, g.handle, &info));
        out("%d", (int)info.result);
        break;
    case 4:
        if (!kernel_params(&k, &a, &text))
            return;
        say("cudaGraphExecKernelNodeSetParams(%s, %s of %s, %s)", e.name.c_str(), name.c_str(), g.name.c_str(), text.c_str());
        done(cudaGraphExecKernelNodeSetParams(e.handle, node, &k));
        break;
    case 5:
        say("cudaGraphNodeSetEnabled(%s, %s of %s, %u)", e.name.c_str(), name.c_str(), g.name.c_str(), on);
        done(cudaGraphNodeSetEnabled(e.handle, node, on));
        break;
    case 6:
        say("cudaGraphUpload(%s, %s)", e.name.c_str(), s.name.c_str());
        done(cudaGraphUpload(e.handle, s.handle));
        break;
    default:
        say("cudaGraphLaunch(%s, %s)", e.name.c_str(), s.name.c_str());
        unordered |= done(cudaGraphLaunch(e.handle, s.handle)) == cudaSuccess;
        settle();
    }
}

static void call()
{
    const auto g = graphs.pick();
    switch (draw(8)) {
    case 0:
    case 1:
    case 2:
        add(g);
        break;
    case 3:
    case 4:
        node_call(g);
        break;
    case 5:
        graph_call(g);
        break;
    default:
        exec_call(g);
    }
}

static void begin()
{
    for (int i = 0; i < 2; i++) {
        say("cudaGraphCreate(graph%d)", i);
        graphs.live[i] = done(cudaGraphCreate(&graphs.at[i], 0)) == cudaSuccess;
    }
    for (int i = 0; i < 4; i++)
        add(graphs.pick());
}

const Subject graph_subject = { begin, call };
