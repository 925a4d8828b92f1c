/*
 * Puts the nodes of a graph and of its child graphs into one order, and assigns them to branches. A
 * branch is a stream; what does not depend on each other runs in several of them at the same time.
 * For each branch, an item knows the last item before it. So nothing is waited for twice, and an
 * item can use a branch whose work all comes before it.
 *
 * Kernels of one device share branches; other nodes may be in any.
 *
 * If branches run out, an item comes after others that it does not depend on. That is correct, but
 * slower.
 */
#include "client/graph/exec.h"

#include <stdlib.h>
#include <string.h>

/* For each branch, the last item that comes before something; -1: none. */
struct clock {
    int32_t at[RT_GRAPH_BRANCHES];
};

struct plan {
    struct rt_exec_body *body;
    struct clock *clocks; /* one for each item */
    int32_t tail[RT_GRAPH_BRANCHES];
    uint32_t capacity, waits_capacity;
};

static const struct clock never = { { -1, -1, -1, -1, -1, -1, -1, -1 } };
_Static_assert(RT_GRAPH_BRANCHES == 8, "as many as there are numbers in `never`");

static void merge(struct clock *into, const struct clock *from)
{
    for (unsigned l = 0; l < RT_GRAPH_BRANCHES; l++)
        into->at[l] = GM_MAX(into->at[l], from->at[l]);
}

static bool plan_room(struct plan *p)
{
    struct rt_exec_body *b = p->body;
    if (b->items_count < p->capacity)
        return true;
    uint32_t capacity = p->capacity ? 2 * p->capacity : 64;
    struct rt_item *items = realloc(b->items, capacity * sizeof(*items));
    if (items)
        b->items = items;
    struct clock *clocks = realloc(p->clocks, capacity * sizeof(*clocks));
    if (clocks)
        p->clocks = clocks;
    if (!items || !clocks)
        return false;
    p->capacity = capacity;
    return true;
}

static bool add_wait(struct plan *p, int32_t item)
{
    struct rt_exec_body *b = p->body;
    if (b->waits_count == p->waits_capacity) {
        uint32_t capacity = p->waits_capacity ? 2 * p->waits_capacity : 16;
        uint32_t *grown = realloc(b->waits, capacity * sizeof(*grown));
        if (!grown)
            return false;
        b->waits = grown;
        p->waits_capacity = capacity;
    }
    b->waits[b->waits_count++] = (uint32_t)item;
    b->items[item].marked = true;
    return true;
}

/* Chooses a branch all of whose items come before this one anyway; preferably the branch of the
 * item directly before. The branch is for kernels of `device`, unless that is -1. */
static uint32_t choose_branch(const struct plan *p, const struct clock *after, int device)
{
    int32_t latest = -1;
    uint32_t best = RT_GRAPH_BRANCHES, any = RT_GRAPH_BRANCHES;
    for (uint32_t l = 0; l < (p->body->single ? 1 : RT_GRAPH_BRANCHES); l++) {
        int on = p->body->on[l].device;
        if (device >= 0 && on >= 0 && on != device)
            continue;
        any = GM_MIN(any, l);
        if (p->tail[l] <= after->at[l] && (best == RT_GRAPH_BRANCHES || after->at[l] > latest)) {
            best = l;
            latest = after->at[l];
        }
    }
    return best < RT_GRAPH_BRANCHES ? best : any;
}

/* Adds an item that comes after all in `after`. With `node` NULL the item does nothing. Returns its
 * number, or -1. */
