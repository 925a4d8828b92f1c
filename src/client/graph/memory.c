/*
 * Each allocation of a graph is one of the server's: a program has few of them. A node gets the
 * memory of an earlier node of its graph, if that has the same size and is freed by nodes that come
 * before this one.
 */
#include "client/graph/memory.h"

#include <stdlib.h>

#include "client/gen/api.h"
#include "client/graph/graph.h"
#include "client/memory/memory.h"

struct rt_graph_memory {
    struct gm_list link;
    uint64_t address, size;
    int device;
    unsigned references; /* by nodes, and by the program while it is allocated */
    bool live;
    bool lost; /* not in the list any more */
    bool used; /* a launch has used it since the program last trimmed */
    /* The queue of the last launch that used it, or of the program's free: it ends after that. */
    uint32_t number;
    uint64_t seq;
    /* These are used while a graph is searched. */
    unsigned allocations, frees; /* in nodes that come before */
    bool elsewhere;              /* other nodes name it, too */
};

static _Atomic unsigned memories; /* how many are in `all`; read without the lock */
static struct gm_list all = { &all, &all };
static struct books {
    uint64_t used, used_high, reserved, reserved_high; /* bytes */
} books[RT_DEVICES];

/* NVIDIA's driver takes memory for graphs in units of this size, and counts units. */
#define UNIT (32u << 20)

static void set_used(struct rt_graph_memory *m, bool is_used)
{
    struct books *b = &books[m->device];
    if (m->used != is_used)
        b->used = is_used ? b->used + m->size : b->used - m->size;
    m->used = is_used;
    b->used_high = GM_MAX(b->used, b->used_high);
}

int rt_graph_memory_create(struct rt_context *c, int device, uint64_t size,
                           struct rt_graph_memory **out)
{
    struct rt_graph_memory *m = calloc(1, sizeof(*m));
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (void)rt_memory_reap(false);
    int r = rt_request_alloc(rt_session, size, 0, WIRE_MEMORY_KIND_DEVICE, device, &m->address);
    if (r) {
        free(m);
        return r;
    }
    struct rt_range range = { .base = m->address,
                              .size = size,
                              .window = m->address,
                              .kind = RT_MEMORY_GRAPH,
                              .context = rt_context_owner(c),
                              .device = device };
    r = rt_memory_insert(&range);
    if (r) {
        (void)rt_request_free(rt_session, m->address);
        free(m);
        return r;
    }
    m->size = size;
    m->device = device;
    m->references = 1;
    gm_list_append(&all, &m->link);
    atomic_fetch_add_explicit(&memories, 1, memory_order_relaxed);
    books[device].reserved += size;
    books[device].reserved_high = GM_MAX(books[device].reserved, books[device].reserved_high);
    *out = m;
    return CUDA_SUCCESS;
}

void rt_graph_memory_ref(struct rt_graph_memory *m)
{
    m->references++;
}

static void leave(struct rt_graph_memory *m)
{
    gm_list_remove(&m->link);
    atomic_fetch_sub_explicit(&memories, 1, memory_order_relaxed);
    books[m->device].reserved -= m->size;
    set_used(m, false);
}

void rt_graph_memory_unref(struct rt_graph_memory *m)
{
    struct rt_range range;
    if (--m->references)
        return;
    if (!m->lost) {
        leave(m);
        if (rt_memory_remove(m->address, 1u << RT_MEMORY_GRAPH, &range))
            rt_memory_free_later(m->address, NULL, m->number, m->seq);
    }
    free(m);
}

bool rt_graph_memory_lost(const struct rt_graph_memory *m)
{
    return m->lost;
}

void rt_graph_memory_lose(uint64_t address)
{
    rt_graph_lock();
    struct rt_graph_memory *m = rt_graph_memory_find(address);
    if (m) {
        leave(m);
        m->lost = true;
        rt_graph_memory_set_live(m, false);
    }
    rt_graph_unlock();
}

struct rt_graph_memory *rt_graph_memory_find(CUdeviceptr address)
{
    gm_list_for_each (m, &all, struct rt_graph_memory, link)
        if (m->address == address)
            return m;
    return NULL;
}

uint64_t rt_graph_memory_address(const struct rt_graph_memory *m)
{
    return m->address;
}

bool rt_graph_memory_live(const struct rt_graph_memory *m)
{
    return m->live;
}

void rt_graph_memory_use(struct rt_graph_memory *m, uint32_t number, uint64_t seq)
{
    m->number = number;
    m->seq = seq;
}

void rt_graph_memory_set_live(struct rt_graph_memory *m, bool live)
{
    if (m->live == live)
        return;
    m->live = live;
    if (live)
        set_used(m, true);
    if (live)
        m->references++;
    else
        rt_graph_memory_unref(m);
}

