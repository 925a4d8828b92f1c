/*
 * User objects: what a graph keeps alive for the program. When the last reference is released a
 * function of the program's is called. It may not call CUDA, and our locks are not held then.
 */
#include <stdlib.h>

#include "client/graph/object.h"

struct rt_table rt_user_objects = RT_TABLE(RT_KIND_USER_OBJECT, struct rt_user_object);

static pthread_mutex_t due_lock = PTHREAD_MUTEX_INITIALIZER; /* taken inside the graph lock */
/* due_lock; objects whose destructors are to be called. */
static _Atomic(struct rt_user_object *) due;

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
        rt_object_release(&rt_user_objects, &o->object);
        o = next;
    }
}

void rt_user_object_drop(struct rt_user_object *o, uint64_t count)
{
    o->references -= count;
    if (o->references)
        return;
    pthread_mutex_lock(&due_lock);
    o->next = atomic_load_explicit(&due, memory_order_relaxed);
    atomic_store_explicit(&due, o, memory_order_relaxed);
    pthread_mutex_unlock(&due_lock);
}

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
        rt_user_object_drop(g->retained[i].object, g->retained[i].count);
    free(g->retained);
    g->retained = NULL;
    g->retained_count = 0;
}
