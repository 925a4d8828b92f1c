/* Conditional nodes. The recorded behaviour is in docs/adr/0019; what kernels set is PTX for the
 * device runtime's function. */
#include "nodes.h"

#include <string.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    /* Takes 1 from a word, adds 1 to the one behind it, and sets the value to what is left. */
    ".visible .entry count_down(.param .u64 at, .param .u64 handle)\n{\n"
    " .reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
    " ld.param.u64 %rd1, [at]; ld.param.u64 %rd2, [handle];\n"
    " ld.global.u32 %r1, [%rd1]; sub.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;\n"
    " ld.global.u32 %r2, [%rd1+4]; add.u32 %r2, %r2, 1; st.global.u32 [%rd1+4], %r2;\n"
    " { .param .b64 h; .param .b32 v; st.param.b64 [h], %rd2; st.param.b32 [v], %r1;\n"
    " call.uni cudaGraphSetConditional, (h, v); }\n ret;\n}\n"
    ".visible .entry set(.param .u64 handle, .param .u32 value)\n{\n"
    " .reg .b32 %r<4>; .reg .b64 %rd<3>; ld.param.u64 %rd2, [handle]; ld.param.u32 %r1, [value];\n"
    " { .param .b64 h; .param .b32 v; st.param.b64 [h], %rd2; st.param.b32 [v], %r1;\n"
    " call.uni cudaGraphSetConditional, (h, v); }\n ret;\n}\n";

static CUcontext context(void)
{
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    return c;
}

static void need_kernels(void)
{
    if (!tap_computes())
        tap_skip("the null device runs no kernels");
}

static CUgraph graph(void)
{
    CUgraph g;
    OK(cuGraphCreate(&g, 0));
    return g;
}

static CUgraphConditionalHandle handle(CUgraph g, unsigned value)
{
    CUgraphConditionalHandle h;
    OK(cuGraphConditionalHandleCreate(&h, g, context(), value, CU_GRAPH_COND_ASSIGN_DEFAULT));
    return h;
}

static CUgraphNodeParams params(CUgraphConditionalHandle h, CUgraphConditionalNodeType kind,
                                unsigned size)
{
    return (CUgraphNodeParams) { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                 .conditional = {
                                     .handle = h, .type = kind, .size = size, .ctx = context() } };
}

/* The node's bodies; they are the node's. */
static CUgraph *add_condition(CUgraph g, const CUgraphNode *after, CUgraphConditionalHandle h,
                              CUgraphConditionalNodeType kind, unsigned size, CUgraphNode *out)
{
    CUgraphNodeParams p = params(h, kind, size);
    CUgraphNode n;
    OK(cuGraphAddNode(out ? out : &n, g, after, NULL, after ? 1 : 0, &p));
    return p.conditional.phGraph_out;
}

static CUgraphNode add_setter(CUgraph g, const CUgraphNode *after, const char *kernel,
                              void **values)
{
    static CUmodule module;
    CUfunction f;
    CUgraphNode n;
    if (!module)
        OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&f, module, kernel));
    CUDA_KERNEL_NODE_PARAMS k = one_thread(f, values);
    OK(cuGraphAddKernelNode(&n, g, after, after ? 1 : 0, &k));
    return n;
}

static CUdeviceptr zeroes(void)
{
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 64));
    OK(cuMemsetD32(p, 0, 16));
    return p;
}

/* if, if and else, and one of several, by the value that a launch begins with; what comes behind
 * comes behind. */
