/*
 * A row of launches becomes a graph of the driver whose kernels follow each other. Each time the
 * graph is used, its kernels, their sizes and their parameters are set anew. Launching such a graph
 * takes hardly longer than launching one kernel, and the driver lets only one thread at a time
 * launch anything, while several may set parameters at once. And the GPU goes from one kernel to
 * the next by itself.
 *
 * A graph has one of two lengths. Launches that are left over go one by one, and so do those of a
 * row that the driver refuses as a graph, so that a launch's error is found and reported in the
 * usual place. Launches with attributes, launches that print, that precede others or that have
 * large parameters are never part of a row. Nor are kernels that were compiled for clusters: a node
 * whose function is set anew keeps the clusters of the function before, or their absence.
 */
#include "device/cuda/chain.h"
#include "device/cuda/mark.h"

#include <stdlib.h>
#include <string.h>

#include "device/cuda/capacity.h"
#include "device/cuda/inflight.h"
#include "device/cuda/library.h"

#define ROW         CUDA_CHAIN
#define ROW_BYTES   8192u /* parameters of all launches of a row */
#define PARAMS_MAX  1024u /* parameters of one launch */
#define PATIENCE    8u    /* rows until a graph is made; twice as many each time it is made again */
#define GRAPHS_MAX  32u   /* of a client */
#define GRAPH_KINDS 2u

static const uint32_t lengths[GRAPH_KINDS] = { ROW, 4 };

struct waiting {
    struct cuda_op_launch launch;
    uint64_t seq;
    uint32_t params;    /* where they are in chain->bytes */
    bool keeps_library; /* the following ones of the same library rely on that */
};

struct chain_graph {
    CUgraph graph; /* nodes are named by it */
    struct cuda_exec exec;
    CUgraphNode nodes[ROW];
    uint64_t place;   /* number of the one that its kernels run in */
    uint32_t modules; /* the client's count of changes when its functions were set */
    uint32_t made;    /* how often */
    uint32_t patience;
};

struct cuda_chain {
    struct chain_graph graphs[GRAPH_KINDS];
    struct waiting waiting[ROW];
    uint32_t count;
    uint32_t used; /* of bytes */
    uint8_t bytes[ROW_BYTES] GM_ALIGNED(16);
};

/* --- graphs ----------------------------------------------------------------------------------- */

struct node {
    CUDA_KERNEL_NODE_PARAMS kernel;
    void *extra[5];
    size_t size;
};

static void describe(const struct dev_queue *q, const struct waiting *w, struct node *n)
{
    const struct cuda_op_launch *l = &w->launch;
    const struct cuda_place *p = q->place;
    *n = (struct node) { .kernel = { .func = p->green ? NULL : l->loaded,
                                     .kern = p->green ? l->kernel : NULL,
                                     .ctx = p->green ? p->context : NULL,
                                     .gridDimX = l->grid[0],
                                     .gridDimY = l->grid[1],
                                     .gridDimZ = l->grid[2],
                                     .blockDimX = l->block[0],
                                     .blockDimY = l->block[1],
                                     .blockDimZ = l->block[2],
                                     .sharedMemBytes = l->shared_bytes },
                         .extra = { CU_LAUNCH_PARAM_BUFFER_POINTER, q->chain->bytes + w->params,
                                    CU_LAUNCH_PARAM_BUFFER_SIZE, &n->size, CU_LAUNCH_PARAM_END },
                         .size = l->params_size };
    n->kernel.extra = n->size ? n->extra : NULL;
}

static void drop_graph(struct dev_queue *q, struct chain_graph *g)
{
    const struct cuda_driver *api = &q->client->dev->api;
    cuda_capacity_graph_destroy(q->client, &g->exec);
    if (g->graph) {
        (void)api->cuGraphDestroy(g->graph);
        q->client->chain_graphs--;
    }
    g->graph = NULL;
    g->patience = PATIENCE << GM_MIN(g->made, 16u);
}

