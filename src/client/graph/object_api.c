/*
 * cuUserObject*, and a graph's references to user objects.
 */
#include <limits.h>

#include "client/gen/api.h"
#include "client/graph/object.h"

static struct rt_user_object *find(CUuserObject handle)
{
    struct rt_user_object *o = rt_object_find(&rt_user_objects, handle);
    return o && o->references ? o : NULL;
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
        rt_user_object_drop(at->object, count);
        if (at->count == 0)
            *at = g->retained[--g->retained_count];
        return CUDA_SUCCESS;
    }
    return CUDA_SUCCESS; /* NVIDIA's driver says so of references that a graph never had */
}

CUresult rt_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
                               unsigned int initialRefcount, unsigned int flags)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!object_out || !destroy || !initialRefcount || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_user_object *o = rt_object_take(&rt_user_objects);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->ptr = ptr;
    o->destroy = destroy;
    o->references = initialRefcount;
    rt_object_publish(&o->object);
    *object_out = (CUuserObject)rt_object_handle(&rt_user_objects, &o->object);
    return CUDA_SUCCESS;
}

/* The checks with which each call with a number of references begins. CUresult. */
static int enter(unsigned count)
{
    int r = rt_enter_plain();
    return r ? r : count == 0 || count > INT_MAX ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult rt_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    int r = enter(count);
    if (r)
        return r;
    rt_graph_lock();
    struct rt_user_object *o = find(object);
    if (o)
        o->references += count;
    rt_graph_unlock();
    return o ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    int r = enter(count);
    if (r)
        return r;
    rt_graph_lock();
    struct rt_user_object *o = find(object);
    r = o && o->references >= count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        rt_user_object_drop(o, count);
    rt_graph_unlock();
    return r;
}

CUresult rt_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                    unsigned int flags)
{
    int r = enter(count);
    if (r)
        return r;
    if (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
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
    int r = enter(count);
    if (r)
        return r;
    rt_graph_lock();
    struct rt_graph *g = rt_graph_find(graph);
    const struct rt_user_object *o = find(object);
    r = g && o ? release_some(g, o, count) : CUDA_ERROR_INVALID_VALUE;
    rt_graph_unlock();
    return r;
}
