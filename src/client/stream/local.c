/*
 * Each context has a list, which nearly every call of the runtime library reads, and therefore
 * without a lock. While the context lives entries are only added.
 */
#include "client/stream/local.h"

#include <stdlib.h>

struct rt_local {
    struct rt_local *next;
    void *key;
    _Atomic(void *) value; /* NULL: deleted */
    rt_local_destructor *destructor;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct rt_context *context_of(CUcontext handle)
{
    return handle ? rt_context_find(handle, false) : rt_current.context;
}

static struct rt_local *find(const struct rt_context *c, const void *key)
{
    struct rt_local *l = atomic_load_explicit(&c->locals, memory_order_acquire);
    while (l && l->key != key)
        l = l->next;
    return l;
}

CUresult rt_local_put(CUcontext handle, void *key, void *value, rt_local_destructor *destructor)
{
    struct rt_context *c = context_of(handle);
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    struct rt_local *l = find(c, key);
    if (!l && (l = calloc(1, sizeof(*l))) != NULL) {
        l->key = key;
        l->next = atomic_load_explicit(&c->locals, memory_order_relaxed);
        atomic_store_explicit(&c->locals, l, memory_order_release);
    }
    if (l) {
        l->destructor = destructor;
        atomic_store_explicit(&l->value, value, memory_order_release);
    } else {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult rt_local_delete(CUcontext handle, void *key)
{
    struct rt_context *c = context_of(handle);
    struct rt_local *l = c ? find(c, key) : NULL;
    if (l)
        atomic_store_explicit(&l->value, NULL, memory_order_release);
    return CUDA_SUCCESS;
}

CUresult rt_local_get(void **value, CUcontext handle, void *key)
{
    struct rt_context *c = context_of(handle);
    struct rt_local *l = c ? find(c, key) : NULL;
    *value = l ? atomic_load_explicit(&l->value, memory_order_acquire) : NULL;
    return *value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void rt_local_destroy_all(struct rt_context *c)
{
    struct rt_local *l = atomic_exchange(&c->locals, NULL);
    while (l) {
        struct rt_local *next = l->next;
        void *value = atomic_load(&l->value);
        if (value && l->destructor)
            l->destructor(rt_context_handle(c), l->key, value);
        free(l);
        l = next;
    }
}