static CUresult make_graph(struct dev_queue *q, struct chain_graph *g, const struct waiting *row,
                           uint32_t length)
{
    const struct cuda_driver *api = &q->client->dev->api;
    CUresult r = q->client->chain_graphs < GRAPHS_MAX ? api->cuGraphCreate(&g->graph, 0)
                                                      : CUDA_ERROR_NOT_SUPPORTED;
    g->made++;
    if (r != CUDA_SUCCESS) {
        g->graph = NULL;
        return r;
    }
    q->client->chain_graphs++;
    for (uint32_t i = 0; i < length && r == CUDA_SUCCESS; i++) {
        struct node n;
        describe(q, &row[i], &n);
        r = api->cuGraphAddKernelNode_v2(&g->nodes[i], g->graph, i ? &g->nodes[i - 1] : NULL,
                                         i != 0, &n.kernel);
    }
    if (r == CUDA_SUCCESS)
        r = cuda_capacity_graph(&g->exec, g->graph);
    g->place = q->place->number;
    return r;
}

static CUresult set_graph(struct dev_queue *q, struct chain_graph *g, const struct waiting *row,
                          uint32_t length)
{
    CUresult r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < length && r == CUDA_SUCCESS; i++) {
        struct node n;
        describe(q, &row[i], &n);
        r = q->client->dev->api.cuGraphExecKernelNodeSetParams_v2(g->exec.handle, g->nodes[i],
                                                                  &n.kernel);
    }
    return r;
}

/* True for one in PATIENCE rows, if there is room for the graph. */
static bool may_make(struct dev_queue *q, struct chain_graph *g, uint32_t length)
{
    if (--g->patience > 0)
        return false;
    g->patience = PATIENCE;
    return cuda_capacity_take_graph(q, length, 0, &g->exec);
}

/* Some launch is older than the last change of the client's modules: only the waiting launch itself
 * may still keep its kernel. */
static bool is_older(const struct waiting *row, uint32_t length, uint32_t modules)
{
    for (uint32_t i = 0; i < length; i++)
        if (row[i].launch.modules != modules)
            return true;
    return false;
}

/* A graph still names the functions of its last row, and they must exist while they are replaced.
 * So the lock keeps the client's modules until the driver has been told, and a row with a launch
 * that has lost its module while it waited does not become a graph. False: the driver did not take
 * it. */
static bool launch_graph(struct dev_queue *q, struct chain_graph *g, const struct waiting *row,
                         uint32_t length)
{
    struct dev_client *c = q->client;
    pthread_mutex_lock(&c->modules_lock);
    uint32_t modules = atomic_load_explicit(&c->runs.modules, memory_order_acquire);
    if (g->exec.handle && (g->modules != modules || g->place != q->place->number ||
                           cuda_capacity_graph_is_stale(&g->exec)))
        drop_graph(q, g);
    if (is_older(row, length, modules) || (!g->exec.handle && !may_make(q, g, length))) {
        pthread_mutex_unlock(&c->modules_lock);
        return false;
    }
    CUresult r = g->exec.handle ? set_graph(q, g, row, length) : make_graph(q, g, row, length);
    g->modules = modules;
    if (r == CUDA_SUCCESS)
        r = cuda_capacity_graph_launch(q, &g->exec);
    pthread_mutex_unlock(&c->modules_lock);
    if (r == CUDA_SUCCESS)
        return true;
    if (cuda_is_fatal(r))
        cuda_die(c->dev, r);
    drop_graph(q, g);
    return false;
}

/* --- rows ------------------------------------------------------------------------------------- */

static struct cuda_chain *chain_of(struct dev_queue *q)
{
    if (!q->chain && (q->chain = malloc(sizeof(*q->chain)))) {
        q->chain->count = q->chain->used = 0;
        for (uint32_t i = 0; i < GRAPH_KINDS; i++)
            q->chain->graphs[i] = (struct chain_graph) { .patience = PATIENCE };
    }
    return q->chain;
}