static void by_default(void)
{
    static const struct {
        CUgraphConditionalNodeType kind;
        unsigned size, value, runs; /* the body + 1; 0: none */
    } cases[] = {
        { CU_GRAPH_COND_TYPE_IF, 1, 1, 1 },     { CU_GRAPH_COND_TYPE_IF, 1, 0, 0 },
        { CU_GRAPH_COND_TYPE_IF, 2, 7, 1 },     { CU_GRAPH_COND_TYPE_IF, 2, 0, 2 },
        { CU_GRAPH_COND_TYPE_SWITCH, 3, 0, 1 }, { CU_GRAPH_COND_TYPE_SWITCH, 3, 2, 3 },
        { CU_GRAPH_COND_TYPE_SWITCH, 3, 3, 0 }, { CU_GRAPH_COND_TYPE_WHILE, 1, 0, 0 },
    };
    for (unsigned i = 0; i < COUNT(cases); i++) {
        CUdeviceptr p = zeroes();
        CUgraph g = graph();
        CUgraphNode n;
        CUgraph *bodies =
            add_condition(g, NULL, handle(g, cases[i].value), cases[i].kind, cases[i].size, &n);
        CUdeviceptr there = p + 16;
        for (unsigned k = 0; k < cases[i].size; k++)
            add_fill(bodies[k], NULL, 0, p, k + 1, 1);
        add_copy(g, &n, 1,
                 &(CUDA_MEMCPY3D) { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                    .srcDevice = p,
                                    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                    .dstDevice = there,
                                    .WidthInBytes = 4,
                                    .Height = 1,
                                    .Depth = 1 });
        CUgraphExec e = make(g);
        for (unsigned k = 0; k < 3; k++) {
            OK(cuMemsetD32(p, 0, 16));
            run(e);
            EQ(read_word(there), cases[i].runs);
        }
        OK(cuGraphExecDestroy(e));
        OK(cuGraphDestroy(g));
        OK(cuMemFree(p));
    }
}

/* Kernels set values: a loop runs as often as they say, launched again and again without waiting in
 * between. */
static void loop(void)
{
    CUdeviceptr p = zeroes();
    need_kernels();
    CUgraph g = graph();
    CUgraphConditionalHandle h = handle(g, 1);
    CUgraphNode fill = add_fill(g, NULL, 0, p, 25, 1);
    CUgraph *bodies = add_condition(g, &fill, h, CU_GRAPH_COND_TYPE_WHILE, 1, NULL);
    add_setter(bodies[0], NULL, "count_down", (void *[]) { &p, &h });
    CUgraphExec e = make(g);
    run(e);
    EQ(read_word(p), 0);
    EQ(read_word(p + 4), 25);
    for (unsigned i = 0; i < 10; i++)
        OK(cuGraphLaunch(e, stream));
    OK(cuGraphExecDestroy(e)); /* while it runs */
    OK(cuGraphDestroy(g));
    OK(cuStreamSynchronize(stream));
    EQ(read_word(p + 4), 25 * 11);
    OK(cuMemFree(p));
}

static void CUDA_CB count(void *arg)
{
    (*(unsigned *)arg)++;
}

/* A loop in a branch, with a host function (which the driver refuses there) and a switch in it;
 * beside it a branch that takes no part. */
