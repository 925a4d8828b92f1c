/*
 * User objects: what a graph keeps alive for the program. When the last reference goes away, a
 * function of the program's is called, which may not call CUDA, and never with our lock held.
 */
#include <limits.h>
#include <stdlib.h>

#include "client/gen/api.h"
#include "client/graph/graph.h"

struct rt_user_object {
    struct rt_object object;
    void *ptr;
    CUhostFn destroy;
    uint64_t references;         /* graph lock */
    struct rt_user_object *next; /* due */
};

static struct rt_table user_objects = RT_TABLE(RT_KIND_USER_OBJECT, struct rt_user_object);

static pthread_mutex_t due_lock = PTHREAD_MUTEX_INITIALIZER; /* inside the graph lock */
static _Atomic(struct rt_user_object *) due; /* due_lock; destructors to be called */

void rt_user_objects_reap(void)
{
    if (GM_LIKELY(!atomic_load_explicit(&due, memory_order_relaxed)))
        return;
    pthread_mutex_lock(&due_lock);
    struct rt_user_object *o = atomic_exchange_explicit(&due, NULL, memory_order_relaxed);
    pthread_mutex_unlock(&due_lock);
    while (o) {
        struct rt_user_object *next = o->next;
        bool before = rt_current.in_callback;
        rt_current.in_callback = true;
        o->destroy(o->ptr);
        rt_current.in_callback = before;
        rt_object_release(&user_objects, &o->object);
        o = next;
    }
}

static void drop(struct rt_user_object *o, uint64_t count)
{
    o->references -= count;
    if (o->references)
        return;
    pthread_mutex_lock(&due_lock);
    o->next = atomic_load_explicit(&due, memory_order_relaxed);
    atomic_store_explicit(&due, o, memory_order_relaxed);
    pthread_mutex_unlock(&due_lock);
}

static struct rt_user_object *find(CUuserObject handle)
{
    struct rt_user_object *o = rt_object_find(&user_objects, handle);
    return o && o->references ? o : NULL;
}

/* --- a graph's -------------------------------------------------------------------------------- */

int rt_graph_retain(struct rt_graph *g, struct rt_user_object *o, unsigned count, bool move)
{
    struct rt_retained *at = NULL;
    for (uint32_t i = 0; i < g->retained_count; i++)
        if (g->retained[i].object == o)
            at = &g->retained[i];
    if (!at) {
        struct rt_retained *grown = realloc(g->retained, (g->retained_count + 1) * sizeof(*grown));
        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        g->retained = grown;
        at = &grown[g->retained_count++];
        *at = (struct rt_retained) { .object = o };
    }
    at->count += count;
    if (!move)
        o->references += count;
    return CUDA_SUCCESS;
}

int rt_graph_retain_all(struct rt_graph *g, const struct rt_graph *from)
{
    int r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < from->retained_count && r == CUDA_SUCCESS; i++)
        r = rt_graph_retain(g, from->retained[i].object, from->retained[i].count, false);
    return r;
}

void rt_graph_release_all(struct rt_graph *g)
{
    for (uint32_t i = 0; i < g->retained_count; i++)
        drop(g->retained[i].object, g->retained[i].count);
    free(g->retained);
    g->retained = NULL;
    g->retained_count = 0;
}

static int release_some(struct rt_graph *g, const struct rt_user_object *o, unsigned count)
{
    for (uint32_t i = 0; i < g->retained_count; i++) {
        struct rt_retained *at = &g->retained[i];
        if (at->object != o)
            continue;
        if (at->count < count)
            return CUDA_ERROR_INVALID_VALUE;
        at->count -= count;
        drop(at->object, count);
        if (at->count == 0)
            *at = g->retained[--g->retained_count];
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/* --- entry points ----------------------------------------------------------------------------- */

CUresult rt_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
                               unsigned int initialRefcount, unsigned int flags)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!object_out || !destroy || !initialRefcount || initialRefcount > INT_MAX ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_user_object *o = rt_object_take(&user_objects);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->ptr = ptr;
    o->destroy = destroy;
    o->references = initialRefcount;
    rt_object_publish(&o->object);
    *object_out = (CUuserObject)rt_object_handle(&user_objects, &o->object);
    return CUDA_SUCCESS;
}

CUresult rt_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!count || count > INT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    struct rt_user_object *o = find(object);
    if (o)
        o->references += count;
    rt_graph_unlock();
    return o ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!count || count > INT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    struct rt_user_object *o = find(object);
    r = o && o->references >= count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        drop(o, count);
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                    unsigned int flags)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!count || count > INT_MAX || (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE))
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    struct rt_graph *g = rt_graph_find(graph);
    struct rt_user_object *o = find(object);
    r = g && o ? rt_graph_retain(g, o, count, flags & CU_GRAPH_USER_OBJECT_MOVE)
               : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    int r = rt_enter_any();
    if (r)
        return r;
    if (!count || count > INT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    rt_graph_lock();
    struct rt_graph *g = rt_graph_find(graph);
    const struct rt_user_object *o = find(object);
    r = g && o ? release_some(g, o, count) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}