int rt_graph_memory_free(uint64_t address, uint32_t number, uint64_t seq)
{
    int r = CUDA_ERROR_NOT_FOUND;
    if (GM_LIKELY(!atomic_load_explicit(&memories, memory_order_relaxed)))
        return r;
    rt_graph_lock();
    struct rt_graph_memory *m = rt_graph_memory_find(address);
    if (m && !m->live) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else if (m) {
        if (seq)
            rt_graph_memory_use(m, number, seq);
        rt_graph_memory_set_live(m, false);
        r = CUDA_SUCCESS;
    }
    rt_graph_unlock();
    return r;
}

/* --- memory that a graph has freed ------------------------------------------------------------ */

static void visit(struct rt_node *n, const struct rt_graph *g, struct rt_node **stack,
                  uint32_t *depth)
{
    if (!n || n->graph != g || n->waiting)
        return;
    n->waiting = 1;
    stack[(*depth)++] = n;
}

/* Sets `waiting` of the nodes before one that has these dependencies. */
static bool mark_ancestors(const struct rt_graph *g, const CUgraphNode *dependencies, size_t count)
{
    struct rt_node **stack = malloc((g->count + 1) * sizeof(struct rt_node *));
    uint32_t depth = 0;
    if (!stack)
        return false;
    gm_list_for_each (n, &g->nodes, struct rt_node, link)
        n->waiting = 0;
    for (size_t i = 0; i < count; i++)
        visit(rt_node_find(dependencies[i]), g, stack, &depth);
    while (depth) {
        const struct rt_node *n = stack[--depth];
        for (uint32_t i = 0; i < n->in.count; i++)
            visit(n->in.at[i].node, g, stack, &depth);
    }
    free(stack);
    return true;
}

static struct rt_graph_memory *memory_of(const struct rt_node *n)
{
    return n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
                   n->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE
               ? n->params.memory.memory
               : NULL;
}

static void count_nodes(const struct rt_graph *g)
{
    struct rt_graph_memory *m;
    gm_list_for_each (n, &g->nodes, struct rt_node, link)
        if ((m = memory_of(n)) != NULL) {
            m->allocations = m->frees = 0;
            m->elsewhere = false;
        }
    gm_list_for_each (n, &g->nodes, struct rt_node, link)
        if ((m = memory_of(n)) != NULL) {
            m->elsewhere |= !n->waiting;
            m->allocations += n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
            m->frees += n->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
        }
}

struct rt_graph_memory *rt_graph_memory_reuse(const struct rt_graph *g,
                                              const CUgraphNode *dependencies, size_t count,
                                              int device, uint64_t size)
{
    struct rt_graph_memory *m;
    if (!g || !count || !dependencies || !mark_ancestors(g, dependencies, count))
        return NULL;
    count_nodes(g);
    gm_list_for_each (n, &g->nodes, struct rt_node, link)
        if ((m = memory_of(n)) != NULL && !m->elsewhere && m->allocations &&
            m->allocations == m->frees && m->device == device && m->size == size)
            return m;
    return NULL;
}

/* --- entry points ----------------------------------------------------------------------------- */

static int check_device(CUdevice device)
{
    int r = rt_enter_any();
    if (r)
        return r;
    return device >= 0 && (unsigned)device < rt_session->device_count ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_DEVICE;
}

/* Trims. Memory that no node names is never kept. Other memory stays, but does not count as used
 * until the next launch. */
CUresult rt_cuDeviceGraphMemTrim(CUdevice device)
{
    int r = check_device(device);
    if (r)
        return r;
    rt_graph_lock();
    gm_list_for_each (m, &all, struct rt_graph_memory, link)
        if (!m->live && m->device == device)
            set_used(m, false);
    rt_graph_unlock();
    return CUDA_SUCCESS;
}

CUresult rt_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    int r = check_device(device);
    if (r)
        return r;
    if (!value || (unsigned)attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    const struct books *b = &books[device];
    uint64_t bytes = attr == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT       ? b->used
                     : attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH        ? b->used_high
                     : attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? b->reserved
                                                                      : b->reserved_high;
    rt_graph_unlock();
    *(cuuint64_t *)value = (bytes + UNIT - 1) / UNIT * UNIT;
    return CUDA_SUCCESS;
}

/* Sets an attribute. Only the high-water marks can be set, and only back. */
CUresult rt_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    int r = check_device(device);
    if (r)
        return r;
    if (!value || *(const cuuint64_t *)value != 0 ||
        (attr != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        books[device].used_high = books[device].used;
    else
        books[device].reserved_high = books[device].reserved;
    rt_graph_unlock();
    return CUDA_SUCCESS;
}