static int32_t add_item(struct plan *p, struct rt_node *node, const struct clock *after)
{
    struct rt_exec_body *b = p->body;
    if (!plan_room(p))
        return -1;
    const struct rt_kernel *k =
        node && node->params.type == CU_GRAPH_NODE_TYPE_KERNEL ? &node->params.kernel : NULL;
    uint32_t branch = choose_branch(p, after, k ? rt_kernel_device(k) : -1);
    if (branch == RT_GRAPH_BRANCHES) /* there are more devices than branches */
        return -1;
    if (k && b->on[branch].device < 0) {
        b->on[branch].device = rt_kernel_device(k);
        b->on[branch].context = k->ctx;
    }
    int32_t before = p->tail[branch];
    struct clock seen = before >= 0 ? p->clocks[before] : never;
    struct rt_item *item = &b->items[b->items_count];
    *item = (struct rt_item) { .node = node, .branch = branch, .waits_at = b->waits_count };
    for (uint32_t l = 0; l < RT_GRAPH_BRANCHES; l++)
        if (l != branch && after->at[l] > seen.at[l] && !add_wait(p, after->at[l]))
            return -1;
    item->waits_count = b->waits_count - item->waits_at;
    item->first = branch != 0 && before < 0 && item->waits_count == 0;
    merge(&seen, after);
    int32_t number = (int32_t)b->items_count++;
    seen.at[branch] = number;
    p->clocks[number] = seen;
    p->tail[branch] = number;
    b->branches = GM_MAX(b->branches, branch + 1);
    return number;
}

static int plan_graph(struct plan *p, const struct rt_graph *g, const struct clock *before,
                      struct clock *end);

/* Plans a node. The items of a child graph take the place of its node. One item comes before all of
 * them, and another comes after all. */
static int plan_node(struct plan *p, struct rt_node *n, const struct clock *before)
{
    struct rt_exec_body *b = p->body;
    struct clock after = *before, end;
    for (uint32_t i = 0; i < n->in.count; i++)
        merge(&after, &p->clocks[n->in.at[i].node->waiting]);
    b->index[b->index_count++] = (struct rt_by_original) { n->original, n };
    bool child = n->params.type == CU_GRAPH_NODE_TYPE_GRAPH;
    int32_t number = add_item(p, child ? NULL : n, &after);
    if (number < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (child) {
        struct clock entry = p->clocks[number];
        int r = plan_graph(p, n->params.child, &entry, &end);
        if (r)
            return r;
        number = add_item(p, NULL, &end);
        if (number < 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        b->order[b->order_count++] = n;
    }
    n->waiting = (uint32_t)number;
    return CUDA_SUCCESS;
}

/* Plans a graph, all of which comes after `before`. *end is what comes after all of the graph. */
static int plan_graph(struct plan *p, const struct rt_graph *g, const struct clock *before,
                      struct clock *end)
{
    struct rt_node **sorted = malloc((g->count + 1) * sizeof(struct rt_node *));
    int r = sorted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (sorted && !rt_graph_sort(g, sorted))
        r = CUDA_ERROR_INVALID_VALUE;
    *end = *before;
    for (uint32_t i = 0; i < g->count && r == CUDA_SUCCESS; i++) {
        r = plan_node(p, sorted[i], before);
        if (r == CUDA_SUCCESS)
            merge(end, &p->clocks[sorted[i]->waiting]);
    }
    free(sorted);
    return r;
}

int rt_order_make(struct rt_exec_body *b)
{
    struct plan p = { .body = b };
    struct clock end;
    for (unsigned l = 0; l < RT_GRAPH_BRANCHES; l++)
        p.tail[l] = b->on[l].device = -1;
    int r = plan_graph(&p, b->graph, &never, &end);
    /* The launch's stream comes after all of the graph. */
    struct clock seen = p.tail[0] >= 0 ? p.clocks[p.tail[0]] : never;
    b->joins_at = b->waits_count;
    for (uint32_t l = 1; l < RT_GRAPH_BRANCHES && r == CUDA_SUCCESS; l++)
        if (p.tail[l] > seen.at[l] && !add_wait(&p, p.tail[l]))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    b->joins_count = b->waits_count - b->joins_at;
    free(p.clocks);
    if (r == CUDA_SUCCESS) {
        b->marks = calloc(b->items_count + 1, sizeof(*b->marks));
        r = b->marks ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    return r;
}

void rt_order_finish(struct rt_exec_body *b)
{
    free(b->items);
    free(b->waits);
    free(b->marks);
}