bool cuda_chain_take(struct dev_queue *q, const struct cuda_op *op)
{
    const struct cuda_op_launch *l = &op->u.launch;
    bool begun = !gm_list_empty(&q->chained);
    if (op->kind != CUDA_OP_LAUNCH || !(begun || l->more) || l->attributes || l->prints ||
        l->in_clusters || l->precedes || l->params_size > PARAMS_MAX)
        return false;
    struct cuda_chain *chain = chain_of(q);
    if (!chain)
        return false;
    if (chain->used + l->params_size > ROW_BYTES)
        cuda_chain_hand_over(q);
    struct waiting *w = &chain->waiting[chain->count];
    *w = (struct waiting) { .launch = *l, .seq = op->seq, .params = chain->used };
    w->keeps_library = chain->count == 0 || w[-1].launch.library != l->library;
    if (w->keeps_library)
        cuda_library_keep(q->client->dev, l->library);
    if (l->params_size)
        memcpy(chain->bytes + chain->used, op->bytes, l->params_size);
    chain->used += (uint32_t)gm_padded(l->params_size);
    cuda_count(q, 1);
    if (chain->count++ == 0)
        gm_list_append(&q->client->chained, &q->chained);
    if (chain->count == ROW)
        cuda_chain_hand_over(q);
    return true;
}

static void empty(struct dev_queue *q)
{
    struct cuda_chain *chain = q->chain;
    for (uint32_t i = 0; i < chain->count; i++)
        if (chain->waiting[i].keeps_library)
            cuda_library_close(q->client->dev, chain->waiting[i].launch.library);
    chain->count = chain->used = 0;
    gm_list_remove(&q->chained);
}

static void launch_alone(struct dev_queue *q, const struct waiting *w)
{
    const struct cuda_op op = { .kind = CUDA_OP_LAUNCH,
                                .seq = w->seq,
                                .bytes = q->chain->bytes + w->params,
                                .u.launch = w->launch };
    cuda_op_submit(q, &op);
}

void cuda_chain_hand_over(struct dev_queue *q)
{
    if (GM_LIKELY(gm_list_empty(&q->chained)))
        return;
    struct cuda_chain *chain = q->chain;
    const uint32_t count = chain->count;
    uint32_t at = 0;
    cuda_enter(q->gpu);
    for (uint32_t k = 0; k < GRAPH_KINDS; k++)
        while (count - at >= lengths[k] &&
               launch_graph(q, &chain->graphs[k], &chain->waiting[at], lengths[k]))
            at += lengths[k];
    for (; at < count; at++)
        launch_alone(q, &chain->waiting[at]);
    uint64_t last = chain->waiting[count - 1].seq;
    empty(q);
    cuda_queue_submitted(q, last);
}

static void hand_over_all(struct dev_client *c)
{
    while (!gm_list_empty(&c->chained))
        cuda_chain_hand_over(gm_list_entry(c->chained.next, struct dev_queue, chained));
}

void cuda_hand_over(struct dev_client *c)
{
    hand_over_all(c);
    while (!gm_list_empty(&c->dirty))
        cuda_queue_mark(gm_list_entry(c->dirty.next, struct dev_queue, dirty));
}

void cuda_chain_drop(struct dev_queue *q)
{
    if (!gm_list_empty(&q->chained))
        empty(q);
}

void cuda_chains_leave(struct dev_client *c, uint64_t place)
{
    gm_list_for_each (q, &c->queues, struct dev_queue, link)
        for (uint32_t i = 0; q->chain && i < GRAPH_KINDS; i++)
            if (q->chain->graphs[i].exec.handle && q->chain->graphs[i].place == place)
                drop_graph(q, &q->chain->graphs[i]);
}

void cuda_chain_destroy(struct dev_queue *q)
{
    if (!q->chain)
        return;
    cuda_chain_drop(q);
    for (uint32_t i = 0; i < GRAPH_KINDS; i++)
        drop_graph(q, &q->chain->graphs[i]);
    free(q->chain);
    q->chain = NULL;
}