static void nested(void)
{
    CUdeviceptr p = zeroes(), values = p + 16;
    unsigned calls = 0, one = 1;
    CUgraphNode n;
    need_kernels();
    CUgraph g = graph();
    CUgraphConditionalHandle outer = handle(g, 0), again = handle(g, 1), which = handle(g, 0);
    CUgraphNode setter = add_setter(g, NULL, "set", (void *[]) { &outer, &one });
    CUgraph *branch = add_condition(g, &setter, outer, CU_GRAPH_COND_TYPE_IF, 1, NULL);
    CUgraphNode five = add_fill(branch[0], NULL, 0, values, 5, 1);
    CUgraph *body = add_condition(branch[0], &five, again, CU_GRAPH_COND_TYPE_WHILE, 1, NULL);
    CUgraphNode step = add_setter(body[0], NULL, "count_down", (void *[]) { &values, &again });
    CUDA_HOST_NODE_PARAMS host = { .fn = count, .userData = &calls };
    if (!tap_gpu())
        OK(cuGraphAddHostNode(&n, body[0], &step, 1, &host));
    CUgraph *cases =
        add_condition(body[0], tap_gpu() ? &step : &n, which, CU_GRAPH_COND_TYPE_SWITCH, 2, NULL);
    add_kernel(cases[0], NULL, 0, p, 10);
    add_setter(cases[0], NULL, "set", (void *[]) { &which, &one });
    add_kernel(cases[1], NULL, 0, p, 1);
    add_kernel(g, NULL, 0, p + 32, 3);
    CUgraphExec e = make(g);
    run(e);
    run(e);
    EQ(calls, tap_gpu() ? 0 : 10);
    EQ(read_word(values + 4), 10);
    EQ(read_word(p), 2 * (10 + 4));
    EQ(read_word(p + 32), 6);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

/* A body is captured. */
static void captured(void)
{
    CUdeviceptr p = zeroes();
    CUgraph g = graph(), out;
    CUgraph *bodies = add_condition(g, NULL, handle(g, 1), CU_GRAPH_COND_TYPE_IF, 1, NULL);
    OK(cuStreamBeginCaptureToGraph(stream, bodies[0], NULL, NULL, 0,
                                   CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemsetD32Async(p, 9, 2, stream));
    OK(cuMemsetD32Async(p + 4, 8, 1, stream));
    OK(cuStreamEndCapture(stream, &out));
    TRUE(out == bodies[0]);
    CUgraphExec e = make(g);
    run(e);
    EQ(read_word(p), 9);
    EQ(read_word(p + 4), 8);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemFree(p));
}

/* A graph that is launched from two streams, and whose nodes, also those of a body, get other
 * parameters in between or are switched off. */
static void changed(void)
{
    CUdeviceptr p = zeroes();
    CUstream other;
    CUgraphNode add;
    need_kernels();
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CUgraph g = graph();
    CUgraphNode before = add_kernel(g, NULL, 0, p, 1);
    CUgraph *bodies = add_condition(g, &before, handle(g, 1), CU_GRAPH_COND_TYPE_IF, 2, &add);
    CUgraphNode inside = add_kernel(bodies[0], NULL, 0, p + 4, 10);
    add_kernel(bodies[1], NULL, 0, p + 4, 1000);
    add_kernel(g, &add, 1, p + 8, 100);
    CUgraphExec e = make(g);
    for (unsigned i = 0; i < 10; i++) {
        OK(cuGraphLaunch(e, stream));
        OK(cuGraphLaunch(e, other));
    }
    unsigned five = 5;
    CUDA_KERNEL_NODE_PARAMS k = add_to_params((void *[]) { &p, &five });
    OK(cuGraphExecKernelNodeSetParams(e, before, &k));
    run(e);
    OK(cuStreamSynchronize(other));
    EQ(read_word(p), 20 + 5);
    EQ(read_word(p + 4), 210);
    EQ(read_word(p + 8), 2100);
    CUdeviceptr there = p + 12;
    k = add_to_params((void *[]) { &there, &five });
    OK(cuGraphLaunch(e, stream));
    OK(cuGraphExecKernelNodeSetParams(e, inside, &k)); /* for launches from now on */
    run(e);
    EQ(read_word(p + 4), 220);
    EQ(read_word(there), 5);
    OK(cuGraphNodeSetEnabled(e, inside, 0));
    run(e);
    EQ(read_word(there), 5);
    EQ(read_word(p + 8), 2400);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy(other));
    OK(cuMemFree(p));
}

/* A loop that adds `by` to p[2] as often as p[0] says. */
static CUgraph counting(CUdeviceptr p, unsigned by, CUgraphNode *add)
{
    CUgraph g = graph();
    CUgraphConditionalHandle h = handle(g, 1);
    CUgraph *bodies = add_condition(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1, NULL);
    CUgraphNode step = add_setter(bodies[0], NULL, "count_down", (void *[]) { &p, &h });
    *add = add_kernel(bodies[0], &step, 1, p + 8, by);
    return g;
}

/* Updated from the graph it was made of, which has changed, from another one that is alike, and not
 * from others. */
static void updated(void)
{
    CUgraphExecUpdateResultInfo why = { 0 };
    CUdeviceptr p = zeroes();
    CUgraphNode add, other_add, n;
    need_kernels();
    CUgraph g = counting(p, 10, &add), alike = counting(p, 1000, &other_add),
            longer = counting(p, 1, &n);
    add_kernel(longer, NULL, 0, p, 1);
    CUgraphExec e = make(g);
    OK(cuMemsetD32(p, 3, 1));
    run(e);
    EQ(read_word(p + 8), 30);
    CUdeviceptr there = p + 8;
    unsigned hundred = 100;
    CUDA_KERNEL_NODE_PARAMS k = add_to_params((void *[]) { &there, &hundred });
    OK(cuGraphKernelNodeSetParams(add, &k));
    OK(cuGraphExecUpdate(e, g, &why));
    EQ(why.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(cuMemsetD32(p, 2, 1));
    run(e);
    EQ(read_word(p + 8), 230);
    OK(cuGraphExecUpdate(e, alike, &why));
    OK(cuMemsetD32(p, 4, 1));
    OK(cuGraphLaunch(e, stream));
    OK(cuGraphExecUpdate(e, alike, &why)); /* while it runs */
    OK(cuGraphDestroy(alike));
    OK(cuStreamSynchronize(stream));
    EQ(read_word(p + 8), 4230);
    IS(cuGraphExecUpdate(e, longer, &why), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    EQ(why.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(cuMemsetD32(p, 1, 1));
    run(e);
    EQ(read_word(p + 8), 5230);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(longer));
    OK(cuMemFree(p));
}

/* A handle is good for all graphs that are in each other. */
static void handles(void)
{
    CUgraph g = graph(), other = graph();
    CUgraphConditionalHandle mine, bodys;
    CUgraphNode n;
    CUgraphExec e;
    OK(cuGraphConditionalHandleCreate(&mine, g, context(), 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraph *bodies = add_condition(g, NULL, mine, CU_GRAPH_COND_TYPE_IF, 1, NULL);
    OK(cuGraphConditionalHandleCreate(&bodys, bodies[0], context(), 1,
                                      CU_GRAPH_COND_ASSIGN_DEFAULT));
    IS(cuGraphInstantiate(&e, g, 0), CUDA_ERROR_INVALID_VALUE); /* it has no node */
    CUgraphNodeParams p = params(bodys, CU_GRAPH_COND_TYPE_IF, 1);
    IS(cuGraphAddNode(&n, other, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    add_condition(g, NULL, bodys, CU_GRAPH_COND_TYPE_IF, 1, NULL);
    OK(cuGraphInstantiate(&e, g, 0));
    run(e);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(other));
}

static void refused(void)
{
    CUgraphConditionalHandle h, other;
    CUgraphNode n, child;
    CUgraphExec e, second;
    CUgraph clone;
    CUgraph g = graph(), parent = graph();
    IS(cuGraphConditionalHandleCreate(NULL, g, context(), 0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphConditionalHandleCreate(&h, NULL, context(), 0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphConditionalHandleCreate(&h, g, context(), 0, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphConditionalHandleCreate(&h, g, context(), 0, 0));
    IS(cuGraphInstantiate(&e, g, 0), CUDA_ERROR_INVALID_VALUE); /* it has no node */
    CUgraphNodeParams p = params(h, CU_GRAPH_COND_TYPE_WHILE, 2);
    IS(cuGraphAddNode(&n, g, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    p = params(h, CU_GRAPH_COND_TYPE_IF, 3);
    IS(cuGraphAddNode(&n, g, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    p = params(h, CU_GRAPH_COND_TYPE_SWITCH, 0);
    IS(cuGraphAddNode(&n, g, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    p = params(h, (CUgraphConditionalNodeType)9, 1);
    IS(cuGraphAddNode(&n, g, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    p = params(h + 1, CU_GRAPH_COND_TYPE_IF, 1);
    IS(cuGraphAddNode(&n, g, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    CUgraph body = add_condition(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 1, &n)[0];
    p = params(h, CU_GRAPH_COND_TYPE_IF, 1);
    IS(cuGraphAddNode(&child, g, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE); /* it has one */
    IS(cuGraphNodeSetParams(n, &p), CUDA_ERROR_NOT_SUPPORTED);
    IS(cuGraphDestroy(body), CUDA_ERROR_INVALID_VALUE); /* it is the node's */
    IS(cuGraphClone(&clone, g), CUDA_ERROR_NOT_SUPPORTED);
    IS(cuGraphAddChildGraphNode(&child, parent, NULL, 0, g), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuGraphInstantiate(&e, g, 0));
    IS(cuGraphInstantiate(&second, g, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroyNode(n));
    IS(cuGraphInstantiate(&e, g, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuGraphAddEmptyNode(&child, body, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    add_condition(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 1, &n); /* made again */
    OK(cuGraphInstantiate(&e, g, 0));
    OK(cuGraphDestroy(g));
    run(e);
    OK(cuGraphExecDestroy(e));
    other = h;
    p = params(other, CU_GRAPH_COND_TYPE_IF, 1);
    IS(cuGraphAddNode(&child, parent, NULL, NULL, 0, &p),
       CUDA_ERROR_INVALID_VALUE); /* its graph is gone */
    OK(cuGraphDestroy(parent));
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(by_default), TEST(loop),    TEST(nested),
                                             TEST(captured),   TEST(changed), TEST(updated),
                                             TEST(handles),    TEST(refused) };
    return nodes_main(tests, COUNT(tests));
}
